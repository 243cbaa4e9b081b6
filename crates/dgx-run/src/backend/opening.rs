use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Backend;
use super::cuda::CudaBackend;
use super::emu::EmuBackend;
#[cfg(any(test, feature = "fake"))]
use super::fake::FakeBackend;
use crate::compile::Cache;
use dgx_core::config::target;
use dgx_core::domain::BackendKind;

/// Which backend a worker opens, and with what, as its command line has it.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
pub struct Opening {
    /// Backend to open
    #[arg(long)]
    pub backend: BackendKind,
    /// What it is opened with: the folder of dgx's own kernels, a target [default: the usual],
    /// or a script
    #[arg(long, value_name = "PATH")]
    pub with: Option<PathBuf>,
    /// Which of several cards, as CUDA_VISIBLE_DEVICES counts them
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub card: u32,
}

impl Opening {
    /// On the first card.
    pub fn new(backend: BackendKind, with: Option<PathBuf>) -> Self {
        Self {
            backend,
            with,
            card: 0,
        }
    }

    /// The words of a worker's command line that say so.
    pub fn words(&self) -> Vec<OsString> {
        let mut words = vec!["--backend".into(), self.backend.as_str().into()];
        if let Some(with) = &self.with {
            words.extend(["--with".into(), with.into()]);
        }
        words.extend(["--card".into(), self.card.to_string().into()]);
        words
    }

    pub fn open(&self) -> Result<Box<dyn Backend>, String> {
        let kind = self.backend;
        let with = || {
            let with = self.with.as_deref();
            with.ok_or_else(|| format!("the {kind} backend needs --with"))
        };
        match kind {
            BackendKind::Cuda => {
                let image = Cache::fetch(with()?)
                    .map_err(|e| format!("cannot read dgx's own kernels: {e}"))??;
                let gpu = CudaBackend::open(&image, self.card).map_err(|e| e.to_string())?;
                Ok(Box::new(gpu))
            }
            BackendKind::Emu => {
                let device = match self.with.as_deref().map(Path::to_string_lossy) {
                    Some(word) => target::find(&word).map_err(|e| e.to_string())?,
                    None => target::default_device().clone(),
                };
                Ok(Box::new(EmuBackend::new(device)))
            }
            #[cfg(any(test, feature = "fake"))]
            BackendKind::Fake => Ok(Box::new(FakeBackend::open(with()?, self.card)?)),
            kind => Err(format!("nothing runs on backend {kind}")),
        }
    }
}
