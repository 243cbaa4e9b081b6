use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::current_verdicts::CurrentVerdicts;
use super::oracles::timing_keys;
use super::pool::Sweep;
use super::resume::{measured, next_process};
use super::validate::verdict;
use super::{CardSession, could_not_run, reread};
use crate::backend::RunFailure;
use crate::worker::{CellCode, MeasureJob, NoReply, Reply, Request, trace};
use dgx_core::config::Yardstick;
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{ContenderId, Shape, Status, Tuning, Verdict};
use dgx_core::interrupt;
use dgx_core::record::schema::{CallKernels, Line};

/// Beyond its time limit, a measuring worker needs this long for operands, tuning of the yardstick
/// and the check of timed outputs.
const ALLOWANCE: Duration = Duration::from_secs(300);

/// Times the contenders that passed, every shape of this card in every process; does nothing if the
/// backend has no clock.
pub(super) fn all(session: &mut CardSession<'_>) -> Result<(), CommandError> {
    if !session.runner.measures() {
        return Ok(());
    }
    // Nothing else may use the card while it times.
    session.oracles.wait_for_all("measure")?;
    let (before, bars) = (session.begun, session.sweep.bars);
    let processes = session.sweep.settings.processes;
    let begun = reread(&session.sweep.path())?;
    let tuned = |shape: &Shape| Some((shape.name.clone(), begun.tuning(&shape.name)?.clone()));
    let dissected = |shape: &Shape| {
        let known = |id: &ContenderId| !begun.kernels(id, &shape.name).is_empty();
        begun.entrants().any(known).then(|| shape.name.clone())
    };
    let mut timing = TimingStage {
        verdicts: CurrentVerdicts::of(&begun),
        tunings: begun.header.shapes.iter().filter_map(tuned).collect(),
        dissected: begun.header.shapes.iter().filter_map(dissected).collect(),
        session: &mut *session,
        blocks: 0,
    };
    for round in 0..processes {
        timing.session.runner.replace();
        for &shape in timing.session.shapes {
            let name = &timing.session.sweep.plan.shapes[shape].name;
            let done = measured(before, name);
            if round < processes - processes.min(done) && !timing.session.stopped() {
                bars.measure.at(format!("{name}, process {}", round + 1));
                timing.shape(shape, next_process(before, name) + round)?;
                bars.measure.step(1.0);
                bars.measure
                    .past(&format!("{name}, process {} of {processes}", round + 1));
            } else {
                bars.measure.pass_by(1.0);
            }
        }
    }
    Ok(())
}

struct TimingStage<'a, 'b> {
    session: &'a mut CardSession<'b>,
    verdicts: CurrentVerdicts,
    /// The yardstick's algorithms for each shape it was timed on.
    tunings: BTreeMap<String, Tuning>,
    /// Shapes whose kernels were timed: once is enough.
    dissected: BTreeSet<String>,
    blocks: u32,
}

impl TimingStage<'_, '_> {
    /// Times one shape in one process; contenders that fail while timed get a verdict, and the
    /// others are timed without them.
    fn shape(&mut self, shape: usize, process: u32) -> Result<(), CommandError> {
        let mut process = process;
        let mut lost_before = false;
        loop {
            let before = self.blocks;
            let job = self.job(shape, process, lost_before)?;
            if job.cells.is_empty() || self.session.stopped() {
                return Ok(());
            }
            match self.attempt(&job)? {
                TimingAttempt::Done => return Ok(()),
                TimingAttempt::Without(verdict) => self.reject(verdict)?,
                // It may have been killed from outside: a first loss is not blamed on any
                // contender.
                TimingAttempt::Lost(loss) if !lost_before => {
                    let how = loss.how(&job.shape.name);
                    let warning = format!("{how}; it is timed once more");
                    self.session.sweep.progress.warn(&warning);
                    lost_before = true;
                }
                TimingAttempt::Lost(loss) => {
                    self.reject(loss.verdict(&job.shape.name)?)?;
                    lost_before = false;
                }
            }
            // Another process takes over: its blocks must not be confused with those of the lost
            // one.
            if self.blocks > before {
                process += self.session.sweep.settings.processes;
            }
        }
    }

    fn job(&self, shape: usize, process: u32, watched: bool) -> Result<MeasureJob, CommandError> {
        let Sweep { plan, settings, .. } = *self.session.sweep;
        let name = &plan.shapes[shape].name;
        let runner = &self.session.runner;
        let yardstick = plan.round.yardstick.filter(|yardstick| {
            runner.has_yardstick(*yardstick).is_ok()
                && !self.verdicts.rejected(&yardstick.id(), name)
        });
        Ok(MeasureJob {
            shape: plan.shapes[shape].clone(),
            settings: settings.clone(),
            problems: timing_keys(&plan.shapes[shape], plan, settings),
            cells: self.cells(shape)?,
            baseline: plan.baseline.clone(),
            yardstick: yardstick.map(Yardstick::id),
            tuning: self.tunings.get(name).cloned(),
            process,
            warmup: plan.round.measurement.warmup,
            watched,
            kernels: !watched && !self.dissected.contains(name),
        })
    }

    fn cells(&self, shape: usize) -> Result<Vec<CellCode>, CommandError> {
        let plan = self.session.sweep.plan;
        let name = &plan.shapes[shape].name;
        let mut cells = Vec::new();
        for cell in plan.cells.iter().filter(|c| c.shape == shape) {
            let contender = &plan.contenders[cell.contender].id;
            let Some((build, call)) = cell.run() else {
                continue;
            };
            if !self.verdicts.passed(contender, name) {
                continue;
            }
            if let Some(Ok(image)) = self.session.image(build)? {
                cells.push(CellCode {
                    contender: contender.clone(),
                    image: image.folder,
                    call: call.clone(),
                });
            }
        }
        Ok(cells)
    }

    fn attempt(&mut self, job: &MeasureJob) -> Result<TimingAttempt, CommandError> {
        let shape = &job.shape.name;
        let patience = ALLOWANCE + Duration::from_secs_f64(job.settings.seconds());
        let worker = self.session.runner.worker()?;
        let mut sent = worker.send(Request::Measure(Box::new(job.clone())));
        let mut blocks = 0;
        // The contender whose code the worker runs.
        let mut at = None;
        loop {
            let worker = self.session.runner.worker()?;
            let heard = sent.and_then(|()| worker.receive(patience, &interrupt::requested));
            sent = Ok(());
            let heard = heard.and_then(|reply| match reply_error(job, &reply, blocks) {
                Some(reply_error) => Err(worker.garbled(&reply_error)),
                None => Ok(reply),
            });
            let reply = match heard {
                Ok(reply) => reply,
                Err(lost) => {
                    let printed = worker.printed();
                    self.session.runner.replace();
                    return lost_at(at, lost, patience, printed);
                }
            };
            match reply {
                Reply::Calling { contender } => at = Some(contender),
                Reply::Running => at = None,
                Reply::Tuned { tuning } => {
                    self.session.append(&Line::Tuning(tuning.clone()))?;
                    self.tunings.insert(tuning.shape.clone(), tuning);
                }
                Reply::Block { mut block } => {
                    blocks += 1;
                    self.blocks += 1;
                    block.card = self.session.runner.card().map(str::to_owned);
                    self.session.append(&Line::Block(block))?;
                    let bars = self.session.sweep.bars;
                    bars.measure.at(format!("{shape}, block {blocks}"));
                    bars.blocks.fetch_add(1, Ordering::Relaxed);
                }
                Reply::Kernels { contender, kernels } => {
                    self.dissected.insert(shape.clone());
                    self.session.append(&Line::Kernels(CallKernels {
                        contender,
                        shape: shape.clone(),
                        kernels,
                    }))?;
                }
                Reply::Rejected { verdict } => self.reject(verdict)?,
                Reply::Measured { decision, retaken } => {
                    trace(|| format!("{shape}: {decision}"));
                    let bars = self.session.sweep.bars;
                    bars.retaken.fetch_add(retaken, Ordering::Relaxed);
                    return Ok(TimingAttempt::Done);
                }
                Reply::Fault { contender, failure } => {
                    let printed = worker.printed();
                    if failure.fatal {
                        self.session.runner.replace();
                    }
                    let found = fault_verdict(&contender, shape, failure);
                    return Ok(TimingAttempt::Without(Verdict { printed, ..found }));
                }
                Reply::Note { text } => self.session.sweep.progress.warn(&text),
                Reply::Failed { message } => return Err(could_not_run(&message)),
                _ => {}
            }
        }
    }

    /// The later verdict replaces the earlier `ok`, here and in the run file.
    fn reject(&mut self, verdict: Verdict) -> Result<(), CommandError> {
        match self.verdicts.reject(&verdict) {
            true => self.session.append(&Line::Verdict(verdict)),
            false => Ok(()),
        }
    }
}

/// The verdict on a contender that failed while it was timed.
fn fault_verdict(contender: &ContenderId, shape: &str, failure: RunFailure) -> Verdict {
    let reason = match failure.status {
        Status::Unsupported => failure.message,
        _ => format!("while it was timed: {}", failure.message),
    };
    verdict(contender, shape, failure.status, &reason, failure.detail)
}

/// Handles a shape whose worker did not answer.
fn lost_at(
    at: Option<ContenderId>,
    lost: NoReply,
    patience: Duration,
    printed: Option<String>,
) -> Result<TimingAttempt, CommandError> {
    let (status, how) = match lost {
        NoReply::Died(how) => (Status::Crashed, how),
        NoReply::TimedOut => {
            let how = format!("the worker said nothing for {} s", patience.as_secs());
            (Status::Hung, how)
        }
        NoReply::Garbled(message) => return Err(could_not_run(&message)),
        NoReply::Stopped => return Ok(TimingAttempt::Done),
    };
    Ok(TimingAttempt::Lost(LostWorker {
        status,
        how,
        at,
        printed,
    }))
}

#[derive(Debug, PartialEq)]
enum TimingAttempt {
    Done,
    /// One contender failed; the rest must be timed again without it.
    Without(Verdict),
    Lost(LostWorker),
}

/// A worker that did not answer.
#[derive(Debug, PartialEq)]
struct LostWorker {
    status: Status,
    how: String,
    /// The contender whose code it ran, if that is known.
    at: Option<ContenderId>,
    printed: Option<String>,
}

impl LostWorker {
    fn how(&self, shape: &str) -> String {
        format!("while timing {shape}, {}", self.how)
    }

    /// The verdict that a second loss means for the contender it happened at. If no contender's
    /// code ran, the harness cannot work.
    fn verdict(self, shape: &str) -> Result<Verdict, CommandError> {
        let how = self.how(shape);
        let contender = self.at.ok_or_else(|| could_not_run(&how))?;
        let first = self.how.lines().next().unwrap_or("the worker was lost");
        let reason = format!("lost twice while it was timed: {first}");
        Ok(Verdict {
            printed: self.printed,
            ..verdict(&contender, shape, self.status, &reason, Some(self.how))
        })
    }
}

/// Why a reply cannot belong to the request, if so.
fn reply_error(job: &MeasureJob, reply: &Reply, blocks: u32) -> Option<String> {
    match reply {
        Reply::Block { block } => job.doubt_block(block, blocks),
        Reply::Rejected { verdict } => job.doubt_verdict(verdict),
        Reply::Tuned { tuning } => job.doubt_tuning(tuning),
        Reply::Calling { contender }
        | Reply::Kernels { contender, .. }
        | Reply::Fault { contender, .. } => job.doubt_contender(contender),
        Reply::Running | Reply::Note { .. } | Reply::Measured { .. } | Reply::Failed { .. } => None,
        other => Some(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(at: Option<&str>) -> LostWorker {
        LostWorker {
            status: Status::Crashed,
            how: "the worker was ended by signal 11, saying: oh\nno".to_owned(),
            at: at.map(ContenderId::from_text),
            printed: Some("hello".to_owned()),
        }
    }

    #[test]
    fn who_loses_the_worker_twice_gets_a_row_and_the_sweep_goes_on() {
        let verdict = loss(Some("x")).verdict("s").unwrap();
        assert_eq!(
            (verdict.contender.as_str(), verdict.status),
            ("x", Status::Crashed)
        );
        let reason = "lost twice while it was timed: the worker was ended by signal 11, saying: oh";
        assert_eq!(verdict.reason.as_deref(), Some(reason));
        assert_eq!(verdict.printed.as_deref(), Some("hello"));
    }

    #[test]
    fn a_worker_lost_at_nobodys_code_is_nobodys_fault() {
        let error = loss(None).verdict("s").unwrap_err();
        assert_eq!(error.exit(), dgx_core::domain::Exit::CouldNotRun);
        assert!(error.to_string().contains("while timing s"), "{error}");
    }

    #[test]
    fn a_lost_worker_is_its_contenders_unless_it_cannot_be_believed() {
        let x = || Some(ContenderId::from_text("x"));
        let lose = |lost| lost_at(x(), lost, Duration::from_secs(305), None);
        let Ok(TimingAttempt::Lost(hung)) = lose(NoReply::TimedOut) else {
            panic!("a worker that says nothing is lost");
        };
        assert_eq!((hung.status, &hung.at), (Status::Hung, &x()));
        assert_eq!(hung.how, "the worker said nothing for 305 s");
        let Ok(TimingAttempt::Lost(died)) = lose(NoReply::Died("the worker ended".to_owned()))
        else {
            panic!("a worker that died is lost");
        };
        assert_eq!(died.status, Status::Crashed);
        assert_eq!(lose(NoReply::Stopped).unwrap(), TimingAttempt::Done);
        let garbled = lose(NoReply::Garbled("a reply to nobody".to_owned())).unwrap_err();
        assert_eq!(garbled.exit(), dgx_core::domain::Exit::CouldNotRun);
    }

    #[test]
    fn a_reply_that_belongs_to_nothing_that_was_asked_is_a_misfit() {
        let job = MeasureJob::sample();
        let verdict = |id: &ContenderId, shape: &str| Reply::Rejected {
            verdict: Verdict::new(id, shape, Status::Wrong),
        };
        let calling = |id: ContenderId| Reply::Calling { contender: id };
        let stranger = ContenderId::from_text("stranger");
        for fits in [
            Reply::Running,
            calling(Yardstick::Cublas.id()),
            verdict(&Yardstick::Cublas.id(), "s"),
        ] {
            assert_eq!(reply_error(&job, &fits, 0), None);
        }
        for invalid in [
            Reply::Ran,
            Reply::Answered,
            calling(stranger.clone()),
            verdict(&stranger, "s"),
            verdict(&Yardstick::Cublas.id(), "t"),
        ] {
            assert!(reply_error(&job, &invalid, 0).is_some(), "{invalid:?}");
        }
    }
}
