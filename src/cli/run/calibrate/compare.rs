use std::collections::{HashMap, HashSet};

use super::super::machine;
use super::fit::keep;
use super::{Args, Only};
use crate::agreement::{
    Agreement, Difference, Errors, ModelComparison, ModelledCell, NOTABLE, Order, Step, mark_seen,
    measured_on,
};
use crate::cli::{Globals, runs};
use crate::present::{Column, Style, Table, percent, signed_percent};
use crate::report::svg;
use dgx_core::config::target;
use dgx_core::diagnostic::{CommandError, InputError};
use dgx_core::domain::{Calibration, ContenderId, Device, Exit, Group, Joined, distinct};
use dgx_core::operator;
use dgx_core::rank::Ranking;
use dgx_core::record::Run;
use dgx_run::backend::Modelled;
use dgx_run::catalog::Catalog;
use dgx_run::compile::Compiler;
use dgx_run::plan::{self, Plan, PlanTarget};
use dgx_run::sweep::{Progress, contender_record};
use ptx_calibrate::model;

pub(super) fn run(args: &Args, globals: &Globals) -> Result<Exit, CommandError> {
    let source = target::source(&args.target)?;
    let device = target::device(&source)?;
    let files = [&args.export_json, &args.plot, &args.output];
    runs::probe(files, args.runs.iter().map(AsRef::as_ref))?;
    let mut measured = Vec::with_capacity(args.runs.len());
    for path in &args.runs {
        let run = runs::load(Some(path))?;
        measured_on(&run, &device)?;
        named_once(&run, measured.iter().map(|(_, other)| other))?;
        measured.push((runs::round_of(None, &run.header)?, run));
    }
    let catalog = Catalog::open(&globals.variants)?;
    let mut asked = Vec::with_capacity(measured.len());
    for (mut round, run) in measured {
        round.keep(|shape| run.header.shapes.contains(shape));
        let plan = Plan::new(round, &catalog, &PlanTarget::of(&device))?;
        asked.push(CellsToModel::new(run, plan, &args.only)?);
    }
    let compiler = machine::compiler(args.compile.limits())?;
    let mut comparisons = modelled(asked, &compiler)?;
    mark_seen(&mut comparisons, &target::seen(&source)?);
    let style = runs::style(globals);
    for comparison in &comparisons {
        show(comparison, &device, &style);
    }
    let agreement = Agreement::of(&device, &comparisons);
    say!("{}", agreement.table().render(&style));
    let found = calibration(&device, &comparisons)?;
    let target = target::with_calibration(&source, &found)?;
    runs::write_all([
        (&args.export_json, &|| agreement.json()),
        (&args.plot, &|| svg(&agreement)),
    ])?;
    keep(&args.output, &target)?;
    Ok(Exit::Done)
}

/// Refuses a run that is named twice: its cells would count twice.
fn named_once<'r>(run: &Run, mut others: impl Iterator<Item = &'r Run>) -> Result<(), InputError> {
    match others.any(|other| other.header == run.header) {
        false => Ok(()),
        true => Err(InputError::new(
            format!("{} is named twice, or is a copy", run.path.display()),
            "name each run once",
        )),
    }
}

/// A run, and the cells of it to model.
struct CellsToModel {
    run: Run,
    ranking: Ranking,
    plan: Plan,
    /// The cells, each with its place in the plan.
    cells: Vec<(usize, ModelledCell)>,
}

impl CellsToModel {
    /// All measured cells that `only` selects.
    fn new(run: Run, plan: Plan, only: &Only) -> Result<Self, CommandError> {
        let ranking = Ranking::of(&run);
        let (mut cells, mut matched) = (Vec::new(), false);
        for (place, cell) in plan.cells.iter().enumerate() {
            let contender = &plan.contenders[cell.contender].id;
            let shape = &plan.shapes[cell.shape].name;
            if !only.lets_in(&format!("{contender} {shape}")) {
                continue;
            }
            matched = true;
            let timed = ranking.cell(contender, shape);
            if let Some(time) = timed.and_then(|cell| cell.time.as_ref()) {
                let cell = ModelledCell {
                    contender: contender.clone(),
                    shape: shape.clone(),
                    measured: time.estimate().0,
                    modelled: f64::NAN,
                    bound: String::new(),
                    seen: false,
                    remark: None,
                };
                cells.push((place, cell));
            }
        }
        let shown = run.path.display();
        if !matched {
            let message = format!("no cell of {shown} matches `{only}`");
            let remedy = "give part of a contender's or shape's name";
            return Err(InputError::new(message, remedy).into());
        }
        if cells.is_empty() {
            let message = format!("{shown} has no measured time to compare");
            let remedy = "name a run with valid, timed cells of variants";
            return Err(InputError::new(message, remedy).into());
        }
        Ok(Self {
            run,
            ranking,
            plan,
            cells,
        })
    }

    /// Everything a modelled time depends on: equal keys have equal times.
    fn key(&self, place: usize) -> Key {
        let cell = &self.plan.cells[place];
        (
            self.plan.contenders[cell.contender].id.clone(),
            self.plan.shapes[cell.shape].groups.clone(),
        )
    }

    fn compared(mut self, known: &HashMap<Key, Modelled>) -> ModelComparison {
        let keys: Vec<Key> = self
            .cells
            .iter()
            .map(|(place, _)| self.key(*place))
            .collect();
        for ((_, cell), key) in self.cells.iter_mut().zip(keys) {
            let time = &known[&key];
            (cell.modelled, cell.bound) = (time.micros.0, time.bound.clone());
            cell.remark.clone_from(&time.remark);
        }
        let changed = self.plan.contenders.iter().filter_map(|contender| {
            let recorded = self.run.contender(&contender.id)?;
            (recorded.hash != contender_record(contender).hash).then(|| contender.id.clone())
        });
        let changed = changed.collect();
        let cells = self.cells.into_iter().map(|(_, cell)| cell).collect();
        ModelComparison::new(self.run, &self.ranking, cells, changed)
    }
}

type Key = (ContenderId, Vec<Group>);

/// Models the cells, those that several runs share only once.
fn modelled(
    asked: Vec<CellsToModel>,
    compiler: &Compiler,
) -> Result<Vec<ModelComparison>, CommandError> {
    let mut known: HashMap<Key, Modelled> = HashMap::new();
    let mut met: HashSet<Key> = HashSet::new();
    let new: Vec<Vec<usize>> = asked
        .iter()
        .map(|asked| {
            let places = asked.cells.iter().map(|(place, _)| *place);
            places
                .filter(|place| met.insert(asked.key(*place)))
                .collect()
        })
        .collect();
    let progress = Progress::begin();
    let bar = progress.stage("model", met.len());
    for (asked, places) in asked.iter().zip(&new) {
        let cells: Vec<&plan::PlannedCell> = places
            .iter()
            .map(|&place| &asked.plan.cells[place])
            .collect();
        let times = model(&asked.plan, &cells, compiler, &bar)?;
        known.extend(places.iter().map(|place| asked.key(*place)).zip(times));
    }
    bar.done("");
    Ok(asked
        .into_iter()
        .map(|asked| asked.compared(&known))
        .collect())
}

/// The calibration of a target: how accurate its modelled times are.
fn calibration(
    device: &Device,
    comparisons: &[ModelComparison],
) -> Result<Calibration, CommandError> {
    let errors = Errors::of(
        comparisons
            .iter()
            .flat_map(|comparison| &comparison.found.cells),
    );
    let nothing = || InputError::new("nothing was compared", "name a run");
    let errors = errors.ok_or_else(nothing)?;
    Ok(Calibration {
        device: device.name.clone(),
        run: compared_with(comparisons),
        median: errors.median,
        p90: errors.p90,
        worst: errors.worst,
        cells: errors.cells as u32,
        operators: compared_operators(comparisons),
    })
}

/// The name of the run, or the rounds of several.
fn compared_with(comparisons: &[ModelComparison]) -> String {
    if let [only] = comparisons {
        return only.found.file.clone();
    }
    let rounds = comparisons.iter().map(|c| c.run.header.name.as_str());
    distinct(rounds).join(", ")
}

/// Empty if all are of the usual operator, as most are.
fn compared_operators(comparisons: &[ModelComparison]) -> Vec<String> {
    let names = comparisons.iter().map(|c| c.run.operator.name.as_str());
    let names = distinct(names);
    let usual = names == [operator::default_operator().name.as_str()];
    let listed = names.into_iter().filter(|_| !usual);
    listed.map(str::to_owned).collect()
}

fn show(comparison: &ModelComparison, device: &Device, style: &Style) {
    let run = &comparison.run;
    say!("{}: {}", run.path.display(), run.header.question);
    say!("modelled for {}, measured there; µs\n", device.name);
    say!("{}\n", cells(comparison).render(style));
    for cell in &comparison.found.cells {
        if let Some(remark) = &cell.remark {
            let text = format!("{} on {}: {remark}", cell.contender, cell.shape);
            say!("{}\n", style.fold(&text, 2));
        }
    }
    say!("{}\n", orders(&comparison.found.orders).render(style));
    if !comparison.found.differences.is_empty() {
        for line in signs(&comparison.found.differences) {
            say!("{line}");
        }
        let wrong = wrong(&comparison.found.differences);
        if !wrong.rows.is_empty() {
            say!("\n{}", wrong.render(style));
        }
        say!("");
    }
    if !comparison.found.changed.is_empty() {
        let names = comparison
            .found
            .changed
            .iter()
            .map(|id| id.as_str())
            .joined(", ");
        let text = format!("changed since they were measured: {names}");
        say!("{}\n", style.fold(&text, 2));
    }
}

fn cells(comparison: &ModelComparison) -> Table {
    let mut grid = Table::new(vec![
        Column::left("contender"),
        Column::left("shape"),
        Column::right("modelled"),
        Column::right("measured"),
        Column::right("error"),
        Column::left("bound").weight(5),
    ]);
    for cell in &comparison.found.cells {
        grid.push(vec![
            cell.contender.to_string(),
            cell.shape.clone(),
            format!("{:.1}", cell.modelled),
            format!("{:.1}", cell.measured),
            signed_percent(cell.error()),
            cell.bound.clone(),
        ]);
    }
    grid
}

fn orders(orders: &[Order]) -> Table {
    let mut grid = Table::new(vec![
        Column::left("shape"),
        Column::right("contenders"),
        Column::right("τ"),
        Column::right("differ"),
        Column::right("rightly"),
        Column::left("fastest, modelled").weight(8),
        Column::left("measured").weight(8),
        Column::right("regret"),
    ]);
    for order in orders {
        grid.push(vec![
            place(order.shape.as_deref()),
            order.contenders.to_string(),
            order.tau.map(|tau| format!("{tau:.2}")).unwrap_or_default(),
            order.apart.to_string(),
            order.apart_right.to_string(),
            order.picked.to_string(),
            order.fastest.to_string(),
            percent(order.regret),
        ]);
    }
    grid
}

fn place(shape: Option<&str>) -> String {
    shape.unwrap_or("geometric mean").to_owned()
}

/// The share of notable differences whose sign the model has right, by kind of difference.
fn signs(differences: &[Difference]) -> Vec<String> {
    let kinds = [
        (Step::Choice, "choices of one parameter"),
        (Step::Design, "a design and its parent"),
    ];
    let told = kinds.into_iter().filter_map(|(step, words)| {
        let here: Vec<_> = differences.iter().filter(|d| d.step == step).collect();
        let right = here.iter().filter(|d| d.right()).count();
        let (notable, all) = (percent(NOTABLE), here.len());
        (all > 0).then(|| {
            format!("{words}, {notable} or more apart: the model predicts the direction of {right} of {all}")
        })
    });
    told.collect()
}

fn wrong(differences: &[Difference]) -> Table {
    let mut grid = Table::new(vec![
        Column::left("wrong sign: from"),
        Column::left("to"),
        Column::left("shape"),
        Column::right("measured"),
        Column::right("modelled"),
    ]);
    for difference in differences.iter().filter(|d| !d.right()) {
        grid.push(vec![
            difference.from.to_string(),
            difference.to.to_string(),
            place(difference.shape.as_deref()),
            signed_percent(difference.measured),
            signed_percent(difference.modelled),
        ]);
    }
    grid
}
