//! The JSON of Google Benchmark and of tools with the same format: an entry for every repetition of
//! every benchmark, named `benchmark/arguments`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::micros;
use crate::record::{Foreign, ForeignCell, Times};

#[derive(Deserialize)]
pub(super) struct Report {
    context: Context,
    benchmarks: Vec<Benchmark>,
}

#[derive(Deserialize)]
struct Context {
    #[serde(default)]
    date: String,
    host_name: Option<String>,
    library_version: Option<String>,
}

#[derive(Deserialize)]
struct Benchmark {
    name: String,
    run_name: Option<String>,
    run_type: Option<String>,
    real_time: Option<f64>,
    time_unit: Option<String>,
    #[serde(default)]
    error_occurred: bool,
    error_message: Option<String>,
    #[serde(default)]
    skipped: bool,
    skip_message: Option<String>,
}

impl Benchmark {
    /// Whether it is computed from others; old versions show that only in its name.
    fn is_aggregate(&self) -> bool {
        const ENDINGS: [&str; 6] = ["_mean", "_median", "_stddev", "_cv", "_BigO", "_RMS"];
        match &self.run_type {
            Some(kind) => kind == "aggregate",
            None => ENDINGS.iter().any(|ending| self.name.ends_with(ending)),
        }
    }
}

/// The samples of a benchmark, or why it failed.
type BenchmarkTimes = Result<Vec<(f64, Option<f64>)>, String>;

pub(super) fn read(report: Report) -> Result<Foreign, String> {
    let mut order: Vec<(String, String)> = Vec::new();
    let mut found: BTreeMap<(String, String), BenchmarkTimes> = BTreeMap::new();
    for benchmark in &report.benchmarks {
        if benchmark.is_aggregate() {
            continue;
        }
        let name = benchmark.run_name.as_deref().unwrap_or(&benchmark.name);
        let (contender, shape) = name.split_once('/').unwrap_or((name, "all"));
        let key = (contender.to_owned(), shape.to_owned());
        if !found.contains_key(&key) {
            order.push(key.clone());
        }
        let place = found.entry(key).or_insert_with(|| Ok(Vec::new()));
        match (sample(benchmark)?, place) {
            (Ok(time), Ok(samples)) => samples.push((time, None)),
            (Err(why), place) => *place = Err(why),
            (Ok(_), Err(_)) => {}
        }
    }
    if order.is_empty() && !report.benchmarks.is_empty() {
        return Err("it has aggregates alone, and no times they are of: \
                    run it without --benchmark_report_aggregates_only"
            .to_owned());
    }
    let cells = order.into_iter().filter_map(|key| {
        let times = match found.remove(&key)? {
            // One repetition has no meaningful scatter.
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
    let version = report.context.library_version.unwrap_or_default();
    Ok(Foreign {
        tool: format!("Google Benchmark {version}").trim_end().to_owned(),
        device: report
            .context
            .host_name
            .unwrap_or_else(|| "an unnamed host".to_owned()),
        sms: 0,
        started: report.context.date,
        processes: vec![cells.collect()],
    })
}

/// Its time, or the reason why it has none.
fn sample(benchmark: &Benchmark) -> Result<Result<f64, String>, String> {
    if benchmark.error_occurred {
        let why = benchmark.error_message.clone();
        return Ok(Err(why.unwrap_or_else(|| "it failed".to_owned())));
    }
    if benchmark.skipped {
        let why = benchmark.skip_message.clone();
        return Ok(Err(why.unwrap_or_else(|| "it was skipped".to_owned())));
    }
    let per_unit = match benchmark.time_unit.as_deref().unwrap_or("ns") {
        "ns" => 1e-3,
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        other => return Err(format!("{} has the time unit `{other}`", benchmark.name)),
    };
    let Some(time) = benchmark.real_time else {
        return Err(format!("{} has no `real_time`", benchmark.name));
    };
    micros(time * per_unit, &benchmark.name).map(Ok)
}
