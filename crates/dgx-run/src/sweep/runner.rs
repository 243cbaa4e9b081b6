use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::thread;

use crate::backend::Opening;
use crate::backend::cuda::{self, GpuPresence};
use crate::compile::{Compiler, Image};
use crate::plan::PlanTarget;
use crate::worker::{Worker, trace};
use dgx_core::config::Yardstick;
use dgx_core::config::target;
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{BackendKind, Bytes, Chip, Device};
use dgx_core::operator::Operator;
use dgx_core::record::schema::Settings;

use super::{Options, could_not_run};

/// Where to run, as asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum BackendChoice {
    /// A GPU if there is one
    Auto,
    /// An NVIDIA GPU
    Cuda,
    /// The PTX emulator
    Emu,
    /// A script: nothing runs. For tests of dgx itself
    #[cfg(any(test, feature = "fake"))]
    #[value(hide = true)]
    Fake,
}

impl BackendChoice {
    /// The backend that will run, assuming a GPU for `Auto`.
    pub fn kind(self) -> BackendKind {
        match self {
            Self::Auto | Self::Cuda => BackendKind::Cuda,
            Self::Emu => BackendKind::Emu,
            #[cfg(any(test, feature = "fake"))]
            Self::Fake => BackendKind::Fake,
        }
    }
}

/// Which cards to run on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Gpus {
    /// The first that is visible.
    #[default]
    First,
    All,
    /// By number, as CUDA_VISIBLE_DEVICES counts them.
    These(Vec<u32>),
}

impl FromStr for Gpus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::All);
        }
        let numbers: Result<Vec<u32>, _> = text.split(',').map(|n| n.trim().parse()).collect();
        let numbers = numbers.map_err(|_| "write `all`, or numbers as 0,1,3".to_owned())?;
        let twice = (1..numbers.len()).find(|i| numbers[..*i].contains(&numbers[*i]));
        match twice {
            Some(at) => Err(format!(
                "card {} is listed twice; name each once",
                numbers[at]
            )),
            None => Ok(Self::These(numbers)),
        }
    }
}

impl Gpus {
    /// The selected numbers, of this many cards.
    fn among(&self, count: u32) -> Result<Vec<u32>, CommandError> {
        let numbers = match self {
            Self::First => vec![0],
            Self::All => (0..count).collect(),
            Self::These(numbers) => numbers.clone(),
        };
        match numbers.iter().find(|number| **number >= count) {
            None => Ok(numbers),
            Some(number) => Err(CommandError::usage(
                format!("there is no card {number}: {count} can be seen, counted from 0"),
                "CUDA_VISIBLE_DEVICES says which are seen; --gpus all takes every one",
            )),
        }
    }
}

/// Flags of the fake backend: none in a release.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct FakeFlags {
    /// What the fake backend plays
    #[cfg_attr(
        any(test, feature = "fake"),
        arg(
            long,
            value_name = "FILE",
            hide = true,
            required_if_eq("backend", "fake")
        )
    )]
    #[cfg_attr(not(any(test, feature = "fake")), arg(skip))]
    pub script: Option<PathBuf>,
}

impl FakeFlags {
    /// The script and the number of its cards. Read here as well: a mistake in it is the user's,
    /// not a worker's.
    fn opening(&self) -> Result<Option<(Opening, u32)>, CommandError> {
        #[cfg(any(test, feature = "fake"))]
        if let Some(path) = &self.script {
            let remedy = "crates/dgx-run/src/backend/tests/fake/ documents scripts";
            let script = crate::backend::fake::Script::read(path)
                .map_err(|e| CommandError::usage(e, remedy))?;
            let opening = Opening::new(BackendKind::Fake, Some(path.clone()));
            return Ok(Some((opening, script.cards.len().max(1) as u32)));
        }
        Ok(None)
    }
}

/// Emulators that run side by side. A whole call keeps every core busy; the few CTAs that a time is
/// modelled from, and their replay, do not.
fn emulators(settings: &Settings, shapes: usize) -> u32 {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    match settings.time_only {
        true => shapes.clamp(1, cores) as u32,
        false => 1,
    }
}

/// Everything needed to start a worker.
#[derive(Clone, Debug)]
pub(super) struct Starter {
    opening: Opening,
    cache: PathBuf,
}

impl Starter {
    /// For the emulator, with the target most similar to a device; `None` if there is no such
    /// target.
    pub(super) fn emulating(device: &Device, cache: &Path) -> Option<Self> {
        let same = |named: bool| {
            target::built_in().find(|(_, known)| match named {
                true => known.name == device.name,
                false => known.chip == device.chip,
            })
        };
        let (name, known) = same(true).or_else(|| same(false))?;
        let word = match known.limits.sms == device.limits.sms {
            true => name.to_owned(),
            false => format!("{name},sms={}", device.limits.sms),
        };
        Some(Self {
            opening: Opening::new(BackendKind::Emu, Some(word.into())),
            cache: cache.to_owned(),
        })
    }

    /// Starts a worker on one core with the lowest priority.
    pub(super) fn start_in_background(&self, core: usize) -> Result<Worker, String> {
        Worker::start(&self.opening, &self.cache, Some(core))
    }

    pub(super) fn start(&self) -> Result<Worker, String> {
        Worker::start(&self.opening, &self.cache, None)
    }
}

/// A card, or the emulator, and its workers.
pub struct Runner {
    starter: Starter,
    device: Device,
    /// cuBLASLt's version, or the reason why there is none.
    yardstick: Result<String, String>,
    worker: Option<Worker>,
    /// Why no worker can be started on it any more.
    lost: Option<String>,
}

impl Runner {
    /// Chooses the backend and starts a first worker on every card.
    pub(super) fn open(
        options: &Options,
        compiler: &Compiler,
        cache: &Path,
    ) -> Result<Vec<Self>, CommandError> {
        let Options {
            backend,
            gpus,
            settings,
            ..
        } = options;
        let found = choose(*backend)?;
        let fake = match backend.kind() {
            BackendKind::Fake => options.fake.opening()?,
            _ => None,
        };
        let emulated = fake.is_none() && found.is_none();
        if !emulated && (settings.target.is_some() || settings.time_only) {
            return Err(emulator_only());
        }
        let (opening, numbers) = match (fake, found) {
            (Some((opening, count)), _) => (opening, gpus.among(count)?),
            (None, Some((chip, count))) => {
                let operator = &options.round.operator;
                (on_gpu(compiler, chip, operator)?, gpus.among(count)?)
            }
            (None, None) => {
                let count = emulators(settings, options.round.shapes.len());
                (emulating(settings), (0..count).collect())
            }
        };
        let open = |&card: &u32| {
            let opening = Opening {
                card,
                ..opening.clone()
            };
            Self::start(opening, cache)
        };
        let runners: Vec<Result<Self, CommandError>> = thread::scope(|scope| {
            let starts: Vec<_> = (numbers.iter())
                .map(|number| scope.spawn(move || open(number)))
                .collect();
            let ended = starts.into_iter().map(|start| start.join());
            ended
                .map(|opened| opened.unwrap_or_else(|_| Err(could_not_run("no worker starts"))))
                .collect()
        });
        let runners = runners.into_iter().collect::<Result<Vec<_>, _>>()?;
        check_same_model(&runners, &numbers)?;
        Ok(runners)
    }

    /// A single runner, for one cell at a time.
    pub fn open_one(
        choice: BackendChoice,
        operator: &Operator,
        settings: &Settings,
        compiler: &Compiler,
        cache: &Path,
    ) -> Result<Self, CommandError> {
        let opening = match choose(choice)? {
            Some((chip, _)) => on_gpu(compiler, chip, operator)?,
            None => emulating(settings),
        };
        Self::start(opening, cache)
    }

    fn start(opening: Opening, cache: &Path) -> Result<Self, CommandError> {
        let kind = opening.backend;
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
            lost: None,
        })
    }

    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The limits of plans: the device, and this host's free memory.
    pub fn machine(&self) -> PlanTarget<'_> {
        PlanTarget {
            device: &self.device,
            host: free_memory(),
        }
    }

    pub fn kind(&self) -> BackendKind {
        self.starter.opening.backend
    }

    /// Whether times come from a clock.
    pub(super) fn measures(&self) -> bool {
        self.kind().timing().sampled()
    }

    /// For further workers.
    pub(super) fn starter(&self) -> Starter {
        self.starter.clone()
    }

    pub(super) fn has_yardstick(&self, yardstick: Yardstick) -> Result<(), String> {
        match yardstick {
            Yardstick::Cublas => self.yardstick.as_ref().map(|_| ()).map_err(String::clone),
            Yardstick::Copy => Ok(()),
        }
    }

    /// The current worker, or a new one if the last was lost.
    pub(super) fn worker(&mut self) -> Result<&mut Worker, CommandError> {
        let worker = match self.worker.take() {
            Some(worker) => worker,
            None => {
                trace(|| "starting a new worker".to_owned());
                let fresh = self
                    .starter
                    .start()
                    .and_then(|worker| self.same_card(worker));
                fresh.map_err(|e| self.lose(&e))?
            }
        };
        Ok(self.worker.insert(worker))
    }

    /// Checks the uuid: a card may be replaced by another.
    fn same_card(&self, worker: Worker) -> Result<Worker, String> {
        let uuid = |device: &Device| device.card.as_ref().and_then(|card| card.uuid.clone());
        match (uuid(&self.device), uuid(worker.device())) {
            (before, now) if before == now => Ok(worker),
            (before, now) => Err(format!(
                "{} was here, and now it is {}",
                before.unwrap_or_default(),
                now.unwrap_or_default()
            )),
        }
    }

    fn lose(&mut self, why: &str) -> CommandError {
        let message = match self.card() {
            Some(uuid) => format!("card {uuid} is lost: {why}"),
            None => format!("a worker was lost for good: {why}"),
        };
        self.lost = Some(message.clone());
        could_not_run(&message)
    }

    /// Why nothing can run on it any more, if so.
    pub(super) fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// The uuid of its card, if it has one.
    pub(super) fn card(&self) -> Option<&str> {
        self.device.card.as_ref()?.uuid.as_deref()
    }

    /// Gives up the current worker; the next job starts a fresh one.
    pub(super) fn replace(&mut self) {
        self.worker = None;
    }
}

/// Shapes from several cards share one table, so the cards must be of one model.
fn check_same_model(runners: &[Runner], numbers: &[u32]) -> Result<(), CommandError> {
    let model = |runner: &Runner| (runner.device.name.clone(), runner.device.limits.sms);
    let first = model(&runners[0]);
    let Some(other) = (1..runners.len()).find(|i| model(&runners[*i]) != first) else {
        return Ok(());
    };
    let (name, sms) = model(&runners[other]);
    Err(CommandError::usage(
        format!(
            "card {} is {} with {} SMs, and card {} is {name} with {sms}: shapes from both \
             cannot stand in one table",
            numbers[0], first.0, first.1, numbers[other]
        ),
        "name cards of one model with --gpus",
    ))
}

/// Memory the host can provide without swapping, if it reports it.
pub(super) fn free_memory() -> Option<Bytes> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    let group = Path::new("/sys/fs/cgroup");
    let left = group_memory(group).unwrap_or(u64::MAX);
    Some(Bytes((kibibytes << 10).min(left)))
}

/// Memory that a container may still use, if it has a limit.
fn group_memory(group: &Path) -> Option<u64> {
    let number = |name: &str| -> Option<u64> {
        let text = std::fs::read_to_string(group.join(name)).ok()?;
        text.trim().parse().ok()
    };
    Some(number("memory.max")?.saturating_sub(number("memory.current")?))
}

/// The first GPU's chip and the number of GPUs, or `None` if none is used.
pub fn choose(choice: BackendChoice) -> Result<Option<(Chip, u32)>, CommandError> {
    let must = match choice {
        BackendChoice::Auto => false,
        BackendChoice::Cuda => true,
        _ => return Ok(None),
    };
    match cuda::presence() {
        GpuPresence::Gpu { chip, count } => Ok(Some((chip, count))),
        _ if !must => Ok(None),
        GpuPresence::NoDriver => Err(no_gpu("no NVIDIA driver")),
        GpuPresence::NoGpu(why) => Err(no_gpu(&why)),
    }
}

fn emulator_only() -> CommandError {
    CommandError::usage(
        "--target and --time-only are for the emulator: a real card cannot be changed",
        "add --backend emu, or leave them out",
    )
}

fn no_gpu(why: &str) -> CommandError {
    CommandError::could_not_run(
        format!("no GPU can be used: {why}"),
        "leave out --backend to emulate",
    )
}

/// dgx's own kernels go through the same compiler and cache.
fn on_gpu(compiler: &Compiler, chip: Chip, operator: &Operator) -> Result<Opening, CommandError> {
    let tools = tools(compiler, chip, operator)?;
    let tools = compiler.cache().folder(&tools.key);
    Ok(Opening::new(BackendKind::Cuda, Some(tools)))
}

fn emulating(settings: &Settings) -> Opening {
    Opening::new(
        BackendKind::Emu,
        settings.target.as_ref().map(PathBuf::from),
    )
}

/// dgx's own kernels, with those for expected results of `operator`.
pub(super) fn tools(
    compiler: &Compiler,
    chip: Chip,
    operator: &Operator,
) -> Result<Image, CommandError> {
    let compile = |operator| {
        let compiled = compiler.compile(&cuda::tools_unit(&chip.target(), operator));
        compiled.map_err(CommandError::from)
    };
    let message = match compile(Some(operator))?.outcome {
        Ok(image) => return Ok(image),
        Err(message) => message,
    };
    let alone = compile(None)?.outcome.map_err(|message| {
        could_not_run(&format!("dgx's own kernels do not compile:\n{message}"))
    })?;
    let name = &operator.name;
    remark!("warning: the CPU computes the answers: no kernels for those of {name}:\n{message}");
    Ok(alone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_has_what_its_limit_leaves() {
        let group = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(group.path().join(name), text).unwrap();
        assert_eq!(group_memory(group.path()), None);
        write("memory.current", "300\n");
        write("memory.max", "max\n");
        assert_eq!(group_memory(group.path()), None);
        write("memory.max", "1000\n");
        assert_eq!(group_memory(group.path()), Some(700));
        write("memory.max", "200\n");
        assert_eq!(group_memory(group.path()), Some(0));
    }

    #[test]
    fn cards_are_named_by_number_or_all() {
        let parse = |text: &str| text.parse::<Gpus>();
        assert_eq!(parse("all"), Ok(Gpus::All));
        assert_eq!(parse("0, 2"), Ok(Gpus::These(vec![0, 2])));
        assert!(parse("1,1").unwrap_err().contains("card 1 is listed twice"));
        assert!(parse("").is_err() && parse("0;1").is_err() && parse("-1").is_err());
        assert_eq!(Gpus::All.among(3).unwrap(), [0, 1, 2]);
        assert_eq!(Gpus::First.among(3).unwrap(), [0]);
        let error = parse("0,3").unwrap().among(3).unwrap_err();
        assert!(error.to_string().contains("there is no card 3"), "{error}");
    }
}
