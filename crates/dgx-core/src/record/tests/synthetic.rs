//! Run files with a known truth, for tests: simulated blocks, processes and noise, and every status
//! of a sweep.

use std::collections::BTreeMap;
use std::path::Path;

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

use super::schema::*;
use super::{Run, read_text};
use crate::domain::{
    BackendKind, Block, Bytes, Calibration, Claim, ContenderId, Distribution, Group, Hazard,
    Micros, Sample, Shape, Status, Timing, Verdict,
};
use crate::operator;

/// A contender and its true time, relative to a shape's base time.
#[derive(Clone)]
pub struct SyntheticContender {
    pub name: &'static str,
    pub parent: Option<&'static str>,
    pub claim: Option<(f64, &'static str)>,
    pub status: Status,
    pub reason: Option<&'static str>,
    pub time: f64,
    /// Of each of its cells.
    pub hazards: Vec<Hazard>,
}

impl SyntheticContender {
    pub fn ok(name: &'static str, time: f64) -> Self {
        Self {
            name,
            parent: None,
            claim: None,
            status: Status::Ok,
            reason: None,
            time,
            hazards: Vec::new(),
        }
    }

    pub fn failed(name: &'static str, status: Status, reason: &'static str) -> Self {
        Self {
            status,
            reason: Some(reason),
            ..Self::ok(name, 1.0)
        }
    }

    pub fn child_of(self, parent: &'static str) -> Self {
        Self {
            parent: Some(parent),
            ..self
        }
    }

    pub fn claiming(self, geomean: f64, over: &'static str) -> Self {
        Self {
            claim: Some((geomean, over)),
            ..self
        }
    }
}

#[derive(Clone)]
pub struct Synthetic {
    pub entries: Vec<SyntheticContender>,
    pub shapes: Vec<Shape>,
    pub yardstick: Option<f64>,
    pub timing: Timing,
    pub processes: u32,
    pub blocks: u32,
    /// Standard deviation of a sample's log.
    pub noise: f64,
    /// Standard deviation of a process's effect on a contender's log time.
    pub process_noise: f64,
    pub seed: u64,
}

/// A problem of the usual operator.
pub fn group(m: u32, n: u32, k: u32) -> Group {
    Group::new([("m", m), ("n", n), ("k", k)])
}

pub fn dense(m: u32, n: u32, k: u32) -> Shape {
    Shape {
        name: format!("{m}x{n}x{k}"),
        groups: vec![group(m, n, k)],
    }
}

pub fn grouped(name: &str, ms: &[u32], n: u32, k: u32) -> Shape {
    Shape {
        name: name.to_owned(),
        groups: ms.iter().map(|&m| group(m, n, k)).collect(),
    }
}

/// The eight shapes of the benchmark.
pub fn shapes() -> Vec<Shape> {
    vec![
        dense(256, 4096, 7168),
        dense(512, 4096, 7168),
        dense(256, 3072, 4096),
        dense(512, 3072, 7168),
        grouped(
            "g8-k7168",
            &[80, 176, 128, 72, 64, 248, 96, 160],
            4096,
            7168,
        ),
        grouped(
            "g8-k2048",
            &[40, 76, 168, 72, 164, 148, 196, 160],
            7168,
            2048,
        ),
        grouped("g2-k4096", &[192, 320], 3072, 4096),
        grouped("g2-k1536", &[128, 384], 4096, 1536),
    ]
}

impl Synthetic {
    /// Round 4 as it might come out on a GPU, with a wrong design added.
    pub fn round4() -> Self {
        let wrong = "every element is what a known mistake gives: A·B1ᵀ: no gate, no second GEMM";
        Self {
            entries: vec![
                SyntheticContender::ok("two-pass", 1.0),
                SyntheticContender::ok("sequential", 0.76)
                    .child_of("two-pass")
                    .claiming(1.33, "two-pass"),
                SyntheticContender::ok("interleaved", 0.52)
                    .child_of("sequential")
                    .claiming(1.6, "two-pass"),
                SyntheticContender::failed("single-gemm", Status::Wrong, wrong),
            ],
            shapes: shapes(),
            yardstick: Some(0.45),
            timing: Timing::Measured,
            processes: 3,
            blocks: 10,
            noise: 0.005,
            process_noise: 0.001,
            seed: 4,
        }
    }

    pub fn modelled(self) -> Self {
        Self {
            timing: Timing::Modelled,
            yardstick: None,
            ..self
        }
    }

    /// As if only times had been asked for.
    pub fn time_only(mut self) -> Self {
        let ran = |e: &&mut SyntheticContender| matches!(e.status, Status::Ok | Status::Wrong);
        for entry in self.entries.iter_mut().filter(ran) {
            (entry.status, entry.reason) = (Status::NotValidated, None);
        }
        self.modelled()
    }

    fn unlooked(&self) -> bool {
        let mut entries = self.entries.iter();
        entries.any(|e| e.status == Status::NotValidated)
    }

    pub fn lines(&self) -> Vec<Line> {
        let mut lines = vec![Line::Header(Box::new(self.header()))];
        for entry in &self.entries {
            lines.push(self.build(entry));
            lines.extend(self.shapes.iter().map(|s| self.verdict(entry, s)));
        }
        match self.timing {
            timing if timing.sampled() => {
                lines.extend(self.all_blocks().into_iter().map(Line::Block))
            }
            _ => lines.extend(self.estimates()),
        }
        lines.push(Line::End(RunEnd {
            complete: true,
            reason: None,
            seconds: BTreeMap::from([("measure".to_owned(), 12.5)]),
            decision: Some("decided".to_owned()),
        }));
        lines
    }

    pub fn text(&self) -> String {
        let lines = self.lines();
        let json = lines
            .iter()
            .map(|l| serde_json::to_string(l).unwrap() + "\n");
        json.collect()
    }

    pub fn run(&self) -> Run {
        let path = Path::new("results/round4-20261115-0912.jsonl");
        read_text(path, self.text().as_bytes()).unwrap()
    }

    fn header(&self) -> Header {
        Header {
            schema: SCHEMA,
            name: "round4".to_owned(),
            question: "Which design computes the dual GEMM correctly at the least cost?".to_owned(),
            started: "2026-11-15T09:12:00Z".to_owned(),
            argv: ["dgx", "sweep", "configs/round4.toml"]
                .map(String::from)
                .to_vec(),
            dgx: "0.1.0".to_owned(),
            git: Some(GitState {
                commit: "0123456789abcdef0123456789abcdef01234567".to_owned(),
                dirty: false,
            }),
            host: Host {
                os: "linux".to_owned(),
                arch: "x86_64".to_owned(),
                cpu: "Test CPU".to_owned(),
                cores: 2,
            },
            device: self.device(),
            compiler: Some("NVRTC 13.0".to_owned()),
            config: ConfigText {
                path: "configs/round4.toml".to_owned(),
                text: String::new(),
            },
            baseline: ContenderId::from_text(self.entries[0].name),
            yardstick: self.yardstick.map(|_| ContenderId::from_text("cublas")),
            contenders: self.entries.iter().map(record).collect(),
            shapes: self.shapes.clone(),
            settings: Settings {
                seed: self.seed,
                rtol: 1e-3,
                atol: 1e-3,
                distributions: Distribution::USUAL.to_vec(),
                min_blocks: self.blocks,
                max_seconds: 10.0,
                processes: self.processes,
                cold_l2: true,
                time_only: self.unlooked(),
                ..Settings::default()
            },
            operator: None,
            departures: Vec::new(),
            shard: None,
            parts: Vec::new(),
        }
    }

    fn device(&self) -> DeviceRecord {
        let backend = (BackendKind::ALL.into_iter())
            .find(|kind| kind.timing() == self.timing)
            .expect("every kind of time has its backend");
        DeviceRecord {
            backend,
            timing: self.timing,
            name: "NVIDIA H200".to_owned(),
            uuid: None,
            driver: Some("580.65".to_owned()),
            sms: 132,
            l2: Bytes(50 << 20),
            memory: Bytes(140 << 30),
            clock_mhz: 1980.0,
            bandwidth: 4.8e12,
            tensor_flops_per_clock: 4096.0,
            fp4: false,
            smem_per_block: Bytes(227 << 10),
            calibration: (self.timing == Timing::Modelled).then(|| Calibration {
                device: "NVIDIA H200".to_owned(),
                run: "final".to_owned(),
                median: 0.035,
                p90: 0.1,
                worst: 0.17,
                cells: 104,
                operators: Vec::new(),
            }),
            model: (self.timing == Timing::Modelled).then(|| "0123456789ab".to_owned()),
        }
    }

    fn build(&self, entry: &SyntheticContender) -> Line {
        let ok = entry.status != Status::CompileError;
        Line::Build(Build {
            contender: ContenderId::from_text(entry.name),
            shapes: self.shapes.iter().map(|s| s.name.clone()).collect(),
            constants: BTreeMap::from([("BM".to_owned(), 128)]),
            ok,
            message: (!ok).then(|| "variants/x.cu(12): error: expected a `;`".to_owned()),
            kernels: vec![KernelResources {
                name: "dual_gemm".to_owned(),
                registers: 120 + (100.0 * (1.0 - entry.time)) as u32,
                spill_bytes: 0,
                static_smem: Bytes(1024),
                dynamic_smem: Bytes(130 << 10),
                threads: 384,
                occupancy: 0.1875,
                tensor_columns: 0,
            }],
            remarks: Vec::new(),
            cached: false,
            millis: 120.0,
            image: None,
        })
    }

    fn verdict(&self, entry: &SyntheticContender, shape: &Shape) -> Line {
        Line::Verdict(Verdict {
            contender: ContenderId::from_text(entry.name),
            shape: shape.name.clone(),
            status: entry.status,
            reason: entry.reason.map(str::to_owned),
            detail: entry
                .reason
                .map(|r| format!("{r}\nfirst bad element: row 0, column 0")),
            worst: Some(if entry.status == Status::Ok {
                0.4
            } else {
                900.0
            }),
            millis: 40.0,
            printed: None,
            counters: self.counters(entry, shape),
            hazards: entry.hazards.clone(),
            unseen: Vec::new(),
        })
    }

    /// Counters as an emulator might report them: in proportion to the time, so that tables show
    /// differences.
    fn counters(&self, entry: &SyntheticContender, shape: &Shape) -> BTreeMap<String, f64> {
        let ran = matches!(entry.status, Status::Ok | Status::Wrong);
        if self.timing != Timing::Modelled || !ran {
            return BTreeMap::new();
        }
        let flops = operator::default_operator()
            .least_work(shape)
            .tensor_flops();
        let names = crate::domain::Counter::all().flat_map(|counter| counter.of.iter().copied());
        let value = |name: &str| match name {
            "launches" => (3.0 * entry.time).round(),
            "ctas" => 132.0,
            "mma-flops" => flops * 1.25,
            "mma-flops-useful" => flops,
            "instructions-double" | "atomics" | "early-reads" => 0.0,
            "local-read" | "local-written" => 0.0,
            _ if name.contains("unique") => (flops * 1e-5).round(),
            _ => (flops * 1e-4 * entry.time).round(),
        };
        names.map(|name| (name.to_owned(), value(name))).collect()
    }

    /// The time of the shape at time factor 1, µs.
    pub fn base(shape: &Shape) -> f64 {
        (operator::default_operator()
            .least_work(shape)
            .tensor_flops()
            / 0.35e9)
            .max(1.0)
    }

    fn valid(&self) -> impl Iterator<Item = (&str, u32, f64)> {
        let ok = self.entries.iter().filter(|e| e.status.may_be_timed());
        let arms = ok.map(|e| (e.name, 0, e.time));
        let control = self.entries.first().filter(|e| e.status == Status::Ok);
        let control = control.map(|e| (e.name, 1, e.time));
        arms.chain(control)
            .chain(self.yardstick.map(|t| ("cublas", 0, t)))
    }

    fn estimates(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        for (name, _, time) in self.valid().filter(|(_, arm, _)| *arm == 0) {
            lines.extend(self.shapes.iter().map(|shape| {
                Line::Estimate(Estimate {
                    contender: ContenderId::from_text(name),
                    shape: shape.name.clone(),
                    micros: Micros(Self::base(shape) * time),
                    bound: Some("tensor".to_owned()),
                    kernels: Vec::new(),
                })
            }));
        }
        lines
    }

    fn all_blocks(&self) -> Vec<Block> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let arms: Vec<(&str, u32, f64)> = self.valid().collect();
        let mut blocks = Vec::new();
        if arms.is_empty() {
            return blocks;
        }
        for process in 0..self.processes {
            for shape in &self.shapes {
                let effects: Vec<f64> = arms
                    .iter()
                    .map(|_| self.process_noise * normal(&mut rng))
                    .collect();
                for block in 0..self.blocks {
                    let drift = 0.01 * normal(&mut rng);
                    let sample = |((name, arm, time), effect): (&(&str, u32, f64), &f64)| Sample {
                        contender: ContenderId::from_text(*name),
                        arm: *arm,
                        micros: Micros(
                            Self::base(shape)
                                * time
                                * (drift + effect + self.noise * normal(&mut rng)).exp(),
                        ),
                        clock_mhz: Some(1755.0),
                    };
                    blocks.push(Block {
                        shape: shape.name.clone(),
                        process,
                        block,
                        card: None,
                        samples: arms.iter().zip(&effects).map(sample).collect(),
                    });
                }
            }
        }
        blocks
    }
}

fn record(entry: &SyntheticContender) -> ContenderRecord {
    let id = ContenderId::from_text(entry.name);
    let params = entry.name.split_once('[').map(|(_, list)| {
        let pairs = list.trim_end_matches(']').split(',');
        pairs
            .filter_map(|p| p.split_once('='))
            .map(|(k, v)| (k.to_owned(), v.parse().unwrap()))
            .collect()
    });
    ContenderRecord {
        variant: id.variant().to_owned(),
        id,
        params: params.unwrap_or_default(),
        summary: format!("the {} design", entry.name),
        parent: entry.parent.map(str::to_owned),
        round: Some(4),
        claim: entry.claim.map(|(geomean, over)| Claim {
            geomean,
            over: over.to_owned(),
            why: Some("half the A traffic".to_owned()),
        }),
        expect: match entry.status {
            Status::NotValidated => Status::Ok,
            status => status,
        },
        arch: String::new(),
        hash: "00".repeat(32),
    }
}

/// Standard normal, by Box and Muller.
pub fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let uniform = |rng: &mut ChaCha8Rng| (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let radius = (-2.0 * (1.0 - uniform(rng)).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(rng)).cos()
}

/// The tests of the built binary read a committed run file, which this generator writes;
/// `DGX_WRITE_FIXTURES=1` writes it again after a change of either.
#[test]
fn the_committed_run_is_the_generated_one() {
    let field = Synthetic {
        shapes: vec![
            dense(256, 3072, 4096),
            grouped("g2-k1536", &[128, 384], 4096, 1536),
        ],
        blocks: 6,
        processes: 2,
        ..Synthetic::round4()
    };
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .join("tests/fixtures/runs/round4.jsonl");
    if std::env::var_os("DGX_WRITE_FIXTURES").is_some() {
        std::fs::write(&path, field.text()).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    assert!(
        committed == field.text(),
        "{} is out of date: run this test with DGX_WRITE_FIXTURES=1",
        path.display()
    );
}
