use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use super::backend::{Stage, Starter};
use super::{could_not_run, interrupt};
use crate::diagnostic::CommandError;
use crate::domain::Shape;
use crate::operator::{Distribution, Operands, OracleCache};
use crate::plan::Plan;
use crate::record::schema::Settings;
use crate::worker::{ProblemKey, Reply, Request, Worker, answers, trace};

/// Between two looks at whether the user asked to stop.
const GLANCE: Duration = Duration::from_millis(200);
/// No single answer takes longer on a GPU.
const PATIENCE: Duration = Duration::from_secs(300);

/// Data sets that timed calls change between.
const TIMING_SETS: u64 = 3;

/// Computes the answers in the background while the compiler runs, in the
/// order they will be asked for, and lets the stages wait for one.
pub struct Oracles {
    planned: Vec<String>,
    desk: Arc<Desk>,
    /// Seconds each stage stood waiting.
    waited: RefCell<BTreeMap<&'static str, f64>>,
}

impl Oracles {
    pub fn start(cache: &Path, plan: &Plan, settings: &Settings, stage: &Stage) -> Self {
        // Nobody asks for the answer to a shape that nobody runs.
        let shapes = || {
            (0..plan.shapes.len())
                .filter(|s| plan.runs(*s))
                .map(|s| &plan.shapes[s])
        };
        let mut keys = Vec::new();
        for shape in shapes() {
            for &distribution in &plan.round.validation.distributions {
                keys.push(validation_key(shape, distribution, settings));
            }
        }
        if stage.measures() {
            let timing = |shape| timing_keys(shape, plan, settings);
            keys.extend(plan.shapes.iter().flat_map(timing));
        }
        let planned = keys.iter().map(text).collect();
        let desk = Arc::new(Desk::default());
        let (theirs, answers) = (Arc::clone(&desk), answers(cache));
        // A GPU multiplies a hundred times faster than its host. It does so in
        // a process where no contender runs.
        let starter = stage.measures().then(|| stage.starter());
        thread::spawn(move || {
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

    /// Waits until the answer is on disk. One that was not planned for is
    /// computed by the worker that needs it.
    pub fn wait(&self, stage: &'static str, key: &ProblemKey) -> Result<(), CommandError> {
        let key = text(key);
        let planned = self.planned.iter().filter(|p| **p == key);
        self.wait_until(stage, &planned.collect::<Vec<_>>())
    }

    /// Waits until the background work is done.
    pub fn wait_for_all(&self, stage: &'static str) -> Result<(), CommandError> {
        self.wait_until(stage, &self.planned.iter().collect::<Vec<_>>())
    }

    fn wait_until(&self, stage: &'static str, keys: &[&String]) -> Result<(), CommandError> {
        let began = Instant::now();
        let mut state = self.desk.state();
        let missing = |state: &State| keys.iter().any(|key| !state.ready.contains(*key));
        while missing(&state) && !interrupt::requested() {
            if let Some(message) = &state.failed {
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

    pub fn waited(&self) -> BTreeMap<&'static str, f64> {
        self.waited.borrow().clone()
    }
}

/// Where the background work reports to those who wait for it.
#[derive(Default)]
struct Desk {
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Default)]
struct State {
    ready: HashSet<String>,
    /// Why there will be no further answers.
    failed: Option<String>,
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

/// Who computes answers: a worker on the GPU, or this process.
struct Solver {
    answers: OracleCache,
    worker: Option<Worker>,
}

impl Solver {
    /// Where no worker starts, the CPU has the time.
    fn new(answers: OracleCache, starter: Option<Starter>) -> Self {
        let worker = starter.and_then(|starter| match starter.start() {
            Ok(worker) => Some(worker),
            Err(why) => {
                trace(|| format!("answers come from the CPU: {why}"));
                None
            }
        });
        Self { answers, worker }
    }

    /// Leaves one answer in the cache. An error is a device that computes wrong.
    fn solve(&mut self, key: &ProblemKey) -> Result<(), String> {
        if self.answers.has(&key.shape, key.distribution, key.seed) {
            return Ok(());
        }
        if let Some(worker) = &mut self.worker {
            match ask(worker, key) {
                Some(answered) => return answered,
                None => self.worker = None,
            }
        }
        let operands = Operands::draw(&key.shape, key.distribution, key.seed);
        self.answers
            .answer(&key.shape, key.distribution, key.seed, &operands);
        Ok(())
    }
}

/// Nothing where the worker was lost.
fn ask(worker: &mut Worker, key: &ProblemKey) -> Option<Result<(), String>> {
    let request = Request::Answer(Box::new(key.clone()));
    worker.send(request).ok()?;
    match worker.receive(PATIENCE, &interrupt::requested).ok()? {
        Reply::Answered => Some(Ok(())),
        Reply::Failed { message } => Some(Err(message)),
        _ => None,
    }
}

pub fn validation_key(
    shape: &Shape,
    distribution: Distribution,
    settings: &Settings,
) -> ProblemKey {
    ProblemKey {
        shape: shape.clone(),
        distribution,
        seed: settings.seed,
    }
}

/// Data nobody was validated on. Every process times the same sets: which of
/// them a call gets is drawn before it, and the signs of their rows are drawn
/// anew, so that no two calls see them alike.
pub fn timing_keys(shape: &Shape, plan: &Plan, settings: &Settings) -> Vec<ProblemKey> {
    let key = |set| ProblemKey {
        shape: shape.clone(),
        distribution: plan.round.measurement.distribution,
        seed: settings.seed.wrapping_add(1 + set),
    };
    (0..TIMING_SETS).map(key).collect()
}

fn text(key: &ProblemKey) -> String {
    serde_json::to_string(key).unwrap_or_default()
}
