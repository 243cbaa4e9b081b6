use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use rayon::prelude::*;

use super::judge::{examine, words};
use super::problems::{Problem, Problems};
use super::protocol::{MeasureEntry, MeasureJob, Reply};
use super::rejections::Rejections;
use super::trace::trace;
use crate::backend::cuda::{Bench, CudaBackend, DataSet, Deal, Entry, find_cublas, free_memory};
use crate::backend::{Backend, Data, Emulation, Job, Observation, RunFailure, Salt};
use crate::compile::Cache;
use crate::domain::{ContenderId, Micros, Tuning};
use crate::measure::{
    Audit, Calls, Dealt, Lane, Lineup, Outcome, Schedule, Stopwatch, Timeable, run,
};
use crate::rank::roofline;
use crate::validate::{Exhibit, Finding, Passed, Subject, Tolerance, Wrong, prove};

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
    let send = RefCell::new(send);
    let say = |reply: &Reply| (send.borrow_mut())(reply);
    match Field::line_up(gpu, problems, job, &say).and_then(|field| field.time(job)) {
        Ok(()) => true,
        Err(Trouble::Contender(contender, failure)) => {
            let usable = !failure.fatal;
            say(&Reply::Fault { contender, failure });
            usable
        }
        Err(Trouble::Harness(message)) => {
            say(&Reply::Failed { message });
            false
        }
    }
}

enum Trouble {
    Contender(ContenderId, RunFailure),
    Harness(String),
}

/// Everybody ready to be timed on one shape.
struct Field<'a> {
    lineup: Lineup<Entry>,
    watch: Watch<'a>,
}

impl<'a> Field<'a> {
    fn line_up(
        gpu: &mut CudaBackend,
        problems: &mut Problems,
        job: &MeasureJob,
        say: &'a dyn Fn(&Reply),
    ) -> Result<Self, Trouble> {
        let problems: Vec<Rc<Problem>> = job.problems.iter().map(|key| problems.get(key)).collect();
        let first = problems
            .first()
            .ok_or_else(|| Trouble::Harness("there are no data to time on".to_owned()))?;
        // Before the data sets: a new shape takes the place of the old.
        let harness = |e: crate::backend::cuda::CudaError| Trouble::Harness(e.to_string());
        let instance = gpu.instance(&first.operands).map_err(harness)?;
        let calls = Calls {
            warmup: job.warmup,
            timed: job.min_blocks,
        };
        let mut audit = Audit::secret(problems.len(), calls);
        let sets = data_sets(gpu, &problems, audit.key()).map_err(harness)?;
        if sets.len() < problems.len() {
            let (shape, few) = (&job.shape.name, sets.len());
            say(&Reply::Note {
                text: format!(
                    "{shape}: only {few} of {} data sets fit the device",
                    problems.len()
                ),
            });
            audit = Audit::secret(sets.len(), calls);
        }
        let bench = gpu.bench(job.cold_l2).map_err(harness)?;
        let floor = roofline::floor(gpu.device(), &job.shape, None);
        let mut field = Self {
            lineup: Lineup::new(&job.shape.name),
            watch: Watch {
                bench,
                audit,
                problems,
                rehearsals: match job.process {
                    0 => FIRST_REHEARSALS,
                    _ => REHEARSALS,
                },
                least: floor.map_or(0.0, |Micros(least)| least),
                rejections: Rejections::new(&job.shape.name, say),
                watched: job.watched,
                say,
            },
        };
        for wanted in &job.entries {
            let problem = &field.watch.problems[0];
            say(&Reply::Calling {
                contender: wanted.contender.clone(),
            });
            let entry = enter(gpu, wanted, job, problem, &sets)?;
            field.enter(entry, wanted.contender == job.baseline)?;
        }
        if let Some(name) = &job.yardstick {
            say(&Reply::Calling {
                contender: name.clone(),
            });
            match yardstick(gpu, name, job, &instance, &sets, &mut field.watch) {
                Ok(entry) => field.enter(entry, false)?,
                Err(why) => say(&Reply::Note {
                    text: format!("no {name} on {}: {why}", job.shape.name),
                }),
            }
        }
        Ok(field)
    }

    /// Lets in who is right when called again; the yardstick on the same terms.
    fn enter(&mut self, entry: Entry, twice: bool) -> Result<(), Trouble> {
        let contender = entry.subject().contender.clone();
        match self.watch.rehearse(&entry)? {
            Ok(passed) => self
                .lineup
                .enter(passed, entry, twice)
                .map_err(|e| Trouble::Harness(e.to_string())),
            Err(wrong) => {
                self.watch.rejections.wrong(&contender, wrong);
                Ok(())
            }
        }
    }

    fn time(mut self, job: &MeasureJob) -> Result<(), Trouble> {
        let say = self.watch.say;
        let schedule = Schedule {
            process: job.process,
            seed: job.order_seed,
            warmup: job.warmup,
            min_blocks: job.min_blocks,
            max_seconds: job.max_seconds,
        };
        say(&Reply::Running);
        let outcome = match self.lineup.lanes() {
            [] => Outcome::default(),
            _ => run(&mut self.watch, &self.lineup, &schedule, |block| {
                say(&Reply::Block {
                    block: block.clone(),
                });
            })
            .map_err(|(contender, failure)| Trouble::Contender(contender, failure))?,
        };
        trace(|| format!("{} blocks, {}", outcome.blocks, outcome.decision));
        let Outcome {
            decision, retaken, ..
        } = outcome;
        say(&Reply::Measured { decision, retaken });
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

/// A contender ready to be called.
fn enter(
    gpu: &mut CudaBackend,
    wanted: &MeasureEntry,
    job: &MeasureJob,
    problem: &Problem,
    sets: &[Rc<DataSet>],
) -> Result<Entry, Trouble> {
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
        .and_then(|prepared| Entry::contender(subject, prepared, sets, job.tolerance))
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
    watch: &mut Watch<'_>,
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
    let kept = job.tuning.as_ref();
    let (yardstick, gemms) = gpu.yardstick(instance, kept, &mut watch.bench)?;
    if kept.is_none() {
        let (shape, library) = (job.shape.name.clone(), subject.image.clone());
        (watch.say)(&Reply::Tuned {
            tuning: Tuning {
                shape,
                library,
                gemms,
            },
        });
    }
    Entry::yardstick(subject, yardstick, sets, tolerance).map_err(|e| e.message)
}

/// The GPU's stopwatch. Deals the data of each call, and judges calls: every
/// one on the device, some by the host, and by the host whatever the device
/// has doubts about.
struct Watch<'a> {
    bench: Bench,
    audit: Audit,
    problems: Vec<Rc<Problem>>,
    /// Calls of an entry before it is timed.
    rehearsals: u32,
    /// Microseconds below which nothing can do the work.
    least: f64,
    rejections: Rejections<'a>,
    /// Whether to say whose each call is.
    watched: bool,
    say: &'a dyn Fn(&Reply),
}

impl Watch<'_> {
    /// Calls an entry a few times before it is timed; the proof that it is
    /// right, if so. Judged as any contender is, on data it has not seen, and
    /// with all it remembers: who is right once and lazy ever after is found.
    fn rehearse(&mut self, entry: &Entry) -> Result<Result<Passed, Wrong>, Trouble> {
        let subject = entry.subject();
        let trouble = |failure| Trouble::Contender(subject.contender.clone(), failure);
        let mut calls = 0;
        loop {
            let deal = deal(self.audit.rehearse(subject.contender.as_str()));
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

    fn judge(&mut self, entry: &Entry, deal: Deal, observation: &Observation) {
        let finding = examine(observation, &self.problems[deal.set], entry.tolerance());
        if let Finding::Wrong(wrong) = finding {
            self.rejections.wrong(&entry.subject().contender, wrong);
        }
    }
}

fn deal(dealt: Dealt) -> Deal {
    Deal {
        set: dealt.set,
        salt: Salt(dealt.salt),
    }
}

impl Stopwatch<Entry> for Watch<'_> {
    fn sample(&mut self, lane: &Lane<Entry>) -> Result<(Micros, Option<f64>), RunFailure> {
        let contender = lane.contender();
        if self.watched {
            (self.say)(&Reply::Calling {
                contender: contender.clone(),
            });
        }
        let dealt = self.audit.deal(contender.as_str());
        let deal = deal(dealt);
        let timed = self.bench.sample(lane, deal)?;
        if dealt.judged || timed.suspect {
            let observation = self.bench.observe(lane.entry(), deal)?;
            self.judge(lane.entry(), deal, &observation);
        }
        if timed.micros < self.least {
            let (micros, least) = (timed.micros, self.least);
            self.rejections.impossible(contender, micros, least);
        }
        Ok((Micros(timed.micros), timed.clock_mhz))
    }
}
