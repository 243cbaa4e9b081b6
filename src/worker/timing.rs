use std::rc::Rc;
use std::time::Duration;

use rayon::prelude::*;

use super::judge::{examine, words};
use super::problems::{Problem, Problems};
use super::protocol::{MeasureEntry, MeasureJob, Reply};
use super::trace::trace;
use crate::backend::cuda::{Bench, CudaBackend, DataSet, Deal, Entry, find_cublas, free_memory};
use crate::backend::{Backend, Data, Emulation, Job, Observation, RunFailure, Salt};
use crate::compile::Cache;
use crate::domain::{ContenderId, Micros, Status};
use crate::measure::{Audit, Lane, Lineup, Outcome, Schedule, Stopwatch, Timeable, run};
use crate::rank::roofline;
use crate::record::schema::Verdict;
use crate::validate::{Exhibit, Finding, Passed, Subject, Tolerance, prove};

/// The yardstick rounds both products to fp16, as its users do; its output is
/// held to this many tolerances, so that only a wrong one is called wrong.
const YARDSTICK_SLACK: f64 = 4.0;

/// Calls before an entry is timed, in the first process and in the others.
const FIRST_REHEARSALS: u32 = 16;
const REHEARSALS: u32 = 2;

/// Times one shape's contenders, each call on other data, and judges what the
/// timed calls left in memory. False when this process can do nothing more.
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
    lineup: Lineup<Entry>,
    watch: Watch,
}

impl Field {
    fn line_up(
        gpu: &mut CudaBackend,
        problems: &mut Problems,
        job: &MeasureJob,
        send: &mut dyn FnMut(&Reply),
    ) -> Result<Self, Trouble> {
        let problems: Vec<Rc<Problem>> = job.problems.iter().map(|key| problems.get(key)).collect();
        let first = problems
            .first()
            .ok_or_else(|| Trouble::Harness("there are no data to time on".to_owned()))?;
        // Before the data sets: a new shape takes the place of the old.
        let harness = |e: crate::backend::cuda::CudaError| Trouble::Harness(e.to_string());
        let instance = gpu.instance(&first.operands).map_err(harness)?;
        let mut audit = Audit::secret(problems.len());
        let sets = data_sets(gpu, &problems, audit.key()).map_err(harness)?;
        if sets.len() < problems.len() {
            let (shape, few) = (&job.shape.name, sets.len());
            send(&Reply::Note {
                text: format!(
                    "{shape}: only {few} of {} data sets fit the device",
                    problems.len()
                ),
            });
            audit = Audit::secret(sets.len());
        }
        let bench = gpu.bench(job.cold_l2).map_err(harness)?;
        let mut field = Self {
            lineup: Lineup::new(&job.shape.name),
            watch: Watch {
                bench,
                audit,
                problems,
                shape: job.shape.name.clone(),
                rehearsals: match job.process {
                    0 => FIRST_REHEARSALS,
                    _ => REHEARSALS,
                },
                rejected: Vec::new(),
            },
        };
        for wanted in &job.entries {
            let problem = &field.watch.problems[0];
            let (entry, kept) = enter(gpu, wanted, job, problem, &sets)?;
            if !kept.is_empty() {
                let (contender, names) = (&wanted.contender, kept.join(", "));
                send(&Reply::Note {
                    text: format!(
                        "{contender} keeps {names} from call to call: the driver does not find them"
                    ),
                });
            }
            let twice = wanted.contender == job.baseline;
            match field.watch.rehearse(&entry)? {
                Ok(passed) => field.enter(passed, entry, twice)?,
                Err(finding) => field.watch.reject(&wanted.contender, finding),
            }
        }
        if let Some(name) = &job.yardstick {
            let made = yardstick(gpu, name, job, &instance, &sets);
            if let Err(why) = made.and_then(|entry| field.enter_yardstick(entry)) {
                send(&Reply::Note {
                    text: format!("no {name} on {}: {why}", job.shape.name),
                });
            }
        }
        Ok(field)
    }

    fn enter(&mut self, passed: Passed, entry: Entry, twice: bool) -> Result<(), Trouble> {
        self.lineup
            .enter(passed, entry, twice)
            .map_err(|e| Trouble::Harness(e.to_string()))
    }

    /// The yardstick is timed on the same terms: only if it is right.
    fn enter_yardstick(&mut self, entry: Entry) -> Result<(), String> {
        let rehearsed = self.watch.rehearse(&entry);
        let rehearsed = rehearsed.map_err(|trouble| match trouble {
            Trouble::Contender(_, failure) => failure.message,
            Trouble::Harness(message) => message,
        })?;
        let passed = rehearsed.map_err(|finding| match finding {
            Finding::Wrong { reason, .. } => format!("its output is wrong: {reason}"),
            Finding::Right { worst } => format!("its output is {worst} tolerances off"),
        })?;
        let entered = self.lineup.enter(passed, entry, false);
        entered.map_err(|e| e.to_string())
    }

    fn time(
        mut self,
        gpu: &mut CudaBackend,
        job: &MeasureJob,
        send: &mut dyn FnMut(&Reply),
    ) -> Result<(), Trouble> {
        let schedule = Schedule {
            process: job.process,
            seed: job.order_seed,
            warmup: job.warmup,
            min_blocks: job.min_blocks,
            max_seconds: job.max_seconds,
        };
        send(&Reply::Running);
        // A time below the roofline is no fast kernel but one that did not do the work.
        let floor = roofline::floor(gpu.device(), &job.shape, None);
        let least = floor.map_or(0.0, |Micros(least)| least);
        let mut impossible: Vec<(ContenderId, f64)> = Vec::new();
        let outcome = match self.lineup.lanes() {
            [] => Outcome::default(),
            _ => run(&mut self.watch, &self.lineup, &schedule, |block| {
                for sample in &block.samples {
                    if sample.micros.0 < least {
                        impossible.push((sample.contender.clone(), sample.micros.0));
                    }
                }
                send(&Reply::Block {
                    block: block.clone(),
                });
            })
            .map_err(|(contender, failure)| Trouble::Contender(contender, failure))?,
        };
        trace(|| format!("{} blocks, {}", outcome.blocks, outcome.decision));
        let mut rejected = self.watch.rejected;
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
}

/// The data sets with their answers on the device: all of them, or as many as
/// leave half of its memory to the contenders.
fn data_sets(
    gpu: &CudaBackend,
    problems: &[Rc<Problem>],
    seal: u64,
) -> Result<Vec<Rc<DataSet>>, crate::backend::cuda::CudaError> {
    let mut sets = Vec::new();
    for (place, problem) in problems.iter().enumerate() {
        let c = answer(problem);
        let needed = problem.operands.bytes() + 4 * c.len() as u64;
        if !sets.is_empty() && 2 * needed > free_memory()? {
            break;
        }
        let data = data(problem, Salt::of_call(0, 0));
        sets.push(gpu.set_with_answer(&data, &c, seal.wrapping_add(place as u64))?);
    }
    Ok(sets)
}

/// C as it should be, group after group.
fn answer(problem: &Problem) -> Vec<f32> {
    let groups = problem.oracle.groups.par_iter();
    groups
        .flat_map(|group| {
            let elements = (0..group.gate.len()).into_par_iter();
            elements.map(|i| group.c(i) as f32)
        })
        .collect()
}

fn data(problem: &Problem, salt: Salt) -> Data<'_> {
    Data {
        operands: &problem.operands,
        key: &problem.name,
        salt,
        // The supervisor watches over blocks, not over single calls.
        time_limit: Duration::MAX,
        emulation: Emulation::default(),
    }
}

/// A contender ready to be called, and variables of its module that will not
/// be put back.
fn enter(
    gpu: &mut CudaBackend,
    wanted: &MeasureEntry,
    job: &MeasureJob,
    problem: &Problem,
    sets: &[Rc<DataSet>],
) -> Result<(Entry, Vec<String>), Trouble> {
    let contender = &wanted.contender;
    let image = Cache::read(&wanted.image)
        .map_err(|e| e.to_string())
        .and_then(|image| image)
        .map_err(|e| Trouble::Harness(format!("cannot read the image of {contender}: {e}")))?;
    let subject = Subject {
        contender: contender.clone(),
        shape: job.shape.name.clone(),
        image: image.key.clone(),
    };
    let call = Job {
        image: &image,
        call: &wanted.call,
    };
    gpu.prepare(&call, &problem.operands)
        .and_then(|prepared| prepared.forget_between_calls(&image))
        .and_then(|(prepared, kept)| {
            let entry = Entry::contender(subject, prepared, sets, job.tolerance)?;
            Ok((entry, kept))
        })
        .map_err(|failure| Trouble::Contender(contender.clone(), failure))
}

/// The yardstick on the data the contenders read, which lie in the instance
/// since the last of them was rehearsed.
fn yardstick(
    gpu: &CudaBackend,
    name: &ContenderId,
    job: &MeasureJob,
    instance: &Rc<crate::backend::cuda::Instance>,
    sets: &[Rc<DataSet>],
) -> Result<Entry, String> {
    if job.entries.is_empty() {
        return Err("nobody to measure".to_owned());
    }
    let subject = Subject {
        contender: name.clone(),
        shape: job.shape.name.clone(),
        image: find_cublas()?,
    };
    let tolerance = Tolerance {
        rtol: job.tolerance.rtol * YARDSTICK_SLACK,
        atol: job.tolerance.atol * YARDSTICK_SLACK,
    };
    let yardstick = gpu.yardstick(instance)?;
    Entry::yardstick(subject, yardstick, sets, tolerance).map_err(|e| e.message)
}

fn impossible_time(contender: ContenderId, micros: f64, least: f64, job: &MeasureJob) -> Verdict {
    let reason =
        format!("impossible time: {micros:.2} µs, where the device needs {least:.2} µs at least");
    wrong(&contender, &job.shape.name, reason, None, None)
}

fn wrong(
    contender: &ContenderId,
    shape: &str,
    reason: String,
    detail: Option<String>,
    worst: Option<f64>,
) -> Verdict {
    Verdict {
        contender: contender.clone(),
        shape: shape.to_owned(),
        status: Status::Wrong,
        reason: Some(reason),
        detail,
        worst,
        millis: 0.0,
        printed: None,
        counters: Default::default(),
    }
}

/// The GPU's stopwatch. Deals the data of each call, and judges calls: every
/// one on the device, some by the host, and by the host whatever the device
/// has doubts about.
struct Watch {
    bench: Bench,
    audit: Audit,
    problems: Vec<Rc<Problem>>,
    shape: String,
    /// Calls of an entry before it is timed.
    rehearsals: u32,
    rejected: Vec<Verdict>,
}

impl Watch {
    /// Calls an entry a few times before it is timed; the proof that it is
    /// right, if so. Judged as any contender is, on data it has not seen, and
    /// with all it remembers: who is right once and lazy ever after is found.
    fn rehearse(&mut self, entry: &Entry) -> Result<Result<Passed, Finding>, Trouble> {
        let subject = entry.subject();
        let trouble = |failure| Trouble::Contender(subject.contender.clone(), failure);
        let mut calls = 0;
        loop {
            let (deal, _) = self.deal(entry);
            calls += 1;
            let suspect = self.bench.rehearse(entry, deal).map_err(trouble)?;
            if !suspect && calls < self.rehearsals {
                continue;
            }
            let observation = self.bench.observe(entry, deal).map_err(trouble)?;
            let problem = &self.problems[deal.set];
            let trespasses = words(&observation);
            let exhibit = Exhibit {
                c: &observation.c,
                trespasses: &trespasses,
            };
            let (operands, oracle) = (&problem.operands, &problem.oracle);
            let subject = subject.clone();
            let proof = prove(subject, exhibit, operands, oracle, entry.tolerance());
            if proof.is_err() || calls >= self.rehearsals {
                return Ok(proof);
            }
        }
    }

    fn deal(&mut self, entry: &Entry) -> (Deal, bool) {
        let dealt = self.audit.deal(entry.subject().contender.as_str());
        let deal = Deal {
            set: dealt.set,
            salt: Salt(dealt.salt),
        };
        (deal, dealt.judged)
    }

    fn judge(&mut self, entry: &Entry, deal: Deal, observation: &Observation) {
        let finding = examine(observation, &self.problems[deal.set], entry.tolerance());
        self.reject(&entry.subject().contender.clone(), finding);
    }

    /// Notes the first wrong call of a contender.
    fn reject(&mut self, contender: &ContenderId, finding: Finding) {
        let Finding::Wrong {
            reason,
            detail,
            worst,
        } = finding
        else {
            return;
        };
        if !self.rejected.iter().any(|v| v.contender == *contender) {
            let reason = format!("a later call was wrong: {reason}");
            let verdict = wrong(contender, &self.shape, reason, detail, worst);
            self.rejected.push(verdict);
        }
    }
}

impl Stopwatch<Entry> for Watch {
    fn sample(&mut self, lane: &Lane<Entry>) -> Result<(Micros, Option<f64>), RunFailure> {
        let (deal, judged) = self.deal(lane.entry());
        let timed = self.bench.sample(lane, deal)?;
        if judged || timed.suspect {
            let observation = self.bench.observe(lane.entry(), deal)?;
            self.judge(lane.entry(), deal, &observation);
        }
        Ok((Micros(timed.micros), timed.clock_mhz))
    }
}
