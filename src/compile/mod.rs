//! From `.cu` text to a cubin and PTX, by NVRTC, once per content.
//!
//! A compile error is a result here, not a failure of dgx: only a missing or
//! broken compiler is an [`Error`]. Nothing in this room knows a device.

mod cache;
mod diagnostics;
mod headers;
mod locate;
mod nvrtc;
mod occupancy;

use std::path::{Path, PathBuf};
use std::time::Instant;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

pub use cache::{Cache, cache_root};
pub use headers::{Headers, content_hash};
pub use locate::{
    Found, Origin, file_or_folder, preload, python_library_folders, search, system_library_folders,
};
pub use nvrtc::Nvrtc;
pub use occupancy::{Residency, occupancy, residency};

/// Why nothing could be compiled at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "no NVRTC found (looked at {looked}); run through scripts/dgx, which fetches it, or set DGX_NVRTC to libnvrtc or its folder"
    )]
    Missing { looked: String },
    #[error("cannot load NVRTC from {path}: {reason}")]
    Unloadable { path: PathBuf, reason: String },
    #[error(
        "NVRTC {found} at {path} is too old: 12.0 or newer compiles for sm_90a; set DGX_NVRTC to a newer one"
    )]
    TooOld { found: String, path: PathBuf },
    #[error(
        "{wanted} was asked for, but another libnvrtc.so is found first on the library path; unset DGX_NVRTC, or put its folder first in LD_LIBRARY_PATH"
    )]
    Shadowed { wanted: PathBuf },
    #[error("NVRTC itself failed on {unit}: {reason}")]
    Broken { unit: String, reason: String },
    #[error("cannot read {path}: {source}")]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(
        "cannot write the compile cache at {path}: {source}; set DGX_CACHE to a folder you can write"
    )]
    Cache {
        path: PathBuf,
        source: std::io::Error,
    },
}

/// One thing to compile: a source with its constants fixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// How messages name the file, e.g. `variants/interleaved.cu`.
    pub name: String,
    pub source: String,
    /// NVRTC target, e.g. `sm_90a`.
    pub arch: String,
    /// `-DNAME=value`, in order.
    pub defines: Vec<(String, String)>,
    /// Include path, e.g. `variants/include`.
    pub include: Vec<PathBuf>,
}

impl Unit {
    fn flags(&self) -> Vec<String> {
        let mut flags = vec![
            format!("--gpu-architecture={}", self.arch),
            "--std=c++17".to_owned(),
            "-lineinfo".to_owned(),
            "--ptxas-options=-v".to_owned(),
        ];
        flags.extend(self.defines.iter().map(|(k, v)| format!("-D{k}={v}")));
        flags
    }
}

/// What ptxas says of one kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelReport {
    pub name: String,
    pub registers: u32,
    pub spill_bytes: u32,
    pub static_smem: u32,
}

/// A compiled unit: machine code for the GPU, PTX for the emulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Names the content: equal keys mean equal source, headers, flags and compiler.
    pub key: String,
    pub cubin: Vec<u8>,
    pub ptx: String,
    pub kernels: Vec<KernelReport>,
    /// ptxas remarks that mean lost speed.
    pub remarks: Vec<String>,
}

/// What became of one unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Compiled {
    /// The image, or the compiler's message with the `.cu` lines in it.
    pub outcome: Result<Image, String>,
    pub cached: bool,
    pub millis: f64,
}

/// NVRTC behind the cache.
pub struct Compiler {
    nvrtc: &'static Nvrtc,
    cache: Cache,
}

impl Compiler {
    /// Finds NVRTC and opens the cache under `root`.
    pub fn new(root: &Path) -> Result<Self, Error> {
        Ok(Self {
            nvrtc: Nvrtc::find()?,
            cache: Cache::open(root)?,
        })
    }

    /// e.g. `NVRTC 13.0`.
    pub fn version(&self) -> String {
        self.nvrtc.version_text()
    }

    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Compiles one unit, or takes it from the cache.
    pub fn compile(&self, unit: &Unit) -> Result<Compiled, Error> {
        let began = Instant::now();
        let headers = Headers::of(&unit.source, &unit.include)?;
        let key = self.key(unit, &headers);
        if let Some(outcome) = self.cache.load(&key) {
            return Ok(Compiled {
                outcome,
                cached: true,
                millis: began.elapsed().as_secs_f64() * 1e3,
            });
        }
        let outcome = self.build(unit, &key)?;
        self.cache.publish(&key, &outcome)?;
        Ok(Compiled {
            outcome,
            cached: false,
            millis: began.elapsed().as_secs_f64() * 1e3,
        })
    }

    /// Compiles all units on all cores, in the order given; `done` hears of
    /// each as it ends, from whichever thread it ended on. Once `stop` says so
    /// no other is begun, and those that were not are `None`.
    pub fn compile_all(
        &self,
        units: &[Unit],
        done: impl Fn(usize, &Compiled) + Sync,
        stop: impl Fn() -> bool + Sync,
    ) -> Result<Vec<Option<Compiled>>, Error> {
        units
            .par_iter()
            .enumerate()
            .map(|(index, unit)| {
                if stop() {
                    return Ok(None);
                }
                let compiled = self.compile(unit)?;
                done(index, &compiled);
                Ok(Some(compiled))
            })
            .collect()
    }

    fn key(&self, unit: &Unit, headers: &Headers) -> String {
        let mut parts = vec![
            "dgx image 2".to_owned(),
            self.version(),
            unit.name.clone(),
            unit.source.clone(),
        ];
        parts.extend(unit.flags());
        parts.extend(
            headers
                .files()
                .flat_map(|(name, text)| [name.to_owned(), text.to_owned()]),
        );
        content_hash(&parts)
    }

    fn build(&self, unit: &Unit, key: &str) -> Result<Result<Image, String>, Error> {
        let mut flags = unit.flags();
        flags.extend(unit.include.iter().map(|i| format!("-I{}", i.display())));
        let output = self.nvrtc.compile(&unit.name, &unit.source, &flags)?;
        let Some(cubin) = output.cubin else {
            let message = diagnostics::error_message(&output.log, &output.ptx, &unit.name);
            return Ok(Err(message));
        };
        let (kernels, remarks) = diagnostics::resources(&output.log);
        Ok(Ok(Image {
            key: key.to_owned(),
            cubin,
            ptx: relative(output.ptx),
            kernels,
            remarks,
        }))
    }
}

/// Source files named as a user would type them. NVRTC writes the folder it
/// ran in before every relative name; an image must not depend on where the
/// repository lay when it was made.
fn relative(ptx: String) -> String {
    match std::env::current_dir() {
        Ok(here) => ptx.replace(&format!("\"{}/", here.display()), "\""),
        Err(_) => ptx,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(source: &str) -> Unit {
        Unit {
            name: "variants/x.cu".to_owned(),
            source: source.to_owned(),
            arch: "sm_90a".to_owned(),
            defines: vec![("STAGES".to_owned(), "3".to_owned())],
            include: vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("variants/include")],
        }
    }

    const KERNEL: &str = "#include <dgx/abi.cuh>\n\
        extern \"C\" __global__ void k(const __grid_constant__ dgx::Args args) {\n\
          args.groups[0].c[0] = STAGES; }\n";

    #[test]
    fn compiles_once_and_reports_errors_at_their_source_line() {
        let folder = tempfile::tempdir().unwrap();
        let Ok(compiler) = Compiler::new(folder.path()) else {
            eprintln!("skipped: no NVRTC on this machine");
            return;
        };
        let first = compiler.compile(&unit(KERNEL)).unwrap();
        let image = first.outcome.clone().unwrap();
        assert!(!first.cached);
        assert!(image.cubin.starts_with(b"\x7fELF"));
        assert!(image.ptx.contains(".entry k"));
        assert_eq!(image.kernels[0].name, "k");
        let second = compiler.compile(&unit(KERNEL)).unwrap();
        assert!(second.cached);
        assert_eq!(second.outcome.unwrap(), image);

        let broken = compiler.compile(&unit("__device__ int x = y;")).unwrap();
        let message = broken.outcome.unwrap_err();
        assert!(message.contains("variants/x.cu(1): error"), "{message}");

        let bad_asm =
            "extern \"C\" __global__ void k(int* p) {\n  asm(\"foo.bar %0;\" :: \"r\"(*p));\n}\n";
        let message = compiler
            .compile(&unit(bad_asm))
            .unwrap()
            .outcome
            .unwrap_err();
        assert!(message.contains("variants/x.cu(2)"), "{message}");
    }
}
