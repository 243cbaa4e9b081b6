//! The knowledge that threads publish at the locations in global memory that they synchronise
//! through.

use super::clock::{Knowledge, Views};
use crate::exec::origin::Origin;
use crate::mixed::MixedMap;

/// Knowledge published at a location.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) views: Views,
    /// The fence of the last publication.
    pub(super) by: Option<Narrow>,
    /// Grows with every new publication.
    pub(super) version: u64,
}

/// A fence that published knowledge, and its reach.
#[derive(Debug, Clone, Copy)]
pub(super) struct Narrow {
    pub(super) cluster: u64,
    pub(super) reach: u8,
    pub(super) at: Origin,
}

impl Narrow {
    /// It does not reach other clusters.
    fn is_short(&self) -> bool {
        self.reach < 3
    }
}

/// All published knowledge, by allocation and word.
#[derive(Debug, Default)]
pub(super) struct Published {
    places: MixedMap<(usize, u64), Left>,
}

impl Published {
    /// Publishes knowledge at a location; `by` a fence that is new there, or none.
    pub(super) fn leave(
        &mut self,
        at: (usize, u64),
        cluster: u64,
        known: &Knowledge,
        by: Option<Option<Narrow>>,
    ) {
        let left = self.places.entry(at).or_default();
        let mut news = known.leave(cluster, &mut left.views);
        if let Some(by) = by {
            // Fences that reach everywhere are equal for all readers.
            news |= [left.by, by].iter().flatten().any(Narrow::is_short);
            left.by = by;
        }
        left.version += u64::from(news);
    }

    /// The number of publications there.
    pub(super) fn version(&self, at: (usize, u64)) -> u64 {
        self.places.get(&at).map_or(0, |left| left.version)
    }

    /// The knowledge published there.
    pub(super) fn left(&self, at: (usize, u64)) -> Option<&Left> {
        self.places.get(&at)
    }
}
