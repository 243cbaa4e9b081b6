use std::collections::{BTreeMap, HashMap};

use super::run::{CellExport, Change, RunOrigin};
use super::{Quantity, RunExport};
use crate::table::{Table, Value, maybe, row};
use dgx_core::domain::{Counter, Joined};

const CELLS: &str = "contender,shape,status,timing,micros,micros_lower,micros_upper,\
                     speedup,speedup_lower,speedup_upper,samples,outliers,roofline";
const SUMMARY: &str = "contender,status,timing,rank,mean_micros,speedup,speedup_lower,\
                       speedup_upper,roofline";
/// The last columns of both files, before the counters.
const COMMON: &str = "run,device,change,change_lower,change_upper,model_error,calibrated,label,\
                      clock_mhz,bound_by,finding";

/// One line per cell. Times are microseconds, speedups ratios over the reference
/// of the run, changes ratios of the second of two runs over the first.
pub(crate) fn csv(document: &RunExport) -> String {
    let changes = Changes::of(document);
    let mut table = table(CELLS, Some("reason"));
    for cell in &document.cells {
        let run = &document.runs[cell.run];
        let change = changes.find(cell.run, &cell.contender, Some(&cell.shape));
        let own = row![
            &cell.contender,
            &cell.shape,
            cell.status,
            cell.timing.as_str()
        ];
        table.push(
            [
                own,
                numbers(cell.micros.as_ref()),
                numbers(cell.speedup.as_ref()),
                row![cell.samples, cell.outliers, maybe(cell.roofline)],
                common(run, change, cell.clock_mhz, cell.bound_by.as_ref()),
                row![why(cell)],
                counters(cell.counters.as_ref()),
            ]
            .concat(),
        );
    }
    table.csv()
}

/// One line per contender: its rank, and its mean over all shapes.
pub(crate) fn csv_summary(document: &RunExport) -> String {
    let changes = Changes::of(document);
    let mut table = table(SUMMARY, None);
    for standing in &document.ranking {
        let run = &document.runs[standing.run];
        let change = changes.find(standing.run, &standing.contender, None);
        let own = row![
            &standing.contender,
            standing.status,
            run.timing.as_str(),
            maybe(standing.rank),
            maybe(standing.mean_micros),
        ];
        let bound_by = standing.bound_by.as_ref();
        table.push(
            [
                own,
                numbers(standing.geomean_speedup.as_ref()),
                row![maybe(standing.roofline.map(|r| r.estimate))],
                common(run, change, standing.clock_mhz, bound_by),
                counters(standing.counters.as_ref()),
            ]
            .concat(),
        );
    }
    table.csv()
}

fn table(own: &'static str, last: Option<&'static str>) -> Table {
    let names = own.split(',').chain(COMMON.split(',')).chain(last);
    Table::named(names.chain(Counter::all().map(Counter::as_str)))
}

/// The changes of cells and contenders in the second of two runs.
struct Changes<'a> {
    found: HashMap<(&'a str, Option<&'a str>), &'a Change>,
    second: usize,
}

impl<'a> Changes<'a> {
    fn of(document: &'a RunExport) -> Self {
        let changes = document.changes.iter();
        let found = changes.map(|c| ((c.contender.as_str(), c.shape.as_deref()), c));
        Self {
            found: found.collect(),
            second: document.runs.len() - 1,
        }
    }

    fn find(&self, run: usize, contender: &str, shape: Option<&str>) -> Option<&Change> {
        let found = self.found.get(&(contender, shape)).copied();
        found.filter(|_| run == self.second)
    }
}

/// The fields of [`COMMON`].
fn common(
    run: &RunOrigin,
    change: Option<&Change>,
    clock_mhz: Option<f64>,
    bound_by: Option<&String>,
) -> Vec<Value> {
    let calibrated = run.calibrated.map(|yes| if yes { "yes" } else { "no" });
    let known = run.calibration.as_ref();
    let error = known.filter(|_| run.calibrated == Some(true));
    [
        row![&run.file, &run.device],
        numbers(change.map(|change| &change.speedup)),
        row![
            maybe(error.map(|known| known.median)),
            maybe(calibrated),
            maybe(run.label),
            maybe(clock_mhz),
            maybe(bound_by),
            maybe(change.map(|change| change.finding)),
        ],
    ]
    .concat()
}

/// The reason of a failure, and the first wrong element.
fn why(cell: &CellExport) -> String {
    let parts = [&cell.reason, &cell.first_wrong];
    parts.into_iter().flatten().map(String::as_str).joined("; ")
}

fn counters(found: Option<&BTreeMap<&'static str, f64>>) -> Vec<Value> {
    let value = |counter: Counter| maybe(found.and_then(|f| f.get(counter.as_str())));
    Counter::all().map(value).collect()
}

fn numbers(quantity: Option<&Quantity>) -> Vec<Value> {
    let number = |of: fn(&Quantity) -> Option<f64>| maybe(quantity.and_then(of));
    vec![
        number(|q| Some(q.estimate)),
        number(|q| q.lower),
        number(|q| q.upper),
    ]
}
