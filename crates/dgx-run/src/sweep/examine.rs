//! Silicon hides most hazards. So while a card measures, idle cores watch a sample of every cell's
//! CTAs in the emulator, in processes of the lowest priority.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use super::append;
use super::cell::{cell_job, launchable};
use super::pool::Sweep;
use super::progress::Bar;
use super::runner::{Runner, Starter, free_memory};
use crate::child::cores;
use crate::plan::{OperatorCall, Plan, PlannedCell};
use crate::worker::{CellJob, NoReply, Reply, Request, Worker};
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{ContenderId, Hazard, HazardWatch, counted};
use dgx_core::interrupt;
use dgx_core::record::Run;
use dgx_core::record::schema::{ExaminedCell, Line};

/// Time limit for the remaining cells when everything else is done.
const GRACE: Duration = Duration::from_secs(3);
/// Time limit of one cell if a sample is watched.
const LIMIT: Duration = Duration::from_secs(20);
/// Drawing operands may take as long again.
const PATIENCE: u32 = 2;
/// Memory of an emulator, in multiples of the operands: it has them as drawn and as the call uses
/// them, and records accesses.
const COPIES: u64 = 4;

const TOO_LATE: &str = "the sweep was over first";

/// The cells of a sweep that are watched in the emulator.
pub(super) struct Examination<'a> {
    sweep: &'a Sweep<'a>,
    cells: Vec<&'a PlannedCell>,
    /// The cores that emulators run on, one on each.
    cores: Vec<usize>,
    starter: Option<Starter>,
    /// Why nothing is watched, if so.
    idle: Option<String>,
    bar: Option<Bar<'a>>,
    next: AtomicUsize,
    /// When the remaining cells are dropped.
    until: OnceLock<Instant>,
    /// Why no emulator starts, if so.
    broken: OnceLock<String>,
    /// Nothing else is left to do, so the rest may take its time.
    alone: bool,
    tally: Mutex<ExamineCounts>,
}

/// The results of the cells.
#[derive(Default)]
struct ExamineCounts {
    watched: usize,
    /// Cells that were not watched, by the reason.
    left: BTreeMap<String, usize>,
    /// Cells with nothing to watch.
    needless: usize,
    /// The error of a result that could not be recorded.
    lost: Option<CommandError>,
}

impl<'a> Examination<'a> {
    pub(super) fn new(sweep: &'a Sweep<'a>, runners: &[Runner], begun: &Run) -> Self {
        let (plan, watch) = (sweep.plan, sweep.settings.hazards);
        let device = runners[0].device();
        let wanted = runners[0].measures() && watch != HazardWatch::Off;
        let mut cells: Vec<&PlannedCell> = plan.cells.iter().filter(|_| wanted).collect();
        cells.retain(|cell| {
            let (contender, shape) = names(plan, cell);
            cell.run().is_some() && !begun.was_examined(contender, shape)
        });
        // Operands are drawn once for all cells of a shape in one emulator.
        cells.sort_by_key(|cell| cell.shape);
        let starter = Starter::emulating(device, sweep.cache);
        let most = largest(plan, &cells).map_or(usize::MAX, |bytes| {
            let free = free_memory().map_or(u64::MAX, |free| free.0 / 2);
            (free / (COPIES * bytes).max(1)) as usize
        });
        // A container may have fewer cores than it sees.
        let allowed = thread::available_parallelism().map_or(1, usize::from);
        let idle_cores = spare_cores(&cores(), allowed, runners.len(), watch == HazardWatch::All);
        let idle = match (&starter, idle_cores.len(), most) {
            (None, ..) => Some(format!("no target describes {}", device.name)),
            (_, 0, _) => Some(format!(
                "{} leave none idle beside a card that measures; --hazards all takes one",
                counted(cores().len(), "core")
            )),
            (.., 0) => Some("there is too little free memory".to_owned()),
            _ => None,
        };
        let workers = idle_cores.into_iter().take(cells.len().min(most));
        Self {
            sweep,
            cores: workers.collect(),
            bar: (!cells.is_empty() && idle.is_none())
                .then(|| sweep.progress.stage("hazards", cells.len())),
            cells,
            starter: starter.filter(|_| idle.is_none()),
            idle,
            next: AtomicUsize::new(0),
            until: OnceLock::new(),
            broken: OnceLock::new(),
            alone: (begun.header.shapes.iter()).all(|shape| begun.finished(&shape.name)),
            tally: Mutex::default(),
        }
    }

    /// Begins, beside everything else.
    pub(super) fn start<'s>(&'s self, scope: &'s thread::Scope<'s, '_>) {
        let Some(starter) = &self.starter else {
            return;
        };
        for &core in &self.cores {
            scope.spawn(move || self.work(starter, core));
        }
    }

    /// Everything else is done, successfully or not.
    pub(super) fn end(&self, well: bool) {
        let grace = match (well, self.sweep.settings.hazards) {
            (true, HazardWatch::All) => return,
            // Each cell has its own limit.
            (true, _) if self.alone => return,
            (true, _) => GRACE,
            (false, _) => Duration::ZERO,
        };
        let _ = self.until.set(Instant::now() + grace);
    }

    fn over(&self) -> bool {
        let late = self
            .until
            .get()
            .is_some_and(|until| Instant::now() > *until);
        late || self.broken.get().is_some() || interrupt::requested()
    }

    fn work(&self, starter: &Starter, core: usize) {
        let mut worker = None;
        while let index = self.next.fetch_add(1, Ordering::Relaxed)
            && let Some(cell) = self.cells.get(index)
            && !self.over()
        {
            let Some((build, call)) = cell.run() else {
                continue;
            };
            let Some(compiled) = self.sweep.images.wait(build) else {
                return;
            };
            match launchable(&compiled, |built| &built.kernels, self.sweep.plan, call) {
                Ok(built) => {
                    if let Err(why) = ready(starter, core, &mut worker) {
                        let _ = self.broken.set(format!("no emulator starts: {why}"));
                        return;
                    }
                    let job = self.job(cell, call, built.folder.clone());
                    let outcome = ask(&mut worker, &job, &|| self.over());
                    self.note(cell, outcome);
                }
                // Its verdict says that it does not compile or cannot be launched.
                Err(_) => self.tally().needless += 1,
            }
            self.bar.iter().for_each(|bar| bar.step(1.0));
        }
    }

    /// For sampled hazards, with less patience than validation has.
    fn job(&self, cell: &PlannedCell, call: &OperatorCall, image: PathBuf) -> CellJob {
        let job = cell_job(self.sweep.plan, self.sweep.settings, cell, call, image);
        let time_limit = match job.settings.hazards {
            HazardWatch::All => job.time_limit,
            _ => LIMIT,
        };
        CellJob { time_limit, ..job }
    }

    fn note(&self, cell: &PlannedCell, outcome: Result<Vec<Hazard>, String>) {
        let (contender, shape) = names(self.sweep.plan, cell);
        let (hazards, left_out) = match outcome {
            Ok(hazards) => (hazards, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        let examined = ExaminedCell {
            contender: contender.clone(),
            shape: shape.to_owned(),
            left_out,
            hazards,
        };
        // Written at once: a sweep may be killed.
        let written = append(self.sweep.writer, &Line::Examined(examined.clone()));
        let mut tally = self.tally();
        match examined.left_out {
            Some(why) => *tally.left.entry(why).or_default() += 1,
            None => tally.watched += 1,
        }
        if let Err(error) = written {
            tally.lost.get_or_insert(error);
        }
    }

    fn tally(&self) -> MutexGuard<'_, ExamineCounts> {
        self.tally.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Reports what was left out, and why.
    pub(super) fn report_left_out(&self) -> Result<(), CommandError> {
        let mut tally = std::mem::take(&mut *self.tally());
        let all = self.cells.len() - tally.needless;
        let rest = all - tally.watched - tally.left.values().sum::<usize>();
        if rest > 0 {
            let why = self.idle.as_ref().or(self.broken.get());
            let why = why.map_or(TOO_LATE, String::as_str);
            *tally.left.entry(why.to_owned()).or_default() += rest;
        }
        for (why, count) in tally.left {
            let cells = counted(count, "cell");
            let warning = format!("{cells} not examined for races and other hazards: {why}");
            self.sweep.progress.warn(&warning);
        }
        if let Some(bar) = &self.bar {
            bar.done(&format!("{}/{all} examined", tally.watched));
        }
        tally.lost.map_or(Ok(()), Err)
    }
}

fn names<'p>(plan: &'p Plan, cell: &PlannedCell) -> (&'p ContenderId, &'p str) {
    let shape = &plan.shapes[cell.shape].name;
    (&plan.contenders[cell.contender].id, shape)
}

/// Bytes of the operands of the largest shape.
fn largest(plan: &Plan, cells: &[&PlannedCell]) -> Option<u64> {
    let shapes = cells.iter().map(|cell| &plan.shapes[cell.shape]);
    let bytes = |shape| plan.round.operator.least_work(shape).memory_bytes as u64;
    shapes.map(bytes).max()
}

/// The spare cores of those `allowed`: one stays free, and one for the worker of each card; at
/// least one if that `must` be.
fn spare_cores(cores: &[usize], allowed: usize, cards: usize, must: bool) -> Vec<usize> {
    let count = allowed.min(cores.len()).saturating_sub(1 + cards);
    let count = count.max(usize::from(must));
    cores.iter().rev().take(count).copied().collect()
}

/// Starts an emulator if there is none.
fn ready(starter: &Starter, core: usize, worker: &mut Option<Worker>) -> Result<(), String> {
    if worker.is_none() {
        *worker = Some(starter.start_in_background(core)?);
    }
    Ok(())
}

/// Makes the emulator watch one cell; an emulator that fails is not used again.
fn ask(
    worker: &mut Option<Worker>,
    job: &CellJob,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Hazard>, String> {
    let mut at_hand = worker.take().ok_or("there is no emulator")?;
    let sent = at_hand.send(Request::Examine(Box::new(job.clone())));
    match sent.and_then(|()| at_hand.receive(PATIENCE * job.time_limit, stop)) {
        Ok(Reply::Examined { hazards, left_out }) => {
            *worker = Some(at_hand);
            left_out.map_or(Ok(hazards), Err)
        }
        Ok(Reply::Failed { message }) => Err(message),
        Ok(other) => Err(format!("the emulator answered {other:?}")),
        Err(NoReply::Died(how) | NoReply::Garbled(how)) => Err(how),
        Err(NoReply::TimedOut) => Err("the emulator did not answer".to_owned()),
        Err(NoReply::Stopped) => Err(TOO_LATE.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_stays_free_and_one_for_each_card() {
        let cores: Vec<usize> = (0..64).collect();
        for (allowed, left) in [
            (1, [0, 0, 0]),
            (2, [0, 0, 0]),
            (3, [1, 0, 0]),
            (8, [6, 5, 4]),
            (64, [62, 61, 60]),
        ] {
            for (cards, left) in (1..).zip(left) {
                let spare_cores = |must| spare_cores(&cores, allowed, cards, must);
                assert_eq!(
                    spare_cores(false).len(),
                    left,
                    "{allowed} cores, {cards} cards"
                );
                assert_eq!(spare_cores(true).len(), left.max(1));
                assert!(spare_cores(false).iter().all(|core| *core > cards));
            }
        }
        // Fewer than a container may have.
        assert!(spare_cores(&[3, 5], 8, 1, false).is_empty());
        assert_eq!(spare_cores(&[3, 5], 8, 1, true), [5]);
    }
}
