use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::backend::Stage;
use crate::domain::Shape;
use crate::operator::{Distribution, Operands};
use crate::plan::Plan;
use crate::record::schema::Settings;
use crate::worker::{ProblemKey, answers};

/// Between two looks at whether the user asked to stop.
const GLANCE: Duration = Duration::from_millis(200);

/// Computes the answers in the background while the compiler runs, in the
/// order they will be asked for, and lets the stages wait for one.
pub struct Oracles {
    planned: Vec<String>,
    ready: Arc<(Mutex<HashSet<String>>, Condvar)>,
    /// Seconds each stage stood waiting.
    waited: RefCell<BTreeMap<&'static str, f64>>,
}

impl Oracles {
    pub fn start(cache: &Path, plan: &Plan, settings: &Settings, stage: &Stage) -> Self {
        let mut keys = Vec::new();
        for shape in &plan.shapes {
            for &distribution in &plan.round.validation.distributions {
                keys.push(validation_key(shape, distribution, settings));
            }
        }
        if stage.measures() {
            for process in 0..settings.processes {
                for shape in &plan.shapes {
                    keys.push(timing_key(shape, plan, settings, process));
                }
            }
        }
        let planned = keys.iter().map(text).collect();
        let ready = Arc::new((Mutex::new(HashSet::new()), Condvar::new()));
        let (theirs, answers) = (Arc::clone(&ready), answers(cache));
        thread::spawn(move || {
            for key in keys {
                let ProblemKey {
                    shape,
                    distribution,
                    seed,
                } = &key;
                if !answers.has(shape, *distribution, *seed) {
                    let operands = Operands::draw(shape, *distribution, *seed);
                    answers.answer(shape, *distribution, *seed, &operands);
                }
                if let Ok(mut done) = theirs.0.lock() {
                    done.insert(text(&key));
                }
                theirs.1.notify_all();
            }
        });
        Self {
            planned,
            ready,
            waited: RefCell::default(),
        }
    }

    /// Waits until the answer is on disk. One that was not planned for is
    /// computed by the worker that needs it.
    pub fn wait(&self, stage: &'static str, key: &ProblemKey) {
        let key = text(key);
        let planned = self.planned.iter().filter(|p| **p == key);
        self.wait_until(stage, &planned.collect::<Vec<_>>());
    }

    /// Waits until the background work is done.
    pub fn wait_for_all(&self, stage: &'static str) {
        self.wait_until(stage, &self.planned.iter().collect::<Vec<_>>());
    }

    fn wait_until(&self, stage: &'static str, keys: &[&String]) {
        let began = Instant::now();
        if let Ok(mut done) = self.ready.0.lock() {
            let missing = |done: &HashSet<String>| keys.iter().any(|key| !done.contains(*key));
            while missing(&done) && !super::interrupt::requested() {
                match self.ready.1.wait_timeout(done, GLANCE) {
                    Ok((next, _)) => done = next,
                    Err(_) => return,
                }
            }
        }
        *self.waited.borrow_mut().entry(stage).or_default() += began.elapsed().as_secs_f64();
    }

    pub fn waited(&self) -> BTreeMap<&'static str, f64> {
        self.waited.borrow().clone()
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

/// Every process times data nobody has seen before.
pub fn timing_key(shape: &Shape, plan: &Plan, settings: &Settings, process: u32) -> ProblemKey {
    ProblemKey {
        shape: shape.clone(),
        distribution: plan.round.measurement.distribution,
        seed: settings.seed.wrapping_add(1 + u64::from(process)),
    }
}

fn text(key: &ProblemKey) -> String {
    serde_json::to_string(key).unwrap_or_default()
}
