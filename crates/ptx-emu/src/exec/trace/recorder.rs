//! What the warps of watched clusters have done so far.

use super::plan::Plan;
use super::tape::Tape;
use crate::exec::warp::Warp;
use crate::trace::{BarrierAt, Deed};

/// Which clusters of a launch are followed, or run alone.
pub(crate) struct Watched {
    /// By number, ascending.
    pub(crate) clusters: Vec<u64>,
    /// No others run.
    pub(crate) only: bool,
    /// How to write down what they do, where that is wanted.
    pub(crate) plan: Option<Plan>,
}

impl Watched {
    /// These run without the others, and nothing is written down.
    pub(crate) fn alone(clusters: Vec<u64>) -> Self {
        Self {
            clusters,
            only: true,
            plan: None,
        }
    }
}

/// What the warps of a watched cluster have done so far.
pub(crate) struct Recorder {
    /// By CTA and warp.
    pub(crate) tapes: Vec<Vec<Tape>>,
    /// Of the instruction that is being looked at.
    pub(crate) deeds: Vec<Deed>,
    pub(crate) asked: Vec<BarrierWait>,
    /// Events on all tapes.
    pub(crate) events: usize,
}

/// Events of a cluster that are written down at most: some hundred megabytes. A loop without end
/// would fill any memory before it counts as hung.
const EVENTS: usize = 8_000_000;

/// Lanes that ask an mbarrier the same.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BarrierWait {
    pub(crate) barrier: BarrierAt,
    pub(crate) parity: u32,
    pub(crate) lanes: u32,
}

impl Recorder {
    pub(crate) fn new(warps: impl Iterator<Item = usize>) -> Self {
        let tapes = warps.map(|warps| (0..warps).map(|_| Tape::default()).collect());
        Self {
            tapes: tapes.collect(),
            deeds: Vec::new(),
            asked: Vec::new(),
            events: 0,
        }
    }

    /// Whether there was more to write down than there is room for; nothing is kept then.
    pub(crate) fn overflowed(&self) -> bool {
        self.events > EVENTS
    }

    pub(crate) fn tape(&mut self, w: &Warp) -> &mut Tape {
        &mut self.tapes[w.cta as usize][w.index as usize]
    }
}
