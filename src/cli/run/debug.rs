use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use super::examined_round::examined_round;
use super::explain::plan_for_machine;
use super::machine;
use super::profile::{ambiguous, shape};
use crate::cli::{Globals, named, runs};
use crate::present::{Commands, DebugContext, Folders, account_text, next_command};
use dgx_core::config::{Round, target};
use dgx_core::diagnostic::{CommandError, InputError};
use dgx_core::domain::{
    BackendKind, ContenderId, Exit, HazardWatch, Joined, Pattern, Shape, Status,
};
use dgx_core::interrupt::{self, SignalMessages};
use dgx_core::record::Run;
use dgx_core::record::schema::Settings;
use dgx_core::speech::{self, Level};
use dgx_run::catalog::Catalog;
use dgx_run::compile::cache_root;
use dgx_run::debug::{
    CodeKind, Diagnosis, Dump, DumpFormat, DumpItem, Investigation, emit, make_folder,
};
use dgx_run::plan::Plan;
use dgx_run::sweep::{BackendChoice, CompiledCell, Runner, choose};
use dgx_run::validate::Tolerance;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dgx debug mine                               the newest run's first failure of it
  dgx debug mine smoke --shape ragged
  dgx debug mine --dump c,expected,half_a:f16 dump     for numpy.load
  dgx debug mine --emit ptx,sass out

docs/wrong.md explains the output.")]
pub(crate) struct Args {
    /// Contender: a variant, or one of its parameter choices
    contender: String,
    /// A round for its shapes, or a run for its shapes, data and failures [default: the
    /// newest run if it has the contender, else configs/CONTENDER.toml, else the shapes
    /// of the newest run]
    #[arg(value_name = "ROUND|RUN", value_parser = named::round_or_run())]
    of: Option<PathBuf>,
    /// One of its shapes [default: the first on which it failed in the run, else the
    /// first]
    #[arg(long, value_name = "SHAPE")]
    shape: Option<String>,
    /// Where to run it [default: both, if there is a GPU]
    #[arg(long, value_enum)]
    backend: Option<BackendChoice>,
    #[arg(long, value_name = "TARGET", help = machine::target_help(
        "What to emulate",
        " or a file [default: the run's, else h200]",
    ))]
    target: Option<String>,
    /// Seed of the data [default: the run's, else the round's, else 1]
    #[arg(long, value_parser = runs::natural)]
    seed: Option<u64>,
    /// Emulator only: another legal order of warps and copies
    #[arg(long, value_name = "SEED", value_parser = runs::natural)]
    schedule: Option<u64>,
    /// Emulator only: round tensor-core sums as the target does, bit for bit
    #[arg(long)]
    exact_sums: bool,
    /// Seconds after which it counts as hung
    #[arg(long, value_name = "SECONDS", value_parser = runs::seconds)]
    timeout: Option<f64>,
    /// Write buffers after the call: c, expected, a, b1, sfa, …, the variant's scratch;
    /// NAME:TYPE reads bytes as u8, u16, u32, i32, u64, f16, f32 or f64
    #[arg(long, num_args = 2, value_names = ["NAME[,NAME]", "DIR"])]
    dump: Option<Vec<String>>,
    /// File format of buffers
    #[arg(long = "as", value_enum, value_name = "FORM", default_value = "npy")]
    form: DumpFormat,
    /// Write the code: ptx, sass, cubin, or several of them
    #[arg(long, num_args = 2, value_names = ["KIND[,KIND]", "DIR"])]
    emit: Option<Vec<String>>,
    #[command(flatten)]
    compile: machine::CompileLimitFlags,
}

const DEBUGGING: SignalMessages = SignalMessages {
    first: Some("stopping; press Ctrl-C again to end now"),
    second: "ended",
};

/// Judges one cell and prints everything known about it.
pub(super) fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    let catalog = Catalog::open(&globals.variants)?;
    let (round, run) = examined_round(args.of.as_deref(), &args.contender, &catalog)?;
    let case = DebuggedCell::new(&args, globals, round, run.as_ref())?;
    let kinds = kinds(&args)?;
    let compiler = machine::compiler(args.compile.limits())?;
    let cache = cache_root(&std::env::current_dir().unwrap_or_default());
    interrupt::install(DEBUGGING);
    let style = runs::style(globals);
    let (mut exit, mut unwritten) = (Exit::Done, None);
    for (place, (choice, target)) in backends(&args, run.as_ref())?.into_iter().enumerate() {
        let mut settings = Settings {
            target,
            ..case.settings.clone()
        };
        let mut runner =
            Runner::open_one(choice, &case.round.operator, &settings, &compiler, &cache)?;
        let plan = plan_for_machine(
            &args.contender,
            case.round.clone(),
            &catalog,
            &runner.machine(),
        )?;
        let [contender] = plan.contenders.as_slice() else {
            let ids = plan.contenders.iter().map(|c| &c.id);
            return Err(ambiguous(&args.contender, ids));
        };
        let dump = dump(&args, &plan)?;
        settings.distributions = plan.round.validation.distributions.clone();
        let cell = CompiledCell::new(&plan, 0, 0, &compiler)?;
        let investigation = Investigation {
            cell: &cell,
            compiler: &compiler,
            cache: &cache,
            settings: &settings,
            time_limit: case.time_limit,
            buffers: dump.as_ref().map_or(Vec::new(), Dump::buffers),
        };
        if place == 0 {
            introduce(&plan, &case);
        }
        let (account, log) = diagnosed(&investigation, &mut runner, place == 0)?;
        let context = context(&case, &plan, &plan.shapes[0]);
        say!("{}\n", account_text(&account, &context, &style));
        print_log(log.as_deref());
        if surprising(&account, contender.variant.expect) {
            exit = Exit::Unexpected;
        }
        if let Some(call) = &account.call
            && let Some(dump) = &dump
        {
            wrote(&dump.write(call)?);
        }
        if let (Some((kinds, folder)), Some(image), 0) = (&kinds, cell.image(), place) {
            let emission = emit(image, &contender.id, kinds, folder)?;
            wrote(&emission.files);
            unwritten = emission.missing;
        }
        if let Some(step) = next_command(&account, &context, &style) {
            say!("{step}");
        }
    }
    match unwritten {
        Some(error) => Err(error),
        None => Ok(exit),
    }
}

/// What is found about a cell and, on the `first` backend, the compiler's messages about it.
fn diagnosed(
    investigation: &Investigation<'_>,
    runner: &mut Runner,
    first: bool,
) -> Result<(Diagnosis, Option<String>), CommandError> {
    let Investigation { cell, compiler, .. } = *investigation;
    let (account, log) = thread::scope(|scope| {
        // The cache keeps images, not the compiler's messages about them.
        let wanted = cell.image().is_none() || speech::level() >= Level::Verbose;
        let log = scope.spawn(move || match first && wanted {
            true => cell.log(compiler),
            false => Ok(None),
        });
        let account = investigation.diagnose(runner);
        let lost = || Err(interrupted());
        (account, log.join().unwrap_or_else(|_| lost()))
    });
    Ok((account?.ok_or_else(interrupted)?, log?))
}

/// The cell to debug, and the settings for it.
struct DebuggedCell {
    round: Round,
    settings: Settings,
    time_limit: Duration,
    /// The round or run, as a command names it.
    of: PathBuf,
    /// The file of the round.
    config: String,
    folders: Folders,
}

impl DebuggedCell {
    fn new(
        args: &Args,
        globals: &Globals,
        mut round: Round,
        run: Option<&Run>,
    ) -> Result<Self, CommandError> {
        let of = run.map_or(&round.file.path, |run| &run.path).clone();
        let failed = run.and_then(|run| first_failure(run, &args.contender));
        let wanted = args.shape.as_deref().or(failed.as_deref());
        round.shapes = vec![shape(&round, wanted, &of)?];
        round.shape_spans.truncate(1);
        let swept = run.map(|run| run.header.data_seed(&round.shapes[0].name));
        let seed = args.seed.or(swept).or(round.validation.seed).unwrap_or(1);
        let of_round = || Settings {
            hazards: HazardWatch::Some,
            ..Settings::of(&round, seed)
        };
        let of_run = run.map(|run| run.header.settings.clone());
        let settings = of_run.unwrap_or_else(of_round);
        let settings = Settings {
            seed,
            secret: None,
            schedule: args.schedule.unwrap_or(settings.schedule),
            exact_sums: args.exact_sums || settings.exact_sums,
            time_only: false,
            ..settings
        };
        let timeout = args.timeout.unwrap_or(round.validation.timeout);
        Ok(Self {
            config: round.file.path.display().to_string(),
            round,
            settings,
            time_limit: Duration::from_secs_f64(timeout),
            of,
            folders: Folders::named(&globals.variants),
        })
    }
}

/// The first shape on which a contender of this name failed.
fn first_failure(run: &Run, name: &str) -> Option<String> {
    let meant = Pattern::new(name);
    let ids = run.header.contenders.iter().map(|c| &c.id);
    let ids: Vec<&ContenderId> = ids.filter(|id| meant.picks(id)).collect();
    let failed = |id: &ContenderId, shape: &Shape| {
        let status = run.status(id, &shape.name);
        status.is_some_and(|s| !s.may_be_timed() && s != Status::Unsupported)
    };
    let mut shapes = run.header.shapes.iter();
    let shape = shapes.find(|shape| ids.iter().any(|id| failed(id, shape)))?;
    Some(shape.name.clone())
}

/// The backends to use, each with its target: the one that was named, or a GPU and the emulator, as
/// far as both are available.
fn backends(
    args: &Args,
    run: Option<&Run>,
) -> Result<Vec<(BackendChoice, Option<String>)>, CommandError> {
    let of_run = || run.and_then(|run| run.header.settings.target.clone());
    let target = args.target.clone().or_else(of_run);
    let emulated = (BackendChoice::Emu, target.clone());
    if let Some(word) = &target {
        // A mistake in the target is the user's, not a worker's.
        target::find(word)?;
    }
    match args.backend {
        Some(choice) if choice.kind() == BackendKind::Fake => Err(InputError::new(
            "a scripted backend computes nothing to debug",
            "choose --backend cuda or emu",
        )
        .into()),
        Some(BackendChoice::Emu) => Ok(vec![emulated]),
        Some(BackendChoice::Cuda) if args.target.is_some() => Err(InputError::new(
            "--target is for the emulator: a real card cannot be changed",
            "leave out --target, or --backend cuda",
        )
        .into()),
        Some(choice) => Ok(match choose(choice)?.is_some() {
            true => vec![(BackendChoice::Cuda, None)],
            false => vec![emulated],
        }),
        None if args.target.is_some() => Ok(vec![emulated]),
        None => Ok(match choose(BackendChoice::Auto)? {
            None => vec![emulated],
            Some((chip, _)) => {
                let alike = target::built_in().find(|(_, device)| device.chip == chip);
                let alike = target.or(alike.map(|(name, _)| name.to_owned()));
                vec![(BackendChoice::Cuda, None), (BackendChoice::Emu, alike)]
            }
        }),
    }
}

fn dump(args: &Args, plan: &Plan) -> Result<Option<Dump>, CommandError> {
    let Some([names, folder]) = args.dump.as_deref() else {
        return Ok(None);
    };
    let requests: Result<Vec<DumpItem>, String> = names.split(',').map(str::parse).collect();
    let requests = requests.map_err(|why| {
        InputError::new(
            format!("--dump {names}: {why}"),
            "write names as c,expected,half_a:f16",
        )
    })?;
    let call = plan.cells[0].run().map(|(_, call)| call);
    let operator = &plan.round.operator;
    Dump::new(requests, PathBuf::from(folder), args.form, operator, call).map(Some)
}

fn kinds(args: &Args) -> Result<Option<(Vec<CodeKind>, PathBuf)>, CommandError> {
    let Some([list, folder]) = args.emit.as_deref() else {
        return Ok(None);
    };
    let kind = |word: &str| <CodeKind as clap::ValueEnum>::from_str(word.trim(), true);
    let kinds: Result<Vec<CodeKind>, String> = list.split(',').map(kind).collect();
    let kinds = kinds.map_err(|_| {
        InputError::new(
            format!("--emit {list}: unknown kind of code"),
            "write ptx, sass, cubin, or several of them with commas",
        )
    })?;
    let folder = PathBuf::from(folder);
    make_folder(&folder)?;
    Ok(Some((kinds, folder)))
}

fn introduce(plan: &Plan, case: &DebuggedCell) {
    let contender = &plan.contenders[0];
    let file = contender.variant.file.path.display();
    say!("{} on {}  ({file})", contender.id, plan.shapes[0].name);
    let Settings { seed, schedule, .. } = &case.settings;
    let exact = match case.settings.exact_sums {
        true => ", exact sums",
        false => "",
    };
    say!(
        "of {}; data of seed {seed}, schedule {schedule}{exact}\n",
        case.of.display()
    );
}

fn print_log(log: Option<&str>) {
    let Some(log) = log.filter(|log| !log.trim().is_empty()) else {
        return;
    };
    let lines = log.lines().map(|line| format!("  {line}")).joined("\n");
    say!("What the compiler says\n{lines}\n");
}

fn context<'a>(case: &'a DebuggedCell, plan: &Plan, shape: &'a Shape) -> DebugContext<'a> {
    let run = plan.cells[0].run();
    let constants = run.map(|(build, _)| &plan.builds[build].constants);
    let constant = |name: &str| {
        let value = constants?.get(name)?;
        usize::try_from(*value).ok()
    };
    DebugContext {
        shape,
        tolerance: Tolerance::from(&case.settings),
        tile: (constant("BM"), constant("BN")),
        commands: Commands {
            run: &case.of,
            round: &case.config,
            folders: &case.folders,
        },
    }
}

fn surprising(account: &Diagnosis, expected: Status) -> bool {
    let status = account.verdict.status;
    status != expected && status != Status::Unsupported
}

fn wrote(files: &[PathBuf]) {
    for file in files {
        say!("wrote {}", file.display());
    }
}

fn interrupted() -> CommandError {
    CommandError::could_not_run("stopped before there was a verdict", "run it again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::record::synthetic::{Synthetic, SyntheticContender};

    #[test]
    fn the_first_failure_is_found_by_either_spelling() {
        let mut field = Synthetic::round4();
        field.entries.push(SyntheticContender::failed(
            "pipelined[STAGES=2]",
            Status::Hung,
            "it waits",
        ));
        let run = field.run();
        let first = Some(run.header.shapes[0].name.clone());
        for name in ["pipelined[STAGES=2]", "pipelined:STAGES=2", "pipelined"] {
            assert_eq!(first_failure(&run, name), first, "{name}");
        }
        assert_eq!(first_failure(&run, "pipelined:STAGES=3"), None);
        assert_eq!(first_failure(&run, "interleaved"), None);
    }
}
