use std::path::{Path, PathBuf};

use crate::backend::Opening;
use crate::backend::cuda::{self, Presence};
use crate::backend::fake::Script;
use crate::compile::Compiler;
use crate::diagnostic::CommandError;
use crate::domain::{BackendKind, Bytes, Chip, Device, Exit};
use crate::plan::Machine;
use crate::worker::{Worker, trace};

use super::could_not_run;

/// Where to run, as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum BackendChoice {
    /// A GPU if there is one
    Auto,
    /// An NVIDIA GPU
    Cuda,
    /// The PTX emulator
    Emu,
    /// A script: nothing runs. For tests of dgx itself, and not offered
    #[value(hide = true)]
    Fake,
}

/// What it takes to start a worker.
#[derive(Clone, Debug)]
pub(super) struct Starter {
    opening: Opening,
    cache: PathBuf,
}

impl Starter {
    pub(super) fn start(&self) -> Result<Worker, String> {
        Worker::start(&self.opening, &self.cache)
    }
}

/// The device a sweep runs on, and its supply of fresh workers.
pub(super) struct Stage {
    starter: Starter,
    device: Device,
    /// cuBLASLt's version, or why there is none.
    yardstick: Result<String, String>,
    worker: Option<Worker>,
}

impl Stage {
    /// Chooses the backend and starts its first worker.
    pub(super) fn open(
        choice: BackendChoice,
        script: Option<&Path>,
        compiler: &Compiler,
        cache: &Path,
    ) -> Result<Self, CommandError> {
        let gpu = choose(choice)?;
        let opening = match (choice, gpu) {
            (BackendChoice::Fake, _) => scripted(script)?,
            (_, Some(chip)) => Opening::Cuda(compile_tools(compiler, chip)?),
            (_, None) => Opening::Emu,
        };
        let kind = opening.kind();
        let starter = Starter {
            opening,
            cache: cache.to_owned(),
        };
        let worker = starter
            .start()
            .map_err(|e| could_not_run(&format!("the {kind} backend cannot start: {e}")))?;
        Ok(Self {
            starter,
            device: worker.device().clone(),
            yardstick: worker.yardstick().clone(),
            worker: Some(worker),
        })
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// What plans must fit: the device, and this host's free memory.
    pub(super) fn machine(&self) -> Machine<'_> {
        Machine {
            device: &self.device,
            host: free_memory(),
        }
    }

    pub(super) fn kind(&self) -> BackendKind {
        self.starter.opening.kind()
    }

    /// Whether times come from a clock.
    pub(super) fn measures(&self) -> bool {
        self.kind().timing().sampled()
    }

    /// For workers beside the one at hand.
    pub(super) fn starter(&self) -> Starter {
        self.starter.clone()
    }

    pub(super) fn yardstick(&self) -> &Result<String, String> {
        &self.yardstick
    }

    /// The worker at hand, or a new one where the last was lost.
    pub(super) fn worker(&mut self) -> Result<&mut Worker, CommandError> {
        let worker = match self.worker.take() {
            Some(worker) => worker,
            None => {
                trace(|| "starting a new worker".to_owned());
                self.starter
                    .start()
                    .map_err(|e| could_not_run(&format!("a worker was lost for good: {e}")))?
            }
        };
        Ok(self.worker.insert(worker))
    }

    /// Gives up the worker at hand; the next job starts a fresh one.
    pub(super) fn replace(&mut self) {
        self.worker = None;
    }
}

/// Memory the host can give without swapping, where it says so.
fn free_memory() -> Option<Bytes> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Bytes(kibibytes << 10))
}

/// The GPU's chip, or nothing where none is used.
fn choose(choice: BackendChoice) -> Result<Option<Chip>, CommandError> {
    let must = match choice {
        BackendChoice::Emu | BackendChoice::Fake => return Ok(None),
        BackendChoice::Auto => false,
        BackendChoice::Cuda => true,
    };
    match cuda::presence() {
        Presence::Gpu { chip } => Ok(Some(chip)),
        _ if !must => Ok(None),
        Presence::NoDriver => Err(no_gpu("no NVIDIA driver is installed")),
        Presence::NoGpu(why) => Err(no_gpu(&why)),
    }
}

/// Read here as well: a mistake in it is the user's, and no worker's.
fn scripted(script: Option<&Path>) -> Result<Opening, CommandError> {
    let remedy = "src/backend/fake/ says what a script can say";
    let said = |e| CommandError::new(Exit::Usage, e, remedy);
    let script = script.ok_or_else(|| said("the fake backend needs --script".to_owned()))?;
    Script::read(script).map_err(said)?;
    Ok(Opening::Fake(script.to_owned()))
}

fn no_gpu(why: &str) -> CommandError {
    CommandError::new(
        Exit::CouldNotRun,
        format!("no GPU can be used: {why}"),
        "run where there is one, or use --backend emu",
    )
}

/// The harness's own kernels go through the same compiler and cache.
fn compile_tools(compiler: &Compiler, chip: Chip) -> Result<PathBuf, CommandError> {
    let compiled = compiler
        .compile(&cuda::tools_unit(&chip.target()))
        .map_err(|e| could_not_run(&e.to_string()))?;
    match compiled.outcome {
        Ok(image) => Ok(compiler.cache().folder(&image.key)),
        Err(message) => Err(could_not_run(&format!(
            "the harness's own kernels do not compile:\n{message}"
        ))),
    }
}
