//! A run that another tool timed. It has no oracle, no blocks and no second entry of a baseline:
//! its cells are unchecked, and intervals come from its processes alone.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::Run;
use super::schema::{
    ConfigText, ContenderRecord, DeviceRecord, Estimate, Header, Host, SCHEMA, Settings,
};
use crate::domain::{ContenderId, Micros, Shape, Status, Verdict, printable_line};
use crate::stats::{PROCESSES, Sampled};

/// The results of another tool, process by process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Foreign {
    /// e.g. `NVBench 1.2.0`.
    pub tool: String,
    /// The device it ran on.
    pub device: String,
    pub sms: u32,
    /// As the tool reports it, if it does.
    pub started: String,
    pub processes: Vec<Vec<ForeignCell>>,
}

/// One benchmark with one set of arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignCell {
    pub contender: String,
    pub shape: String,
    pub times: Times,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Times {
    /// Microseconds, and MHz if they were read; in the order they were taken.
    Samples(Vec<(f64, Option<f64>)>),
    /// A mean without its samples, microseconds.
    Mean(f64),
    /// The reason why there are none.
    Skipped(String),
}

impl ForeignCell {
    pub fn samples(&self) -> usize {
        match &self.times {
            Times::Samples(samples) => samples.len(),
            Times::Mean(_) | Times::Skipped(_) => 0,
        }
    }
}

impl Foreign {
    pub fn samples(&self) -> usize {
        let cells = self.processes.iter().flatten();
        cells.map(ForeignCell::samples).sum()
    }

    /// Its numbers of contenders and shapes.
    pub fn extent(&self) -> (usize, usize) {
        let cells = || self.processes.iter().flatten();
        (
            distinct(cells().map(|cell| cell.contender.as_str())).len(),
            distinct(cells().map(|cell| cell.shape.as_str())).len(),
        )
    }
}

impl Run {
    /// Converts it to a run.
    pub fn foreign(path: PathBuf, found: Foreign) -> Self {
        let cells = || found.processes.iter().flatten();
        let contenders = distinct(cells().map(|cell| cell.contender.as_str()));
        let shapes = distinct(cells().map(|cell| cell.shape.as_str()));
        let header = header(&path, &found, &contenders, &shapes);
        let mut run = Self::begun(path, header);
        run.tool = Some(printable_line(&found.tool));
        let mut untold = UndecidedCells::default();
        for (process, cells) in found.processes.iter().enumerate() {
            for cell in cells {
                run.take(process as u32, cell, &mut untold);
            }
        }
        run.take_means(untold.means);
        run.mark_absent(&untold.skipped);
        run
    }

    fn take(&mut self, process: u32, cell: &ForeignCell, untold: &mut UndecidedCells) {
        let contender = printable_line(&cell.contender);
        let shape = printable_line(&cell.shape);
        let place = (self.names.entrant(&contender), self.names.shape(&shape));
        let (Some(arm), Some(number)) = place else {
            return;
        };
        match &cell.times {
            Times::Samples(samples) => {
                for (micros, clock_mhz) in samples {
                    self.sample((arm, number), process, *micros, *clock_mhz);
                }
            }
            Times::Mean(micros) => {
                let means = untold.means.entry((arm, number)).or_default();
                means.push((process, *micros));
            }
            Times::Skipped(why) => {
                let why = || printable_line(why);
                untold.skipped.entry((arm, number)).or_insert_with(why);
            }
        }
    }

    /// Samples of different benchmarks are not paired: each is by itself.
    fn sample(
        &mut self,
        (arm, shape): CellPlace,
        process: u32,
        micros: f64,
        clock_mhz: Option<f64>,
    ) {
        let log = micros.ln();
        let sample = Sampled {
            arm,
            log,
            clock_mhz,
        };
        self.tally.add(shape, process, &[sample]);
    }

    /// Means of a cell from several processes count as samples if there are enough processes for an
    /// interval.
    fn take_means(&mut self, means: BTreeMap<CellPlace, Vec<(u32, f64)>>) {
        for (place, means) in means {
            let (arm, shape) = place;
            if means.len() >= PROCESSES || self.tally.samples(shape, arm).is_some() {
                for (process, micros) in means {
                    self.sample(place, process, micros, None);
                }
                continue;
            }
            let logs: f64 = means.iter().map(|(_, micros)| micros.ln()).sum();
            let estimate = Estimate {
                contender: self.header.contenders[arm].id.clone(),
                shape: self.header.shapes[shape].name.clone(),
                micros: Micros((logs / means.len() as f64).exp()),
                bound: None,
                kernels: Vec::new(),
            };
            self.estimates.insert(place, estimate);
        }
    }

    /// Benchmarks need not have the same arguments: a missing cell is not a gap.
    fn mark_absent(&mut self, skipped: &BTreeMap<CellPlace, String>) {
        for (arm, contender) in self.header.contenders.iter().enumerate() {
            for (number, shape) in self.header.shapes.iter().enumerate() {
                let place = (arm, number);
                let timed = self.tally.samples(number, arm).is_some()
                    || self.estimates.contains_key(&place);
                if !timed {
                    let mut verdict = Verdict::new(&contender.id, &shape.name, Status::Unsupported);
                    let why = skipped.get(&place).map(String::as_str);
                    let why = why.unwrap_or("it was not run with these arguments");
                    verdict.reason = Some(why.to_owned());
                    self.verdicts.insert(place, verdict);
                }
            }
        }
    }
}

/// A contender's number and a shape's.
type CellPlace = (usize, usize);

/// Data that can be judged only once every process has been read.
#[derive(Default)]
struct UndecidedCells {
    /// Means without samples, by process, in microseconds.
    means: BTreeMap<CellPlace, Vec<(u32, f64)>>,
    /// The first reason why a process has no time; it counts if no process has one.
    skipped: BTreeMap<CellPlace, String>,
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for name in names {
        let name = printable_line(name);
        if seen.insert(name.clone()) {
            all.push(name);
        }
    }
    all
}

fn header(
    path: &std::path::Path,
    found: &Foreign,
    contenders: &[String],
    shapes: &[String],
) -> Header {
    let record = |name: &String| ContenderRecord {
        id: ContenderId::from_text(name.clone()),
        variant: name.clone(),
        params: BTreeMap::new(),
        summary: String::new(),
        parent: None,
        round: None,
        claim: None,
        expect: Status::Ok,
        hash: String::new(),
        arch: String::new(),
    };
    let shape = |name: &String| Shape {
        name: name.clone(),
        groups: Vec::new(),
    };
    let name = path.file_stem().map(|name| name.to_string_lossy());
    let unknown = || "unknown".to_owned();
    Header {
        schema: SCHEMA,
        name: name.map_or(String::new(), |name| printable_line(&name)),
        question: format!("What did {} find?", printable_line(&found.tool)),
        started: printable_line(&found.started),
        host: Host {
            os: unknown(),
            arch: unknown(),
            cpu: unknown(),
            cores: 0,
        },
        device: DeviceRecord {
            name: printable_line(&found.device),
            sms: found.sms,
            ..DeviceRecord::default()
        },
        config: ConfigText {
            path: path.display().to_string(),
            text: String::new(),
        },
        baseline: ContenderId::from_text(contenders.first().cloned().unwrap_or_default()),
        contenders: contenders.iter().map(record).collect(),
        shapes: shapes.iter().map(shape).collect(),
        settings: Settings {
            processes: found.processes.len() as u32,
            ..Settings::default()
        },
        ..Header::default()
    }
}
