//! The accesses of a launch to global memory, for the next launch, which may begin before it ends.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::finding::Site;
use super::global::{Global, Trace};
use super::words::Side;
use crate::exec::cluster::env::cta_id;
use crate::exec::listen::visit::Act;
use crate::exec::origin::Origin;
use crate::fault::Place;

/// The accesses of a launch to global memory: [`Sanitize::after`](super::Sanitize::after) passes
/// them to the next one, if that may begin before this one ends.
#[derive(Clone, Default)]
pub struct Wake(Option<Arc<Past>>);

/// A launch that may still be running.
pub(super) struct Past {
    pub(super) global: Global,
    /// The places of its instructions that accessed global memory.
    pub(super) places: HashMap<u32, Place>,
    /// Its grid, and its clusters, in CTAs.
    pub(super) grid: [u32; 3],
    pub(super) cluster: [u32; 3],
}

impl Wake {
    pub(super) fn new(past: Past) -> Self {
        Self(Some(Arc::new(past)))
    }

    /// An access of the launch before that conflicts with this one.
    pub(super) fn meets(&self, at: (usize, u64), bytes: u8, writes: bool) -> Option<(u32, Site)> {
        let past = self.0.as_ref()?;
        let (old, wrote) = past.global.last(at, bytes, writes)?;
        Some((old.pc, past.site(&old, wrote)?))
    }
}

impl Past {
    fn site(&self, old: &Trace, wrote: bool) -> Option<Site> {
        let act = if wrote { Act::Write } else { Act::Read };
        let side = Side::new(old.agent, act, Origin::default());
        let place = self.places.get(&old.pc)?;
        Some(Site {
            deed: side.deed(),
            executed: true,
            place: Place {
                cta: cta_id(self.grid, self.cluster, old.cluster.into(), old.cta.into()),
                warp: old.warp.into(),
                lanes: 1 << old.lane,
                ..place.clone()
            },
        })
    }
}

impl fmt::Debug for Wake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wake")
    }
}
