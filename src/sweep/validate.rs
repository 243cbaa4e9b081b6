use std::time::{Duration, Instant};

use super::backend::Stage;
use super::build::Images;
use super::interrupt;
use super::oracles::{Oracles, validation_key};
use super::progress::Progress;
use super::resume::Finished;
use super::{could_not_run, write_error};
use crate::backend::Modelled;
use crate::diagnostic::CommandError;
use crate::domain::{ContenderId, Status};
use crate::plan::{Cell, OperatorCall, Plan, Work};
use crate::record::Writer;
use crate::record::schema::{Estimate, Line, Settings, Verdict};
use crate::worker::{Lost, Reply, Request, Tolerance, ValidateJob, Worker};

/// Drawing operands and comparing outputs may take this long; a kernel's own
/// limit is the round's.
const PREPARATION: Duration = Duration::from_secs(600);
/// The emulator counts steps and ends endless loops itself; this only catches
/// an emulator that is stuck.
const EMULATION: Duration = Duration::from_secs(1800);

/// Judges every cell that has no verdict yet, shape by shape, so that a
/// shape's operands are drawn and uploaded once.
#[allow(clippy::too_many_arguments)]
pub fn all(
    plan: &Plan,
    images: &Images,
    settings: &Settings,
    stage: &mut Stage,
    oracles: &Oracles,
    finished: &Finished,
    writer: &mut Writer,
    progress: &Progress,
) -> Result<(), CommandError> {
    let bar = progress.stage("validate", plan.cells.len());
    let mut ok = 0;
    for shape in 0..plan.shapes.len() {
        for cell in plan.cells.iter().filter(|c| c.shape == shape) {
            if interrupt::requested() {
                break;
            }
            let contender = &plan.contenders[cell.contender].id;
            let name = &plan.shapes[shape].name;
            bar.at(format!("{contender} on {name}"));
            let known = finished.verdict(contender, name);
            let status = match known {
                Some(verdict) => verdict.status,
                None => {
                    let judged = judge(plan, cell, images, settings, stage, oracles)?;
                    let Some((verdict, modelled)) = judged else {
                        break;
                    };
                    record(writer, &verdict, modelled)?;
                    verdict.status
                }
            };
            ok += usize::from(status == Status::Ok);
            bar.step();
        }
    }
    bar.done(&format!("{ok}/{} ok", plan.cells.len()));
    Ok(())
}

fn record(
    writer: &mut Writer,
    verdict: &Verdict,
    modelled: Option<Modelled>,
) -> Result<(), CommandError> {
    if let Some(modelled) = modelled.filter(|_| verdict.status == Status::Ok) {
        let estimate = Estimate {
            contender: verdict.contender.clone(),
            shape: verdict.shape.clone(),
            micros: modelled.micros,
            bound: Some(modelled.bound),
        };
        writer
            .append(&Line::Estimate(estimate))
            .map_err(|e| write_error(&e))?;
    }
    // Last: a cell with a verdict is finished, and a resumed sweep passes it by.
    writer
        .append(&Line::Verdict(verdict.clone()))
        .map_err(|e| write_error(&e))
}

/// One cell's verdict; none if the user asked to stop.
fn judge(
    plan: &Plan,
    cell: &Cell,
    images: &Images,
    settings: &Settings,
    stage: &mut Stage,
    oracles: &Oracles,
) -> Result<Option<(Verdict, Option<Modelled>)>, CommandError> {
    let contender = &plan.contenders[cell.contender].id;
    let shape = &plan.shapes[cell.shape];
    let decided = |status, reason: &str, detail: Option<String>| {
        let verdict = verdict(contender, &shape.name, status, reason, detail);
        Ok(Some((verdict, None)))
    };
    let (build, call) = match &cell.work {
        Work::Unsupported { reason } => return decided(Status::Unsupported, reason, None),
        Work::Run { build, call } => (*build, call),
    };
    let image = match &images[build] {
        Ok(folder) => folder.clone(),
        Err(message) => {
            let first = first_error(message);
            return decided(Status::CompileError, first, Some(message.clone()));
        }
    };
    for &distribution in &plan.round.validation.distributions {
        oracles.wait("validate", &validation_key(shape, distribution, settings));
    }
    let job = ValidateJob {
        contender: contender.clone(),
        image,
        call: OperatorCall::clone(call),
        shape: shape.clone(),
        distributions: plan.round.validation.distributions.clone(),
        seed: settings.seed,
        tolerance: Tolerance {
            rtol: settings.rtol,
            atol: settings.atol,
        },
    };
    let patience = match stage.measures() {
        true => Duration::from_secs_f64(plan.round.validation.timeout),
        false => EMULATION,
    };
    let began = Instant::now();
    let worker = stage.worker()?;
    let answer = ask(worker, job, patience);
    let millis = began.elapsed().as_secs_f64() * 1e3;
    match answer {
        Ok((mut verdict, modelled, fatal)) => {
            verdict.millis = millis;
            if fatal {
                stage.replace();
            }
            Ok(Some((verdict, modelled)))
        }
        Err(Unanswered::Harness(message)) => Err(could_not_run(&message)),
        Err(Unanswered::Lost(Lost::Stopped)) => {
            stage.replace();
            Ok(None)
        }
        Err(Unanswered::Lost(lost)) => {
            stage.replace();
            let mut verdict = lost_verdict(contender, &shape.name, lost, patience);
            verdict.millis = millis;
            Ok(Some((verdict, None)))
        }
    }
}

enum Unanswered {
    Lost(Lost),
    Harness(String),
}

/// Sends one cell to the worker and waits; the kernel's time limit runs from
/// the moment it is started.
fn ask(
    worker: &mut Worker,
    job: ValidateJob,
    patience: Duration,
) -> Result<(Verdict, Option<Modelled>, bool), Unanswered> {
    worker
        .send(&Request::Validate(Box::new(job)))
        .map_err(Unanswered::Lost)?;
    let mut limit = PREPARATION;
    loop {
        let reply = worker
            .receive(limit, &interrupt::requested)
            .map_err(Unanswered::Lost)?;
        match reply {
            Reply::Running => limit = patience,
            Reply::Ran => limit = PREPARATION,
            Reply::Judged {
                verdict,
                modelled,
                fatal,
            } => return Ok((verdict, modelled, fatal)),
            Reply::Failed { message } => return Err(Unanswered::Harness(message)),
            _ => {}
        }
    }
}

fn lost_verdict(contender: &ContenderId, shape: &str, lost: Lost, patience: Duration) -> Verdict {
    match lost {
        Lost::Died(how) => {
            let reason = how.lines().next().unwrap_or("the worker died").to_owned();
            verdict(contender, shape, Status::Crashed, &reason, Some(how))
        }
        Lost::TimedOut | Lost::Stopped => {
            let reason = format!("did not return within {} s", patience.as_secs_f64());
            verdict(contender, shape, Status::Hung, &reason, None)
        }
    }
}

/// A verdict that no output was compared for.
pub fn verdict(
    contender: &ContenderId,
    shape: &str,
    status: Status,
    reason: &str,
    detail: Option<String>,
) -> Verdict {
    Verdict {
        contender: contender.clone(),
        shape: shape.to_owned(),
        status,
        reason: Some(reason.to_owned()),
        detail,
        worst: None,
        millis: 0.0,
        counters: Default::default(),
    }
}

/// The line of a compiler message that says what is wrong.
fn first_error(message: &str) -> &str {
    let lines = || message.lines().filter(|l| !l.trim().is_empty());
    lines()
        .find(|l| l.contains("error"))
        .or_else(|| lines().next())
        .unwrap_or("the compiler gave no message")
}
