mod into;
mod slurm;

use std::path::{Path, PathBuf};

use self::into::{is_of, still_holds};
use self::slurm::{check_engine, on_slurm};
use super::cluster::SlurmFlags;
use super::machine;
use crate::cli::runs::{self, Exports};
use crate::cli::select::{Names, Shapes};
use crate::cli::{Globals, named};
use crate::contest::rounds;
use crate::export::RunExport;
use dgx_core::config::{Array, Baseline, Measurement, Round};
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{BackendKind, Device, Exit, HazardWatch, Joined, content_hash};
use dgx_core::rank::Ranking;
use dgx_core::record::schema::{Header, Settings};
use dgx_core::record::verdict_exit;
use dgx_run::catalog::Catalog;
use dgx_run::plan::{
    LaunchGeometry, OperatorCall, Plan, PlanOutcome, PlanTarget, imbalance, shards,
};
use dgx_run::sweep::{
    BackendChoice, FakeFlags, Gpus, Options, Resumed, ShardOf, begun, choose, sweep,
};

/// Compile, validate and time a round's contenders, and rank them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The round: a file, or its name in configs/, e.g. round4; not needed with
    /// --resume
    #[arg(value_name = "ROUND", required_unless_present = "resume", value_parser = named::round())]
    config: Option<PathBuf>,
    /// Contender the others are compared with [default: the round's]
    #[arg(long, value_name = "CONTENDER", help_heading = "Selection")]
    baseline: Option<String>,
    /// Run only these contenders: names (of any variant), or patterns in quotes, e.g.
    /// 'pipe*,two-pass'
    #[arg(long, value_name = "CONTENDER", help_heading = "Selection")]
    only: Vec<Names>,
    #[command(flatten, next_help_heading = "Selection")]
    shapes: Shapes,
    /// Where to run
    #[arg(long, value_enum, default_value = "auto", help_heading = "Measuring")]
    backend: BackendChoice,
    /// Run on these cards of this machine, as 0,1,3 in the order of
    /// CUDA_VISIBLE_DEVICES, or on all; shapes are distributed among them
    #[arg(long, value_name = "LIST", help_heading = "Measuring")]
    gpus: Option<Gpus>,
    #[command(flatten)]
    fake: FakeFlags,
    /// Minimum number of blocks per shape [default: min_blocks of the round]
    #[arg(long, value_name = "N", value_parser = runs::whole(1..=1_000_000), help_heading = "Measuring")]
    min_blocks: Option<u32>,
    /// Seconds after which a contender counts as hung [default: timeout of the
    /// round, else 120]
    #[arg(long, value_name = "SECONDS", value_parser = runs::seconds, help_heading = "Measuring")]
    timeout: Option<f64>,
    /// A quarter of the blocks and of the time, in one process
    #[arg(long, conflicts_with = "thorough", help_heading = "Measuring")]
    quick: bool,
    /// Four times the blocks and the time, in twice as many processes
    #[arg(long, help_heading = "Measuring")]
    thorough: bool,
    /// Seed of the data; each run adds a random secret, so a seed alone does not
    /// repeat the data [default: the round's, else random]
    #[arg(long, value_parser = runs::natural, help_heading = "Measuring")]
    seed: Option<u64>,
    /// Repeat the data of another run with this seed, for tests; every table says so
    #[arg(long, value_name = "SEED", value_parser = runs::natural, help_heading = "Measuring")]
    data_seed: Option<u64>,
    /// Emulator only: another legal order of warps and copies; a fault prints its seed
    #[arg(long, value_name = "SEED", value_parser = runs::natural, help_heading = "Emulator")]
    schedule: Option<u64>,
    /// Emulator only: round tensor-core sums as the target does, bit for bit; slower
    #[arg(long, help_heading = "Emulator")]
    exact_sums: bool,
    /// Emulator only: model times from a few CTAs on zero data, and validate nothing
    #[arg(long, conflicts_with = "exact_sums", help_heading = "Emulator")]
    time_only: bool,
    /// How many CTAs to check, in the emulator, for races and other hazards; with
    /// a GPU, on idle CPU cores [default: some]
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        conflicts_with = "time_only",
        help_heading = "Emulator"
    )]
    hazards: Option<HazardWatch>,
    #[arg(long, value_name = "TARGET[,KEY=X]", help_heading = "Emulator", help = machine::target_help(
        "Emulator only: device to model",
        " or a file; numbers can be changed, e.g. h200,sms=144,clock=1.5",
    ))]
    target: Option<String>,
    /// Folder for run files
    #[arg(
        long,
        value_name = "DIR",
        default_value = "results",
        help_heading = "Output"
    )]
    results: PathBuf,
    /// Run one part of the round, e.g. 2/4: the second of four; `dgx merge`
    /// joins them
    #[arg(long, value_name = "I/N", help_heading = "Selection")]
    shard: Option<ShardOf>,
    /// Where the shards of a round run: here, or as jobs of a cluster
    #[arg(long, value_enum, default_value = "local", help_heading = "Slurm")]
    engine: Engine,
    /// Slurm: number of shards, and how many run at once, as 16 or 16%4 [default: one
    /// per shape, at most 16]
    #[arg(long, value_name = "N[%M]", help_heading = "Slurm")]
    array: Option<Array>,
    #[command(flatten, next_help_heading = "Slurm")]
    slurm: SlurmFlags,
    /// The baseline, as the command that submitted this shard settled it
    #[arg(long, value_name = "CONTENDER", hide = true)]
    shard_baseline: Option<String>,
    /// Write the run to this file; continue it if it exists
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "resume",
        help_heading = "Output"
    )]
    into: Option<PathBuf>,
    /// Continue a sweep that did not end: the newest, or the named run file
    #[arg(long, value_name = "RUN", num_args = 0..=1, value_parser = named::any_run(), help_heading = "Output")]
    resume: Option<Option<PathBuf>>,
    /// Print what would run, and run nothing
    #[arg(long, help_heading = "Output")]
    dry_run: bool,
    /// Also print the emulator's counters; also possible later: `dgx show --counters`
    #[arg(long, help_heading = "Output")]
    counters: bool,
    #[command(flatten, next_help_heading = "Measuring")]
    compile: machine::CompileLimitFlags,
    #[command(flatten, next_help_heading = "Output")]
    exports: Exports,
}

/// Where the shards run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Engine {
    /// This machine
    Local,
    /// An array of Slurm jobs
    Slurm,
}

pub(super) fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    check_engine(&args)?;
    check_gpus(&args)?;
    args.into.as_deref().map_or(Ok(()), check_into)?;
    let resume = match (&args.resume, &args.into) {
        (Some(Some(file)), _) => Some(Resumed::file(file)?),
        (Some(None), _) => Some(Resumed::newest(&args.results)?),
        (None, Some(file)) if begun(file)? => match Resumed::unless_complete(file)? {
            Ok(resumed) => {
                is_of(resumed.header(), &args, file)?;
                inform!("{} has part of this run: continuing it", file.display());
                Some(resumed)
            }
            Err(run) => {
                is_of(&run.header, &args, file)?;
                let round = round(&args, Some(&run.header))?;
                still_holds(&run, round, &args, globals)?;
                inform!("{} is complete: nothing is left to do", file.display());
                return Ok(verdict_exit(&run));
            }
        },
        (None, _) => None,
    };
    // A mistake in the target is the user's, not a worker's.
    let (device, _) = match args.dry_run && args.engine != Engine::Slurm {
        true => machine::device(args.target.as_deref(), args.backend)?,
        // A worker asks its card, and a cluster's nodes ask theirs.
        false => machine::device(args.target.as_deref(), BackendChoice::Emu)?,
    };
    let round = round(&args, resume.as_ref().map(Resumed::header))?;
    if args.engine == Engine::Slurm {
        return on_slurm(&round, &args, &device, globals);
    }
    if args.dry_run {
        check_results(&args.results)?;
        return dry_run(round, &args, &device, globals);
    }
    let resumed = resume.as_ref().map(Resumed::path);
    args.exports
        .probe(args.config.as_deref().into_iter().chain(resumed))?;
    let swept = sweep(Options {
        departures: departures(&args),
        variants: globals.variants.clone(),
        results: args.results.clone(),
        into: args.into.clone(),
        // A resumed run already has its shard.
        shard: args.shard.filter(|_| resume.is_none()),
        backend: args.backend,
        gpus: gpus(&args, resume.as_ref()),
        fake: args.fake.clone(),
        settings: match &resume {
            Some(resumed) => resumed.header().settings.clone(),
            None => settings(&args, &round),
        },
        round,
        limits: args.compile.limits(),
        resume,
    })?;
    let ranking = Ranking::of(&swept.run);
    let written = args.exports.write(&RunExport::of_run(&swept.run, &ranking));
    runs::summarise(&swept.run, args.config.as_deref(), args.counters, globals);
    written?;
    Ok(swept.exit)
}

/// Refuses a file in place of the folder for run files, as the sweep itself would.
fn check_results(folder: &Path) -> Result<(), CommandError> {
    match folder.exists() && !folder.is_dir() {
        false => Ok(()),
        true => Err(CommandError::could_not_run(
            format!("cannot write in {}: it is not a folder", folder.display()),
            "name a folder that can be written",
        )),
    }
}

/// Refuses a folder in place of the run file.
fn check_into(file: &Path) -> Result<(), CommandError> {
    if !file.is_dir() {
        return Ok(());
    }
    let shown = file.display();
    let remedy = format!("name a file: --into {}", file.join("NAME.jsonl").display());
    Err(CommandError::usage(format!("{shown} is a folder"), remedy))
}

/// Refuses cards that are not here, before anything is compiled for them: the emulator is no
/// substitute.
fn check_gpus(args: &Args) -> Result<(), CommandError> {
    let asked = args.gpus.is_some() || args.backend == BackendChoice::Cuda;
    let local = args.engine == Engine::Local && args.backend.kind() != BackendKind::Fake;
    if asked && local && choose(args.backend)?.is_none() {
        return Err(CommandError::could_not_run(
            "--gpus asks for a GPU, and there is none to run on",
            "leave --gpus out to emulate",
        ));
    }
    Ok(())
}

/// The settings of a new run.
fn settings(args: &Args, round: &Round) -> Settings {
    let drawn = || match args.shard {
        // Parts of one round can be merged only if they have the same seed.
        Some(_) => shared_seed(round),
        None => rand::random(),
    };
    let seed = args.seed.or(round.validation.seed).unwrap_or_else(drawn);
    Settings {
        secret: Some(args.data_seed.unwrap_or_else(rand::random)),
        secret_given: args.data_seed.is_some(),
        schedule: args.schedule.unwrap_or_default(),
        exact_sums: args.exact_sums,
        time_only: args.time_only,
        hazards: match (args.time_only, args.backend.kind()) {
            (true, _) => HazardWatch::Off,
            // The fake backend runs no kernel.
            (false, BackendKind::Fake) => args.hazards.unwrap_or(HazardWatch::Off),
            (false, _) => args.hazards.unwrap_or(HazardWatch::Some),
        },
        target: args.target.clone(),
        ..Settings::of(round, seed)
    }
}

/// A run on several cards continues on all visible ones.
fn gpus(args: &Args, resume: Option<&Resumed>) -> Gpus {
    let several = |resumed: &Resumed| {
        let device = &resumed.header().device;
        device.timing.sampled() && device.uuid.is_none()
    };
    let usual = match resume.is_some_and(several) {
        true => Gpus::All,
        false => Gpus::First,
    };
    args.gpus.clone().unwrap_or(usual)
}

/// A seed that every part of a round derives by itself.
fn shared_seed(round: &Round) -> u64 {
    let hash = content_hash([&*round.file.text]);
    u64::from_str_radix(&hash[..16], 16).unwrap_or_default()
}

/// Prints the plan for the target.
fn dry_run(
    mut round: Round,
    args: &Args,
    device: &Device,
    globals: &Globals,
) -> Result<Exit, CommandError> {
    if let Some(shard) = args.shard.filter(|_| args.resume.is_none()) {
        let timing = args.backend.kind().timing();
        let all = shard.cut(&mut round, timing)?.shapes;
        let parts = shards(&round.operator, &all, shard.of as usize, timing);
        let over = imbalance(&round.operator, &all, &parts, timing);
        let shapes = round.shapes.len();
        say!("shard {shard}: {shapes} shapes; the longest shard over the mean: {over:.2}");
    }
    let catalog = Catalog::open(&globals.variants)?;
    let plan = Plan::new(round, &catalog, &PlanTarget::of(device))?;
    let style = runs::style(globals);
    super::check::summarise(&plan, device, &style);
    for cell in &plan.cells {
        let contender = &plan.contenders[cell.contender].id;
        let shape = &plan.shapes[cell.shape].name;
        let becomes = match &cell.outcome {
            PlanOutcome::Run { call, .. } => launches(call),
            PlanOutcome::Unsupported { reason } => format!("unsupported, {reason}"),
            PlanOutcome::Broken(why) => format!("compile-error, {why}"),
        };
        let line = format!("{contender} on {shape}: {becomes}");
        say!("  {}", style.narrower(2).fold(&line, 6));
    }
    Ok(super::check::print_mistakes(&plan))
}

fn launches(call: &OperatorCall) -> String {
    let one = |l: &LaunchGeometry| {
        let [x, y, z] = l.grid;
        let threads = l.threads_per_block();
        format!("{} {x}×{y}×{z} CTAs of {threads} threads", l.kernel)
    };
    call.launches.iter().map(one).joined(", ")
}

/// The round file, overridden by the command line.
fn round(args: &Args, begun: Option<&Header>) -> Result<Round, CommandError> {
    if let Some(header) = begun {
        let mut round = runs::round_of(args.config.as_deref(), header)?;
        limit(&mut round, args);
        return match conflicts(args, &round, header) {
            flags if flags.is_empty() => Ok(round),
            flags => Err(CommandError::usage(
                format!("the run did not begin with {}", flags.join(" ")),
                "leave that out: a resumed run keeps its settings; or start a new sweep",
            )),
        };
    }
    let Some(path) = &args.config else {
        return Err(CommandError::usage(
            "no round file was given",
            "name one, e.g. dgx sweep round4",
        ));
    };
    let mut round = Round::read(path)?;
    let names = args.only.iter().flat_map(|list| &list.0);
    round.only = names.cloned().collect();
    args.shapes.keep_in_round(&mut round)?;
    match args.baseline.as_ref().or(args.shard_baseline.as_ref()) {
        Some(baseline) => round.baseline = Baseline::Contender(runs::selection(baseline)?),
        None => rounds::settle_baseline(&mut round, &args.results)?,
    }
    limit(&mut round, args);
    adjust(&mut round.measurement, args);
    Ok(round)
}

fn limit(round: &mut Round, args: &Args) {
    if let Some(timeout) = args.timeout {
        round.validation.timeout = timeout;
    }
}

fn adjust(measurement: &mut Measurement, args: &Args) {
    if args.quick {
        measurement.min_blocks = (measurement.min_blocks / 4).max(2);
        measurement.max_seconds /= 4.0;
        measurement.processes = 1;
    }
    if args.thorough {
        measurement.min_blocks *= 4;
        measurement.max_seconds *= 4.0;
        measurement.processes *= 2;
    }
    if let Some(blocks) = args.min_blocks {
        measurement.min_blocks = blocks;
    }
}

/// Flags that contradict the run to be resumed. It recorded its departures, so the others are
/// compared with its settings.
fn conflicts(args: &Args, round: &Round, header: &Header) -> Vec<String> {
    let then = &header.settings;
    let mut asked = round.measurement.clone();
    adjust(&mut asked, args);
    let otherwise = asked.max_seconds != then.max_seconds;
    let flags = [
        ("--seed", args.seed.is_some_and(|s| s != then.seed)),
        (
            "--data-seed",
            args.data_seed.is_some_and(|s| Some(s) != then.secret),
        ),
        (
            "--schedule",
            args.schedule.is_some_and(|s| s != then.schedule),
        ),
        ("--exact-sums", args.exact_sums && !then.exact_sums),
        ("--hazards", args.hazards.is_some_and(|h| h != then.hazards)),
        (
            "--min-blocks",
            args.min_blocks.is_some_and(|n| n != then.min_blocks),
        ),
        (
            "--shard",
            args.shard.is_some_and(|asked| {
                let then = header.shard.as_ref().map(|s| (s.number, s.of));
                then != Some((asked.number, asked.of))
            }),
        ),
        ("--quick", args.quick && otherwise),
        ("--thorough", args.thorough && otherwise),
    ];
    let differing = flags.into_iter().filter(|(_, differs)| *differs);
    let others = departures(args).into_iter();
    let others = others.filter(|flag| flag != "--quick" && !header.departures.contains(flag));
    differing
        .map(|(flag, _)| flag.to_owned())
        .chain(others)
        .collect()
}

/// Flags that make the run differ from the round's file, or a weaker measurement of it.
fn departures(args: &Args) -> Vec<String> {
    let names = args.only.iter().flat_map(|list| &list.0);
    let only = names.map(|name| format!("--only {name}"));
    let baseline = args
        .baseline
        .iter()
        .map(|name| format!("--baseline {name}"));
    let shapes = args.shapes.words().map(|name| format!("--shape {name}"));
    let quick = args.quick.then(|| "--quick".to_owned());
    let time_only = args.time_only.then(|| "--time-only".to_owned());
    let target = args.target.iter().map(|word| format!("--target {word}"));
    let all = only
        .chain(shapes)
        .chain(baseline)
        .chain(quick)
        .chain(time_only);
    all.chain(target).collect()
}
