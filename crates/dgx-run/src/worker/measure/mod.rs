//! Times contenders side by side in randomised blocks. Only those with a
//! [`Passed`](crate::validate::Passed) get in, and what reads the clock uses it
//! up: timing a wrong kernel does not type-check, nor does timing one on after
//! it was found wrong.

mod audit;
mod blocks;
mod lineup;

use std::cell::RefCell;
use std::rc::Rc;

use super::problems::{Problem, Problems};
use super::protocol::{MeasureEntry, MeasureJob, Reply};
use super::rejections::Rejections;
use super::trace::trace;
use super::validate::words;
use crate::backend::{Backend, Bench, Course, Deal, Job, RunFailure, Salt, Set, Timed};
use crate::compile::Cache;
use crate::operator::{Operands, Oracle};
use crate::validate::{Exhibit, Passed, Spent, Subject, Tolerance, Wrong, prove};
use audit::{Audit, Calls, Dealt};
use blocks::{Outcome, Reading, Schedule, Stopwatch, run};
use dgx_core::domain::roofline::Work;
use dgx_core::domain::{ContenderId, KernelTime, Micros};
use lineup::Lineup;

/// The yardstick rounds both products to fp16, as its users do; its output is
/// held to this many tolerances, so that only a wrong one is called wrong.
const YARDSTICK_SLACK: f64 = 4.0;

/// Calls before an entry is timed, in the first process and in the others.
const FIRST_REHEARSALS: u32 = 16;
const REHEARSALS: u32 = 2;
/// Calls that are looked into, of which the middle one is told.
const DISSECTIONS: usize = 5;

/// Times one shape's contenders, each call on other data, and judges what the
/// timed calls left in memory. False when this process can do nothing more.
pub(super) fn measure(
    backend: &mut dyn Backend,
    problems: &mut Problems,
    job: &MeasureJob,
    send: &mut dyn FnMut(&Reply),
) -> bool {
    let send = RefCell::new(send);
    let say = |reply: &Reply| (send.borrow_mut())(reply);
    match Field::line_up(backend, problems, job, &say).and_then(|field| field.time(job)) {
        Ok(usable) => usable,
        Err(Trouble::Contender(_, failure)) if failure.harness => {
            say(&Reply::Failed {
                message: failure.message,
            });
            false
        }
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
    lineup: Lineup,
    watch: Watch<'a>,
}

impl<'a> Field<'a> {
    fn line_up(
        backend: &'a mut dyn Backend,
        problems: &mut Problems,
        job: &'a MeasureJob,
        say: &'a dyn Fn(&Reply),
    ) -> Result<Self, Trouble> {
        let ceiling = backend.device().ceiling(backend.kind().timing());
        let floor = ceiling.map(|ceiling| ceiling.floor(&Work::least(&job.shape)).0);
        let problems: Vec<Rc<Problem>> = job.problems.iter().map(|key| problems.get(key)).collect();
        if problems.is_empty() {
            return Err(Trouble::Harness("there are no data to time on".to_owned()));
        }
        let calls = Calls {
            warmup: job.warmup,
            timed: job.min_blocks,
        };
        let mut audit = Audit::secret(problems.len(), calls);
        let bench = set_up(backend, job, &problems, audit.key()).map_err(Trouble::Harness)?;
        if bench.sets() < problems.len() {
            let (shape, few) = (&job.shape.name, bench.sets());
            say(&Reply::Note {
                text: format!(
                    "{shape}: only {few} of {} data sets fit the device",
                    problems.len()
                ),
            });
            audit = Audit::secret(bench.sets(), calls);
        }
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
                least: floor.unwrap_or(Micros(0.0)),
                rejections: Rejections::new(&job.shape.name, say),
                usable: true,
                job,
                say,
            },
        };
        for wanted in &job.entries {
            say(&Reply::Calling {
                contender: wanted.contender.clone(),
            });
            let subject = field.watch.ready(wanted)?;
            field.enter(&subject, wanted.contender == job.baseline)?;
        }
        if let Some(name) = &job.yardstick {
            say(&Reply::Calling {
                contender: name.clone(),
            });
            match field.watch.ready_yardstick(name) {
                Ok(subject) => field.enter(&subject, false)?,
                Err(why) => say(&Reply::Note {
                    text: format!("no {name} on {}: {why}", job.shape.name),
                }),
            }
        }
        Ok(field)
    }

    /// Lets in who is right when called again; the yardstick on the same terms.
    fn enter(&mut self, subject: &Subject, twice: bool) -> Result<(), Trouble> {
        match self.watch.rehearse(subject)? {
            Ok(passed) => self
                .lineup
                .enter(passed, twice)
                .map_err(|e| Trouble::Harness(e.to_string())),
            Err(wrong) => {
                self.watch.rejections.wrong(&subject.contender, wrong);
                Ok(())
            }
        }
    }

    /// Whether this process can do more afterwards.
    fn time(self, job: &MeasureJob) -> Result<bool, Trouble> {
        let Self { lineup, mut watch } = self;
        let say = watch.say;
        let schedule = Schedule {
            process: job.process,
            seed: job.order_seed,
            warmup: job.warmup,
            min_blocks: job.min_blocks,
            max_seconds: job.max_seconds,
        };
        say(&Reply::Running);
        let outcome = match lineup.is_empty() {
            true => Outcome::default(),
            false => run(&mut watch, lineup, &schedule, |block| {
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
        Ok(watch.usable)
    }
}

fn set_up<'a>(
    backend: &'a mut dyn Backend,
    job: &MeasureJob,
    problems: &[Rc<Problem>],
    seal: u64,
) -> Result<Box<dyn Bench + 'a>, String> {
    let sets: Vec<Set<'_>> = problems
        .iter()
        .map(|problem| Set {
            name: &problem.name,
            operands: &problem.operands,
            oracle: &problem.oracle,
        })
        .collect();
    backend.bench(&Course {
        shape: &job.shape,
        sets: &sets,
        seal,
        cold_l2: job.cold_l2,
        process: job.process,
    })
}

/// The backend's stopwatch. Deals the data of each call, and judges calls:
/// every one on the device, some by the host, and by the host whatever the
/// device has doubts about.
struct Watch<'a> {
    bench: Box<dyn Bench + 'a>,
    audit: Audit,
    problems: Vec<Rc<Problem>>,
    /// Calls of an entry before it is timed.
    rehearsals: u32,
    /// Below this nothing can do the work.
    least: Micros,
    rejections: Rejections<'a>,
    /// The device survived all calls.
    usable: bool,
    job: &'a MeasureJob,
    say: &'a dyn Fn(&Reply),
}

impl Watch<'_> {
    /// A contender ready to be called.
    fn ready(&mut self, wanted: &MeasureEntry) -> Result<Subject, Trouble> {
        let contender = &wanted.contender;
        let image = Cache::fetch(&wanted.image)
            .map_err(|e| e.to_string())
            .and_then(|image| image)
            .map_err(|e| Trouble::Harness(format!("cannot read the image of {contender}: {e}")))?;
        let call = Job {
            contender,
            image: &image,
            call: &wanted.call,
        };
        let tolerance = self.tolerance(contender);
        self.bench
            .enter(&call, tolerance)
            .map_err(|failure| Trouble::Contender(contender.clone(), failure))
    }

    /// The yardstick on the data the contenders read.
    fn ready_yardstick(&mut self, name: &ContenderId) -> Result<Subject, String> {
        if self.job.entries.is_empty() {
            return Err("nobody to measure".to_owned());
        }
        let tolerance = self.tolerance(name);
        let kept = self.job.tuning.as_ref();
        let (subject, tuning) = self.bench.enter_yardstick(name, kept, tolerance)?;
        if kept.is_none() {
            (self.say)(&Reply::Tuned { tuning });
        }
        Ok(subject)
    }

    fn tolerance(&self, contender: &ContenderId) -> Tolerance {
        let slack = match self.job.yardstick.as_ref() == Some(contender) {
            true => YARDSTICK_SLACK,
            false => 1.0,
        };
        Tolerance {
            rtol: self.job.tolerance.rtol * slack,
            atol: self.job.tolerance.atol * slack,
        }
    }

    /// Calls an entry a few times before it is timed; the proof that it is
    /// right, if so. Judged as any contender is, on data it has not seen, and
    /// with all it remembers: who is right once and lazy ever after is found.
    fn rehearse(&mut self, subject: &Subject) -> Result<Result<Passed, Wrong>, Trouble> {
        let contender = &subject.contender;
        let trouble = |failure| Trouble::Contender(contender.clone(), failure);
        let mut calls = 0;
        loop {
            let deal = deal(self.audit.rehearse(contender.as_str()));
            calls += 1;
            let suspect = self.bench.rehearse(subject, deal).map_err(trouble)?;
            if !suspect && calls < self.rehearsals {
                continue;
            }
            let proof = |exhibit: Exhibit<'_>, operands: &_, oracle: &_, tolerance| {
                prove(subject.clone(), exhibit, operands, oracle, tolerance)
            };
            let proof = self.look(subject, deal, proof).map_err(trouble)?;
            if proof.is_err() || calls >= self.rehearsals {
                return Ok(proof);
            }
        }
    }

    /// The host's judgement of a timed call; the proof for the next, if it was
    /// right.
    fn judge(&mut self, spent: Spent, deal: Deal) -> Result<Option<Passed>, RunFailure> {
        let subject = spent.subject().clone();
        let proof = |exhibit: Exhibit<'_>, operands: &_, oracle: &_, tolerance| {
            spent.proven(exhibit, operands, oracle, tolerance)
        };
        match self.look(&subject, deal, proof)? {
            Ok(passed) => Ok(Some(passed)),
            Err(wrong) => {
                self.rejections.wrong(&subject.contender, wrong);
                Ok(None)
            }
        }
    }

    /// What each kernel of a call takes, by the call of the middle length.
    fn kernels(&mut self, passed: &Passed) -> Result<Vec<KernelTime>, RunFailure> {
        let mut calls = Vec::new();
        for _ in 0..DISSECTIONS {
            let deal = deal(self.audit.rehearse(passed.subject().contender.as_str()));
            calls.push(self.bench.kernels(passed, deal)?);
        }
        let length = |call: &Vec<KernelTime>| call.iter().map(|k| k.micros.0).sum::<f64>();
        calls.sort_by(|a, b| length(a).total_cmp(&length(b)));
        Ok(calls.swap_remove(DISSECTIONS / 2))
    }

    /// Reads back what the call just made left in memory, for a proof.
    fn look(
        &mut self,
        subject: &Subject,
        deal: Deal,
        proof: impl FnOnce(Exhibit<'_>, &Operands, &Oracle, Tolerance) -> Result<Passed, Wrong>,
    ) -> Result<Result<Passed, Wrong>, RunFailure> {
        let observation = self.bench.observe(subject, deal)?;
        let trespasses = words(&observation);
        let exhibit = Exhibit {
            c: &observation.c,
            trespasses: &trespasses,
        };
        let tolerance = self.tolerance(&subject.contender);
        let (operands, oracle) = self.problems[deal.set].posed(deal.salt);
        Ok(proof(exhibit, &operands, &oracle, tolerance))
    }
}

fn deal(dealt: Dealt) -> Deal {
    Deal {
        set: dealt.set,
        salt: Salt(dealt.salt),
    }
}

impl Stopwatch for Watch<'_> {
    fn sample(&mut self, passed: Passed) -> Result<Reading, RunFailure> {
        let contender = passed.subject().contender.clone();
        if self.job.watched {
            (self.say)(&Reply::Calling {
                contender: contender.clone(),
            });
        }
        let dealt = self.audit.deal(contender.as_str());
        let deal = deal(dealt);
        let Timed {
            micros,
            clock_mhz,
            spent,
        } = self.bench.time(passed, deal)?;
        let proof = match dealt.judged {
            true => self.judge(spent, deal)?,
            false => match spent.renewed() {
                Ok(passed) => Some(passed),
                Err(suspect) => self.judge(suspect, deal)?,
            },
        };
        let possible = micros.0 >= self.least.0;
        if !possible {
            self.rejections
                .impossible(&contender, micros.0, self.least.0);
        }
        Ok(Reading {
            micros,
            clock_mhz,
            proof: proof.filter(|_| possible),
        })
    }

    fn dissect(&mut self, passed: Passed) {
        if !self.job.kernels || !self.usable {
            return;
        }
        let contender = passed.subject().contender.clone();
        match self.kernels(&passed) {
            Ok(kernels) if kernels.is_empty() => {}
            Ok(kernels) => (self.say)(&Reply::Kernels { contender, kernels }),
            Err(failure) => {
                self.usable = !failure.fatal;
                let shape = &self.job.shape.name;
                let text = format!(
                    "what each kernel of {contender} takes on {shape} is not known: {failure}"
                );
                (self.say)(&Reply::Note { text });
            }
        }
    }
}

#[cfg(test)]
mod tests;
