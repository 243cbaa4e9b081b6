use std::ffi::OsString;
use std::path::PathBuf;

use super::Backend;
use super::cuda::CudaBackend;
use super::emu::EmuBackend;
use super::fake::FakeBackend;
use crate::compile::Cache;
use dgx_core::config::target;
use dgx_core::domain::BackendKind;

/// Which backend a worker opens, and with what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opening {
    /// With the folder of the harness's own kernels, compiled; on the card of
    /// this number.
    Cuda(PathBuf, u32),
    /// As this target, by name or file, or as the usual one.
    Emu(Option<String>),
    /// By this script, as the card of this number.
    Fake(PathBuf, u32),
}

impl Opening {
    /// What a worker's command line names.
    pub fn new(kind: BackendKind, with: Option<PathBuf>, card: u32) -> Result<Self, String> {
        match (kind, with) {
            (BackendKind::Cuda, Some(tools)) => Ok(Self::Cuda(tools, card)),
            (BackendKind::Emu, target) => {
                let word = target.map(|path| path.to_string_lossy().into_owned());
                Ok(Self::Emu(word))
            }
            (BackendKind::Fake, Some(script)) => Ok(Self::Fake(script, card)),
            (BackendKind::None, _) => Err("nothing runs on no backend".to_owned()),
            (kind, None) => Err(format!("the {kind} backend needs --with")),
        }
    }

    /// The same on another card.
    pub fn on(self, card: u32) -> Self {
        match self {
            Self::Cuda(tools, _) => Self::Cuda(tools, card),
            Self::Emu(target) => Self::Emu(target),
            Self::Fake(script, _) => Self::Fake(script, card),
        }
    }

    pub fn kind(&self) -> BackendKind {
        match self {
            Self::Cuda(..) => BackendKind::Cuda,
            Self::Emu(_) => BackendKind::Emu,
            Self::Fake(..) => BackendKind::Fake,
        }
    }

    /// The words of a worker's command line that say so.
    pub fn words(&self) -> Vec<OsString> {
        let mut words = vec!["--backend".into(), self.kind().as_str().into()];
        match self {
            Self::Cuda(path, card) | Self::Fake(path, card) => {
                words.extend(["--with".into(), path.clone().into_os_string()]);
                words.extend(["--card".into(), card.to_string().into()]);
            }
            Self::Emu(Some(target)) => words.extend(["--with".into(), target.into()]),
            Self::Emu(None) => {}
        }
        words
    }

    pub fn open(&self) -> Result<Box<dyn Backend>, String> {
        match self {
            Self::Cuda(tools, card) => {
                let image = Cache::fetch(tools)
                    .map_err(|e| format!("cannot read the harness's kernels: {e}"))??;
                let gpu = CudaBackend::open(&image, *card).map_err(|e| e.to_string())?;
                Ok(Box::new(gpu))
            }
            Self::Emu(target) => {
                let device = match target {
                    Some(word) => target::find(word).map_err(|e| e.to_string())?,
                    None => target::usual().clone(),
                };
                Ok(Box::new(EmuBackend::new(device)))
            }
            Self::Fake(script, card) => Ok(Box::new(FakeBackend::open(script, *card)?)),
        }
    }
}
