use std::time::{Duration, Instant};

use super::backend::Stage;
use super::build::Images;
use super::oracles::{Oracles, timing_key};
use super::progress::{Bar, Progress};
use super::resume::Finished;
use super::validate::verdict;
use super::{could_not_run, interrupt, write_error, yardstick_id};
use crate::diagnostic::CommandError;
use crate::domain::{ContenderId, Shape, Status};
use crate::plan::{Plan, Work};
use crate::record::schema::{Line, Settings, Verdict};
use crate::record::{Run, Writer};
use crate::stats::decision::{Rule, decide};
use crate::worker::{Lost, MeasureEntry, MeasureJob, Reply, Request, Tolerance, trace};

/// Beyond its time limit, a measuring worker needs this long for operands,
/// tuning of the yardstick and the check of timed outputs.
const ALLOWANCE: Duration = Duration::from_secs(300);

/// Times the contenders that passed, every shape in every process. Returns
/// what is decided, or nothing where the backend has no clock.
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
) -> Result<String, CommandError> {
    if !stage.measures() {
        return Ok(String::new());
    }
    if plan.round.yardstick
        && let Err(why) = stage.yardstick()
    {
        progress.warn(&format!("no cublas row: {why}"));
    }
    let began = Instant::now();
    let mut session = Session {
        plan,
        images,
        settings,
        verdicts: passed(writer)?,
        blocks: 0,
        retaken: 0,
    };
    let shapes = plan.shapes.len();
    let bar = progress.stage("measure", shapes * settings.processes as usize);
    for round in 0..settings.processes {
        stage.replace();
        for shape in 0..shapes {
            let name = &plan.shapes[shape].name;
            let enough = session.share();
            let done = finished.measured(name, enough).len() as u32;
            if round < settings.processes - settings.processes.min(done) && !interrupt::requested()
            {
                let process = finished.next_process(name) + round;
                bar.at(format!("{name}, process {}", round + 1));
                // Nothing else may use the machine's cores while it times.
                oracles.wait(
                    "measure",
                    &timing_key(&plan.shapes[shape], plan, settings, process),
                );
                session.shape(shape, process, stage, writer, progress, &bar)?;
            }
            bar.step();
        }
    }
    let words = format!("{shapes} shapes, {} blocks", session.blocks);
    bar.done(&words);
    if session.retaken > 0 {
        progress.warn(&format!(
            "{} samples were taken again: the clock had dropped",
            session.retaken
        ));
    }
    decision(writer, began.elapsed().as_secs_f64())
}

/// Whether the ranking over all shapes is settled, and if not, what it takes.
fn decision(writer: &Writer, seconds: f64) -> Result<String, CommandError> {
    let run = reread(writer)?;
    let everywhere = |id: &&ContenderId| {
        let ok = |s: &Shape| run.status(id, &s.name) == Some(Status::Ok);
        run.header.shapes.iter().all(ok)
    };
    let contenders: Vec<ContenderId> = run
        .header
        .contenders
        .iter()
        .map(|c| &c.id)
        .filter(everywhere)
        .cloned()
        .collect();
    if run.blocks.is_empty() {
        return Ok(String::new());
    }
    let per_block = seconds / run.blocks.len() as f64 * run.header.shapes.len() as f64;
    Ok(decide(&run.blocks, &contenders, &Rule::default()).summary(per_block))
}

fn reread(writer: &Writer) -> Result<Run, CommandError> {
    crate::record::read(writer.path())
        .map_err(|e| could_not_run(&format!("the run file cannot be read back: {e}")))
}

/// The verdicts on record that say ok.
fn passed(writer: &Writer) -> Result<Vec<Verdict>, CommandError> {
    let run = reread(writer)?;
    let ids = run.header.contenders.iter().map(|c| &c.id);
    Ok(ids
        .flat_map(|id| {
            let shapes = run.header.shapes.iter();
            shapes.filter_map(|s| run.verdict(id, &s.name))
        })
        .filter(|v| v.status == Status::Ok)
        .cloned()
        .collect())
}

struct Session<'a> {
    plan: &'a Plan,
    images: &'a Images,
    settings: &'a Settings,
    /// Shrinks when a timed call turns out wrong.
    verdicts: Vec<Verdict>,
    blocks: u32,
    retaken: u32,
}

impl Session<'_> {
    /// Blocks a process must take of each shape.
    fn share(&self) -> u32 {
        self.settings
            .min_blocks
            .div_ceil(self.settings.processes.max(1))
            .max(2)
    }

    /// Times one shape in one process; contenders that fail under timing get a
    /// verdict and the others are timed without them.
    fn shape(
        &mut self,
        shape: usize,
        process: u32,
        stage: &mut Stage,
        writer: &mut Writer,
        progress: &Progress,
        bar: &Bar<'_>,
    ) -> Result<(), CommandError> {
        let mut process = process;
        loop {
            let before = self.blocks;
            let job = self.job(shape, process, stage);
            if job.entries.is_empty() || interrupt::requested() {
                return Ok(());
            }
            match self.attempt(job, stage, writer, progress, bar)? {
                Attempt::Done => return Ok(()),
                Attempt::Without(verdict) => self.reject(writer, verdict)?,
            }
            // Another process takes over: its blocks must not be taken for
            // those of the one that was lost.
            if self.blocks > before {
                process += self.settings.processes;
            }
        }
    }

    fn job(&self, shape: usize, process: u32, stage: &Stage) -> MeasureJob {
        let measurement = &self.plan.round.measurement;
        let yardstick = self.plan.round.yardstick && stage.yardstick().is_ok();
        MeasureJob {
            problem: timing_key(&self.plan.shapes[shape], self.plan, self.settings, process),
            tolerance: Tolerance {
                rtol: self.settings.rtol,
                atol: self.settings.atol,
            },
            entries: self.entries(shape),
            baseline: self.plan.baseline.clone(),
            yardstick: yardstick.then(yardstick_id),
            process,
            order_seed: self.settings.seed,
            warmup: measurement.warmup,
            min_blocks: self.share(),
            max_seconds: self.settings.max_seconds / f64::from(self.settings.processes.max(1)),
            cold_l2: self.settings.cold_l2,
        }
    }

    fn entries(&self, shape: usize) -> Vec<MeasureEntry> {
        let name = &self.plan.shapes[shape].name;
        let cells = self.plan.cells.iter().filter(|c| c.shape == shape);
        cells
            .filter_map(|cell| {
                let id = &self.plan.contenders[cell.contender].id;
                let of_cell = |v: &&Verdict| v.contender == *id && v.shape == *name;
                let verdict = self.verdicts.iter().find(of_cell)?.clone();
                let Work::Run { build, call } = &cell.work else {
                    return None;
                };
                Some(MeasureEntry {
                    verdict,
                    image: self.images[*build].clone().ok()?,
                    call: call.clone(),
                })
            })
            .collect()
    }

    fn attempt(
        &mut self,
        job: MeasureJob,
        stage: &mut Stage,
        writer: &mut Writer,
        progress: &Progress,
        bar: &Bar<'_>,
    ) -> Result<Attempt, CommandError> {
        let shape = job.problem.shape.name.clone();
        let patience = ALLOWANCE + Duration::from_secs_f64(job.max_seconds);
        let worker = stage.worker()?;
        let mut lost = worker.send(&Request::Measure(Box::new(job))).err();
        while lost.is_none() {
            let reply = match stage.worker()?.receive(patience, &interrupt::requested) {
                Ok(reply) => reply,
                Err(how) => {
                    lost = Some(how);
                    break;
                }
            };
            match reply {
                Reply::Block { block } => {
                    self.blocks += 1;
                    bar.at(format!("{shape}, block {}", block.block + 1));
                    writer
                        .append(&Line::Block(block))
                        .map_err(|e| write_error(&e))?;
                }
                Reply::Measured {
                    decision,
                    retaken,
                    rejected,
                } => {
                    trace(|| format!("{shape}: {decision}"));
                    self.retaken += retaken;
                    for verdict in rejected {
                        self.reject(writer, verdict)?;
                    }
                    return Ok(Attempt::Done);
                }
                Reply::Fault { contender, failure } => {
                    if failure.fatal {
                        stage.replace();
                    }
                    let reason = format!("while it was timed: {}", failure.message);
                    let found =
                        verdict(&contender, &shape, failure.status, &reason, failure.detail);
                    return Ok(Attempt::Without(found));
                }
                Reply::Note { text } => progress.warn(&text),
                Reply::Failed { message } => return Err(could_not_run(&message)),
                _ => {}
            }
        }
        stage.replace();
        match lost {
            Some(Lost::Died(how)) => Err(could_not_run(&format!("while timing {shape}, {how}"))),
            Some(Lost::TimedOut) => Err(could_not_run(&format!(
                "timing {shape} took longer than {} s and was stopped",
                patience.as_secs()
            ))),
            Some(Lost::Stopped) | None => Ok(Attempt::Done),
        }
    }

    /// The later verdict replaces the earlier one, here and in the run file.
    fn reject(&mut self, writer: &mut Writer, verdict: Verdict) -> Result<(), CommandError> {
        self.verdicts
            .retain(|v| v.contender != verdict.contender || v.shape != verdict.shape);
        writer
            .append(&Line::Verdict(verdict))
            .map_err(|e| write_error(&e))
    }
}

enum Attempt {
    Done,
    /// One contender failed; the rest must be timed again without it.
    Without(Verdict),
}
