//! Silicon hides most hazards. So while a card measures, cores that it leaves
//! idle watch a sample of every cell's CTAs in the emulator, in processes that
//! let everybody else go first.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use super::backend::{Stage, Starter, free_memory};
use super::pool::Field;
use super::progress::Bar;
use super::resume::Finished;
use super::{append, reread};
use crate::child::cores;
use crate::diagnostic::CommandError;
use crate::domain::{Hazard, Status, Watch, counted};
use crate::interrupt;
use crate::plan::{Cell, OperatorCall, Plan, Work};
use crate::record::schema::{Examined, Line};
use crate::validate::Tolerance;
use crate::worker::{Lost, Reply, Request, ValidateJob, Worker};

/// How long the rest may take when everything else is done.
const GRACE: Duration = Duration::from_secs(3);
/// How long one cell may take where a sample is watched.
const LIMIT: Duration = Duration::from_secs(20);
/// Drawing operands may take as long again.
const PATIENCE: u32 = 2;
/// Memory an emulator takes, over what the operands take: they are there as
/// they were drawn, and as the call has them, beside what is remembered.
const COPIES: u64 = 4;

const TOO_LATE: &str = "the sweep was over first";

/// The cells of a sweep that are watched in the emulator.
pub(super) struct Examination<'a> {
    field: &'a Field<'a>,
    cells: Vec<&'a Cell>,
    /// Where the emulators run, one on each.
    cores: Vec<usize>,
    starter: Option<Starter>,
    /// Why nothing is watched, if so.
    idle: Option<String>,
    bar: Option<Bar<'a>>,
    next: AtomicUsize,
    /// When what is left is left out.
    until: OnceLock<Instant>,
    found: Mutex<Vec<Outcome>>,
}

/// A cell, and what was found in it or why it was not watched.
type Outcome = (Examined, Vec<Hazard>);

impl<'a> Examination<'a> {
    pub(super) fn new(field: &'a Field<'a>, stages: &[Stage], finished: &Finished) -> Self {
        let (plan, watch) = (field.plan, field.settings.hazards);
        let device = stages[0].device();
        let wanted = stages[0].measures() && watch != Watch::Off;
        let mut cells: Vec<&Cell> = plan.cells.iter().filter(|_| wanted).collect();
        cells.retain(|cell| {
            let (contender, shape) = names(plan, cell);
            matches!(cell.work, Work::Run { .. }) && !finished.was_examined(contender, shape)
        });
        // Their operands are drawn once for all of a shape that one emulator has.
        cells.sort_by_key(|cell| cell.shape);
        let starter = Starter::emulating(device, field.cache);
        let most = largest(plan, &cells).map_or(usize::MAX, |bytes| {
            let free = free_memory().map_or(u64::MAX, |free| free.0 / 2);
            (free / (COPIES * bytes).max(1)) as usize
        });
        let idle_cores = spare(&cores(), stages.len(), watch == Watch::All);
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
            field,
            cores: workers.collect(),
            bar: (!cells.is_empty() && idle.is_none())
                .then(|| field.progress.stage("hazards", cells.len())),
            cells,
            starter: starter.filter(|_| idle.is_none()),
            idle,
            next: AtomicUsize::new(0),
            until: OnceLock::new(),
            found: Mutex::default(),
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

    /// Everything else is done, for better or worse.
    pub(super) fn end(&self, well: bool) {
        let grace = match (well, self.field.settings.hazards) {
            (true, Watch::All) => return,
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
        late || interrupt::requested()
    }

    fn work(&self, starter: &Starter, core: usize) {
        let mut worker = None;
        while let index = self.next.fetch_add(1, Ordering::Relaxed)
            && let Some(cell) = self.cells.get(index)
            && !self.over()
        {
            let Work::Run { build, call } = &cell.work else {
                continue;
            };
            // Where it does not compile or cannot be launched, that is said already.
            let Some(Ok(image)) = self.field.images.wait(*build) else {
                continue;
            };
            if image
                .refusal(&self.field.plan.device.limits, call)
                .is_none()
            {
                let job = self.job(cell, call, image.folder);
                let outcome = ask(starter, core, &mut worker, &job, &|| self.over());
                self.note(cell, outcome);
            }
            self.bar.iter().for_each(|bar| bar.step(1.0));
        }
    }

    fn job(&self, cell: &Cell, call: &OperatorCall, image: std::path::PathBuf) -> ValidateJob {
        let (plan, settings) = (self.field.plan, self.field.settings);
        let contender = &plan.contenders[cell.contender];
        ValidateJob {
            contender: contender.id.clone(),
            image,
            call: call.clone(),
            shape: plan.shapes[cell.shape].clone(),
            distributions: plan.round.validation.distributions.clone(),
            seed: settings.data_seed(),
            tolerance: Tolerance {
                rtol: settings.rtol,
                atol: settings.atol,
            },
            time_limit: match settings.hazards {
                Watch::All => Duration::from_secs_f64(plan.round.validation.timeout),
                _ => LIMIT,
            },
            emulation: self.field.emulation(),
            thorough: false,
            expected: contender.variant.expect,
            keep: None,
        }
    }

    fn note(&self, cell: &Cell, outcome: Result<Vec<Hazard>, String>) {
        let (contender, shape) = names(self.field.plan, cell);
        let (hazards, left_out) = match outcome {
            Ok(hazards) => (hazards, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        let examined = Examined {
            contender: contender.clone(),
            shape: shape.to_owned(),
            left_out,
        };
        let mut found = self.found.lock().unwrap_or_else(|e| e.into_inner());
        found.push((examined, hazards));
    }

    /// Puts on record what was found: who was right so far, and has hazards,
    /// is racy. Says what was left out, and why.
    pub(super) fn record(&self) -> Result<(), CommandError> {
        if self.cells.is_empty() {
            return Ok(());
        }
        let found = self.found.lock().unwrap_or_else(|e| e.into_inner());
        let run = reread(&self.field.path())?;
        let mut left: BTreeMap<&str, usize> = BTreeMap::new();
        let mut watched = 0;
        for (examined, hazards) in found.iter() {
            match &examined.left_out {
                Some(why) => *left.entry(why).or_default() += 1,
                None => watched += 1,
            }
            let verdict = run.verdict(&examined.contender, &examined.shape);
            if let Some(verdict) = verdict.filter(|v| v.status == Status::Ok && !hazards.is_empty())
            {
                let mut verdict = verdict.clone();
                verdict.blame(hazards.clone());
                append(self.field.writer, &Line::Verdict(verdict))?;
            }
            append(self.field.writer, &Line::Examined(examined.clone()))?;
        }
        let (all, rest) = (self.cells.len(), self.cells.len() - found.len());
        if rest > 0 {
            let why = self.idle.as_deref().unwrap_or(TOO_LATE);
            *left.entry(why).or_default() += rest;
        }
        for (why, count) in left {
            let cells = counted(count, "cell");
            let warning = format!("{cells} not examined for races and other hazards: {why}");
            self.field.progress.warn(&warning);
        }
        if let Some(bar) = &self.bar {
            bar.done(&format!("{watched}/{all} examined"));
        }
        Ok(())
    }
}

fn names<'p>(plan: &'p Plan, cell: &Cell) -> (&'p crate::domain::ContenderId, &'p str) {
    let shape = &plan.shapes[cell.shape].name;
    (&plan.contenders[cell.contender].id, shape)
}

/// Bytes of the operands of the largest shape.
fn largest(plan: &Plan, cells: &[&Cell]) -> Option<u64> {
    let shapes = cells.iter().map(|cell| &plan.shapes[cell.shape]);
    shapes.map(|shape| shape.min_bytes().0).max()
}

/// The cores that are left where one stays free, and one for the worker of
/// each card; at least one where that `must` be.
fn spare(cores: &[usize], cards: usize, must: bool) -> Vec<usize> {
    // A container may have fewer than it sees.
    let allowed = thread::available_parallelism().map_or(1, usize::from);
    let count = allowed.min(cores.len()).saturating_sub(1 + cards);
    let count = count.max(usize::from(must));
    cores.iter().rev().take(count).copied().collect()
}

/// Has an emulator watch one cell, in a fresh process where there is none.
fn ask(
    starter: &Starter,
    core: usize,
    worker: &mut Option<Worker>,
    job: &ValidateJob,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Hazard>, String> {
    let mut at_hand = match worker.take() {
        Some(worker) => worker,
        None => starter.start_aside(core)?,
    };
    let sent = at_hand.send(Request::Examine(Box::new(job.clone())));
    match sent.and_then(|()| at_hand.receive(PATIENCE * job.time_limit, stop)) {
        Ok(Reply::Examined { hazards, left_out }) => {
            *worker = Some(at_hand);
            left_out.map_or(Ok(hazards), Err)
        }
        Ok(Reply::Failed { message }) => Err(message),
        Ok(other) => Err(format!("the emulator answered {other:?}")),
        Err(Lost::Died(how) | Lost::Garbled(how)) => Err(how),
        Err(Lost::TimedOut) => Err("the emulator did not answer".to_owned()),
        Err(Lost::Stopped) => Err(TOO_LATE.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_stays_free_and_one_for_each_card() {
        let allowed = thread::available_parallelism().map_or(1, usize::from);
        let cores: Vec<usize> = (0..allowed).collect();
        for cards in 1..4 {
            let spare = spare(&cores, cards, false);
            assert_eq!(spare.len(), allowed.saturating_sub(1 + cards));
            assert!(spare.iter().all(|core| *core > cards));
        }
        assert!(spare(&[3, 5], 1, false).is_empty());
        assert_eq!(spare(&[3, 5], 1, true), [5]);
    }
}
