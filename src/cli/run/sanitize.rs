use std::path::{Path, PathBuf};
use std::time::Duration;

use super::examined_round::{self, check_variant, examined_round};
use super::explain::no_contender;
use super::machine;
use crate::cli::select::Names;
use crate::cli::{Globals, named, runs, select};
use crate::export::{self, hazards};
use crate::present::{Folders, hazards_text};
use crate::report::hazards_page;
use dgx_core::config::{Round, Selection};
use dgx_core::diagnostic::{CommandError, InputError};
use dgx_core::domain::{Device, Exit, Shape, counted, distinct, typed};
use dgx_core::record::{PortablePaths, Run};
use dgx_core::sanitize::{SanitizeCase, SanitizeReport, SanitizeSettings, SanitizedCell};
use dgx_run::catalog::{Catalog, Contender};
use dgx_run::compile::Compiler;
use dgx_run::plan;
use dgx_run::sanitize::{self, SanitizeTask, SaveReport};

use dgx_run::sweep::Progress;

/// Seconds that a call may take.
const TIMEOUT: f64 = 120.0;
/// Shapes that the first line names.
const MOST_SHAPES: usize = 12;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dgx sanitize swap-ab
  dgx sanitize round4 --schedules 16
  dgx sanitize mine --shape 40x128x512+5x256x256 --schedule 3
  dgx sanitize mine smoke --shape ragged
  dgx sanitize final --shape '256x*' --schedules 1 --export-html hazards.html
  dgx sanitize smoke --round-shapes --export-junit hazards.xml

Exits 3 if a contender is racy, wrong or does not end, unless its variant declares
it. Ctrl-C stops it and prints the findings so far (exit 4). docs/races.md
describes what is found.")]
pub(crate) struct Args {
    /// Contender (a variant, or one of its parameter choices), or a round
    #[arg(value_name = "CONTENDER|ROUND")]
    name: String,
    /// For a contender: the round or run that has its shapes and tolerances [default:
    /// the newest run if that has the contender, else configs/CONTENDER.toml, else the
    /// newest run]
    #[arg(value_name = "ROUND|RUN", value_parser = named::round_or_run())]
    of: Option<PathBuf>,
    /// For a round: only these contenders: names, or patterns in quotes, e.g.
    /// 'pipe*,two-pass'
    #[arg(long, value_name = "CONTENDER")]
    only: Vec<Names>,
    /// Legal orders of warps and copies to try; the results of the others are
    /// compared with the first
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = runs::whole(1..=100_000))]
    schedules: u32,
    /// One order only, by its seed, as a finding prints it
    #[arg(long, value_name = "SEED", value_parser = runs::natural, conflicts_with = "schedules")]
    schedule: Option<u64>,
    /// Shapes to run on: MxNxK, groups joined by +; or names and patterns of the round,
    /// as '256x*' [default: small shapes chosen to reach all of its code]
    #[arg(long, value_name = "SHAPE")]
    shape: Vec<Names>,
    /// Run on the round's shapes
    #[arg(long, conflicts_with = "shape")]
    round_shapes: bool,
    /// Multiprocessors of the device for --shape and --round-shapes [default:
    /// the target's]: with few, CTAs take several tiles each
    #[arg(long, value_name = "N", value_parser = runs::whole(1..=4096))]
    sms: Option<u32>,
    #[arg(long, value_name = "TARGET", help = machine::target_help(
        "Device",
        ", or a file like those in configs/targets/ [default: the run's, else the GPU's here, else h200]",
    ))]
    target: Option<String>,
    /// Also report what hardware tolerates
    #[arg(long)]
    strict: bool,
    /// Seconds after which a call counts as hung
    #[arg(long, value_name = "SECONDS", default_value_t = TIMEOUT, value_parser = runs::seconds)]
    timeout: f64,
    /// Write every cell with its findings as JSON
    #[arg(long, value_name = "FILE")]
    export_json: Option<PathBuf>,
    /// Write JUnit XML, a test case for each cell
    #[arg(long, value_name = "FILE")]
    export_junit: Option<PathBuf>,
    /// Write one HTML page, with both lines of every finding
    #[arg(long, value_name = "FILE")]
    export_html: Option<PathBuf>,
    #[command(flatten)]
    compile: machine::CompileLimitFlags,
}

impl Args {
    /// The schedules to run each cell in.
    fn seeds(&self) -> Vec<u64> {
        match self.schedule {
            Some(seed) => vec![seed],
            None => (0..u64::from(self.schedules)).collect(),
        }
    }
}

/// Finds hazards that a correct result does not show, and prints where they are.
pub(super) fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    let catalog = Catalog::open(&globals.variants)?;
    let config = match args.of {
        Some(_) => None,
        None => examined_round::round_rather_than_variant(&args.name, &catalog),
    };
    let (reference_round, run) = match config {
        Some(_) => (None, None),
        None => {
            check_variant(&args.name, &catalog)?;
            reference_round(&args, &catalog)?.unzip()
        }
    };
    let run = run.flatten();
    let path_of = |round: &Round| match &run {
        Some(run) => run.path.clone(),
        None => round.file.path.clone(),
    };
    let path = reference_round.as_ref().map(path_of);
    let files = [&args.export_json, &args.export_junit, &args.export_html];
    runs::probe(files, config.as_deref().into_iter().chain(path.as_deref()))?;
    let of_run = || run.as_ref()?.header.settings.target.clone();
    let device = machine::emulated(args.target.clone().or_else(of_run).as_deref())?;
    let (round, contenders) = match &config {
        Some(path) => {
            let mut round = Round::read(path)?;
            round.only = args.only.iter().flat_map(|list| &list.0).cloned().collect();
            let own = catalog.of(&round.operator);
            let contenders = plan::entrants(&round, &own, device.chip)?;
            (round, contenders)
        }
        None => {
            let round = reference_round.map_or_else(|| any_round(&args, &catalog), Ok)?;
            let own = catalog.of(&round.operator);
            (round, contenders_of(&args, &own, &device)?)
        }
    };
    let of_round = config.is_some() || path.is_some();
    let cases = cases(&args, &round, of_round, &device)?;
    let mut tasks = Vec::new();
    for contender in &contenders {
        let own = sanitize::tasks(&round, contender, &cases, &catalog, &device)?;
        if own.is_empty() {
            let id = &contender.id;
            remark!("{id}: takes none of the small shapes; name one with --shape");
        }
        tasks.extend(own);
    }
    refuse_if_none_runs(&tasks)?;
    let compiler = machine::compiler(args.compile.limits())?;
    announce(&args, &tasks, contenders.len(), cases.is_empty());
    let again =
        |cell: &SanitizedCell| again(cell, config.is_some(), path.as_deref(), &args, globals);
    examine(&args, &tasks, &compiler, &again, globals)
}

/// A round of the operator of the variant to examine, which no round or run was named for.
fn any_round(args: &Args, catalog: &Catalog) -> Result<Round, CommandError> {
    let name = runs::selection(&args.name)?.variant;
    let operator = examined_round::operator_of(&name, catalog)?;
    Ok(sanitize::any_round(&operator)?)
}

fn announce(args: &Args, tasks: &[SanitizeTask], contenders: usize, built_in: bool) {
    inform!(
        "sanitize: {} of {}, {} of each, on {}{}",
        counted(tasks.len(), "cell"),
        counted(contenders, "contender"),
        counted(args.seeds().len(), "schedule"),
        if built_in { "built-in shapes " } else { "" },
        shape_names(tasks),
    );
}

/// Examines the cells, writes the findings to files, and prints them.
fn examine(
    args: &Args,
    tasks: &[SanitizeTask],
    compiler: &Compiler,
    again: &(dyn Fn(&SanitizedCell) -> String + Sync),
    globals: &Globals,
) -> Result<Exit, CommandError> {
    let settings = SanitizeSettings {
        schedules: args.seeds(),
        strict: args.strict,
        time_limit: Duration::from_secs_f64(args.timeout),
    };
    let progress = Progress::begin();
    let bar = progress.slow("sanitize", tasks.len());
    // An output that is not a file gets everything at once.
    let file = args.export_json.as_deref();
    let keep = file.filter(|path| export::replaces(path)).map(|path| {
        |report: &SanitizeReport| {
            // It is written once more at the end, and then it must succeed.
            let _ = export::write(path, &hazards::json(report, &settings, again));
        }
    });
    let kept = keep.as_ref().map(|keep| keep as &SaveReport<'_>);
    let report = sanitize::examine_all(tasks, &settings, compiler, &bar, kept)?;
    bar.done("");
    let schedules = settings.schedules.len();
    let written = runs::write_all([
        (&args.export_json, &|| {
            hazards::json(&report, &settings, again)
        }),
        (&args.export_junit, &|| hazards::junit(&report)),
        (&args.export_html, &|| {
            page(args, &report, schedules, again, globals)
        }),
    ]);
    let style = runs::style(globals);
    say!("{}", hazards_text(&report, schedules, again, &style));
    written?;
    Ok(
        match (report.left.is_empty(), report.unexpected().is_empty()) {
            (false, _) => Exit::CouldNotRun,
            (true, true) => Exit::Done,
            (true, false) => Exit::Unexpected,
        },
    )
}

/// The shapes of all tasks, each once.
fn shape_names(tasks: &[SanitizeTask]) -> String {
    let mut names = distinct(tasks.iter().map(|task| task.case.shape.name.as_str()));
    let more = names.len().saturating_sub(MOST_SHAPES);
    names.truncate(MOST_SHAPES);
    match more {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// The round that defines a contender's examination, and the run it is from: the named one, or the
/// usual one.
fn reference_round(
    args: &Args,
    catalog: &Catalog,
) -> Result<Option<(Round, Option<Run>)>, CommandError> {
    match &args.of {
        Some(path) => examined_round(Some(path), &args.name, catalog).map(Some),
        None => examined_round::default_round(&args.name),
    }
}

/// Whether a word is `MxNxK`, or several of them.
fn is_sizes(word: &str) -> bool {
    let mut parts = word.split(['x', '+']);
    parts.all(|part| part.trim().parse::<u32>().is_ok())
}

/// The selected contenders of a variant.
fn contenders_of(
    args: &Args,
    catalog: &Catalog,
    device: &Device,
) -> Result<Vec<Contender>, CommandError> {
    if !args.only.is_empty() {
        let message = format!("--only: `{}` is not a round", args.name);
        return Err(InputError::new(message, "name the contender alone, or a round").into());
    }
    let Selection {
        variant, params, ..
    } = runs::selection(&args.name)?;
    let variant = catalog.variant_on(&variant, device.chip)?;
    let chosen = variant.contenders(&params);
    match chosen.is_empty() {
        true => Err(no_contender(&variant, &args.name, &params).into()),
        false => Ok(chosen),
    }
}

/// The shapes of the command line, if it names any, with their device.
fn cases(
    args: &Args,
    round: &Round,
    of_round: bool,
    device: &Device,
) -> Result<Vec<SanitizeCase>, CommandError> {
    if args.round_shapes && !of_round {
        let message = format!("--round-shapes: `{}` is not a round", args.name);
        return Err(InputError::new(message, "name a round file, or shapes with --shape").into());
    }
    let shapes = match args.round_shapes {
        true => round.shapes.clone(),
        false => named_shapes(&args.shape, round, of_round)?,
    };
    if shapes.is_empty() && args.sms.is_some() {
        let message = "--sms needs --shape or --round-shapes";
        return Err(InputError::new(message, "add --shape").into());
    }
    let case = |shape| SanitizeCase {
        shape,
        sms: args.sms.unwrap_or(device.limits.sms),
        reaches: "",
    };
    Ok(shapes.into_iter().map(case).collect())
}

/// Shapes by their sizes, or as a round names them.
fn named_shapes(words: &[Names], round: &Round, of_round: bool) -> Result<Vec<Shape>, InputError> {
    let names: Vec<&str> = round.shapes.iter().map(|s| s.name.as_str()).collect();
    let mut shapes: Vec<Shape> = Vec::new();
    for word in words.iter().flat_map(|names| &names.0) {
        let found = match select::matching(word, &names) {
            Ok(found) if of_round => found,
            Err(nobody) if of_round && !is_sizes(word) => return Err(nobody),
            _ => {
                shapes.push(sanitize::parse_shape(&round.operator, word)?);
                continue;
            }
        };
        let meant = round
            .shapes
            .iter()
            .filter(|s| found.contains(&s.name.as_str()));
        shapes.extend(meant.cloned());
    }
    Ok(shapes)
}

/// Shapes that no contender supports are the user's mistake.
fn refuse_if_none_runs(tasks: &[SanitizeTask]) -> Result<(), CommandError> {
    let refusals: Option<Vec<&str>> = tasks.iter().map(SanitizeTask::refusal).collect();
    match refusals.as_deref() {
        None => Ok(()),
        Some([]) => Err(InputError::new(
            "there is nothing to run: no contender takes any of the small shapes",
            "name a shape it takes with --shape MxNxK",
        )
        .into()),
        Some([first, ..]) => {
            let SanitizeTask {
                contender, case, ..
            } = &tasks[0];
            let message = format!(
                "{} does not take {}: {first}",
                contender.id, case.shape.name
            );
            Err(InputError::new(message, "see `requires` in its front matter").into())
        }
    }
}

/// The command line, as typed.
fn asked(args: &Args, globals: &Globals) -> String {
    let mut words = vec![format!("dgx sanitize {}", typed(&args.name))];
    words.extend(args.of.as_ref().map(typed));
    let list = |flag: &str, names: &Names| format!("{flag} {}", typed(names.0.join(",")));
    words.extend(args.only.iter().map(|names| list("--only", names)));
    match args.schedule {
        Some(seed) => words.push(format!("--schedule {seed}")),
        None => words.push(format!("--schedules {}", args.schedules)),
    }
    words.extend(args.shape.iter().map(|names| list("--shape", names)));
    words.extend(args.round_shapes.then(|| "--round-shapes".to_owned()));
    words.extend(args.sms.map(|sms| format!("--sms {sms}")));
    words.extend(manner(args));
    words.join(" ") + &Folders::named(&globals.variants).flags()
}

/// The findings as a page to be read elsewhere. Paths in it are made portable, since only commands
/// on the screen are pasted on this machine.
fn page(
    args: &Args,
    report: &SanitizeReport,
    schedules: usize,
    again: &dyn Fn(&SanitizedCell) -> String,
    globals: &Globals,
) -> String {
    let words = std::iter::once(&args.name).chain(&args.target);
    let files = words.map(Path::new).chain(args.of.as_deref());
    let folders = globals.variants.iter().map(PathBuf::as_path);
    let project = std::env::current_dir().unwrap_or_default();
    let portable = PortablePaths::of(files.chain(folders), &project);
    hazards_page(
        &portable.rewrite(&asked(args, globals)),
        &report.with_paths(&|text| portable.rewrite(text)),
        schedules,
        &|cell| portable.rewrite(&again(cell)),
    )
}

/// The other flags that change the findings.
fn manner(args: &Args) -> Vec<String> {
    let mut words = Vec::new();
    let target = args.target.as_ref();
    words.extend(target.map(|target| format!("--target {}", typed(target))));
    words.extend(args.strict.then(|| "--strict".to_owned()));
    if args.timeout != TIMEOUT {
        words.push(format!("--timeout {}", args.timeout));
    }
    words
}

/// The command that repeats a cell's deviating schedule.
fn again(
    cell: &SanitizedCell,
    of_round: bool,
    reference_round: Option<&Path>,
    args: &Args,
    globals: &Globals,
) -> String {
    let contender = cell.contender.typed();
    // A round has its own tolerances.
    let mut words = vec![match of_round {
        true => format!("dgx sanitize {} --only {contender}", typed(&args.name)),
        false => format!("dgx sanitize {contender}"),
    }];
    words.extend(reference_round.map(typed));
    let SanitizeCase { shape, sms, .. } = &cell.case;
    let sizes = sanitize::size_text(&shape.groups);
    words.push(format!("--shape {sizes} --sms {sms}"));
    if let Some(deviation) = &cell.deviation {
        words.push(format!("--schedule {}", deviation.schedule));
    }
    words.extend(manner(args));
    words.join(" ") + &Folders::named(&globals.variants).flags()
}
