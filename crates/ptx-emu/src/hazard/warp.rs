//! The state of one warp: its knowledge, its asynchronous work, and its last synchronising access.

use std::collections::VecDeque;
use std::sync::Arc;

use super::clock::{Clock, Knowledge, Views};
use crate::exec::listen::visit::Act;
use crate::exec::origin::Origin;
use crate::op::Order;

/// One warp.
#[derive(Debug, Default)]
pub(super) struct Warp {
    /// Grows with everything it does or learns that orders accesses.
    pub(super) step: u32,
    pub(super) known: Arc<Knowledge>,
    /// What it knew at its last fence that releases.
    pub(super) fenced: Option<Fenced>,
    /// What it read of others and will know at its next fence that acquires.
    pub(super) heard: Knowledge,
    /// The access by which it last told others something or was told.
    pub(super) spun: Option<Spin>,
    /// Grows with everything that others may be told of.
    pub(super) lessons: u32,
    /// Where it last left what it may tell without a release, and how many lessons it had by then.
    pub(super) left: Option<((usize, u64), u32)>,
    /// The groups it is filling: `cp.async`, bulk copies, products.
    pub(super) open: [u32; 3],
    /// Products issued.
    pub(super) products: u64,
    /// Works given to the tensor core of the CTA.
    pub(super) piped: u32,
    /// Works of other warps that the tensor core took before those of this one which rely on them:
    /// over when these are.
    pub(super) carried: Clock,
    /// Copies of lanes under way, and how many there were before them.
    pub(super) lanes: VecDeque<u32>,
    pub(super) lanes_done: u32,
    /// Waits for loads and for stores of tensor memory.
    pub(super) moves: [u32; 2],
    /// The last of them, loads and stores apart.
    pub(super) moved: [VecDeque<Move>; 2],
    /// The last step by which lanes of it that are on paths of their own waited for each other.
    pub(super) met: u32,
    /// Barriers it has initialised since its last fence.
    pub(super) unfenced: Vec<(u32, u32)>,
    /// Barriers that a fence for them has been executed for: whatever it does next that others
    /// see tells them.
    pub(super) announced: Knowledge,
}

impl Warp {
    /// What others learn from an access or arrival that releases nothing by itself, and reaches
    /// them by so much.
    pub(super) fn told_relaxed(&self, reach: u8) -> Knowledge {
        let mut told = self.announced.clone();
        if let Some(fenced) = self.fenced.as_ref().filter(|fenced| fenced.reach >= reach) {
            told.join(&fenced.known);
        }
        told.own.ran.join(&self.known.own.ran);
        told
    }

    /// As [`Warp::hears`], of what was left at a place in global memory.
    pub(super) fn hears_at(&mut self, own: u64, left: &Views) {
        if let Some(mine) = left.get(&own)
            && self.known.own.ran != mine.ran
        {
            let known = Arc::make_mut(&mut self.known);
            known.own.ran.join(&mine.ran);
        }
        self.heard.learn(own, left);
    }

    /// Something is heard that will be known at the next fence that acquires.
    pub(super) fn hears(&mut self, told: &Knowledge) {
        if self.known.own.ran != told.own.ran {
            let known = Arc::make_mut(&mut self.known);
            known.own.ran.join(&told.own.ran);
        }
        self.heard.join(told);
    }
}

/// An access of one word of global memory that tells others something or is told. Done again, it
/// gives nobody news: while the warp has made no step and what is left at the place is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spin {
    pub(super) at: (usize, u64),
    pub(super) act: Act,
    pub(super) order: Order,
    pub(super) step: u32,
    pub(super) version: u64,
}

/// A load or store of tensor memory, and when it was executed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Move {
    /// Waits up to the one it is over with.
    pub(super) number: u32,
    pub(super) pc: u32,
    /// The warp's step.
    pub(super) step: u32,
    /// The last work that had been issued by then.
    pub(super) after: u32,
}

/// Loads or stores of a warp that are remembered.
pub(super) const MOVES: usize = 16;

/// What somebody knew at a fence, and how far that reaches.
#[derive(Debug, Clone)]
pub(super) struct Fenced {
    pub(super) known: Arc<Knowledge>,
    pub(super) reach: u8,
    pub(super) at: Origin,
}
