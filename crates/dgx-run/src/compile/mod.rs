//! From a source to a cubin and PTX, once per content: CUDA C++ by NVRTC, PTX by
//! ptxas, Python by Triton.
//!
//! A compile error is a result here, not a failure of dgx, and so is a source that crashes the
//! compiler or never ends it: compilers run in their own processes. NVRTC's process gets a source
//! with everything it may include and can open no file; Python runs with the user's rights. Only a
//! missing NVRTC is an [`Error`]. No code in this module touches a device; callers pass its limits.

mod build;
mod cache;
mod diagnostics;
mod entries;
mod launchable;
mod nvrtc;
mod occupancy;
mod process;
mod ptxas;
mod serve;
mod signature;
#[cfg(test)]
mod tests;
mod tool;
mod triton;
mod upkeep;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::plan::LaunchGeometry;
use crate::toolkit;
use build::{CompileOutcome, order, stopped_after};
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::printable;
use process::{NoImage, Process};
use serve::NvrtcReply;
use triton::Python;

pub use crate::plan::{CompilerKind, TranslationUnit};
pub use cache::{Cache, Cached, cache_root};
pub(crate) use diagnostics::says_error;
pub use launchable::{Refusal, geometry, refusal, source_name};
pub use nvrtc::Nvrtc;
pub(crate) use occupancy::Footprint;
pub use occupancy::Residency;
pub use occupancy::{occupancy, residency};
pub use process::CompileLimits;
pub use ptxas::find as find_ptxas;
pub use serve::serve;
pub(crate) use signature::parameters;
pub use upkeep::{IMAGES, is_image, remove_image};

/// Why nothing could be compiled at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no NVRTC found (looked at {looked})")]
    Missing { looked: String },
    #[error("cannot load NVRTC from {path}: {reason}")]
    Unloadable { path: PathBuf, reason: String },
    #[error(
        "NVRTC {found} at {path} is too old: 12.1 or newer compiles for sm_90a and parameters above 4 KB"
    )]
    TooOld { found: String, path: PathBuf },
    #[error("{wanted} was asked for, but another libnvrtc.so is found first on the library path")]
    Shadowed { wanted: PathBuf },
    #[error("cannot compile: {reason}")]
    NoProcess { reason: String },
    #[error("cannot compile {name}: {reason}")]
    NoTriton { name: String, reason: String },
    #[error("cannot write the compile cache at {path}: {source}")]
    Cache {
        path: PathBuf,
        source: std::io::Error,
    },
}

impl Error {
    fn remedy(&self) -> &'static str {
        match self {
            Self::Missing { .. } => {
                "pip install 'nvidia-cuda-nvrtc==13.0.*', or set DGX_NVRTC to libnvrtc or its folder"
            }
            Self::Unloadable { .. } if toolkit::variable("DGX_NVRTC").is_some() => {
                "correct or unset DGX_NVRTC"
            }
            Self::TooOld { .. } => "set DGX_NVRTC to a newer one",
            Self::Shadowed { .. } => "unset DGX_NVRTC, or put its folder first in LD_LIBRARY_PATH",
            Self::NoTriton { .. } => {
                "install Triton for that Python, or set DGX_PYTHON to one that has it"
            }
            Self::Cache { .. } => "set DGX_CACHE to a folder you can write",
            Self::Unloadable { .. } | Self::NoProcess { .. } => {
                "`dgx doctor` shows what is installed and what is missing"
            }
        }
    }
}

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        Self::could_not_run(error.to_string(), error.remedy())
    }
}

/// Properties of one kernel from ptxas and the PTX.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelReport {
    /// As it is launched, e.g. `gemm<128, float>`.
    pub name: String,
    /// Its name in the PTX.
    pub entry: String,
    pub registers: u32,
    pub spill_bytes: u32,
    pub static_smem: u32,
    /// Dynamic shared memory that its compiler requests.
    pub dynamic_smem: u32,
    pub params: Vec<Param>,
    /// How many of the last ones are its compiler's own, and null.
    pub hidden_params: u32,
    /// Maximum threads of a block it was compiled for.
    pub max_threads: Option<u32>,
    /// The only block, and the only cluster, it was compiled for.
    pub block: Option<[u32; 3]>,
    pub cluster: Option<[u32; 3]>,
    /// Maximum columns of tensor memory that a block allocates at once.
    pub tensor_columns: u32,
}

impl KernelReport {
    /// Whether it is a function of this name, mangled with its parameters: in any namespace, unless
    /// the name gives one.
    fn is_overload_of(&self, name: &str) -> bool {
        let wanted: Vec<&str> = name.split("::").map(str::trim).collect();
        entries::scopes(&self.entry).is_some_and(|scopes| scopes.ends_with(&wanted))
    }

    /// The dynamic shared memory of a launch in all.
    pub fn dynamic_smem(&self, launch: &LaunchGeometry) -> u32 {
        launch.smem.saturating_add(self.dynamic_smem)
    }
}

/// A parameter as the PTX declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Param {
    pub bytes: u32,
    /// The alignment of a struct.
    pub align: u32,
    pub kind: ParamKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ParamKind {
    Pointer,
    Integer,
    /// An integer or a pointer: the PTX does not distinguish them.
    Either,
    Float,
    /// A struct by value.
    Block,
}

/// A compiled unit: machine code for the GPU, PTX for the emulator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Identifies the content: equal keys mean equal source, headers, flags and compiler.
    pub key: String,
    pub cubin: Vec<u8>,
    pub ptx: String,
    pub kernels: Vec<KernelReport>,
    /// ptxas remarks that mean lost speed.
    pub remarks: Vec<String>,
}

impl Image {
    /// The kernel that is launched by this name.
    pub fn kernel(&self, name: &str) -> Option<&KernelReport> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }
}

/// The result of one unit.
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
    /// The dgx binary that compiling processes run.
    program: PathBuf,
    limits: CompileLimits,
    /// Idle compiling processes.
    idle: Mutex<Vec<Process>>,
    /// Found when the first Triton kernel is compiled.
    python: OnceLock<Result<Python, String>>,
}

impl Compiler {
    /// Finds NVRTC and opens the cache under `root`.
    pub fn new(root: &Path, limits: CompileLimits) -> Result<Self, Error> {
        let program = std::env::current_exe().map_err(|e| Error::NoProcess {
            reason: format!("cannot find dgx itself: {e}"),
        })?;
        Ok(Self {
            nvrtc: Nvrtc::find()?,
            cache: Cache::open(root)?,
            program,
            limits,
            idle: Mutex::default(),
            python: OnceLock::new(),
        })
    }

    /// e.g. `NVRTC 13.0`.
    pub fn version(&self) -> String {
        self.nvrtc.version_text()
    }

    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Refuses units whose compiler is not installed: the units are not at fault.
    pub(crate) fn can_compile(&self, units: &[TranslationUnit]) -> Result<(), Error> {
        let is_triton = |unit: &&TranslationUnit| matches!(unit.compiler, CompilerKind::Triton(_));
        let Some(unit) = units.iter().find(is_triton) else {
            return Ok(());
        };
        self.python().map(|_| ()).map_err(|why| Error::NoTriton {
            name: unit.name.clone(),
            reason: why.to_owned(),
        })
    }

    /// Compiles one unit, or takes it from the cache.
    pub fn compile(&self, unit: &TranslationUnit) -> Result<Compiled, Error> {
        let compiled = self.compile_unless(unit, &|| false)?;
        compiled.ok_or_else(|| Error::NoProcess {
            reason: "stopped".to_owned(),
        })
    }

    /// Compiles all units on all cores, in the order given; `done` is called for each as it ends,
    /// on the thread it ended on. Once `stop` returns true no further unit is begun, and those are
    /// `None`.
    pub fn compile_all(
        &self,
        units: &[TranslationUnit],
        done: impl Fn(usize, &Compiled) + Sync,
        stop: impl Fn() -> bool + Sync,
    ) -> Result<Vec<Option<Compiled>>, Error> {
        let results: Vec<OnceLock<Result<Option<Compiled>, Error>>> =
            units.iter().map(|_| OnceLock::new()).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            while let index = next.fetch_add(1, Ordering::Relaxed)
                && let Some(unit) = units.get(index)
                && !stop()
            {
                let result = self.compile_unless(unit, &stop);
                if let Ok(Some(compiled)) = &result {
                    done(index, compiled);
                }
                // Each index is taken once.
                let _ = results[index].set(result);
            }
        };
        let cores = thread::available_parallelism().map_or(1, |n| n.get());
        thread::scope(|scope| {
            for _ in 0..cores.min(units.len()) {
                scope.spawn(work);
            }
        });
        // They hold memory that later stages may need.
        if let Ok(mut idle) = self.idle.lock() {
            idle.clear();
        }
        let taken = results.into_iter().map(|r| r.into_inner());
        taken.map(|result| result.unwrap_or(Ok(None))).collect()
    }

    /// `None` if the user asked to stop.
    fn compile_unless(
        &self,
        unit: &TranslationUnit,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Compiled>, Error> {
        let began = Instant::now();
        let key = self.key(unit);
        let entry = self.cache.load(&key);
        if entry == Cached::Damaged {
            remark!(
                "warning: the cached image of {} was damaged: it is compiled again",
                printable(&unit.name)
            );
        }
        let compiled = |outcome, cached| {
            Some(Compiled {
                outcome,
                cached,
                millis: began.elapsed().as_secs_f64() * 1e3,
            })
        };
        if let Cached::Whole(outcome) = entry {
            return Ok(compiled(outcome, true));
        }
        let outcome = match self.build(unit, &key, stop)? {
            CompileOutcome::Said(outcome) => {
                self.cache.publish(&key, &outcome)?;
                outcome
            }
            // Not deterministic: the next attempt may succeed.
            CompileOutcome::Gave(reason) if reason.starts_with(&unit.name) => {
                Err(printable(&reason))
            }
            CompileOutcome::Gave(reason) => {
                Err(printable(&format!("{}: error: {reason}", unit.name)))
            }
            CompileOutcome::Stopped => return Ok(None),
        };
        Ok(compiled(outcome, false))
    }

    /// The compiler's whole log of a unit, which the cache does not keep: warnings with their
    /// places, and the resources of each kernel.
    pub fn log(&self, unit: &TranslationUnit) -> Result<String, Error> {
        let never = || false;
        if unit.compiler != CompilerKind::Nvrtc {
            let built = self.build(unit, "", &never)?;
            return Ok(match built {
                CompileOutcome::Said(Ok(image)) => image.remarks.join("\n"),
                CompileOutcome::Said(Err(message)) | CompileOutcome::Gave(message) => message,
                CompileOutcome::Stopped => String::new(),
            });
        }
        let order = order(unit);
        let Some(mut process) = self.fresh(&never)? else {
            return Ok(String::new());
        };
        Ok(match process.make(&order, self.limits.time, &never) {
            Ok((NvrtcReply::Compiled { ptx, log, .. }, _)) => {
                diagnostics::log_message(&log, &ptx, &unit.name, &unit.headers)
            }
            Ok((NvrtcReply::Refused { ptx, log }, _)) => self.complaint(unit, &log, &ptx),
            Ok((NvrtcReply::Failed { reason }, _)) => reason,
            Ok((NvrtcReply::Ready, _)) => String::new(),
            Err(NoImage::TimedOut(spent)) => stopped_after(&spent),
            Err(NoImage::Died(how) | NoImage::Killed(how)) => format!("the compiler {how}"),
            Err(NoImage::Stopped) => String::new(),
        })
    }
}

/// The ptxas that compiles PTX.
pub fn ptxas() -> Result<String, String> {
    ptxas::find().map(|program| program.display().to_string())
}

/// The Python that compiles Triton's kernels.
pub fn triton() -> Result<String, String> {
    Python::find(&CompileLimits::default()).map(|python| python.described)
}
