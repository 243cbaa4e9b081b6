//! Files of other benchmarking tools, read as runs: NVBench's JSON with its
//! binary samples, and that of Google Benchmark. A folder of such files is one
//! run, each file a process of its own.

mod google;
mod nvbench;

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};

use crate::decode::plain_in_line;
use crate::diagnostic::InputError;
use crate::domain::bounds::{CELLS, CONTENDERS};
use crate::files;
use crate::record::{Foreign, ForeignCell, Run, Times};

/// Maximum number of samples of a run: all are in memory at once, 24 bytes each.
const MOST_SAMPLES: usize = 16 << 20;
/// No JSON that a benchmark writes is larger.
const LARGEST_JSON: u64 = 256 << 20;

/// Plausible times of a kernel: a nanosecond to a thousand seconds.
const MICROS: RangeInclusive<f64> = 1e-3..=1e9;
/// Plausible clocks; others were not read.
const CLOCK_MHZ: RangeInclusive<f64> = 1.0..=20_000.0;

/// Whether a path is of another tool: a `.json` file, or a folder with some.
pub fn is_foreign(path: &Path) -> bool {
    match path.is_dir() {
        true => !members(path).is_empty(),
        false => files::has_extension(path, "json"),
    }
}

fn members(folder: &Path) -> Vec<PathBuf> {
    let mut files = files::ending_in(folder, "json");
    files.retain(|path| path.is_file());
    files
}

/// Reads the run of another tool.
pub fn read(path: &Path) -> Result<Run, InputError> {
    let files = match path.is_dir() {
        true => members(path),
        false => vec![path.to_owned()],
    };
    let mut whole: Option<Foreign> = None;
    let mut samples = 0;
    let mut origins: Vec<&Path> = Vec::new();
    for file in &files {
        let one = one(file)?;
        if let Some(place) = copied(&one, whole.as_ref()) {
            let (file, before) = (file.display(), origins[place].display());
            return Err(InputError::new(
                format!("{file} has the very times of {before}: one is a copy of the other"),
                "a folder is one run, each file a process of its own: remove the copy",
            ));
        }
        origins.resize(origins.len() + one.processes.len(), file);
        samples += one.samples();
        if samples > MOST_SAMPLES {
            return Err(refused(file, &too_many_samples()));
        }
        let Some(whole) = &mut whole else {
            whole = Some(one);
            continue;
        };
        if (&one.tool, &one.device) != (&whole.tool, &whole.device) {
            let message = format!(
                "{} is of {} on {}, and the file before it of {} on {}",
                file.display(),
                one.tool,
                one.device,
                whole.tool,
                whole.device
            );
            return Err(InputError::new(
                message,
                "a folder is one run: keep files of one tool and one device in it",
            ));
        }
        whole.processes.extend(one.processes);
    }
    let whole = whole.ok_or_else(|| refused(path, "no .json file is in it"))?;
    if whole.processes.iter().all(Vec::is_empty) {
        return Err(refused(path, "no benchmark in it was run"));
    }
    let (contenders, shapes) = whole.extent();
    if contenders > CONTENDERS || contenders * shapes > CELLS {
        let message = format!(
            "{} has {contenders} benchmarks with {shapes} choices of arguments among them: \
             that is more than {CONTENDERS} or {CELLS} cells",
            path.display()
        );
        let remedy =
            "time fewer in one run (NVBench --benchmark, Google Benchmark --benchmark_filter)";
        return Err(InputError::new(message, remedy));
    }
    Ok(Run::foreign(path.to_owned(), whole))
}

/// An earlier process with the same times to the last bit.
fn copied(one: &Foreign, before: Option<&Foreign>) -> Option<usize> {
    let timed = |cell: &ForeignCell| !matches!(cell.times, Times::Skipped(_));
    let mut earlier = before?.processes.iter();
    earlier.position(|process| process.iter().any(timed) && one.processes.contains(process))
}

/// The keys by which a document is recognised; their values may be null.
#[derive(Default, Deserialize)]
#[serde(default)]
struct DocumentKeys {
    #[serde(deserialize_with = "there")]
    devices: bool,
    #[serde(deserialize_with = "there")]
    meta: bool,
    #[serde(deserialize_with = "there")]
    context: bool,
}

fn there<'de, D: Deserializer<'de>>(value: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(value).map(|_| true)
}

fn one(path: &Path) -> Result<Foreign, InputError> {
    let text = files::read_text(path, LARGEST_JSON).map_err(|why| refused(path, &why))?;
    let known: DocumentKeys = parsed(path, &text)?;
    let found = if known.devices && known.meta {
        nvbench::read(path, parsed(path, &text)?)
    } else if known.context {
        google::read(parsed(path, &text)?)
    } else {
        Err("it has neither NVBench's `devices` nor Google Benchmark's `context`".to_owned())
    };
    found.map_err(|why| refused(path, &why))
}

/// Parsed directly into the type: a tree in between would silently keep the last of two equal keys.
fn parsed<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, InputError> {
    serde_json::from_str(text).map_err(|error| {
        let at = format!("{}:{}", path.display(), error.line());
        InputError::new(format!("{at}: {}", plain_in_line(&error)), REMEDY)
    })
}

const REMEDY: &str = "give a run file of dgx, or what NVBench (--jsonbin FILE) or \
                      Google Benchmark (--benchmark_out=FILE) wrote";

fn refused(path: &Path, why: &str) -> InputError {
    InputError::new(format!("cannot read {}: {why}", path.display()), REMEDY)
}

fn too_many_samples() -> String {
    format!("with it there are more than {MOST_SAMPLES} samples: time less in one run")
}

/// A time in microseconds, if it is plausible.
fn micros(time: f64, of: &str) -> Result<f64, String> {
    match MICROS.contains(&time) {
        true => Ok(time),
        // Without all 300 digits of it.
        false if time != 0.0 && !(1e-6..1e15).contains(&time.abs()) => {
            Err(format!("{of} has a time of {time:e} µs"))
        }
        false => Err(format!("{of} has a time of {time} µs")),
    }
}

#[cfg(test)]
mod tests;
