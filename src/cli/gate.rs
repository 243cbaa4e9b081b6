use std::path::{Path, PathBuf};

use super::Globals;
use super::runs;
use crate::config::{Gate, Round};
use crate::diagnostic::{CommandError, InputError, SourceFile};
use crate::domain::{Bytes, Counter, Exit};
use crate::gate::{self, GateError, GateReport, Over};
use crate::rank::{Ranking, mismatch};
use crate::record::{self, Run};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Run file to judge [default: the newest in results/ that fits the baseline]
    #[arg(value_name = "RUN")]
    run: Option<PathBuf>,
    /// Contender or run file to hold it against [default: the round's baseline]
    #[arg(long, value_name = "CONTENDER|FILE")]
    baseline: Option<String>,
    /// Contenders to judge; may be given several times [default: all but the baseline]
    #[arg(long, value_name = "NAME")]
    contender: Vec<String>,
    /// Least geometric-mean speedup over the baseline
    #[arg(long, value_name = "X", value_parser = ratio)]
    min_geomean: Option<f64>,
    /// Least speedup on every single shape
    #[arg(long, value_name = "X", value_parser = ratio)]
    min_shape: Option<f64>,
    /// Most shared memory of a kernel, bytes
    #[arg(long, value_name = "BYTES")]
    max_smem: Option<u64>,
    /// Most registers of a thread
    #[arg(long, value_name = "N")]
    max_registers: Option<u32>,
    /// Least share of an SM's warps resident, 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share)]
    min_occupancy: Option<f64>,
    /// Occupancy may not fall below the baseline's
    #[arg(long)]
    occupancy_not_worse: bool,
    /// Spilled bytes may not exceed the baseline's
    #[arg(long)]
    spills_not_worse: bool,
    /// Most of a counter of an emulated run, as a multiple of the baseline's,
    /// e.g. bank-conflicts=1.02; may be given several times
    #[arg(long, value_name = "NAME=X", value_parser = counter_rule)]
    counter: Vec<(Counter, f64)>,
    /// Every claim must be met
    #[arg(long)]
    claims_met: bool,
    /// Do not ask that every cell is ok
    #[arg(long)]
    allow_incorrect: bool,
    /// Judge against a run of another GPU or backend all the same
    #[arg(long)]
    across_devices: bool,
    /// Write the findings as JSON
    #[arg(long, value_name = "FILE")]
    export_json: Option<PathBuf>,
    /// Write the findings as JUnit XML
    #[arg(long, value_name = "FILE")]
    export_junit: Option<PathBuf>,
    /// Write the findings as GitHub Markdown
    #[arg(long, value_name = "FILE")]
    export_markdown: Option<PathBuf>,
}

fn ratio(text: &str) -> Result<f64, String> {
    match text.trim_end_matches(['x', '×']).parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => Err("a ratio is a positive number, e.g. 1.4".to_owned()),
    }
}

fn counter_rule(text: &str) -> Result<(Counter, f64), String> {
    let Some((name, factor)) = text.split_once('=') else {
        return Err("write NAME=X, e.g. bank-conflicts=1.02".to_owned());
    };
    let counter = Counter::named(name)
        .ok_or_else(|| format!("`{name}` is no counter; one of {}", Counter::names()))?;
    Ok((counter, ratio(factor)?))
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("a share is a number from 0 to 1".to_owned()),
    }
}

impl From<GateError> for CommandError {
    fn from(error: GateError) -> Self {
        InputError::new(error.to_string(), error.remedy()).into()
    }
}

pub fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    let style = runs::style(globals);
    runs::probe([&args.export_json, &args.export_junit, &args.export_markdown])?;
    let (run, base) = sides(&args)?;
    let ranking = Ranking::of(&run);
    let rules = rules(&args, &run)?;
    let report = judge(&args, &run, &ranking, &rules, base.as_ref())?;
    // The files first: whoever reads the words may be gone by then.
    let written = write(&args, &report);
    say!("{}", gate::text(&report, &style));
    written?;
    Ok(report.exit())
}

/// The run to judge and, where the baseline is a file, the run to hold it against.
fn sides(args: &Args) -> Result<(Run, Option<Run>), CommandError> {
    let file = args.baseline.as_deref().filter(|b| runs::is_run_file(b));
    let Some(file) = file else {
        return Ok((runs::load(args.run.as_deref())?, None));
    };
    let base = runs::load(Some(Path::new(file)))?;
    let run = match &args.run {
        Some(path) => runs::load(Some(path))?,
        // Without a run to judge, the newest one that can be held against the
        // baseline; and where there is none, the file is judged by itself.
        None => match record::newest(Path::new(runs::RESULTS)).map(|p| record::read(&p)) {
            Ok(Ok(newest)) if mismatch(&base, &newest).is_none() || args.across_devices => newest,
            _ => return Ok((base, None)),
        },
    };
    let itself = same_file(&run.path, &base.path);
    Ok((run, (!itself).then_some(base)))
}

fn same_file(a: &Path, b: &Path) -> bool {
    match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    }
}

/// The round's own gate, with what the command line says on top; a plain
/// "right, and not slower" where neither says anything.
fn rules(args: &Args, run: &Run) -> Result<Gate, CommandError> {
    let written = round_gate(run)?;
    let none = written.is_none();
    let mut gate = written.unwrap_or(Gate {
        correct: true,
        ..Gate::default()
    });
    if !args.contender.is_empty() {
        gate.contenders = args.contender.clone();
    }
    if args.baseline.is_some() {
        gate.over = None;
    }
    gate.min_geomean = args.min_geomean.or(gate.min_geomean);
    gate.min_shape = args.min_shape.or(gate.min_shape);
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
    if none && gate.min_geomean.is_none() && gate.min_shape.is_none() {
        gate.min_geomean = Some(1.0);
    }
    Ok(gate)
}

/// The `[gate]` of the config the run was made from.
fn round_gate(run: &Run) -> Result<Option<Gate>, CommandError> {
    let config = &run.header.config;
    if config.text.trim().is_empty() {
        return Ok(None);
    }
    let file = SourceFile {
        path: config.path.clone().into(),
        text: config.text.as_str().into(),
    };
    Ok(Round::from_source(file)?.gate)
}

fn judge(
    args: &Args,
    run: &Run,
    ranking: &Ranking,
    rules: &Gate,
    base: Option<&Run>,
) -> Result<GateReport, CommandError> {
    let named = args.baseline.as_deref().filter(|b| !runs::is_run_file(b));
    let over_file = rules.over.as_deref().filter(|o| runs::is_run_file(o));
    let loaded;
    let base = match (base, over_file) {
        (Some(base), _) => Some(base),
        (None, Some(file)) => {
            loaded = runs::load(Some(Path::new(file)))?;
            Some(&loaded)
        }
        (None, None) => None,
    };
    if let Some(base) = base {
        let base_ranking = Ranking::of(base);
        let over = Over::Run(base, &base_ranking);
        return Ok(gate::judge(run, ranking, rules, over, args.across_devices)?);
    }
    let id = match named.or(rules.over.as_deref()) {
        Some(name) => runs::contender(run, name)?,
        None => run.header.baseline.clone(),
    };
    let over = Over::Contender(&id);
    Ok(gate::judge(run, ranking, rules, over, args.across_devices)?)
}

fn write(args: &Args, report: &GateReport) -> Result<(), CommandError> {
    runs::write_all([
        (&args.export_json, &|| gate::json(report)),
        (&args.export_junit, &|| gate::junit(report)),
        (&args.export_markdown, &|| gate::markdown(report)),
    ])
}
