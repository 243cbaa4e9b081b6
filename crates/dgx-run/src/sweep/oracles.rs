use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::board::SharedProgress;
use super::could_not_run;
use super::runner::{Runner, Starter};
use crate::operator::{OracleCache, ProblemKey, is_gated};
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{Distribution, Shape};
use dgx_core::interrupt;

use crate::plan::Plan;
use crate::worker::{Reply, Request, Worker, answers, trace};
use dgx_core::record::schema::Settings;

/// No single result takes longer on a GPU.
const PATIENCE: Duration = Duration::from_secs(300);

/// Data sets that timed calls alternate between.
const TIMING_SETS: u64 = 3;

/// Computes expected results in the background while the compiler runs, in the order in which they
/// will be needed, and lets the stages wait for one.
pub(super) struct Oracles {
    planned: Vec<ProblemKey>,
    board: Arc<SharedProgress<State>>,
    /// Seconds that each stage waited.
    waited: RefCell<BTreeMap<&'static str, f64>>,
}

impl Oracles {
    /// The expected results for a card's shapes.
    pub(super) fn start(
        cache: &Path,
        plan: &Plan,
        settings: &Settings,
        runner: &Runner,
        places: &[usize],
    ) -> Self {
        // A shape that no contender runs needs no result.
        let shapes = || {
            let run = places.iter().filter(|s| plan.runs(**s));
            run.map(|s| &plan.shapes[*s])
        };
        let mut keys = Vec::new();
        // A GPU's workers compute results themselves, which is faster than reading them from disk;
        // those of a gated product are small, and as fast to read.
        let apart = !runner.measures() || is_gated(&plan.round.operator);
        // If nothing is validated, no result is needed.
        for shape in shapes().filter(|_| apart && !settings.time_only) {
            let (operator, seed) = (&plan.round.operator, settings.data_seed());
            let key = |d: &Distribution| ProblemKey::new(operator, shape, *d, seed);
            keys.extend(settings.distributions.iter().map(key));
        }
        if apart && runner.measures() {
            keys.extend(shapes().flat_map(|shape| timing_keys(shape, plan, settings)));
        }
        let planned = keys.clone();
        let board = Arc::new(SharedProgress::new(State::default()));
        let (theirs, answers) = (Arc::clone(&board), answers(cache));
        // A GPU multiplies a hundred times faster than its host. It does so in a process without
        // contenders.
        let starter = runner.measures().then(|| runner.starter());
        thread::spawn(move || {
            // Dropped after the solver: a stage that waits for the end also waits for its process,
            // even if this thread panics.
            let _ends = theirs.ends();
            let mut solver = Solver::new(answers, starter);
            for key in keys {
                match solver.solve(&key) {
                    Ok(()) => theirs.tell(|state| state.ready += 1),
                    Err(message) => return theirs.tell(|state| state.failed = Some(message)),
                }
            }
        });
        Self {
            planned,
            board,
            waited: RefCell::default(),
        }
    }

    /// Waits until the result is on disk. A result that was not planned is computed by the worker
    /// that needs it.
    pub(super) fn wait(&self, stage: &'static str, key: &ProblemKey) -> Result<(), CommandError> {
        match self.planned.iter().position(|planned| planned == key) {
            Some(place) => self.wait_until(stage, |state, _| state.ready > place),
            None => Ok(()),
        }
    }

    /// Waits until the background work is done and its process gone.
    pub(super) fn wait_for_all(&self, stage: &'static str) -> Result<(), CommandError> {
        let all = self.planned.len();
        self.wait_until(stage, |state, ended| ended && state.ready == all)
    }

    fn wait_until(
        &self,
        stage: &'static str,
        satisfied: impl Fn(&State, bool) -> bool,
    ) -> Result<(), CommandError> {
        let began = Instant::now();
        self.board.wait(|state, ended| {
            let failed = || state.failed.as_deref();
            match satisfied(state, ended) || interrupt::requested() {
                true => Some(Ok(())),
                false => ended.then(|| {
                    let why = failed().unwrap_or("the oracle ended before all was answered");
                    Err(could_not_run(why))
                }),
            }
        })?;
        *self.waited.borrow_mut().entry(stage).or_default() += began.elapsed().as_secs_f64();
        Ok(())
    }

    pub(super) fn waited(&self) -> BTreeMap<&'static str, f64> {
        self.waited.borrow().clone()
    }
}

/// The state that the background work shares with the waiting stages.
#[derive(Default)]
struct State {
    /// Results on disk, of those that were planned, in order.
    ready: usize,
    /// Why there are no further results.
    failed: Option<String>,
}

/// Computes results: a worker on the GPU, or this process.
struct Solver {
    answers: OracleCache,
    /// Kept until the first result that is not on disk.
    starter: Option<Starter>,
    worker: Option<Worker>,
}

impl Solver {
    fn new(answers: OracleCache, starter: Option<Starter>) -> Self {
        Self {
            answers,
            starter,
            worker: None,
        }
    }

    /// Puts one result in the cache. An error means a device that computes wrong results.
    fn solve(&mut self, key: &ProblemKey) -> Result<(), String> {
        if self.answers.has(key) {
            return Ok(());
        }
        if let Some(starter) = self.starter.take() {
            self.worker = starter
                .start()
                // If no worker starts, the CPU computes the results.
                .inspect_err(|why| trace(|| format!("answers come from the CPU: {why}")))
                .ok();
        }
        if let Some(worker) = &mut self.worker {
            match ask(worker, key) {
                Some(answered) => return answered,
                None => self.worker = None,
            }
        }
        self.answers.answer(key, &key.operands());
        Ok(())
    }
}

/// `None` if the worker was lost.
fn ask(worker: &mut Worker, key: &ProblemKey) -> Option<Result<(), String>> {
    let request = Request::Answer(Box::new(key.clone()));
    worker.send(request).ok()?;
    match worker.receive(PATIENCE, &interrupt::requested).ok()? {
        Reply::Answered => Some(Ok(())),
        Reply::Failed { message } => Some(Err(message)),
        _ => None,
    }
}

/// Data that no contender was validated on. Every process times the same sets: the set of a call is
/// drawn before it, and the signs of its rows are drawn anew, so that no two calls see the same
/// data.
pub(super) fn timing_keys(shape: &Shape, plan: &Plan, settings: &Settings) -> Vec<ProblemKey> {
    let (operator, distribution) = (&plan.round.operator, plan.round.measurement.distribution);
    let seed = |set| settings.data_seed().wrapping_add(1 + set);
    let key = |set| ProblemKey::new(operator, shape, distribution, seed(set));
    (0..TIMING_SETS).map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::operator::default_operator;
    use dgx_core::record::synthetic::grouped;

    fn oracles(work: impl FnOnce(&SharedProgress<State>) + Send + 'static) -> Oracles {
        let board = Arc::new(SharedProgress::new(State::default()));
        let theirs = Arc::clone(&board);
        thread::spawn(move || {
            let _ends = theirs.ends();
            work(&theirs);
        });
        let shape = grouped("t", &[5], 128, 256);
        let key = |seed| ProblemKey::new(default_operator(), &shape, Distribution::Full, seed);
        Oracles {
            planned: [1, 2].map(key).to_vec(),
            board,
            waited: RefCell::default(),
        }
    }

    fn ready(board: &SharedProgress<State>) {
        board.tell(|state| state.ready += 1);
    }

    #[test]
    fn whoever_waits_is_told_how_it_ended() {
        let whole = oracles(|board| (0..2).for_each(|_| ready(board)));
        whole.wait("validate", &whole.planned[1]).unwrap();
        whole.wait_for_all("measure").unwrap();
        let wrong = oracles(|board| {
            ready(board);
            board.tell(|state| state.failed = Some("a faulty card".to_owned()));
        });
        let error = wrong.wait_for_all("measure").unwrap_err().to_string();
        assert!(error.contains("a faulty card"), "{error}");
        // A thread that panics must not leave others waiting for ever.
        let lost = oracles(|_| std::panic::resume_unwind(Box::new(())));
        let error = lost.wait_for_all("measure").unwrap_err().to_string();
        assert!(error.contains("ended before"), "{error}");
    }
}
