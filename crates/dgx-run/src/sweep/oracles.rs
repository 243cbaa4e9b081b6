use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use super::could_not_run;
use super::runner::{Runner, Starter};
use crate::operator::{Operands, OracleCache, is_gated};
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{Distribution, Shape};
use dgx_core::interrupt;

use crate::plan::Plan;
use crate::worker::{ProblemKey, Reply, Request, Worker, answers, trace};
use dgx_core::record::schema::Settings;

/// Time between two checks whether the user asked to stop.
const GLANCE: Duration = Duration::from_millis(200);
/// No single result takes longer on a GPU.
const PATIENCE: Duration = Duration::from_secs(300);

/// Data sets that timed calls alternate between.
const TIMING_SETS: u64 = 3;

/// Computes expected results in the background while the compiler runs, in the order in which they
/// will be needed, and lets the stages wait for one.
pub(super) struct Oracles {
    planned: Vec<String>,
    desk: Arc<Desk>,
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
            let key = |d: &Distribution| {
                ProblemKey::validating(&plan.round.operator, shape, *d, settings)
            };
            keys.extend(settings.distributions.iter().map(key));
        }
        if apart && runner.measures() {
            keys.extend(shapes().flat_map(|shape| timing_keys(shape, plan, settings)));
        }
        let planned = keys.iter().map(text).collect();
        let desk = Arc::new(Desk::default());
        let (theirs, answers) = (Arc::clone(&desk), answers(cache));
        // A GPU multiplies a hundred times faster than its host. It does so in a process without
        // contenders.
        let starter = runner.measures().then(|| runner.starter());
        thread::spawn(move || {
            // Dropped after the solver: a stage that waits for the end also waits for its process,
            // even if this thread panics.
            let _end = End(Arc::clone(&theirs));
            let mut solver = Solver::new(answers, starter);
            for key in keys {
                match solver.solve(&key) {
                    Ok(()) => theirs.tell(|state| {
                        state.ready.insert(text(&key));
                    }),
                    Err(message) => return theirs.tell(|state| state.failed = Some(message)),
                }
            }
        });
        Self {
            planned,
            desk,
            waited: RefCell::default(),
        }
    }

    /// Waits until the result is on disk. A result that was not planned is computed by the worker
    /// that needs it.
    pub(super) fn wait(&self, stage: &'static str, key: &ProblemKey) -> Result<(), CommandError> {
        let key = text(key);
        match self.planned.contains(&key) {
            true => self.wait_until(stage, |state| state.ready.contains(&key)),
            false => Ok(()),
        }
    }

    /// Waits until the background work is done and its process gone.
    pub(super) fn wait_for_all(&self, stage: &'static str) -> Result<(), CommandError> {
        let all = |state: &State| self.planned.iter().all(|key| state.ready.contains(key));
        self.wait_until(stage, |state| state.ended && all(state))
    }

    fn wait_until(
        &self,
        stage: &'static str,
        satisfied: impl Fn(&State) -> bool,
    ) -> Result<(), CommandError> {
        let began = Instant::now();
        let mut state = self.desk.state();
        while !satisfied(&state) && !interrupt::requested() {
            if state.ended {
                let message = state.failed.as_deref();
                let message = message.unwrap_or("the oracle ended before all was answered");
                return Err(could_not_run(message));
            }
            state = match self.desk.news.wait_timeout(state, GLANCE) {
                Ok((next, _)) => next,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        *self.waited.borrow_mut().entry(stage).or_default() += began.elapsed().as_secs_f64();
        Ok(())
    }

    pub(super) fn waited(&self) -> BTreeMap<&'static str, f64> {
        self.waited.borrow().clone()
    }
}

/// The state that the background work shares with the waiting stages.
#[derive(Default)]
struct Desk {
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Default)]
struct State {
    ready: HashSet<String>,
    /// Why there are no further results.
    failed: Option<String>,
    ended: bool,
}

/// Announces that the background work is over, however it ended.
struct End(Arc<Desk>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.tell(|state| state.ended = true);
    }
}

impl Desk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn tell(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.news.notify_all();
    }
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
        if self
            .answers
            .has(&key.operator, &key.shape, key.distribution, key.seed)
        {
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
        let operands = Operands::draw(&key.operator, &key.shape, key.distribution, key.seed);
        self.answers
            .answer(&key.shape, key.distribution, key.seed, &operands);
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
    let key = |set| ProblemKey {
        operator: Arc::clone(&plan.round.operator),
        shape: shape.clone(),
        distribution: plan.round.measurement.distribution,
        seed: settings.data_seed().wrapping_add(1 + set),
    };
    (0..TIMING_SETS).map(key).collect()
}

fn text(key: &ProblemKey) -> String {
    serde_json::to_string(key).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oracles(work: impl FnOnce(&Desk) + Send + 'static) -> Oracles {
        let desk = Arc::new(Desk::default());
        let theirs = Arc::clone(&desk);
        thread::spawn(move || {
            let end = End(theirs);
            work(&end.0);
        });
        Oracles {
            planned: vec!["a".to_owned(), "b".to_owned()],
            desk,
            waited: RefCell::default(),
        }
    }

    fn ready(desk: &Desk, key: &str) {
        desk.tell(|state| {
            state.ready.insert(key.to_owned());
        });
    }

    #[test]
    fn whoever_waits_is_told_how_it_ended() {
        let whole = oracles(|desk| ["a", "b"].iter().for_each(|key| ready(desk, key)));
        whole.wait_for_all("measure").unwrap();
        let wrong = oracles(|desk| {
            ready(desk, "a");
            desk.tell(|state| state.failed = Some("a faulty card".to_owned()));
        });
        let told = wrong.wait_for_all("measure").unwrap_err().to_string();
        assert!(told.contains("a faulty card"), "{told}");
        // A thread that panics must not leave others waiting for ever.
        let lost = oracles(|_| std::panic::resume_unwind(Box::new(())));
        let told = lost.wait_for_all("measure").unwrap_err().to_string();
        assert!(told.contains("ended before"), "{told}");
    }
}
