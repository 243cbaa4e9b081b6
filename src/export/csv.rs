use std::collections::{BTreeMap, HashMap};

use super::document::{CellExport, Change, RunOrigin};
use super::{Document, Quantity};
use crate::domain::Counter;

const HEADER: &str = "contender,shape,status,timing,rank,micros,micros_lower,micros_upper,\
                      speedup,speedup_lower,speedup_upper,samples,outliers,roofline,run,device,\
                      change,change_lower,change_upper,model_error,calibrated,label,clock_mhz,\
                      bound_by,finding,reason";

/// One line per cell, and one per contender for the geometric mean, whose
/// shape is `*`. Times are microseconds, speedups ratios over the reference of
/// the run, changes ratios of the second of two runs over the first.
pub(crate) fn csv(document: &Document) -> String {
    let mut text = HEADER.to_owned();
    for counter in Counter::all() {
        text.push_str(&format!(",{counter}"));
    }
    text.push('\n');
    let changes = document.changes.iter();
    let changes: HashMap<(&str, Option<&str>), &Change> = changes
        .map(|c| ((c.contender.as_str(), c.shape.as_deref()), c))
        .collect();
    // Of two runs it is the second that is over the first.
    let second = document.runs.len() - 1;
    let change = |run: usize, contender: &str, shape: Option<&str>| {
        changes
            .get(&(contender, shape))
            .filter(|_| run == second)
            .copied()
    };
    let finding = |run: usize, contender: &str, shape: Option<&str>| {
        let found = change(run, contender, shape);
        found.map_or(String::new(), |change| change.finding.to_owned())
    };
    let origin = |run: usize, contender: &str, shape: Option<&str>| {
        [
            quoted(&document.runs[run].file),
            quoted(&document.runs[run].device),
            numbers(change(run, contender, shape).map(|change| &change.speedup)),
            accuracy(&document.runs[run]),
            document.runs[run].label.unwrap_or_default().to_owned(),
        ]
        .join(",")
    };
    for row in &document.ranking {
        let rank = row.rank.map_or(String::new(), |r| r.to_string());
        let roofline = row.roofline.map(|r| r.estimate);
        let fields = [
            quoted(&row.contender),
            "*".to_owned(),
            row.status.to_owned(),
            document.runs[row.run].timing.as_str().to_owned(),
            rank,
            format!("{},,", optional(row.mean_micros)),
            numbers(row.geomean_speedup.as_ref()),
            String::new(),
            String::new(),
            optional(roofline),
            origin(row.run, &row.contender, None),
            optional(row.clock_mhz),
            quoted(row.bound_by.as_deref().unwrap_or_default()),
            finding(row.run, &row.contender, None),
            String::new(),
            counters(row.counters.as_ref()),
        ];
        text.push_str(&(fields.join(",") + "\n"));
    }
    for cell in &document.cells {
        let fields = [
            quoted(&cell.contender),
            quoted(&cell.shape),
            cell.status.to_owned(),
            cell.timing.as_str().to_owned(),
            String::new(),
            numbers(cell.micros.as_ref()),
            numbers(cell.speedup.as_ref()),
            cell.samples.to_string(),
            cell.outliers.to_string(),
            optional(cell.roofline),
            origin(cell.run, &cell.contender, Some(&cell.shape)),
            optional(cell.clock_mhz),
            quoted(cell.bound_by.as_deref().unwrap_or_default()),
            finding(cell.run, &cell.contender, Some(&cell.shape)),
            quoted(&why(cell)),
            counters(cell.counters.as_ref()),
        ];
        text.push_str(&(fields.join(",") + "\n"));
    }
    text
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

/// Median error of modelled times, and whether it is of this very device.
fn accuracy(run: &RunOrigin) -> String {
    let error = run.calibration.as_ref().map(|known| known.median);
    let calibrated = match run.calibrated {
        Some(true) => "yes",
        Some(false) => "no",
        None => "",
    };
    format!("{},{calibrated}", optional(error))
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
