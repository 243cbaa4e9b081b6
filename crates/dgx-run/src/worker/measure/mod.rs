//! Times contenders side by side in randomised blocks. Only those with a [`Passed`] are admitted,
//! and reading the clock consumes it: timing a wrong kernel does not type-check, nor does timing it
//! further once it was found wrong.

mod blocks;
mod contenders;
mod schedule;

use std::cell::RefCell;
use std::rc::Rc;

use super::problems::{Problem, Problems};
use super::protocol::{CellCode, MeasureJob, Reply};
use super::rejections::Rejections;
use super::trace::trace;
use crate::backend::{Backend, Bench, BenchSetup, CallData, OperandSet, RunFailure, Timed};
use crate::operator::{Oracle, is_gated};
use crate::validate::{
    CallEffects, JudgedImage, Passed, PosedOperands, Tolerance, UsedProof, Wrong, prove,
};
use blocks::{Outcome, Reading, Stopwatch, run};
use contenders::TimedContenders;
use dgx_core::config::Yardstick;
use dgx_core::domain::{ContenderId, KernelTime, Micros};
use schedule::CallSchedule;

/// cuBLAS rounds both of two products to fp16, like its users; its output may be wrong by this many
/// tolerances, so that only a really wrong one is rejected.
const YARDSTICK_SLACK: f64 = 4.0;

/// Calls before a contender is timed, in the first process and in the others.
const FIRST_REHEARSALS: u32 = 16;
const REHEARSALS: u32 = 2;
/// Calls whose kernels are timed, of which the median one is reported.
const DISSECTIONS: usize = 5;

/// Times one shape's contenders, each call on other data, and judges the outputs. False if this
/// process is no longer usable.
pub(super) fn measure(
    backend: &mut dyn Backend,
    problems: &mut Problems,
    job: &MeasureJob,
    send: &mut dyn FnMut(&Reply),
) -> bool {
    let send = RefCell::new(send);
    let say = |reply: &Reply| (send.borrow_mut())(reply);
    let timed = Measuring::new(backend, problems, job, &say).and_then(Measuring::time);
    match timed {
        Ok(usable) => usable,
        Err(MeasureFailure::Contender(contender, failure)) if !failure.harness => {
            let usable = !failure.fatal;
            say(&Reply::Fault { contender, failure });
            usable
        }
        Err(
            MeasureFailure::Contender(_, RunFailure { message, .. })
            | MeasureFailure::Harness(message),
        ) => {
            say(&Reply::Failed { message });
            false
        }
    }
}

enum MeasureFailure {
    Contender(ContenderId, RunFailure),
    Harness(String),
}

/// The contenders of one shape and the backend's timer. Draws the data of each call, and judges
/// calls: every one on the device, some by the host, and by the host all that the device doubts.
struct Measuring<'a> {
    bench: Box<dyn Bench + 'a>,
    audit: CallSchedule,
    problems: Vec<Rc<Problem>>,
    /// No device can do the work in less time.
    least: Micros,
    rejections: Rejections<'a>,
    /// The device survived all calls.
    usable: bool,
    job: &'a MeasureJob,
    say: &'a dyn Fn(&Reply),
}

impl<'a> Measuring<'a> {
    fn new(
        backend: &'a mut dyn Backend,
        problems: &mut Problems,
        job: &'a MeasureJob,
        say: &'a dyn Fn(&Reply),
    ) -> Result<Self, MeasureFailure> {
        let ceiling = backend.device().ceiling(backend.kind().timing());
        for text in problems.solve(&job.problems, backend) {
            say(&Reply::Note { text });
        }
        let problems: Vec<Rc<Problem>> = job.problems.iter().map(|key| problems.get(key)).collect();
        if problems.is_empty() {
            return Err(MeasureFailure::Harness(
                "there are no data to time on".to_owned(),
            ));
        }
        let operator = &problems[0].operands.operator;
        let mut work = operator.least_work(&job.shape);
        // Outputs may still be in L2 when the call ends.
        let written = operator.bytes_written(&job.shape.groups);
        work.memory_bytes -= written.min(backend.device().limits.l2.0) as f64;
        let floor = ceiling.map(|ceiling| ceiling.floor(&work).0);
        let mut audit = CallSchedule::secret(problems.len(), job);
        let bench =
            set_up(backend, job, &problems, audit.key()).map_err(MeasureFailure::Harness)?;
        if bench.sets() < problems.len() {
            let (shape, few) = (&job.shape.name, bench.sets());
            say(&Reply::Note {
                text: format!(
                    "{shape}: only {few} of {} data sets fit the device",
                    problems.len()
                ),
            });
            audit = CallSchedule::secret(bench.sets(), job);
        }
        Ok(Self {
            bench,
            audit,
            problems,
            least: floor.unwrap_or(Micros(0.0)),
            rejections: Rejections::new(&job.shape.name, say),
            usable: true,
            job,
            say,
        })
    }

    /// Whether this process is still usable afterwards.
    fn time(mut self) -> Result<bool, MeasureFailure> {
        let (job, say) = (self.job, self.say);
        let timed = self.prepare_contenders()?;
        say(&Reply::Running);
        let outcome = match timed.is_empty() {
            true => Outcome::default(),
            false => run(&mut self, timed, job, |block| {
                say(&Reply::Block {
                    block: block.clone(),
                });
            })
            .map_err(|(contender, failure)| MeasureFailure::Contender(contender, failure))?,
        };
        trace(|| format!("{} blocks, {}", outcome.blocks, outcome.decision));
        let Outcome {
            decision, retaken, ..
        } = outcome;
        say(&Reply::Measured { decision, retaken });
        Ok(self.usable)
    }

    fn prepare_contenders(&mut self) -> Result<TimedContenders, MeasureFailure> {
        let job = self.job;
        let mut timed = TimedContenders::new(&job.shape.name);
        for code in &job.cells {
            self.calling(&code.contender);
            let subject = self.ready(code)?;
            self.enter(&mut timed, &subject, code.contender == job.baseline)?;
        }
        if let Some(name) = &job.yardstick {
            self.calling(name);
            match self.ready_yardstick(name) {
                Ok(subject) => self.enter(&mut timed, &subject, false)?,
                Err(why) => (self.say)(&Reply::Note {
                    text: format!("no {name} on {}: {why}", job.shape.name),
                }),
            }
        }
        Ok(timed)
    }

    fn calling(&self, contender: &ContenderId) {
        (self.say)(&Reply::Calling {
            contender: contender.clone(),
        });
    }

    /// Admits a contender that is right when called again; the yardstick likewise.
    fn enter(
        &mut self,
        timed: &mut TimedContenders,
        subject: &JudgedImage,
        twice: bool,
    ) -> Result<(), MeasureFailure> {
        match self.rehearse(subject)? {
            Ok(passed) => timed
                .enter(passed, twice)
                .map_err(|e| MeasureFailure::Harness(e.to_string())),
            Err(wrong) => {
                self.rejections.wrong(&subject.contender, wrong);
                Ok(())
            }
        }
    }

    /// Prepares a contender for calls.
    fn ready(&mut self, code: &CellCode) -> Result<JudgedImage, MeasureFailure> {
        let image = code.fetch().map_err(MeasureFailure::Harness)?;
        let tolerance = self.tolerance(&code.contender);
        self.bench
            .enter(&code.job(&image), tolerance)
            .map_err(|failure| MeasureFailure::Contender(code.contender.clone(), failure))
    }

    /// Prepares the yardstick, on the contenders' data.
    fn ready_yardstick(&mut self, name: &ContenderId) -> Result<JudgedImage, String> {
        if self.job.cells.is_empty() {
            return Err("no contender to measure".to_owned());
        }
        let tolerance = self.tolerance(name);
        let kept = self.job.tuning.as_ref();
        let (subject, tuning) = self.bench.enter_yardstick(name, kept, tolerance)?;
        if let (None, Some(tuning)) = (kept, tuning) {
            (self.say)(&Reply::Tuned { tuning });
        }
        Ok(subject)
    }

    fn tolerance(&self, contender: &ContenderId) -> Tolerance {
        let Tolerance { rtol, atol } = Tolerance::from(&self.job.settings);
        let is_yardstick = self.job.yardstick.as_ref() == Some(contender);
        let factor = match is_yardstick && is_gated(&self.problems[0].operands.operator) {
            true => YARDSTICK_SLACK,
            false => 1.0,
        };
        Tolerance {
            rtol: rtol * factor,
            atol: atol * factor,
        }
    }

    /// Calls a contender a few times before it is timed; returns the proof if it is right. It is
    /// judged on new data, with its variables kept: a kernel that is right once and reuses the
    /// result is found.
    fn rehearse(&mut self, subject: &JudgedImage) -> Result<Result<Passed, Wrong>, MeasureFailure> {
        let contender = &subject.contender;
        let trouble = |failure| MeasureFailure::Contender(contender.clone(), failure);
        let rehearsals = match self.job.process {
            0 => FIRST_REHEARSALS,
            _ => REHEARSALS,
        };
        let mut calls = 0;
        loop {
            let data = self.audit.rehearse(contender.as_str());
            calls += 1;
            let suspect = self.bench.rehearse(subject, data).map_err(trouble)?;
            if !suspect && calls < rehearsals {
                continue;
            }
            let proof = self.look(subject, data).map_err(trouble)?;
            if proof.is_err() || calls >= rehearsals {
                return Ok(proof);
            }
        }
    }

    /// The host's judgement of a timed call; the proof for the next, if it was right.
    fn judge(&mut self, spent: UsedProof, data: CallData) -> Result<Option<Passed>, RunFailure> {
        let subject = spent.subject();
        match self.look(subject, data)? {
            Ok(passed) => Ok(Some(passed)),
            Err(wrong) => {
                self.rejections.wrong(&subject.contender, wrong);
                Ok(None)
            }
        }
    }

    /// The time of each kernel of a call, from the call of median length.
    fn kernels(&mut self, passed: &Passed) -> Result<Vec<KernelTime>, RunFailure> {
        let mut calls = Vec::new();
        for _ in 0..DISSECTIONS {
            let data = self.audit.rehearse(passed.subject().contender.as_str());
            calls.push(self.bench.kernels(passed, data)?);
        }
        let length = |call: &Vec<KernelTime>| call.iter().map(|k| k.micros.0).sum::<f64>();
        calls.sort_by(|a, b| length(a).total_cmp(&length(b)));
        Ok(calls.swap_remove(DISSECTIONS / 2))
    }

    /// Reads back memory after the last call, for a proof.
    fn look(
        &mut self,
        subject: &JudgedImage,
        data: CallData,
    ) -> Result<Result<Passed, Wrong>, RunFailure> {
        let observation = self.bench.observe(subject, data)?;
        let tolerance = self.tolerance(&subject.contender);
        let judge = |exhibit: CallEffects<'_>, operands: &dyn PosedOperands, oracle: &Oracle| {
            prove(subject.clone(), exhibit, operands, oracle, tolerance)
        };
        let exhibit = observation.exhibit();
        Ok(self.problems[data.set].judged(exhibit, data.call_seed, tolerance, judge))
    }
}

fn set_up<'a>(
    backend: &'a mut dyn Backend,
    job: &MeasureJob,
    problems: &[Rc<Problem>],
    seal: u64,
) -> Result<Box<dyn Bench + 'a>, String> {
    let sets: Vec<OperandSet<'_>> = problems
        .iter()
        .map(|problem| OperandSet {
            name: &problem.name,
            operands: &problem.operands,
            oracle: &problem.oracle,
        })
        .collect();
    backend.bench(&BenchSetup {
        shape: &job.shape,
        sets: &sets,
        seal,
        cold_l2: job.settings.cold_l2,
        process: job.process,
    })
}

impl Stopwatch for Measuring<'_> {
    fn sample(&mut self, passed: Passed) -> Result<Reading, RunFailure> {
        let contender = passed.subject().contender.clone();
        if self.job.watched {
            self.calling(&contender);
        }
        let (data, judged) = self.audit.time(contender.as_str());
        let Timed {
            micros,
            clock_mhz,
            spent,
        } = self.bench.time(passed, data)?;
        let proof = match judged {
            true => self.judge(spent, data)?,
            false => match spent.renewed() {
                Ok(passed) => Some(passed),
                Err(suspect) => self.judge(suspect, data)?,
            },
        };
        // A copy computes no products, which may determine the minimum time.
        let is_copy = contender == Yardstick::Copy.id();
        let possible = is_copy || micros.0 >= self.least.0;
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
