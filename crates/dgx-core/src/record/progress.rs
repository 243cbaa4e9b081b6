//! The progress of a run, from its file alone.

use super::run::Run;
use crate::domain::{ContenderId, Shape, Status};
use crate::stats::decision::{Rule, decide};

impl Run {
    /// Whether the ranking over all shapes is settled, and if not, the time it still needs, given
    /// the time so far; empty if nothing was timed.
    pub fn decision(&self, seconds: f64) -> String {
        if self.tally.is_empty() {
            return String::new();
        }
        let everywhere = |id: &&ContenderId| {
            let ok = |s: &Shape| self.status(id, &s.name) == Some(Status::Ok);
            self.header.shapes.iter().all(ok)
        };
        let contenders = self.header.contenders.iter().map(|c| &c.id);
        let arms: Vec<usize> = contenders
            .filter(everywhere)
            .filter_map(|id| self.arm(id))
            .collect();
        let per_block = seconds / self.tally.blocks() as f64 * self.header.shapes.len() as f64;
        decide(&self.tally, &arms, &Rule::default()).summary(per_block)
    }

    /// Whether a shape is finished.
    pub fn finished(&self, shape: &str) -> bool {
        let whole = self.end.as_ref().is_some_and(|end| end.complete);
        let taken_whole = || {
            let mut parts = self.header.parts.iter();
            parts.any(|part| part.shapes.iter().any(|s| s == shape))
        };
        whole || taken_whole() || (self.judged(shape) && self.timed(shape))
    }

    /// Whether a shape has any results, besides builds.
    pub(crate) fn begun_on(&self, shape: &str) -> bool {
        let known = |id: &ContenderId| {
            self.verdict(id, shape).is_some() || self.estimate(id, shape).is_some()
        };
        self.entrants().any(known) || self.blocks_of(shape) > 0
    }

    /// Recorded blocks of a shape.
    pub fn blocks_of(&self, shape: &str) -> u64 {
        let place = self.names.shape(shape);
        let processes = place.into_iter().flat_map(|s| self.tally.processes(s));
        processes.map(|(_, blocks)| u64::from(blocks)).sum()
    }

    /// Recorded verdicts of a shape.
    pub(crate) fn verdicts_of(&self, shape: &str) -> usize {
        let contenders = self.header.contenders.iter();
        contenders
            .filter(|c| self.verdict(&c.id, shape).is_some())
            .count()
    }

    fn judged(&self, shape: &str) -> bool {
        self.verdicts_of(shape) == self.header.contenders.len()
    }

    /// Whether every process has its share of blocks, if blocks are taken.
    fn timed(&self, shape: &str) -> bool {
        let right = |id: &ContenderId| self.status(id, shape) == Some(Status::Ok);
        let mut contenders = self.header.contenders.iter().map(|c| &c.id);
        if !self.timing().sampled() || !contenders.any(right) {
            return true;
        }
        let (share, processes) = (self.header.settings.share(), self.header.settings.processes);
        let place = self.names.shape(shape);
        let whole = place
            .into_iter()
            .flat_map(|s| self.tally.processes(s))
            .filter(|(_, blocks)| *blocks >= share);
        whole.count() >= processes as usize
    }
}
