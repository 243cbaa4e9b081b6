//! The emulator's counters of a run, cell by cell.

use std::collections::BTreeMap;

use super::Run;
use crate::domain::ContenderId;

/// Counters by name.
pub type Counts = BTreeMap<String, f64>;

impl Run {
    /// A contender's counters on one shape; `None` if nothing was emulated.
    pub fn counts(&self, contender: &ContenderId, shape: &str) -> Option<&Counts> {
        let counts = &self.verdict(contender, shape)?.counters;
        (!counts.is_empty()).then_some(counts)
    }

    /// Its counters summed over those of `shapes` that have any, and the number of these shapes.
    pub fn summed_counts<'s>(
        &self,
        contender: &ContenderId,
        shapes: impl IntoIterator<Item = &'s str>,
    ) -> Option<(Counts, usize)> {
        let mut sum = Counts::new();
        let mut counted = 0;
        for counts in shapes.into_iter().filter_map(|s| self.counts(contender, s)) {
            counted += 1;
            for (name, value) in counts {
                *sum.entry(name.clone()).or_default() += value;
            }
        }
        (counted > 0).then_some((sum, counted))
    }
}
