//! A run that another tool timed. It has no oracle, no blocks and no second
//! entry of a baseline: its cells are unchecked, and its processes are all
//! that intervals can be made of.

use std::path::PathBuf;

use super::Run;
use super::schema::{
    ConfigText, ContenderRecord, DeviceRecord, Estimate, Header, Host, SCHEMA, Settings,
};
use crate::domain::{
    BackendKind, Bytes, ContenderId, Micros, Shape, Status, Verdict, Watch, printable_line,
};
use crate::stats::Sampled;

/// What another tool found, process by process.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Foreign {
    /// e.g. `NVBench 1.2.0`.
    pub tool: String,
    /// What it ran on.
    pub device: String,
    pub sms: u32,
    /// As it says it, where it does.
    pub started: String,
    pub processes: Vec<Vec<ForeignCell>>,
}

/// One benchmark with one set of arguments.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ForeignCell {
    pub contender: String,
    pub shape: String,
    pub times: Times,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Times {
    /// Microseconds, and MHz where they were read; in the order they were taken.
    Samples(Vec<(f64, Option<f64>)>),
    /// A mean without its samples, microseconds.
    Mean(f64),
    /// Why there are none.
    Skipped(String),
}

impl Foreign {
    /// How many contenders it has, and how many shapes.
    pub(crate) fn extent(&self) -> (usize, usize) {
        let cells = || self.processes.iter().flatten();
        (
            distinct(cells().map(|cell| cell.contender.as_str())).len(),
            distinct(cells().map(|cell| cell.shape.as_str())).len(),
        )
    }
}

impl Run {
    /// The run a foreign one amounts to.
    pub(crate) fn foreign(path: PathBuf, found: Foreign) -> Self {
        let cells = || found.processes.iter().flatten();
        let contenders = distinct(cells().map(|cell| cell.contender.as_str()));
        let shapes = distinct(cells().map(|cell| cell.shape.as_str()));
        let header = header(&path, &found, &contenders, &shapes);
        let mut run = Self::begun(path, header);
        run.tool = Some(printable_line(&found.tool));
        for (process, cells) in found.processes.iter().enumerate() {
            for cell in cells {
                run.take(process as u32, cell);
            }
        }
        run.mark_absent();
        run.tally.settle();
        run
    }

    fn take(&mut self, process: u32, cell: &ForeignCell) {
        let contender = ContenderId::from_text(printable_line(&cell.contender));
        let shape = printable_line(&cell.shape);
        let place = (
            self.names.entrant(contender.as_str()),
            self.names.shape(&shape),
        );
        let (Some(arm), Some(number)) = place else {
            return;
        };
        match &cell.times {
            // Nothing pairs samples of different benchmarks: each is by itself.
            Times::Samples(samples) => {
                for (micros, clock_mhz) in samples {
                    let (log, clock_mhz) = (micros.ln(), *clock_mhz);
                    let sample = Sampled {
                        arm,
                        log,
                        clock_mhz,
                    };
                    self.tally.add(number, process, &[sample]);
                }
            }
            Times::Mean(micros) => {
                let estimate = Estimate {
                    contender,
                    shape: shape.clone(),
                    micros: Micros(*micros),
                    bound: None,
                    kernels: Vec::new(),
                };
                self.estimates.entry((arm, number)).or_insert(estimate);
            }
            Times::Skipped(why) => {
                let mut verdict = Verdict::new(&contender, &shape, Status::Unsupported);
                verdict.reason = Some(printable_line(why));
                self.verdicts.insert((arm, number), verdict);
            }
        }
    }

    /// Benchmarks need not have the same arguments: what is not there is no gap.
    fn mark_absent(&mut self) {
        for (arm, contender) in self.header.contenders.iter().enumerate() {
            for (number, shape) in self.header.shapes.iter().enumerate() {
                let timed = self.tally.samples(number, arm).is_some()
                    || self.estimates.contains_key(&(arm, number));
                if !timed {
                    let place = self.verdicts.entry((arm, number));
                    place.or_insert_with(|| {
                        let mut verdict =
                            Verdict::new(&contender.id, &shape.name, Status::Unsupported);
                        verdict.reason = Some("it was not run with these arguments".to_owned());
                        verdict
                    });
                }
            }
        }
    }
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
        params: Default::default(),
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
    Header {
        schema: SCHEMA,
        name: name.map_or(String::new(), |name| printable_line(&name)),
        question: format!("What did {} find?", printable_line(&found.tool)),
        started: printable_line(&found.started),
        argv: Vec::new(),
        dgx: String::new(),
        git: None,
        host: Host {
            os: "unknown".to_owned(),
            arch: "unknown".to_owned(),
            cpu: "unknown".to_owned(),
            cores: 0,
        },
        device: DeviceRecord {
            backend: BackendKind::None,
            timing: BackendKind::None.timing(),
            name: printable_line(&found.device),
            uuid: None,
            driver: None,
            sms: found.sms,
            l2: Bytes(0),
            memory: Bytes(0),
            clock_mhz: 0.0,
            bandwidth: 0.0,
            tensor_flops_per_clock: 0.0,
            smem_per_block: Bytes(0),
            calibration: None,
            model: None,
        },
        compiler: None,
        config: ConfigText {
            path: path.display().to_string(),
            text: String::new(),
        },
        baseline: ContenderId::from_text(contenders.first().cloned().unwrap_or_default()),
        yardstick: None,
        contenders: contenders.iter().map(record).collect(),
        shapes: shapes.iter().map(shape).collect(),
        settings: Settings {
            seed: 0,
            rtol: 0.0,
            atol: 0.0,
            distributions: Vec::new(),
            min_blocks: 0,
            max_seconds: 0.0,
            processes: found.processes.len() as u32,
            cold_l2: false,
            schedule: 0,
            exact_sums: false,
            time_only: false,
            hazards: Watch::Off,
            target: None,
        },
        departures: Vec::new(),
        shard: None,
        parts: Vec::new(),
    }
}
