use std::path::{Path, PathBuf};

use super::runs::{self, Exports};
use super::select::Shapes;
use super::{Globals, named};
use crate::export::RunExport;
use crate::present::{self, Column, Repetition, Style, Table};
use crate::table::{Tone, Value, maybe, row};
use dgx_core::diagnostic::{CommandError, InputError};
use dgx_core::domain::{ContenderId, Exit, Pattern, typed};
use dgx_core::rank::{
    ComparedSide, Comparison, EntrantKind, Mismatch, Ranking, compare_runs, describe, mismatch,
};
use dgx_core::record::{Newest, Run};
use dgx_core::stats::{CONFIDENCE, LogEstimate};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Base: a contender or a run
    #[arg(value_name = "A")]
    base: String,
    /// The contender or run that is compared with A
    #[arg(value_name = "B")]
    candidate: String,
    /// Run with both contenders [default: the newest in results/]
    #[arg(value_name = "RUN", value_parser = named::run())]
    run: Option<PathBuf>,
    /// Contender to follow through two run files [default: all in common]
    #[arg(long, value_name = "CONTENDER")]
    contender: Option<String>,
    #[command(flatten)]
    shapes: Shapes,
    /// Allow runs of different GPUs or backends
    #[arg(long)]
    across_devices: bool,
    #[command(flatten)]
    exports: Exports,
}

pub(super) fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    let files = [&args.base, &args.candidate].map(|word| {
        let found = named::run_rather_than_contender(word, args.run.as_deref());
        found.map(Newest::announced)
    });
    let read = runs::readable(args.run.as_deref());
    let inputs = files.iter().flatten().chain(&read);
    args.exports.probe(inputs.map(PathBuf::as_path))?;
    let style = runs::style(globals);
    match files {
        [Some(a), Some(b)] => match &args.run {
            Some(third) => Err(InputError::new(
                format!("`{}` is a third run file", third.display()),
                "two are compared at a time; `dgx report` sets several side by side",
            )
            .into()),
            None => two_runs(&args, [&a, &b], &style),
        },
        [None, None] => two_contenders(&args, &style),
        [Some(a), None] => Err(mixed((&args.base, &a), &args.candidate).into()),
        [None, Some(b)] => Err(mixed((&args.candidate, &b), &args.base).into()),
    }
}

/// The error that only one of two words is a run.
fn mixed((run, file): (&str, &Path), other: &str) -> InputError {
    let pattern = Pattern::new(other);
    let is_contender = runs::load(Some(file)).is_ok_and(|run| {
        let mut entrants = run.entrants();
        entrants.any(|id| pattern.picks(id))
    });
    let message = match is_contender {
        true => format!("`{run}` is a run, and `{other}` is a contender"),
        false => format!("`{run}` is a run; `{other}` is neither a run nor a contender"),
    };
    let remedy = "give two contenders (and perhaps a run), or two runs";
    InputError::new(message, remedy)
}

fn two_contenders(args: &Args, style: &Style) -> Result<Exit, CommandError> {
    let run = runs::load_part(args.run.as_deref(), &args.shapes)?;
    let ranking = Ranking::of(&run);
    let base = runs::contender(&run, &args.base)?;
    let candidate = runs::contender(&run, &args.candidate)?;
    if base == candidate {
        let message = "A and B are the same contender";
        return Err(CommandError::usage(
            message,
            "name two contenders, or two runs",
        ));
    }
    let comparison = ranking.compare(&run, &base, &candidate).ok_or_else(|| {
        let why = invalid(&ranking, [&base, &candidate]);
        CommandError::inconclusive(
            format!("no shape has a valid result of both {base} and {candidate}{why}"),
            format!(
                "`dgx show {}` shows the status of each cell",
                typed(&run.path)
            ),
        )
    })?;
    let sides = [&base, &candidate].map(|c| ComparedSide::new(&run, &ranking, c));
    let document = RunExport::of_comparison(sides[0], sides[1], &comparison);
    let written = args.exports.write(&document);
    say!("{}\n", present::headline(&run, false, style));
    let table = present::comparison_table(&[(sides, &comparison)]);
    say!("{}", table.render(style));
    let missing = run.header.shapes.len() - comparison.shapes.len();
    if missing > 0 {
        say!("\n{missing} shapes are left out: one of the two is not valid there.");
    }
    print_counters(sides, &comparison, style);
    let told = [can_tell(&ranking), run.path.display().to_string()];
    say!("\n{}", style.joined(&told, 0));
    if let Some(lacks) = present::lacks(&run, &ranking) {
        say!(
            "{}",
            style.fold(&format!("The run is not complete: {lacks}."), 2)
        );
    }
    written?;
    Ok(Exit::Done)
}

fn invalid(ranking: &Ranking, contenders: [&ContenderId; 2]) -> String {
    let statuses = contenders.iter().filter_map(|c| {
        let status = ranking.row(c)?.status?;
        Some(format!("{c} is {status}"))
    });
    let list: Vec<String> = statuses.collect();
    if list.is_empty() {
        String::new()
    } else {
        format!(" ({})", list.join(", "))
    }
}

/// The emulator's counters of both sides on the compared shapes: they explain differences of
/// modelled times.
fn print_counters(sides: [ComparedSide; 2], comparison: &Comparison, style: &Style) {
    let of_one_run = sides[0].run.path == sides[1].run.path;
    let counted = |(side, label): (ComparedSide, &str)| {
        let shapes = comparison.shapes.iter().map(|(name, _)| name.as_str());
        let (counts, shapes) = side.run.summed_counts(side.contender, shapes)?;
        let name = match of_one_run {
            true => side.contender.to_string(),
            false => format!("{label} {}", side.contender),
        };
        (shapes == comparison.shapes.len()).then_some(present::CounterRow { name, counts })
    };
    let rows: Option<Vec<_>> = sides.into_iter().zip(["A", "B"]).map(counted).collect();
    if let Some([base, candidate]) = rows.as_deref()
        && !of_one_run
        && base.counts == candidate.counts
    {
        say!("\nBoth runs have the same counters.");
    } else if let Some(rows) = rows {
        let what = "one call on each shape above, summed";
        let tables = present::counters_tables(("contender", what), &rows, true);
        say!("\n{}", present::rendered(&tables, style));
    }
}

fn can_tell(ranking: &Ranking) -> String {
    let told = |effect| {
        let effect = present::percent(effect);
        format!("This run can detect differences of {effect} or more.")
    };
    ranking
        .detectable
        .as_ref()
        .map_or(String::new(), |d| told(d.effect))
}

fn two_runs(args: &Args, files: [&Path; 2], style: &Style) -> Result<Exit, CommandError> {
    let [mut a, mut b] = [runs::load(Some(files[0]))?, runs::load(Some(files[1]))?];
    args.shapes.keep_in_run(&mut a)?;
    args.shapes.keep_in_run(&mut b)?;
    let difference = mismatch(&a, &b);
    let allowed = |d: &&Mismatch| args.across_devices && d.is_of_devices();
    if let Some(difference) = difference.as_ref().filter(|d| !allowed(d)) {
        let message = format!("the two runs {}", difference.why());
        return Err(InputError::new(message, difference.remedy()).into());
    }
    let (ranking_a, ranking_b) = (Ranking::of(&a), Ranking::of(&b));
    let common = followed(args, &a, &b)?;
    let mut compared = Vec::new();
    let sides = [(&a, &ranking_a), (&b, &ranking_b)];
    for contender in &common {
        let [base, candidate] = paired(sides, contender);
        compared.extend(compare_runs(base, candidate).map(|found| (contender, found)));
    }
    let Some((first, comparison)) = compared.first() else {
        return Err(CommandError::inconclusive(
            "no contender is valid in both runs on a shape they share",
            "compare runs of the same round",
        ));
    };
    let only = args.contender.is_some().then_some(*first);
    let agreed = Repetition::of(sides, &compared, only.is_some());
    let document = RunExport::of_runs(sides, &compared, only, &agreed);
    let written = args.exports.write(&document);
    print_sides([&a, &b], style);
    for (name, (run, ranking)) in ["A", "B"].iter().zip(sides) {
        if let Some(lacks) = present::lacks(run, ranking) {
            let told = style.doubtful(format!("{name} is not complete: {lacks}"));
            say!("{}", style.fold(&told, 2));
        }
    }
    if difference.is_some() {
        say!(
            "{}",
            style.doubtful("ACROSS DEVICES: ratios compare devices as well as designs")
        );
    }
    if a.tool.is_some() || b.tool.is_some() {
        let pairs: Vec<_> = compared
            .iter()
            .map(|(id, c)| (paired(sides, id), c))
            .collect();
        say!("\n{}", present::benchmark_table(&pairs).render(style));
    } else {
        say!("\n{}", overview(&compared, &ranking_b, style));
    }
    if compared.len() == 1 && a.tool.is_none() && b.tool.is_none() {
        let table = present::comparison_table(&[(paired(sides, first), comparison)]);
        say!("\n{}", table.render(style));
        print_counters(paired(sides, first), comparison, style);
    }
    for note in shape_notes(&a, &b) {
        say!("\n{}", style.fold(&note, 2));
    }
    if let Some(drift) = agreed.drift {
        say!("\n{drift}");
    }
    print_agreement(&agreed, style);
    written?;
    Ok(Exit::Done)
}

/// A contender in both runs.
fn paired<'a>(sides: [(&'a Run, &'a Ranking); 2], id: &'a ContenderId) -> [ComparedSide<'a>; 2] {
    sides.map(|(run, ranking)| ComparedSide::new(run, ranking, id))
}

/// Describes the two runs and how far each can be trusted; what both share is printed once.
fn print_sides(runs: [&Run; 2], style: &Style) {
    let accuracy = |run: &Run| {
        let foreign = || {
            let tool = run.tool.as_ref()?;
            Some(present::foreign(tool, run.tally.process_count()))
        };
        let modelled = present::accuracy_in_short(&run.header.device, &run.operator.name);
        modelled.or_else(foreign)
    };
    let sentences = runs.map(accuracy);
    let once = sentences[0] == sentences[1];
    for ((name, run), accuracy) in ["A", "B"].iter().zip(runs).zip(&sentences) {
        let card = run.header.device.uuid.as_deref();
        let parts = [run.path.display().to_string(), describe(run)];
        let parts: Vec<String> = parts.into_iter().chain(card.map(str::to_owned)).collect();
        say!("{name}  {}", style.joined(&parts, 3));
        if let (Some(sentence), false) = (accuracy, once) {
            say!("   {}", style.joined(std::slice::from_ref(sentence), 3));
        }
    }
    if let ([Some(sentence), _], true) = (&sentences, once) {
        say!("{}", style.fold(sentence, 0));
    }
}

/// How far the runs differ, in times and in speedups within each run; and whether their rankings
/// agree.
fn print_agreement(agreed: &Repetition, style: &Style) {
    if let Some(times) = &agreed.times {
        say!("{}", style.fold(times, 2));
    }
    if let Some(table) = &agreed.table {
        say!("\n{}\n", table.render(style));
    }
    for sentence in &agreed.words {
        say!("{}", style.fold(sentence, 2));
    }
}

/// The contenders to compare: the one asked for, or all that both runs have.
fn followed(args: &Args, a: &Run, b: &Run) -> Result<Vec<ContenderId>, CommandError> {
    if let Some(name) = &args.contender {
        runs::contender(a, name)?;
        return Ok(vec![runs::contender(b, name)?]);
    }
    let in_b: Vec<&ContenderId> = b.entrants().collect();
    let common: Vec<ContenderId> = a.entrants().filter(|c| in_b.contains(c)).cloned().collect();
    match common.is_empty() {
        true => Err(InputError::new(
            "the two runs have no contender in common",
            "compare runs of the same round",
        )
        .into()),
        false => Ok(common),
    }
}

/// A contender's ratio on the shape of this name.
type OnShape = (String, LogEstimate);

fn overview(compared: &[(&ContenderId, Comparison)], ranking: &Ranking, style: &Style) -> String {
    let mut grid = Table::new(vec![
        Column::left("contender"),
        Column::left("B over A"),
        Column::left("differs").weight(8),
        Column::left("worst shape").weight(6),
        Column::left("best shape").weight(5),
        Column::right("shapes").weight(4),
        Column::left("rank in B").weight(3),
    ]);
    for (contender, comparison) in compared {
        let by_mean = |a: &&OnShape, b: &&OnShape| a.1.mean.total_cmp(&b.1.mean);
        let told = |(name, e): &OnShape| format!("{} {name}", present::speedup(e.mean.exp()));
        let shapes = &comparison.shapes;
        let row = ranking.row(contender);
        let judgement = comparison.judgement();
        grid.push(row![
            contender,
            present::interval(&comparison.geomean.ratio(CONFIDENCE)),
            match judgement.differs() {
                Some(true) => Value::from("yes").tone(Tone::Doubtful),
                Some(false) => "no".into(),
                None => judgement.into(),
            },
            maybe(shapes.iter().min_by(by_mean).map(told)),
            maybe(shapes.iter().max_by(by_mean).map(told)),
            shapes.len(),
            match row {
                Some(r) if r.kind == EntrantKind::Yardstick => "yardstick".to_owned(),
                Some(r) => r.place.map_or("–".to_owned(), |p| p.to_string()),
                None => String::new(),
            },
        ]);
    }
    grid.without_empty_columns().render(style)
}

fn shape_notes(a: &Run, b: &Run) -> Vec<String> {
    let lacking = |from: &Run, other: &Run, label: &str| {
        let only = from
            .header
            .shapes
            .iter()
            .filter(|s| other.shape(&s.name) != Some(*s));
        let names: Vec<&str> = only.map(|s| s.name.as_str()).collect();
        (!names.is_empty()).then(|| format!("Only in {label}, not compared: {}.", names.join(", ")))
    };
    [lacking(a, b, "A"), lacking(b, a, "B")]
        .into_iter()
        .flatten()
        .collect()
}
