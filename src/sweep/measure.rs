use std::time::{Duration, Instant};

use super::oracles::timing_keys;
use super::progress::Bar;
use super::validate::verdict;
use super::{Session, could_not_run, interrupt, yardstick_id};
use crate::diagnostic::CommandError;
use crate::domain::{ContenderId, Shape, Status};
use crate::plan::Work;
use crate::record::schema::{Line, Verdict};
use crate::record::{Run, Writer};
use crate::stats::decision::{Rule, decide};
use crate::worker::{Lost, MeasureEntry, MeasureJob, Reply, Request, trace};

/// Beyond its time limit, a measuring worker needs this long for operands,
/// tuning of the yardstick and the check of timed outputs.
const ALLOWANCE: Duration = Duration::from_secs(300);

/// Times the contenders that passed, every shape in every process. Returns
/// what is decided, or nothing where the backend has no clock.
pub fn all(session: &mut Session<'_>) -> Result<String, CommandError> {
    if !session.stage.measures() {
        return Ok(String::new());
    }
    if session.plan.round.yardstick
        && let Err(why) = session.stage.yardstick()
    {
        session.progress.warn(&format!("no cublas row: {why}"));
    }
    // Nothing else may use the machine while it times.
    session.oracles.wait_for_all("measure")?;
    let began = Instant::now();
    let (progress, finished) = (session.progress, session.finished);
    let shapes = session.plan.shapes.len();
    let processes = session.settings.processes;
    let bar = progress.stage("measure", shapes * processes as usize);
    let mut timing = Timing {
        verdicts: passed(session.writer)?,
        session: &mut *session,
        blocks: 0,
        retaken: 0,
    };
    for round in 0..processes {
        timing.session.stage.replace();
        for shape in 0..shapes {
            let name = &timing.session.plan.shapes[shape].name;
            let done = finished.measured(name, timing.share()).len() as u32;
            if round < processes - processes.min(done) && !interrupt::requested() {
                bar.at(format!("{name}, process {}", round + 1));
                timing.shape(shape, finished.next_process(name) + round, &bar)?;
                bar.step();
            } else {
                bar.pass_by();
            }
        }
    }
    bar.done(&format!("{shapes} shapes, {} blocks", timing.blocks));
    if timing.retaken > 0 {
        progress.warn(&format!(
            "{} samples were taken again: the clock had dropped",
            timing.retaken
        ));
    }
    decision(session.writer, began.elapsed().as_secs_f64())
}

/// Whether the ranking over all shapes is settled, and if not, what it takes.
fn decision(writer: &Writer, seconds: f64) -> Result<String, CommandError> {
    let run = reread(writer)?;
    let everywhere = |id: &&ContenderId| {
        let ok = |s: &Shape| run.status(id, &s.name) == Some(Status::Ok);
        run.header.shapes.iter().all(ok)
    };
    let contenders = run.header.contenders.iter().map(|c| &c.id);
    let arms: Vec<usize> = contenders
        .filter(everywhere)
        .filter_map(|id| run.arm(id))
        .collect();
    if run.tally.is_empty() {
        return Ok(String::new());
    }
    let per_block = seconds / run.tally.blocks() as f64 * run.header.shapes.len() as f64;
    Ok(decide(&run.tally, &arms, &Rule::default()).summary(per_block))
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
        .filter(|v| v.status == Status::Ok && v.worst.is_some_and(|worst| worst <= 1.0))
        .cloned()
        .collect())
}

struct Timing<'a, 'b> {
    session: &'a mut Session<'b>,
    /// Shrinks when a timed call turns out wrong.
    verdicts: Vec<Verdict>,
    blocks: u32,
    retaken: u32,
}

impl Timing<'_, '_> {
    /// Blocks a process must take of each shape.
    fn share(&self) -> u32 {
        let settings = self.session.settings;
        settings
            .min_blocks
            .div_ceil(settings.processes.max(1))
            .max(2)
    }

    /// Times one shape in one process; contenders that fail under timing get a
    /// verdict and the others are timed without them.
    fn shape(&mut self, shape: usize, process: u32, bar: &Bar<'_>) -> Result<(), CommandError> {
        let mut process = process;
        let mut lost_before = false;
        loop {
            let before = self.blocks;
            let job = self.job(shape, process);
            if job.entries.is_empty() || interrupt::requested() {
                return Ok(());
            }
            match self.attempt(&job, bar)? {
                Attempt::Done => return Ok(()),
                Attempt::Without(verdict) => self.reject(verdict)?,
                // Somebody else may have killed it: once is no reason to give up.
                Attempt::Lost(how) if lost_before => return Err(could_not_run(&how)),
                Attempt::Lost(how) => {
                    self.session
                        .progress
                        .warn(&format!("{how}; it is timed once more"));
                    lost_before = true;
                }
            }
            // Another process takes over: its blocks must not be taken for
            // those of the one that was lost.
            if self.blocks > before {
                process += self.session.settings.processes;
            }
        }
    }

    fn job(&self, shape: usize, process: u32) -> MeasureJob {
        let Session {
            plan,
            settings,
            stage,
            ..
        } = &*self.session;
        let yardstick = plan.round.yardstick && stage.yardstick().is_ok();
        MeasureJob {
            shape: plan.shapes[shape].clone(),
            problems: timing_keys(&plan.shapes[shape], plan, settings),
            tolerance: self.session.tolerance(),
            entries: self.entries(shape),
            baseline: plan.baseline.clone(),
            yardstick: yardstick.then(yardstick_id),
            process,
            order_seed: settings.seed,
            warmup: plan.round.measurement.warmup,
            min_blocks: self.share(),
            max_seconds: settings.max_seconds / f64::from(settings.processes.max(1)),
            cold_l2: settings.cold_l2,
        }
    }

    fn entries(&self, shape: usize) -> Vec<MeasureEntry> {
        let plan = self.session.plan;
        let name = &plan.shapes[shape].name;
        let cells = plan.cells.iter().filter(|c| c.shape == shape);
        cells
            .filter_map(|cell| {
                let id = &plan.contenders[cell.contender].id;
                let of_cell = |v: &&Verdict| v.contender == *id && v.shape == *name;
                // Only who passed is timed.
                self.verdicts.iter().find(of_cell)?;
                let Work::Run { build, call } = &cell.work else {
                    return None;
                };
                Some(MeasureEntry {
                    contender: id.clone(),
                    image: self.session.images[*build].as_ref().ok()?.folder.clone(),
                    call: call.clone(),
                })
            })
            .collect()
    }

    fn attempt(&mut self, job: &MeasureJob, bar: &Bar<'_>) -> Result<Attempt, CommandError> {
        let shape = &job.shape.name;
        let patience = ALLOWANCE + Duration::from_secs_f64(job.max_seconds);
        let worker = self.session.stage.worker()?;
        let mut lost = worker.send(Request::Measure(Box::new(job.clone()))).err();
        let mut blocks = 0;
        while lost.is_none() {
            let worker = self.session.stage.worker()?;
            let reply = match worker.receive(patience, &interrupt::requested) {
                Ok(reply) => reply,
                Err(how) => {
                    lost = Some(how);
                    break;
                }
            };
            if let Some(misfit) = misfit(job, &reply, blocks) {
                lost = Some(worker.garbled(&misfit));
                break;
            }
            match reply {
                Reply::Block { block } => {
                    blocks += 1;
                    self.blocks += 1;
                    bar.at(format!("{shape}, block {blocks}"));
                    self.session.append(&Line::Block(block))?;
                }
                Reply::Measured {
                    decision,
                    retaken,
                    rejected,
                } => {
                    trace(|| format!("{shape}: {decision}"));
                    self.retaken += retaken;
                    for verdict in rejected {
                        self.reject(verdict)?;
                    }
                    return Ok(Attempt::Done);
                }
                Reply::Fault { contender, failure } => {
                    let printed = worker.printed();
                    if failure.fatal {
                        self.session.stage.replace();
                    }
                    let reason = format!("while it was timed: {}", failure.message);
                    let mut found =
                        verdict(&contender, shape, failure.status, &reason, failure.detail);
                    found.printed = printed;
                    return Ok(Attempt::Without(found));
                }
                Reply::Note { text } => self.session.progress.warn(&text),
                Reply::Failed { message } => return Err(could_not_run(&message)),
                _ => {}
            }
        }
        self.session.stage.replace();
        match lost {
            Some(Lost::Died(how)) => Ok(Attempt::Lost(format!("while timing {shape}, {how}"))),
            Some(Lost::TimedOut) => Err(could_not_run(&format!(
                "timing {shape} took longer than {} s and was stopped",
                patience.as_secs()
            ))),
            Some(Lost::Garbled(message)) => Err(could_not_run(&message)),
            Some(Lost::Stopped) | None => Ok(Attempt::Done),
        }
    }

    /// The later verdict replaces the earlier one, here and in the run file.
    fn reject(&mut self, verdict: Verdict) -> Result<(), CommandError> {
        self.verdicts
            .retain(|v| v.contender != verdict.contender || v.shape != verdict.shape);
        self.session.append(&Line::Verdict(verdict))
    }
}

enum Attempt {
    Done,
    /// One contender failed; the rest must be timed again without it.
    Without(Verdict),
    /// The worker died, and nobody knows of whom.
    Lost(String),
}

/// Why a reply cannot belong to what was asked, if so.
fn misfit(job: &MeasureJob, reply: &Reply, blocks: u32) -> Option<String> {
    match reply {
        Reply::Block { block } => job.doubt_block(block, blocks),
        Reply::Measured { rejected, .. } => rejected.iter().find_map(|v| job.doubt_verdict(v)),
        Reply::Fault { contender, .. } => job.doubt_contender(contender),
        Reply::Running | Reply::Note { .. } | Reply::Failed { .. } => None,
        other => Some(format!("{other:?}")),
    }
}
