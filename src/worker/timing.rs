use std::rc::Rc;
use std::time::Duration;

use super::judge::{Finding, examine};
use super::problems::{Problem, Problems};
use super::protocol::{MeasureEntry, MeasureJob, Reply, Tolerance};
use super::trace::trace;
use crate::backend::cuda::{Bench, CudaBackend, Entry};
use crate::backend::{Backend, Emulation, Job, RunFailure};
use crate::compile::Cache;
use crate::domain::{ContenderId, Micros, Status};
use crate::measure::{Lane, Outcome, Schedule, Stopwatch, run};
use crate::rank::roofline;
use crate::record::schema::Verdict;
use crate::validate::Passed;

/// The yardstick rounds both products to fp16, as its users do; its output is
/// held to this many tolerances, so that only a wrong one is called wrong.
const YARDSTICK_SLACK: f64 = 4.0;

/// Times one shape's contenders and then checks what the timed calls left in
/// memory. False when this process can do nothing more.
pub fn measure(
    gpu: &mut CudaBackend,
    problems: &mut Problems,
    job: &MeasureJob,
    send: &mut dyn FnMut(&Reply),
) -> bool {
    match Field::line_up(gpu, problems, job, send).and_then(|field| field.time(gpu, job, send)) {
        Ok(()) => true,
        Err(Trouble::Contender(contender, failure)) => {
            let usable = !failure.fatal;
            send(&Reply::Fault { contender, failure });
            usable
        }
        Err(Trouble::Harness(message)) => {
            send(&Reply::Failed { message });
            false
        }
    }
}

enum Trouble {
    Contender(ContenderId, RunFailure),
    Harness(String),
}

/// Everybody ready to be timed on one shape.
struct Field {
    entries: Vec<Entry>,
    lanes: Vec<Lane>,
    problem: Rc<Problem>,
}

impl Field {
    fn line_up(
        gpu: &mut CudaBackend,
        problems: &mut Problems,
        job: &MeasureJob,
        send: &mut dyn FnMut(&Reply),
    ) -> Result<Self, Trouble> {
        let problem = problems.get(&job.problem);
        let (mut entries, mut lanes) = (Vec::new(), Vec::new());
        for wanted in &job.entries {
            let passed = Passed::from_verdict(&wanted.verdict).ok_or_else(|| {
                Trouble::Harness(format!("{} has not passed", wanted.verdict.contender))
            })?;
            let lane = Lane::contender(&passed, entries.len());
            entries.push(enter(gpu, wanted, &problem)?);
            if lane.contender == job.baseline {
                lanes.push(lane.again());
            }
            lanes.push(lane);
        }
        if let Some(name) = &job.yardstick {
            match yardstick(gpu, &entries) {
                Ok(entry) => {
                    lanes.push(Lane::yardstick(name.clone(), entries.len()));
                    entries.push(entry);
                }
                Err(why) => send(&Reply::Note {
                    text: format!("no {name} on {}: {why}", job.problem.shape.name),
                }),
            }
        }
        Ok(Self {
            entries,
            lanes,
            problem,
        })
    }

    fn time(
        &self,
        gpu: &mut CudaBackend,
        job: &MeasureJob,
        send: &mut dyn FnMut(&Reply),
    ) -> Result<(), Trouble> {
        let bench = gpu
            .bench(job.cold_l2)
            .map_err(|e| Trouble::Harness(e.to_string()))?;
        let mut watch = Watch {
            bench,
            entries: &self.entries,
        };
        let schedule = Schedule {
            shape: job.problem.shape.name.clone(),
            process: job.process,
            seed: job.order_seed,
            warmup: job.warmup,
            min_blocks: job.min_blocks,
            max_seconds: job.max_seconds,
        };
        send(&Reply::Running);
        // A time below the roofline is no fast kernel but one that did not do the work.
        let floor = roofline::floor(gpu.device(), &job.problem.shape, None);
        let least = floor.map_or(0.0, |Micros(least)| least);
        let mut impossible: Vec<(ContenderId, f64)> = Vec::new();
        let outcome = run(&mut watch, &self.lanes, &schedule, |block| {
            for sample in &block.samples {
                if sample.micros.0 < least {
                    impossible.push((sample.contender.clone(), sample.micros.0));
                }
            }
            send(&Reply::Block {
                block: block.clone(),
            });
        })
        .map_err(|(contender, failure)| Trouble::Contender(contender, failure))?;
        trace(|| format!("{} blocks, {}", outcome.blocks, outcome.decision));
        let mut rejected = self.recheck(&watch.bench, job)?;
        for (contender, micros) in impossible {
            if !rejected.iter().any(|v| v.contender == contender) {
                rejected.push(impossible_time(contender, micros, least, job));
            }
        }
        let Outcome {
            decision, retaken, ..
        } = outcome;
        send(&Reply::Measured {
            decision,
            retaken,
            rejected,
        });
        Ok(())
    }

    /// Judges the output of each lane's last timed call like any other.
    fn recheck(&self, bench: &Bench, job: &MeasureJob) -> Result<Vec<Verdict>, Trouble> {
        let mut rejected = Vec::new();
        for lane in self.lanes.iter().filter(|l| l.arm == 0) {
            let observation = bench
                .observe(&self.entries[lane.entry])
                .map_err(|failure| Trouble::Contender(lane.contender.clone(), failure))?;
            let slack = match job.yardstick.as_ref() == Some(&lane.contender) {
                true => YARDSTICK_SLACK,
                false => 1.0,
            };
            let tolerance = Tolerance {
                rtol: job.tolerance.rtol * slack,
                atol: job.tolerance.atol * slack,
            };
            let finding = examine(&observation, &self.problem, tolerance);
            if let Finding::Wrong {
                reason,
                detail,
                worst,
            } = finding
            {
                rejected.push(Verdict {
                    contender: lane.contender.clone(),
                    shape: job.problem.shape.name.clone(),
                    status: Status::Wrong,
                    reason: Some(format!("a timed call was wrong: {reason}")),
                    detail,
                    worst,
                    millis: 0.0,
                    counters: Default::default(),
                });
            }
        }
        Ok(rejected)
    }
}

fn enter(
    gpu: &mut CudaBackend,
    wanted: &MeasureEntry,
    problem: &Problem,
) -> Result<Entry, Trouble> {
    let contender = &wanted.verdict.contender;
    let image = Cache::read(&wanted.image)
        .map_err(|e| e.to_string())
        .and_then(|image| image)
        .map_err(|e| Trouble::Harness(format!("cannot read the image of {contender}: {e}")))?;
    let job = Job {
        image: &image,
        call: &wanted.call,
        operands: &problem.operands,
        operands_key: &problem.name,
        // The supervisor watches over blocks, not over single calls.
        time_limit: Duration::MAX,
        emulation: Emulation::default(),
    };
    gpu.prepare(&job)
        .and_then(Entry::contender)
        .map_err(|failure| Trouble::Contender(contender.clone(), failure))
}

/// The yardstick on the operands the contenders already have on the device.
fn yardstick(gpu: &CudaBackend, entries: &[Entry]) -> Result<Entry, String> {
    let instance = entries
        .iter()
        .find_map(|entry| match entry {
            Entry::Contender(prepared, _) => Some(Rc::clone(prepared.instance())),
            Entry::Yardstick(..) => None,
        })
        .ok_or("nobody to measure")?;
    let yardstick = gpu.yardstick(&instance)?;
    Entry::yardstick(yardstick).map_err(|e| e.message)
}

fn impossible_time(contender: ContenderId, micros: f64, least: f64, job: &MeasureJob) -> Verdict {
    Verdict {
        contender,
        shape: job.problem.shape.name.clone(),
        status: Status::Wrong,
        reason: Some(format!(
            "impossible time: {micros:.2} µs, where the device needs {least:.2} µs at least"
        )),
        detail: None,
        worst: None,
        millis: 0.0,
        counters: Default::default(),
    }
}

/// The GPU's stopwatch over these entries.
struct Watch<'a> {
    bench: Bench,
    entries: &'a [Entry],
}

impl Stopwatch for Watch<'_> {
    fn sample(&mut self, entry: usize) -> Result<(Micros, Option<f64>), RunFailure> {
        let timed = self.bench.sample(&self.entries[entry])?;
        Ok((Micros(timed.micros), timed.clock_mhz))
    }
}
