use std::path::{Path, PathBuf};

use super::Globals;
use super::{named, runs, select::Names};
use crate::contest::rounds;
use crate::export;
use crate::present;
use dgx_core::config::{FACTOR, Gate, Yardstick, counter_remedy};
use dgx_core::diagnostic::{CommandError, InputError};
use dgx_core::domain::{Bytes, Counter, Exit, Pattern, typed};
use dgx_core::gate::{self, ComparedWith, Finding, GateReport, Rule, Ruling};
use dgx_core::rank::{Ranking, mismatch};
use dgx_core::record::{self, Newest, PassedOver, Run, Search};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Run to judge [default: the newest in results/; with a run as --baseline, the
    /// newest of the same round and kind of device]
    #[arg(value_name = "RUN", value_parser = named::newest_run())]
    run: Option<Newest>,
    /// Contender or run to compare with [default: the round's baseline]
    #[arg(long, value_name = "CONTENDER|RUN")]
    baseline: Option<String>,
    /// Contenders to judge: names, or patterns in quotes, e.g. 'pipe*,two-pass'
    /// [default: all but the baseline]
    #[arg(long, value_name = "CONTENDER")]
    contender: Vec<Names>,
    /// Minimum geometric-mean speedup over the baseline
    #[arg(long, value_name = "X", value_parser = ratio)]
    min_geomean: Option<f64>,
    /// Minimum speedup on every single shape
    #[arg(long, value_name = "X", value_parser = ratio)]
    min_shape: Option<f64>,
    /// Fail contenders that are detectably slower than the baseline, in the mean or on
    /// a shape; default if --baseline is a run file
    #[arg(long)]
    not_slower: bool,
    /// Maximum shared memory of a kernel, in bytes
    #[arg(long, value_name = "BYTES", value_parser = runs::natural)]
    max_smem: Option<u64>,
    /// Maximum number of registers per thread
    #[arg(long, value_name = "N", value_parser = runs::whole(0..=u32::MAX))]
    max_registers: Option<u32>,
    /// Minimum occupancy: share of an SM's warps that are resident, 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share)]
    min_occupancy: Option<f64>,
    /// Occupancy may not fall below the baseline's
    #[arg(long)]
    occupancy_not_worse: bool,
    /// Spilled bytes may not exceed the baseline's
    #[arg(long)]
    spills_not_worse: bool,
    /// Maximum of a counter (emulated runs), relative to the baseline, e.g.
    /// bank-conflicts=1.02; may be given several times
    #[arg(long, value_name = "NAME=X", value_parser = counter_rule)]
    counter: Vec<(Counter, f64)>,
    /// Every claim must be met
    #[arg(long)]
    claims_met: bool,
    /// Accept cells of any status, even those that were ok in the baseline run
    #[arg(long)]
    allow_incorrect: bool,
    /// Allow a baseline run from another GPU or backend
    #[arg(long)]
    across_devices: bool,
    /// Write the findings as JSON; `-` is standard output, and the table then
    /// goes to standard error
    #[arg(long, value_name = "FILE")]
    export_json: Option<PathBuf>,
    /// Write the findings as JUnit XML; `-` is standard output
    #[arg(long, value_name = "FILE")]
    export_junit: Option<PathBuf>,
    /// Write the findings as GitHub Markdown; `-` is standard output
    #[arg(long, value_name = "FILE")]
    export_markdown: Option<PathBuf>,
}

fn ratio(text: &str) -> Result<f64, String> {
    match text.trim_end_matches(['x', '×']).parse::<f64>() {
        Ok(value) if FACTOR.contains(&value) => Ok(value),
        _ => Err(format!(
            "a ratio is a number from {} to {}, e.g. 1.4",
            FACTOR.start(),
            FACTOR.end()
        )),
    }
}

fn counter_rule(text: &str) -> Result<(Counter, f64), String> {
    let Some((name, factor)) = text.split_once('=') else {
        return Err("write NAME=X, e.g. bank-conflicts=1.02".to_owned());
    };
    let counter = Counter::named(name)
        .ok_or_else(|| format!("`{name}` is not a counter; {}", counter_remedy(name)))?;
    Ok((counter, ratio(factor)?))
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("a share is a number from 0 to 1".to_owned()),
    }
}

pub(super) fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    let named = args.run.clone().map(nothing_newer).transpose()?;
    let read = runs::readable(named.as_deref());
    let baseline = args.baseline.as_deref();
    let file = baseline.and_then(|b| named::run_rather_than_contender(b, named.as_deref()));
    let file = file.map(nothing_newer).transpose()?;
    runs::probe(
        [&args.export_json, &args.export_junit, &args.export_markdown],
        file.iter().chain(&read).map(PathBuf::as_path),
    )?;
    // A value that is not a run is a contender's name.
    let args = Args {
        baseline: args.baseline.filter(|_| file.is_none()),
        ..args
    };
    let Sides { run, base, alone } = sides(&args, named.as_deref(), file.as_deref())?;
    check_baseline(&args, &run)?;
    let ranking = Ranking::of(&run);
    let mut report = match (&run.tool, &alone) {
        // Nothing is left to judge if the run is compared with itself: it has no rules, or no other
        // contender.
        (Some(_), Some(_)) => gate::nothing_compared(&run),
        (None, Some(_)) if run.header.contenders.len() == 1 => gate::nothing_compared(&run),
        (Some(tool), None) if base.is_none() && args.baseline.is_none() => {
            return Err(without_rules(&run, tool));
        }
        _ => {
            let written = meant(&args, &run, base.is_some())?;
            let rules = rules(&args, written, &run, base.is_some());
            judge(&args, &run, &ranking, &rules, base)?
        }
    };
    report.findings.extend(alone);
    // Files first: the reader of standard output may be gone by then.
    let written = write(&args, &report);
    say!("{}", present::gate_report(&report, &runs::style(globals)));
    written?;
    Ok(report.exit())
}

/// Refuses a baseline that is neither a run nor a contender.
fn check_baseline(args: &Args, run: &Run) -> Result<(), CommandError> {
    let Some(name) = &args.baseline else {
        return Ok(());
    };
    let pattern = Pattern::new(name);
    // A run without the library's times is judged, and found undecided.
    let yardstick = Yardstick::ALL
        .into_iter()
        .any(|one| pattern.picks(&one.id()));
    if yardstick || run.entrants().any(|id| pattern.picks(id)) {
        return Ok(());
    }
    Err(runs::unknown_contender(
        run,
        name,
        ", and no run of that name",
    ))
}

/// The run to judge, and what it is compared with.
struct Sides {
    run: Run,
    /// The run given with --baseline.
    base: Option<Run>,
    /// Set if the baseline is the run itself: the run is judged by its own rules and compared with
    /// nothing.
    alone: Option<Finding>,
}

/// The run that was found, unless a newer file was skipped: then the run is not the last one that
/// was swept.
fn nothing_newer(found: Newest) -> Result<PathBuf, CommandError> {
    let newer = found.passed_over.iter().find(|file| file.is_newer_run());
    let Some(file) = newer else {
        found.passed_over.iter().for_each(PassedOver::announce);
        return Ok(found.path);
    };
    let message = format!("the newest file cannot be judged: {}", file.why);
    let instead = typed(&found.path);
    let remedy = format!(
        "{}; to judge the run before it, name that: `dgx gate {instead}`",
        file.remedy
    );
    Err(CommandError::could_not_run(message, remedy))
}

fn sides(args: &Args, named: Option<&Path>, file: Option<&Path>) -> Result<Sides, CommandError> {
    let Some(file) = file else {
        let path = match named {
            Some(path) => path.to_owned(),
            None => nothing_newer(runs::newest_of(None)?)?,
        };
        return Ok(Sides {
            run: runs::load(Some(&path))?,
            base: None,
            alone: None,
        });
    };
    let base = runs::load(Some(file))?;
    if named.is_some_and(|named| same_file(named, file)) {
        let message = "--baseline is the run itself";
        return Err(CommandError::usage(message, "name an earlier run"));
    }
    let run = match named {
        Some(path) => Some(runs::load(Some(path))?),
        None => fitting(&base, args.across_devices)?,
    };
    let other = run.filter(|run| !same_file(&run.path, &base.path) && !run.is_same_as(&base));
    Ok(match other {
        Some(run) => Sides {
            run,
            base: Some(base),
            alone: None,
        },
        None => Sides {
            alone: Some(compared_with_itself(&base)),
            run: base,
            base: None,
        },
    })
}

/// The newest run of the baseline's round, of the same kind of device.
fn fitting(base: &Run, across_devices: bool) -> Result<Option<Run>, CommandError> {
    let fits = |path: &Path| {
        let difference = mismatch(base, &record::read(path)?);
        Ok(difference.is_none_or(|d| across_devices && d.is_of_devices()))
    };
    let name = Some(base.header.name.as_str());
    let found = record::newest(runs::newest_first(), name, Search::Whole, fits);
    let path = found.map(nothing_newer).transpose()?;
    Ok(path.map(|path| record::read(&path)).transpose()?)
}

fn compared_with_itself(run: &Run) -> Finding {
    Finding {
        ruling: Ruling::Undecided,
        wanted: "another run".to_owned(),
        found: "itself".to_owned(),
        reason: Some(match (&run.tool, run.header.contenders.len()) {
            (None, 2..) => "it was judged by its own rules, without another run".to_owned(),
            _ => "a run compared with itself always passes; name an earlier run".to_owned(),
        }),
        ..Finding::passed(Rule::Complete, &run.header.baseline, None)
    }
}

fn same_file(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}

/// The round's rules for this baseline: a threshold over one contender does not apply to another,
/// and none applies to an earlier run.
fn meant(args: &Args, run: &Run, over_run: bool) -> Result<Option<Gate>, CommandError> {
    let Some(mut gate) = rounds::rules_of(run)?.filter(|_| !over_run) else {
        return Ok(None);
    };
    if let Some(name) = args.baseline.as_deref() {
        let written = gate.over.as_deref().unwrap_or(run.header.baseline.as_str());
        if runs::contender(run, name)?.as_str() != written {
            (gate.min_geomean, gate.min_shape, gate.not_slower) = (None, None, false);
        }
    }
    Ok(Some(gate))
}

/// The contenders that the command line names. A word that matches none is kept, and refused later.
fn contenders(args: &Args, run: &Run) -> Vec<String> {
    let words = args.contender.iter().flat_map(|list| &list.0);
    let meant = |word: &String| {
        let pattern = Pattern::new(word);
        let ids = run.header.contenders.iter().map(|c| &c.id);
        let picked: Vec<String> = (ids.filter(|id| pattern.picks(id)))
            .map(ToString::to_string)
            .collect();
        match picked.is_empty() {
            true => vec![word.clone()],
            false => picked,
        }
    };
    words.flat_map(meant).collect()
}

/// The rules, overridden by the command line. The default is "correct, and not slower"; against an
/// earlier run, correct cells stay correct, and no contender is slower by more than both runs can
/// detect.
fn rules(args: &Args, written: Option<Gate>, run: &Run, over_run: bool) -> Gate {
    let none = written.is_none() && !over_run;
    let contenders = contenders(args, run);
    let mut gate = written.unwrap_or(Gate {
        // The output of another tool's kernels was not checked.
        correct: run.tool.is_none(),
        not_slower: over_run,
        ..Gate::default()
    });
    if !contenders.is_empty() {
        gate.contenders = contenders;
    }
    if args.baseline.is_some() || over_run {
        gate.over = None;
    }
    gate.min_geomean = args.min_geomean.or(gate.min_geomean);
    gate.min_shape = args.min_shape.or(gate.min_shape);
    if args.min_geomean.is_some() || args.min_shape.is_some() {
        gate.not_slower = false;
    }
    gate.not_slower |= args.not_slower;
    gate.max_smem = args.max_smem.map(Bytes).or(gate.max_smem);
    gate.max_registers = args.max_registers.or(gate.max_registers);
    gate.min_occupancy = args.min_occupancy.or(gate.min_occupancy);
    gate.occupancy_not_worse |= args.occupancy_not_worse;
    gate.spills_not_worse |= args.spills_not_worse;
    gate.claims_met |= args.claims_met;
    let given = |counter: &Counter| args.counter.iter().any(|(c, _)| c == counter);
    gate.counters.retain(|(counter, _)| !given(counter));
    gate.counters.extend(&args.counter);
    gate.correct &= !args.allow_incorrect;
    if none && gate.min_geomean.is_none() && gate.min_shape.is_none() && !gate.not_slower {
        gate.min_geomean = Some(1.0);
    }
    gate
}

fn judge(
    args: &Args,
    run: &Run,
    ranking: &Ranking,
    rules: &Gate,
    base: Option<Run>,
) -> Result<GateReport, CommandError> {
    let named = args.baseline.as_deref();
    let over_run = |over: &str| over.ends_with(".jsonl") || Path::new(over).is_file();
    let over_file = rules.over.as_deref().filter(|over| over_run(over));
    let base = match (base, over_file) {
        (None, Some(file)) => Some(runs::load(Some(Path::new(file)))?),
        (base, _) => base,
    };
    if let Some(base) = &base {
        let base_ranking = Ranking::of(base);
        let over = ComparedWith::Run(base, &base_ranking);
        return Ok(gate::judge(run, ranking, rules, over, args.across_devices)?);
    }
    let id = match named.or(rules.over.as_deref()) {
        // A run without validation passes no gate, whether or not it has the contender.
        Some(name) if run.header.settings.time_only => {
            runs::contender(run, name).map_err(|_| unvalidated(run))?
        }
        Some(name) => runs::contender(run, name)?,
        None => run.header.baseline.clone(),
    };
    let over = ComparedWith::Contender(&id);
    Ok(gate::judge(run, ranking, rules, over, args.across_devices)?)
}

fn without_rules(run: &Run, tool: &str) -> CommandError {
    let message = format!(
        "{} was timed by {tool}: it has no round, so no baseline",
        run.path.display()
    );
    InputError::new(
        message,
        "name an earlier run with --baseline FILE, or one of its benchmarks",
    )
    .into()
}

fn unvalidated(run: &Run) -> CommandError {
    CommandError::inconclusive(
        format!(
            "nothing in {} was validated (--time-only), so no gate passes it",
            run.path.display()
        ),
        "sweep the round without --time-only",
    )
}

fn write(args: &Args, report: &GateReport) -> Result<(), CommandError> {
    runs::write_all([
        (&args.export_json, &|| export::gate::json(report)),
        (&args.export_junit, &|| export::gate::junit(report)),
        (&args.export_markdown, &|| export::gate::markdown(report)),
    ])
}
