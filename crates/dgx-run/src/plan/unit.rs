use std::collections::BTreeMap;
use std::sync::Arc;

use super::OperatorCall;
use super::triton::TritonRequest;
use crate::catalog::{Contender, Headers, Language};

/// One thing to compile: a source with its constants fixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranslationUnit {
    /// The file's name in messages, e.g. `variants/interleaved.cu`.
    pub name: String,
    pub source: Arc<str>,
    /// NVRTC target, e.g. `sm_90a`.
    pub arch: String,
    /// The source's own.
    pub flags: Vec<String>,
    /// `-DNAME=value`, in order: constants, map and scratch indices.
    pub defines: Vec<(String, String)>,
    /// All that it may include.
    pub headers: Arc<Headers>,
    pub compiler: CompilerKind,
    /// The launched kernels, by their names in the source or its front matter, without repeats.
    pub kernels: Vec<String>,
}

/// The compiler of a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CompilerKind {
    #[default]
    Nvrtc,
    Ptxas,
    Triton(TritonRequest),
}

impl TranslationUnit {
    /// The source of a contender, with these constants.
    pub(super) fn of(
        contender: &Contender,
        constants: &BTreeMap<String, i64>,
        call: &OperatorCall,
    ) -> Self {
        let variant = &contender.variant;
        let mut defines = constants.clone();
        defines.insert("MAPS".to_owned(), variant.maps.len() as i64);
        for (index, map) in variant.maps.iter().enumerate() {
            defines.insert(macro_name("MAP", &map.name), index as i64);
        }
        for scratch in &variant.scratch {
            defines.insert(macro_name("SCRATCH", &scratch.name), scratch.slot as i64);
        }
        let mut kernels: Vec<String> = Vec::new();
        for launch in &variant.launches {
            if !kernels.contains(&launch.kernel) {
                kernels.push(launch.kernel.clone());
            }
        }
        let triton = TritonRequest::of(contender, call, constants);
        let defines = defines.into_iter();
        Self {
            name: variant.file.path.display().to_string(),
            source: Arc::clone(&variant.code),
            headers: Arc::clone(&variant.headers),
            arch: variant.arch.clone(),
            flags: variant.flags.clone(),
            defines: defines
                .map(|(name, value)| (name, value.to_string()))
                .collect(),
            compiler: match (triton, variant.language) {
                (Some(request), _) => CompilerKind::Triton(request),
                (None, Language::Ptx) => CompilerKind::Ptxas,
                (None, Language::Cuda | Language::Triton) => CompilerKind::Nvrtc,
            },
            kernels,
        }
    }

    pub fn flags(&self) -> Vec<String> {
        let mut flags = vec![
            format!("--gpu-architecture={}", self.arch),
            "-lineinfo".to_owned(),
            "--ptxas-options=-v".to_owned(),
        ];
        let is_standard = |flag: &String| flag.trim_start_matches('-').starts_with("std=");
        if !self.flags.iter().any(is_standard) {
            flags.push("--std=c++17".to_owned());
        }
        flags.extend(self.flags.iter().cloned());
        flags.extend(self.defines.iter().map(|(k, v)| format!("-D{k}={v}")));
        flags
    }
}

fn macro_name(prefix: &str, name: &str) -> String {
    format!("{prefix}_{}", name.to_ascii_uppercase())
}
