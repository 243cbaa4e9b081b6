use std::path::Path;
use std::rc::Rc;

use super::protocol::ProblemKey;
use crate::operator::{Operands, Oracle, OracleCache};

/// Operands and the answer to them.
pub struct Problem {
    pub name: String,
    pub operands: Operands,
    pub oracle: Oracle,
}

/// How many problems stay in memory: the distributions of one shape.
const KEPT: usize = 4;

/// The problems a worker has at hand, most recently used last. Answers come
/// from the cache on disk; operands are drawn again, which is as fast as
/// reading them.
pub struct Problems {
    answers: OracleCache,
    kept: Vec<Rc<Problem>>,
}

impl Problems {
    pub fn new(cache: &Path) -> Self {
        Self {
            answers: answers(cache),
            kept: Vec::new(),
        }
    }

    pub fn get(&mut self, key: &ProblemKey) -> Rc<Problem> {
        let name = format!("{} {} {}", key.shape.name, key.distribution, key.seed);
        if let Some(at) = self.kept.iter().position(|p| p.name == name) {
            let problem = self.kept.remove(at);
            self.kept.push(Rc::clone(&problem));
            return problem;
        }
        if self.kept.len() >= KEPT {
            self.kept.remove(0);
        }
        let operands = Operands::draw(&key.shape, key.distribution, key.seed);
        let oracle = self
            .answers
            .answer(&key.shape, key.distribution, key.seed, &operands);
        let problem = Rc::new(Problem {
            name,
            operands,
            oracle,
        });
        self.kept.push(Rc::clone(&problem));
        problem
    }
}

/// Where the supervisor leaves answers for its workers.
pub fn answers(cache: &Path) -> OracleCache {
    OracleCache::new(cache.join("oracles"))
}
