//! The JSON of Google Benchmark, and of tools that write alike: a line for
//! every repetition of every benchmark, named `benchmark/arguments`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::micros;
use crate::record::{Foreign, ForeignCell, Times};

#[derive(Deserialize)]
pub(super) struct Document {
    context: Context,
    benchmarks: Vec<Entry>,
}

#[derive(Deserialize)]
struct Context {
    #[serde(default)]
    date: String,
    #[serde(default)]
    host_name: Option<String>,
    #[serde(default)]
    library_version: Option<String>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    #[serde(default)]
    run_name: Option<String>,
    #[serde(default)]
    run_type: Option<String>,
    #[serde(default)]
    real_time: Option<f64>,
    #[serde(default)]
    time_unit: Option<String>,
    #[serde(default)]
    error_occurred: bool,
    #[serde(default)]
    error_message: Option<String>,
    #[serde(default)]
    skipped: bool,
    #[serde(default)]
    skip_message: Option<String>,
}

impl Entry {
    /// Whether it is told of others; old versions say so in its name alone.
    fn is_aggregate(&self) -> bool {
        const ENDINGS: [&str; 6] = ["_mean", "_median", "_stddev", "_cv", "_BigO", "_RMS"];
        match &self.run_type {
            Some(kind) => kind == "aggregate",
            None => ENDINGS.iter().any(|ending| self.name.ends_with(ending)),
        }
    }
}

/// The samples of a benchmark, or why it failed.
type Found = Result<Vec<(f64, Option<f64>)>, String>;

pub(super) fn read(document: Document) -> Result<Foreign, String> {
    let mut order: Vec<(String, String)> = Vec::new();
    let mut found: BTreeMap<(String, String), Found> = BTreeMap::new();
    for entry in &document.benchmarks {
        if entry.is_aggregate() {
            continue;
        }
        let name = entry.run_name.as_deref().unwrap_or(&entry.name);
        let (contender, shape) = name.split_once('/').unwrap_or((name, "all"));
        let key = (contender.to_owned(), shape.to_owned());
        if !found.contains_key(&key) {
            order.push(key.clone());
        }
        let place = found.entry(key).or_insert_with(|| Ok(Vec::new()));
        match (sample(entry)?, place) {
            (Ok(time), Ok(samples)) => samples.push((time, None)),
            (Err(why), place) => *place = Err(why),
            (Ok(_), Err(_)) => {}
        }
    }
    if order.is_empty() && !document.benchmarks.is_empty() {
        return Err("it has aggregates alone, and no times they are of: \
                    run it without --benchmark_report_aggregates_only"
            .to_owned());
    }
    let cells = order.into_iter().filter_map(|key| {
        let times = match found.remove(&key)? {
            // One repetition has no scatter to speak of.
            Ok(samples) if samples.len() == 1 => Times::Mean(samples[0].0),
            Ok(samples) => Times::Samples(samples),
            Err(why) => Times::Skipped(why),
        };
        let (contender, shape) = key;
        Some(ForeignCell {
            contender,
            shape,
            times,
        })
    });
    let version = document.context.library_version.unwrap_or_default();
    Ok(Foreign {
        tool: format!("Google Benchmark {version}").trim_end().to_owned(),
        device: document
            .context
            .host_name
            .unwrap_or_else(|| "an unnamed host".to_owned()),
        sms: 0,
        started: document.context.date,
        processes: vec![cells.collect()],
    })
}

/// Its time, or why it has none.
fn sample(entry: &Entry) -> Result<Result<f64, String>, String> {
    if entry.error_occurred {
        let why = entry.error_message.clone();
        return Ok(Err(why.unwrap_or_else(|| "it failed".to_owned())));
    }
    if entry.skipped {
        let why = entry.skip_message.clone();
        return Ok(Err(why.unwrap_or_else(|| "it was skipped".to_owned())));
    }
    let per_unit = match entry.time_unit.as_deref().unwrap_or("ns") {
        "ns" => 1e-3,
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        other => return Err(format!("{} has the time unit `{other}`", entry.name)),
    };
    let Some(time) = entry.real_time else {
        return Err(format!("{} has no `real_time`", entry.name));
    };
    micros(time * per_unit, &entry.name).map(Ok)
}
