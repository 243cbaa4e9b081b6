//! NVBench's JSON (format 1): benchmarks with states, one for each choice of
//! axis values. The samples of a state lie in a binary file beside it where
//! `--jsonbin` was given: seconds as 32-bit floats, least byte first.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::{CLOCK_MHZ, MOST_SAMPLES, micros, too_many_samples};
use crate::files;
use crate::record::{Foreign, ForeignCell, Times};

/// The summaries with the file of samples and with their mean: of the GPU, or of a benchmark that
/// runs on the CPU alone.
const TIMES: [(&str, &str); 2] = [
    ("nv/json/bin:nv/cold/sample_times", "nv/cold/time/gpu/mean"),
    (
        "nv/json/bin:nv/cpu_only/sample_times",
        "nv/cpu_only/time/cpu/mean",
    ),
];
const CLOCKS: &str = "nv/json/freqs-bin:nv/cold/sample_freqs";

#[derive(Deserialize)]
pub(super) struct Report {
    meta: Meta,
    devices: Option<Vec<Device>>,
    benchmarks: Option<Vec<Benchmark>>,
}

#[derive(Deserialize)]
struct Meta {
    version: Versions,
}

#[derive(Deserialize)]
struct Versions {
    json: Version,
    nvbench: Option<Version>,
}

#[derive(Deserialize)]
struct Version {
    major: u32,
    string: String,
}

#[derive(Deserialize)]
struct Device {
    id: i64,
    name: String,
    #[serde(default)]
    number_of_sms: u32,
}

#[derive(Deserialize)]
struct Benchmark {
    name: String,
    states: Option<Vec<State>>,
}

#[derive(Deserialize)]
struct State {
    /// `None` if it runs on the CPU alone.
    device: Option<i64>,
    axis_values: Option<Vec<Named>>,
    summaries: Option<Vec<Summary>>,
    #[serde(default)]
    is_skipped: bool,
    skip_reason: Option<String>,
}

#[derive(Deserialize)]
struct Summary {
    tag: String,
    #[serde(default)]
    data: Vec<Named>,
}

/// Numbers are written as strings; older files have them as numbers.
#[derive(Deserialize)]
struct Named {
    name: String,
    value: Value,
}

impl Named {
    fn text(&self) -> String {
        match &self.value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

pub(super) fn read(path: &Path, report: Report) -> Result<Foreign, String> {
    let version = &report.meta.version;
    if version.json.major != 1 {
        return Err(format!(
            "it is of NVBench's format {}, and this dgx reads 1",
            version.json.string
        ));
    }
    let benchmarks = report.benchmarks.unwrap_or_default();
    let states = || benchmarks.iter().flat_map(|b| b.states.iter().flatten());
    let used: BTreeSet<i64> = states().filter_map(|state| state.device).collect();
    let mut cells: Vec<ForeignCell> = Vec::new();
    let mut samples = 0;
    for benchmark in &benchmarks {
        for state in benchmark.states.iter().flatten() {
            let shape = shape(state, used.len() > 1);
            let cell = ForeignCell {
                contender: benchmark.name.clone(),
                times: times(path, &format!("{} [{shape}]", benchmark.name), state)?,
                shape,
            };
            samples += cell.samples();
            if samples > MOST_SAMPLES {
                return Err(too_many_samples());
            }
            cells.push(cell);
        }
    }
    let devices = report.devices.unwrap_or_default();
    let devices: Vec<&Device> = devices.iter().filter(|d| used.contains(&d.id)).collect();
    let names: Vec<&str> = devices.iter().map(|d| d.name.as_str()).collect();
    let tool = match &version.nvbench {
        Some(version) => format!("NVBench {}", version.string),
        None => "NVBench".to_owned(),
    };
    Ok(Foreign {
        tool,
        device: match names.is_empty() {
            true => "an unnamed device".to_owned(),
            false => names.join(" and "),
        },
        sms: devices.first().map_or(0, |d| d.number_of_sms),
        started: String::new(),
        processes: vec![cells],
    })
}

/// The axis values of a state, in their order, after the device if there are several: times on
/// different devices are not compared.
fn shape(state: &State, several: bool) -> String {
    let device = state.device.filter(|_| several);
    let device = device.map(|id| format!("Device={id}"));
    let values = state.axis_values.iter().flatten();
    let values = values.map(|v| format!("{}={}", v.name, v.text()));
    let words: Vec<String> = device.into_iter().chain(values).collect();
    match words.is_empty() {
        true => "all".to_owned(),
        false => words.join(" "),
    }
}

fn times(path: &Path, of: &str, state: &State) -> Result<Times, String> {
    if state.is_skipped {
        let why = state.skip_reason.clone();
        return Ok(Times::Skipped(
            why.unwrap_or_else(|| "it was skipped".to_owned()),
        ));
    }
    let summary = |tag: &str| state.summaries.iter().flatten().find(|s| s.tag == tag);
    let samples = TIMES.iter().find_map(|(samples, _)| summary(samples));
    if let Some(seconds) = samples
        .map(|summary| floats(path, summary))
        .transpose()?
        .flatten()
    {
        let clocks = summary(CLOCKS)
            .map(|summary| floats(path, summary))
            .transpose()?
            .flatten();
        if seconds.is_empty() {
            return Ok(Times::Skipped("its file of samples is empty".to_owned()));
        }
        // A clock for every sample, or none that can be matched.
        let clocks = clocks.filter(|clocks| clocks.len() == seconds.len());
        let clock = |i: usize| clocks.as_ref().map(|hertz| hertz[i] / 1e6);
        let clock = |i: usize| clock(i).filter(|mhz| CLOCK_MHZ.contains(mhz));
        let samples = seconds.iter().enumerate();
        let samples = samples.map(|(i, s)| Ok((micros(s * 1e6, of)?, clock(i))));
        return Ok(Times::Samples(samples.collect::<Result<_, String>>()?));
    }
    let mean = TIMES.iter().find_map(|(_, mean)| summary(mean));
    let Some(mean) = mean.and_then(|s| s.data.iter().find(|d| d.name == "value")) else {
        return Ok(Times::Skipped("it has no time".to_owned()));
    };
    let seconds: f64 = mean
        .text()
        .parse()
        .map_err(|_| format!("{of} has a mean of `{}`", mean.text()))?;
    Ok(Times::Mean(micros(seconds * 1e6, of)?))
}

/// The numbers of a binary file; `None` if NVBench could not write it.
fn floats(path: &Path, summary: &Summary) -> Result<Option<Vec<f64>>, String> {
    let named = |name: &str| summary.data.iter().find(|d| d.name == name);
    let Some(file) = named("filename").map(Named::text) else {
        return Ok(None);
    };
    let place = beside(path, &file)?;
    let bytes = files::read(&place, 4 * MOST_SAMPLES as u64).map_err(|error| {
        format!(
            "its samples in {} cannot be read ({error}): keep that folder beside it",
            place.display()
        )
    })?;
    let size = named("size").and_then(|size| size.text().parse::<usize>().ok());
    if bytes.len() % 4 != 0 || size.is_some_and(|size| size != bytes.len() / 4) {
        let (bytes, place) = (bytes.len(), place.display());
        return Err(format!(
            "{place} has {bytes} bytes, not four for each sample"
        ));
    }
    let (words, _) = bytes.as_chunks::<4>();
    let floats = words
        .iter()
        .map(|word| f64::from(f32::from_le_bytes(*word)));
    Ok(Some(floats.collect()))
}

/// The path of a file of samples: beside the JSON. Older files give it relative to the folder in
/// which NVBench ran; nothing outside the folder is read.
fn beside(path: &Path, file: &str) -> Result<PathBuf, String> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let named = Path::new(file);
    let inside = named
        .components()
        .all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
    if inside && folder.join(named).is_file() {
        return Ok(folder.join(named));
    }
    let parts: Vec<&std::ffi::OsStr> = named
        .components()
        .filter_map(|c| match c {
            Component::Normal(part) => Some(part),
            _ => None,
        })
        .collect();
    match parts.as_slice() {
        [.., holder, name] => Ok(folder.join(holder).join(name)),
        _ => Err(format!("`{file}` names no file of samples")),
    }
}
