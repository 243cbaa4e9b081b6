use std::time::{Duration, Instant};

use rand::seq::IndexedRandom;

use super::cell::{cell_job, launchable, planned};
use super::runner::Runner;
use super::{CardSession, could_not_run};
use crate::backend::{Modelled, RunFailure};
use crate::operator::{ProblemKey, drawing};
use crate::plan::{Plan, PlannedCell, cost};
use crate::worker::{CellJob, Judged, NoReply, Reply, Request, Worker, trace};
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{ContenderId, Status, Timing, Verdict};
use dgx_core::interrupt;
use dgx_core::record::schema::{Estimate, Line, Settings};

/// Time limit for drawing operands and comparing outputs; a kernel's own limit is the round's.
const PREPARATION: Duration = Duration::from_secs(600);
/// The emulator itself ends a call at its time limit and reports where it was; only an emulator
/// that exceeds this is ended with its process.
const EMULATION_GRACE: Duration = Duration::from_secs(60);

/// Judges every cell of this card that has no verdict yet, shape by shape, so
/// that a shape's operands are drawn and uploaded once.
pub(super) fn all(session: &mut CardSession<'_>) -> Result<(), CommandError> {
    let (plan, bar) = (session.sweep.plan, &session.sweep.bars.validate);
    for &shape in session.shapes {
        for cell in plan.cells.iter().filter(|c| c.shape == shape) {
            if session.stopped() {
                return Ok(());
            }
            let contender = &plan.contenders[cell.contender].id;
            let name = &plan.shapes[shape].name;
            bar.at(format!("{contender} on {name}"));
            if session.begun.verdict(contender, name).is_some() {
                bar.pass_by(weight(plan, cell));
                continue;
            }
            let Some((verdict, modelled)) = judge(session, cell)? else {
                return Ok(());
            };
            record(session, &verdict, modelled)?;
            bar.step(weight(plan, cell));
        }
        bar.past(&plan.shapes[shape].name);
    }
    Ok(())
}

/// Approximate time of a cell, relative to others.
pub(super) fn weight(plan: &Plan, cell: &PlannedCell) -> f64 {
    let shape = &plan.shapes[cell.shape];
    let cost = |_| cost(&plan.round.operator, shape, Timing::Modelled);
    cell.run().map_or(0.0, cost)
}

/// The shape on which a contender gets all its calls, however long they take: random, and more
/// likely the less work it is.
fn thorough(plan: &Plan, settings: &Settings, contender: usize) -> Option<usize> {
    let name = plan.contenders[contender].id.as_str();
    let mut rng = drawing(settings.data_seed(), name);
    let run = |cell: &&PlannedCell| cell.contender == contender && weight(plan, cell) > 0.0;
    let cells: Vec<&PlannedCell> = plan.cells.iter().filter(run).collect();
    let chosen = cells.choose_weighted(&mut rng, |cell| 1.0 / weight(plan, cell));
    chosen.ok().map(|cell| cell.shape)
}

fn record(
    session: &CardSession<'_>,
    verdict: &Verdict,
    modelled: Option<Modelled>,
) -> Result<(), CommandError> {
    // A sweep that was killed between the two lines has left the first.
    let (contender, shape) = (&verdict.contender, &verdict.shape);
    let known = session.begun.estimate(contender, shape).is_some();
    let due = verdict.status.may_be_timed() && !known;
    if let Some(modelled) = modelled.filter(|_| due) {
        session.append(&Line::Estimate(Estimate {
            contender: verdict.contender.clone(),
            shape: verdict.shape.clone(),
            micros: modelled.micros,
            bound: Some(modelled.bound),
            kernels: modelled.kernels,
        }))?;
    }
    // Last: a cell with a verdict is finished, and a resumed sweep skips it.
    session.append(&Line::Verdict(verdict.clone()))
}

/// One cell's verdict; `None` if the user asked to stop.
fn judge(
    session: &mut CardSession<'_>,
    cell: &PlannedCell,
) -> Result<Option<(Verdict, Option<Modelled>)>, CommandError> {
    let (plan, settings) = (session.sweep.plan, session.sweep.settings);
    let contender = &plan.contenders[cell.contender];
    let shape = &plan.shapes[cell.shape];
    let decided = |no: RunFailure| Ok(Some((no.verdict(&contender.id, &shape.name), None)));
    let (build, call) = match planned(&cell.outcome) {
        Ok(planned) => planned,
        Err(no) => return decided(no),
    };
    let Some(compiled) = session.image(build)? else {
        return Ok(None);
    };
    let image = match launchable(&compiled, |built| &built.kernels, plan, call) {
        Ok(built) => built.folder.clone(),
        Err(no) => return decided(no),
    };
    for &distribution in &settings.distributions {
        let seed = settings.data_seed();
        let key = ProblemKey::new(&plan.round.operator, shape, distribution, seed);
        session.oracles.wait("validate", &key)?;
    }
    let job = CellJob {
        thorough: thorough(plan, settings, cell.contender) == Some(cell.shape),
        ..cell_job(plan, settings, cell, call, image)
    };
    judge_job(session.runner, &job)
}

/// Makes a worker judge one cell; no verdict if the user asked to stop.
pub(super) fn judge_job(
    runner: &mut Runner,
    job: &CellJob,
) -> Result<Option<(Verdict, Option<Modelled>)>, CommandError> {
    let patience = match runner.measures() {
        true => job.time_limit,
        false => job.time_limit + EMULATION_GRACE,
    };
    let began = Instant::now();
    let answer = ask_twice(runner, job, patience);
    let millis = began.elapsed().as_secs_f64() * 1e3;
    match answer {
        Ok(Judged {
            mut verdict,
            modelled,
            fatal,
        }) => {
            verdict.millis = millis;
            if fatal {
                runner.replace();
            }
            Ok(Some((verdict, modelled)))
        }
        Err(NoVerdict::Command(error)) => Err(error),
        Err(NoVerdict::Lost(NoReply::Garbled(message), _)) => {
            runner.replace();
            Err(could_not_run(&message))
        }
        Err(NoVerdict::Lost(NoReply::Stopped, _)) => {
            runner.replace();
            Ok(None)
        }
        Err(NoVerdict::Lost(lost, printed)) => {
            runner.replace();
            let mut verdict = lost_verdict(&job.code.contender, &job.shape.name, lost, patience);
            verdict.millis = millis;
            verdict.printed = printed;
            Ok(Some((verdict, None)))
        }
    }
}

enum NoVerdict {
    /// With the output until then.
    Lost(NoReply, Option<String>),
    Command(CommandError),
}

/// Requests one cell. A worker that died may have been killed from outside (by a user, a watchdog,
/// or a host short of memory), so a fresh one gets a second attempt before the contender is blamed.
fn ask_twice(runner: &mut Runner, job: &CellJob, patience: Duration) -> Result<Judged, NoVerdict> {
    let ask_once = |runner: &mut Runner| {
        let worker = runner.worker().map_err(NoVerdict::Command)?;
        ask(worker, job, patience)
    };
    match ask_once(runner) {
        Err(NoVerdict::Lost(NoReply::Died(how), _)) => {
            trace(|| format!("{} is tried once more: {how}", job.code.contender));
            runner.replace();
            ask_once(runner)
        }
        answered => answered,
    }
}

/// Sends one cell to the worker and waits; the kernel's time limit begins when it is started.
fn ask(worker: &mut Worker, job: &CellJob, patience: Duration) -> Result<Judged, NoVerdict> {
    let request = Request::Validate(Box::new(job.clone()));
    if let Err(lost) = worker.send(request) {
        return Err(NoVerdict::Lost(lost, worker.printed()));
    }
    let mut running = false;
    loop {
        let limit = if running { patience } else { PREPARATION };
        let reply = match worker.receive(limit, &interrupt::requested) {
            Ok(reply) => reply,
            Err(lost) => return Err(unanswered(lost, running, &job.shape.name, worker.printed())),
        };
        let reply_error = match reply {
            Reply::Running => {
                running = true;
                continue;
            }
            Reply::Ran => {
                running = false;
                continue;
            }
            Reply::Note { text } => {
                remark!("warning: {text}");
                continue;
            }
            Reply::Judged(mut judged) => match job.mismatch(&judged.verdict) {
                Some(reply_error) => reply_error,
                None => {
                    judged.verdict.printed = worker.printed();
                    return Ok(judged);
                }
            },
            Reply::Failed { message } => {
                return Err(NoVerdict::Command(could_not_run(&message)));
            }
            other => format!("{other:?}"),
        };
        return Err(NoVerdict::Lost(worker.garbled(&reply_error), None));
    }
}

/// Only a timeout while its own code runs is a contender's fault.
fn unanswered(lost: NoReply, running: bool, shape: &str, printed: Option<String>) -> NoVerdict {
    if lost != NoReply::TimedOut || running {
        return NoVerdict::Lost(lost, printed);
    }
    NoVerdict::Command(could_not_run(&format!(
        "drawing the operands of {shape} or comparing an output took longer than {} s",
        PREPARATION.as_secs()
    )))
}

fn lost_verdict(
    contender: &ContenderId,
    shape: &str,
    lost: NoReply,
    patience: Duration,
) -> Verdict {
    match lost {
        NoReply::Died(how) => {
            let reason = how.lines().next().unwrap_or("the worker died");
            let reason = format!("twice, {reason}");
            verdict(contender, shape, Status::Crashed, &reason, Some(how))
        }
        NoReply::TimedOut | NoReply::Stopped | NoReply::Garbled(_) => {
            let reason = format!("did not return within {} s", patience.as_secs_f64());
            verdict(contender, shape, Status::Hung, &reason, None)
        }
    }
}

/// A verdict without a compared output.
pub(super) fn verdict(
    contender: &ContenderId,
    shape: &str,
    status: Status,
    reason: &str,
    detail: Option<String>,
) -> Verdict {
    Verdict {
        reason: Some(reason.to_owned()),
        detail,
        ..Verdict::new(contender, shape, status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_harness_is_not_the_contenders_fault() {
        let lost = |lost, running| unanswered(lost, running, "s", None);
        let NoVerdict::Command(error) = lost(NoReply::TimedOut, false) else {
            panic!("nobody's kernel ran");
        };
        assert!(error.to_string().contains("longer than 600 s"), "{error}");
        let died = || NoReply::Died("the worker ended".to_owned());
        for unanswered in [
            lost(NoReply::TimedOut, true),
            lost(died(), true),
            lost(NoReply::Stopped, false),
        ] {
            assert!(matches!(unanswered, NoVerdict::Lost(..)));
        }
        let contender = ContenderId::from_text("x");
        let hung = lost_verdict(&contender, "s", NoReply::TimedOut, Duration::from_secs(7));
        assert_eq!(hung.status, Status::Hung);
        assert_eq!(hung.reason.as_deref(), Some("did not return within 7 s"));
    }
}
