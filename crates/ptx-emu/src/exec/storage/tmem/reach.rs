//! A part of tensor memory.

use std::ops::Range;

/// Columns and lanes of tensor memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) columns: Range<u32>,
    pub(crate) lanes: u128,
}

impl Reach {
    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.columns.start < other.columns.end
            && other.columns.start < self.columns.end
            && self.lanes & other.lanes != 0
    }
}
