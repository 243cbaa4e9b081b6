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
    /// Its knowledge at its last fence that releases.
    pub(super) fenced: Option<Fenced>,
    /// Knowledge it has read, which becomes valid at its next fence that acquires.
    pub(super) heard: Knowledge,
    /// Its last synchronising access.
    pub(super) spun: Option<Spin>,
    /// Grows with all knowledge that it may publish.
    pub(super) lessons: u32,
    /// Where it last published without a release, and its number of lessons then.
    pub(super) left: Option<((usize, u64), u32)>,
    /// The groups it is filling: `cp.async`, bulk copies, products.
    pub(super) open: [u32; 3],
    /// Products issued.
    pub(super) products: u64,
    /// Works given to the tensor core of the CTA.
    pub(super) piped: u32,
    /// Works of other warps that the tensor core executed before this warp's works that rely on
    /// them: complete when these are.
    pub(super) carried: Clock,
    /// Copies of lanes in flight, and the number of those before them.
    pub(super) lanes: VecDeque<u32>,
    pub(super) lanes_done: u32,
    /// Waits for loads and for stores of tensor memory.
    pub(super) moves: [u32; 2],
    /// The last loads and stores of tensor memory.
    pub(super) moved: [VecDeque<Move>; 2],
    /// The last step at which its lanes on different paths waited for each other.
    pub(super) met: u32,
    /// Barriers it has initialised since its last fence.
    pub(super) unfenced: Vec<(u32, u32)>,
    /// Barriers whose initialisation a fence has covered: the next visible access of the warp
    /// publishes them.
    pub(super) announced: Knowledge,
}

impl Warp {
    /// The knowledge that others receive from an access or arrival without a release, with this
    /// reach.
    pub(super) fn told_relaxed(&self, reach: u8) -> Knowledge {
        let mut told = self.announced.clone();
        if let Some(fenced) = self.fenced.as_ref().filter(|fenced| fenced.reach >= reach) {
            told.join(&fenced.known);
        }
        told.own.ran.join(&self.known.own.ran);
        told
    }

    /// Like [`Warp::hears`], for knowledge published at a location in global memory.
    pub(super) fn hears_at(&mut self, own: u64, left: &Views) {
        if let Some(mine) = left.get(&own)
            && self.known.own.ran != mine.ran
        {
            let known = Arc::make_mut(&mut self.known);
            known.own.ran.join(&mine.ran);
        }
        self.heard.learn(own, left);
    }

    /// Adds knowledge that becomes valid at the next fence that acquires.
    pub(super) fn hears(&mut self, told: &Knowledge) {
        if self.known.own.ran != told.own.ran {
            let known = Arc::make_mut(&mut self.known);
            known.own.ran.join(&told.own.ran);
        }
        self.heard.join(told);
    }
}

/// A synchronising access of one word of global memory. Its repetition passes on nothing new while
/// the warp has made no step and the knowledge published at the location is the same.
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
    /// The number of the wait that completes it.
    pub(super) number: u32,
    pub(super) pc: u32,
    /// The warp's step.
    pub(super) step: u32,
    /// The last work that had been issued by then.
    pub(super) after: u32,
}

/// Loads or stores of a warp that are recorded.
pub(super) const MOVES: usize = 16;

/// The knowledge at a fence, and the fence's reach.
#[derive(Debug, Clone)]
pub(super) struct Fenced {
    pub(super) known: Arc<Knowledge>,
    pub(super) reach: u8,
    pub(super) at: Origin,
}
