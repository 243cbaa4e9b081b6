use std::collections::{BTreeMap, HashMap};

use super::document::{CellExport, Change, RunOrigin};
use super::{Document, Quantity};
use dgx_core::domain::Counter;

const CELLS: &str = "contender,shape,status,timing,micros,micros_lower,micros_upper,\
                     speedup,speedup_lower,speedup_upper,samples,outliers,roofline";
const SUMMARY: &str = "contender,status,timing,rank,mean_micros,speedup,speedup_lower,\
                       speedup_upper,roofline";
/// What both files end with, before the counters.
const COMMON: &str = "run,device,change,change_lower,change_upper,model_error,calibrated,label,\
                      clock_mhz,bound_by,finding";

/// One line per cell. Times are microseconds, speedups ratios over the reference
/// of the run, changes ratios of the second of two runs over the first.
pub(crate) fn csv(document: &Document) -> String {
    let mut text = header(CELLS, ",reason");
    let changes = Changes::of(document);
    for cell in &document.cells {
        let fields = [
            quoted(&cell.contender),
            quoted(&cell.shape),
            cell.status.to_owned(),
            cell.timing.as_str().to_owned(),
            numbers(cell.micros.as_ref()),
            numbers(cell.speedup.as_ref()),
            cell.samples.to_string(),
            cell.outliers.to_string(),
            optional(cell.roofline),
            origin(&document.runs[cell.run]),
            changes.fields(
                (cell.run, &cell.contender, Some(&cell.shape)),
                accuracy(&document.runs[cell.run]),
                [optional(cell.clock_mhz), bound(cell.bound_by.as_deref())],
            ),
            quoted(&why(cell)),
            counters(cell.counters.as_ref()),
        ];
        text.push_str(&(fields.join(",") + "\n"));
    }
    text
}

/// One line per contender: its rank, and its mean over all shapes.
pub(crate) fn csv_summary(document: &Document) -> String {
    let mut text = header(SUMMARY, "");
    let changes = Changes::of(document);
    for row in &document.ranking {
        let fields = [
            quoted(&row.contender),
            row.status.to_owned(),
            document.runs[row.run].timing.as_str().to_owned(),
            row.rank.map_or(String::new(), |r| r.to_string()),
            optional(row.mean_micros),
            numbers(row.geomean_speedup.as_ref()),
            optional(row.roofline.map(|r| r.estimate)),
            origin(&document.runs[row.run]),
            changes.fields(
                (row.run, &row.contender, None),
                accuracy(&document.runs[row.run]),
                [optional(row.clock_mhz), bound(row.bound_by.as_deref())],
            ),
            counters(row.counters.as_ref()),
        ];
        text.push_str(&(fields.join(",") + "\n"));
    }
    text
}

fn header(own: &str, last: &str) -> String {
    let counters: Vec<String> = Counter::all().map(|c| format!(",{c}")).collect();
    format!("{own},{COMMON}{last}{}\n", counters.concat())
}

/// What became of cells, and of contenders, in the second of two runs.
struct Changes<'a> {
    found: HashMap<(&'a str, Option<&'a str>), &'a Change>,
    second: usize,
}

impl<'a> Changes<'a> {
    fn of(document: &'a Document) -> Self {
        let changes = document.changes.iter();
        let found = changes.map(|c| ((c.contender.as_str(), c.shape.as_deref()), c));
        Self {
            found: found.collect(),
            second: document.runs.len() - 1,
        }
    }

    /// The change, what is known of the run and the cell, and the finding.
    fn fields(
        &self,
        (run, contender, shape): (usize, &str, Option<&str>),
        run_fields: String,
        own_fields: [String; 2],
    ) -> String {
        let found = self.found.get(&(contender, shape));
        let found = found.filter(|_| run == self.second);
        [
            numbers(found.map(|change| &change.speedup)),
            run_fields,
            own_fields.join(","),
            found.map_or(String::new(), |change| change.finding.to_owned()),
        ]
        .join(",")
    }
}

fn origin(run: &RunOrigin) -> String {
    format!("{},{}", quoted(&run.file), quoted(&run.device))
}

fn bound(by: Option<&str>) -> String {
    quoted(by.unwrap_or_default())
}

/// Why it failed, and where first.
fn why(cell: &CellExport) -> String {
    let parts = [&cell.reason, &cell.first_wrong];
    let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
    parts.join("; ")
}

fn counters(found: Option<&BTreeMap<&'static str, f64>>) -> String {
    let value = |counter: Counter| optional(found.and_then(|f| f.get(counter.as_str())).copied());
    Counter::all().map(value).collect::<Vec<_>>().join(",")
}

/// Median error of modelled times, whether it is of this very device, and the
/// run's label.
fn accuracy(run: &RunOrigin) -> String {
    let error = run.calibration.as_ref().map(|known| known.median);
    let calibrated = match run.calibrated {
        Some(true) => "yes",
        Some(false) => "no",
        None => "",
    };
    let label = run.label.unwrap_or_default();
    format!("{},{calibrated},{label}", optional(error))
}

fn numbers(quantity: Option<&Quantity>) -> String {
    quantity.map_or(",,".to_owned(), |q| {
        format!("{},{},{}", q.estimate, optional(q.lower), optional(q.upper))
    })
}

fn optional(value: Option<f64>) -> String {
    value.map_or(String::new(), |v| v.to_string())
}

fn quoted(text: &str) -> String {
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
