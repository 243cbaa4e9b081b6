use std::path::Path;
use std::rc::Rc;

use super::protocol::ProblemKey;
use super::trace::trace;
use crate::backend::{Backend, Salt};
use crate::operator::{ANSWERS, Operands, Oracle, OracleCache};
use dgx_core::domain::Shape;

/// Operands and the answer to them.
pub(super) struct Problem {
    pub name: String,
    pub shape: Shape,
    pub operands: Operands,
    pub oracle: Oracle,
}

impl Problem {
    /// The operands of one call, and the answer to them.
    pub(super) fn posed(&self, salt: Salt) -> (Operands, Oracle) {
        let shuffle = salt.shuffle();
        (
            self.operands.shuffled(shuffle),
            self.oracle
                .shuffled(shuffle, &self.operands.operator, &self.shape.groups),
        )
    }
}

/// The problems a worker has at hand: all of one shape, because shapes come one
/// after another and the operands of one can take most of the memory. Answers come
/// from the cache on disk; operands are drawn again, which is as fast as
/// reading them.
pub(super) struct Problems {
    answers: OracleCache,
    kept: Vec<Rc<Problem>>,
    /// The last that were asked for without their answer.
    operands: Option<(ProblemKey, Rc<Operands>)>,
}

impl Problems {
    pub(super) fn new(cache: &Path) -> Self {
        Self {
            answers: answers(cache),
            kept: Vec::new(),
            operands: None,
        }
    }

    /// Operands for a call whose output is not looked at.
    pub(super) fn operands(&mut self, key: &ProblemKey) -> Rc<Operands> {
        if let Some((_, operands)) = self.operands.as_ref().filter(|(of, _)| of == key) {
            return Rc::clone(operands);
        }
        // Given back first: they can take most of the memory.
        self.operands = None;
        let operands = Rc::new(Operands::draw(
            &key.operator,
            &key.shape,
            key.distribution,
            key.seed,
        ));
        self.operands = Some((key.clone(), Rc::clone(&operands)));
        operands
    }

    pub(super) fn get(&mut self, key: &ProblemKey) -> Rc<Problem> {
        let name = key.name();
        if let Some(problem) = self.kept.iter().find(|p| p.name == name) {
            return Rc::clone(problem);
        }
        self.kept
            .retain(|p| p.shape == key.shape && p.operands.operator == key.operator);
        let operands = Operands::draw(&key.operator, &key.shape, key.distribution, key.seed);
        let oracle = self
            .answers
            .answer(&key.shape, key.distribution, key.seed, &operands);
        let problem = Rc::new(Problem {
            name,
            shape: key.shape.clone(),
            operands,
            oracle,
        });
        self.kept.push(Rc::clone(&problem));
        problem
    }

    /// Has the backend compute an answer, holds it against the CPU's in a few
    /// places, and leaves it in the cache. A backend that has no room for it
    /// leaves it to the CPU; an error is one that computes wrong.
    pub(super) fn answer(&self, key: &ProblemKey, backend: &mut dyn Backend) -> Result<(), String> {
        let ProblemKey {
            operator,
            shape,
            distribution,
            seed,
        } = key;
        if self.answers.has(operator, shape, *distribution, *seed) {
            return Ok(());
        }
        let operands = Operands::draw(operator, shape, *distribution, *seed);
        let oracle = backend.answer(&operands).unwrap_or_else(|why| {
            trace(|| format!("the CPU answers {}: {why}", shape.name));
            Oracle::compute(&operands)
        });
        oracle
            .spot_check(&operands, &mut rand::rng())
            .map_err(|e| format!("this device computes wrong products: {e}"))?;
        self.answers
            .keep(operator, shape, *distribution, *seed, &oracle);
        Ok(())
    }
}

/// Where the supervisor leaves answers for its workers.
pub fn answers(cache: &Path) -> OracleCache {
    OracleCache::new(cache.join(ANSWERS))
}
