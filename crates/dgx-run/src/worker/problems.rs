use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;

use super::trace::trace;
use crate::backend::{Backend, CallSeed};
use crate::operator::{
    ANSWERS, Operands, Oracle, OracleCache, OutputValues, ProblemKey, Shuffle, is_gated, unshuffled,
};
use crate::validate::{CallEffects, PosedOperands, Tolerance, accepts};
use dgx_core::domain::Shape;
use dgx_core::operator::Operator;

/// Operands and the expected result.
pub(super) struct Problem {
    pub name: String,
    pub shape: Shape,
    pub operands: Operands,
    pub oracle: Oracle,
}

impl Problem {
    /// Calls `judge` with the effects of a call, and with the operands and the expected result to
    /// compare. If it is right, the data need not be shuffled again: the output is changed back,
    /// which is far less work, or only the expected result is shuffled.
    pub(super) fn judged<T>(
        &self,
        exhibit: CallEffects<'_>,
        call_seed: CallSeed,
        tolerance: Tolerance,
        judge: impl FnOnce(CallEffects<'_>, &dyn PosedOperands, &Oracle) -> T,
    ) -> T {
        let (operator, groups) = (&self.operands.operator, &self.shape.groups);
        let shuffle = call_seed.shuffle();
        let before = unshuffled(exhibit.outputs, shuffle, operator, groups);
        let are_right =
            |outputs: &&[OutputValues]| accepts(outputs, &self.operands, &self.oracle, tolerance);
        match before.as_deref().filter(are_right) {
            Some(outputs) => judge(
                CallEffects { outputs, ..exhibit },
                &self.operands,
                &self.oracle,
            ),
            None => {
                let operands = ShuffledOperands {
                    operands: &self.operands,
                    shuffle,
                    shuffled: OnceCell::new(),
                };
                let oracle = self.oracle.shuffled(shuffle, operator, groups);
                judge(exhibit, &operands, &oracle)
            }
        }
    }
}

/// The operands of one call, shuffled when they are needed.
struct ShuffledOperands<'a> {
    operands: &'a Operands,
    shuffle: Shuffle,
    shuffled: OnceCell<Operands>,
}

impl PosedOperands for ShuffledOperands<'_> {
    fn operator(&self) -> &Operator {
        &self.operands.operator
    }

    fn operands(&self) -> &Operands {
        let shuffled = || self.operands.shuffled(self.shuffle);
        self.shuffled.get_or_init(shuffled)
    }
}

/// The problems that a worker keeps: all of one shape, because shapes come one after another and
/// the operands of one can take most of the memory. Expected results come from the device or from
/// the cache on disk; operands are drawn again, which is as fast as reading them.
pub(super) struct Problems {
    answers: OracleCache,
    kept: Vec<Rc<Problem>>,
    /// The last operands requested without their result.
    operands: Option<(ProblemKey, Rc<Operands>)>,
    /// Messages about devices that gave no result.
    noted: BTreeSet<String>,
}

impl Problems {
    pub(super) fn new(cache: &Path) -> Self {
        Self {
            answers: answers(cache),
            kept: Vec::new(),
            operands: None,
            noted: BTreeSet::new(),
        }
    }

    /// Operands for a call whose output is not checked.
    pub(super) fn operands(&mut self, key: &ProblemKey) -> Rc<Operands> {
        if let Some((_, operands)) = self.operands.as_ref().filter(|(of, _)| of == key) {
            return Rc::clone(operands);
        }
        // Freed first: they can take most of the memory.
        self.operands = None;
        let operands = Rc::new(key.operands());
        self.operands = Some((key.clone(), Rc::clone(&operands)));
        operands
    }

    pub(super) fn get(&mut self, key: &ProblemKey) -> Rc<Problem> {
        if let Some(problem) = self.find(key) {
            return problem;
        }
        let operands = key.operands();
        let oracle = self.answers.answer(key, &operands);
        self.keep(key, operands, oracle)
    }

    fn find(&self, key: &ProblemKey) -> Option<Rc<Problem>> {
        let name = key.name();
        let same = |p: &&Rc<Problem>| p.name == name && p.operands.operator == key.operator;
        self.kept.iter().find(same).map(Rc::clone)
    }

    fn keep(&mut self, key: &ProblemKey, operands: Operands, oracle: Oracle) -> Rc<Problem> {
        self.kept
            .retain(|p| p.shape == key.shape && p.operands.operator == key.operator);
        let problem = Rc::new(Problem {
            name: key.name(),
            shape: key.shape.clone(),
            operands,
            oracle,
        });
        self.kept.push(Rc::clone(&problem));
        problem
    }

    /// Makes the backend's device compute these results, if that is faster than reading them from
    /// disk; each is compared with the CPU's in a few places. Returns messages for the user: why
    /// the CPU computes them instead.
    pub(super) fn solve(&mut self, keys: &[ProblemKey], backend: &mut dyn Backend) -> Vec<String> {
        let mut notes = Vec::new();
        let asked = |key: &&ProblemKey| backend.answers() && !is_gated(&key.operator);
        for key in keys.iter().filter(asked).collect::<Vec<_>>() {
            if self.find(key).is_some() {
                continue;
            }
            let operands = key.operands();
            let checked = backend.answer(&operands).and_then(|oracle| {
                let spots = oracle.spot_check(&operands, &mut rand::rng());
                spots.map(|()| oracle).map_err(|e| e.to_string())
            });
            match checked {
                Ok(oracle) => _ = self.keep(key, operands, oracle),
                Err(why) => notes.push(format!(
                    "{}: the CPU computes the answers, because the GPU does not: {why}",
                    key.shape.name
                )),
            }
        }
        notes.retain(|note| self.noted.insert(note.clone()));
        notes
    }

    /// Makes the backend compute a result, compares it with the CPU's in a few places, and puts it
    /// in the cache. A backend without room for it leaves it to the CPU; an error means wrong
    /// results.
    pub(super) fn answer(&self, key: &ProblemKey, backend: &mut dyn Backend) -> Result<(), String> {
        if self.answers.has(key) {
            return Ok(());
        }
        let operands = key.operands();
        let oracle = backend.answer(&operands).unwrap_or_else(|why| {
            trace(|| format!("the CPU answers {}: {why}", key.shape.name));
            Oracle::compute(&operands)
        });
        oracle
            .spot_check(&operands, &mut rand::rng())
            .map_err(|e| format!("this device computes wrong products: {e}"))?;
        self.answers.keep(key, &oracle);
        Ok(())
    }
}

/// Where the supervisor leaves expected results for its workers.
pub fn answers(cache: &Path) -> OracleCache {
    OracleCache::new(cache.join(ANSWERS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Job, Loaded, RunFailure};
    use dgx_core::config::target;
    use dgx_core::domain::{BackendKind, Device, Distribution, Group};
    use dgx_core::operator::named;

    /// A device that computes results, which a test can modify.
    struct Answering<F: Fn(Oracle) -> Result<Oracle, String>> {
        tamper: F,
        asked: usize,
    }

    impl<F: Fn(Oracle) -> Result<Oracle, String>> Backend for Answering<F> {
        fn kind(&self) -> BackendKind {
            BackendKind::Cuda
        }

        fn device(&self) -> &Device {
            target::default_device()
        }

        fn load<'a>(&'a mut self, _job: Job<'a>) -> Result<Box<dyn Loaded + 'a>, RunFailure> {
            Err(RunFailure::refused("it only answers"))
        }

        fn answers(&self) -> bool {
            true
        }

        fn answer(&mut self, operands: &Operands) -> Result<Oracle, String> {
            self.asked += 1;
            (self.tamper)(Oracle::compute(operands))
        }
    }

    fn keys(name: &str) -> Vec<ProblemKey> {
        let operator = named(Some(name)).unwrap();
        let key = |distribution| ProblemKey {
            operator: operator.clone(),
            shape: Shape {
                name: "40x256".to_owned(),
                groups: vec![Group::new([("m", 40), ("n", 256)])],
            },
            distribution,
            seed: 3,
        };
        vec![key(Distribution::Benchmark), key(Distribution::Full)]
    }

    /// The results for both data sets of a softmax, and the messages.
    fn solved(
        tamper: impl Fn(Oracle) -> Result<Oracle, String>,
    ) -> (Vec<Rc<Problem>>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let mut problems = Problems::new(folder.path());
        let mut device = Answering { tamper, asked: 0 };
        let keys = keys("softmax");
        let notes = problems.solve(&keys, &mut device);
        assert!(
            problems.solve(&keys, &mut device).is_empty(),
            "once is enough"
        );
        let found = keys.iter().map(|key| problems.get(key)).collect();
        assert!(device.asked >= 2);
        (found, notes)
    }

    /// A result within the rounding of f64 is accepted.
    #[test]
    fn a_device_answers_where_it_agrees_with_the_cpu() {
        let (found, notes) = solved(|mut oracle| {
            for value in &mut oracle.groups[0].values {
                *value *= 1.0 + 1e-15;
            }
            Ok(oracle)
        });
        assert_eq!(notes, Vec::<String>::new());
        for problem in found {
            assert_ne!(problem.oracle, Oracle::compute(&problem.operands));
        }
    }

    #[test]
    fn the_cpu_answers_where_a_device_is_wrong_and_the_user_is_told() {
        let wrong = |mut oracle: Oracle| {
            for value in &mut oracle.groups[0].values {
                *value *= 1.0 + 1e-9;
            }
            Ok(oracle)
        };
        let fails = |_| Err("out of memory".to_owned());
        let (with_wrong, said_of_wrong) = solved(wrong);
        let (with_failure, said_of_failure) = solved(fails);
        for problem in with_wrong.iter().chain(&with_failure) {
            assert_eq!(problem.oracle, Oracle::compute(&problem.operands));
        }
        let first = "40x256: the CPU computes the answers, because the GPU does not: ";
        let starts = |notes: &[String], why: &str| {
            notes
                .iter()
                .all(|note| note.starts_with(&format!("{first}{why}")))
        };
        assert!(
            starts(&said_of_wrong, "y of group 0 at row "),
            "{said_of_wrong:?}"
        );
        assert_eq!(said_of_failure, [format!("{first}out of memory")]);
    }
}
