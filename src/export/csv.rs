use std::collections::{BTreeMap, HashMap};

use super::document::RunOrigin;
use super::{Document, Quantity};
use crate::domain::Counter;

const HEADER: &str = "contender,shape,status,timing,rank,micros,micros_lower,micros_upper,\
                      speedup,speedup_lower,speedup_upper,samples,outliers,roofline,run,device,\
                      change,change_lower,change_upper,model_error,calibrated,label,clock_mhz,\
                      bound_by";

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
    let changes: HashMap<(&str, Option<&str>), &Quantity> = changes
        .map(|c| ((c.contender.as_str(), c.shape.as_deref()), &c.speedup))
        .collect();
    let origin = |run: usize, contender: &str, shape: Option<&str>| {
        let change = changes.get(&(contender, shape)).filter(|_| run == 1);
        [
            quoted(&document.runs[run].file),
            quoted(&document.runs[run].device),
            numbers(change.copied()),
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
            counters(cell.counters.as_ref()),
        ];
        text.push_str(&(fields.join(",") + "\n"));
    }
    text
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
