//! Asynchronous copies and products in flight.

use std::collections::VecDeque;
use std::sync::Arc;

use super::clock::Knowledge;
use crate::exec::listen::agent::Agent;
use crate::exec::origin::{Origin, SharedAt};

/// Recorded works; older ones count as complete.
pub(super) const WORKS: usize = 1 << 14;

/// An asynchronous copy or product.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) from: Origin,
    pub(super) agent: Option<Agent>,
    /// The knowledge of its warp (or warps) when it was issued.
    pub(super) known: Arc<Knowledge>,
    /// The group that completes it, and the one that shows that its source was read.
    pub(super) group: Option<(u32, u32)>,
    pub(super) read: Option<(u32, u32)>,
    /// The phases that complete it, each for the shared memory of a CTA.
    pub(super) phases: Vec<(u32, u32, u32)>,
    /// CTAs whose shared memory it has written since it last signalled.
    pub(super) unsignalled: Vec<u32>,
    /// The CTAs whose shared memory it reads and writes, a bit each, and its first address.
    pub(super) uses: [u32; 2],
    pub(super) at: u32,
    /// The barrier it is to signal first, and the phase when it was issued.
    pub(super) awaited: Option<(SharedAt, u64)>,
    /// Its place in the queue of the tensor core, or among the copies of its warp's lanes.
    pub(super) place: Option<(u32, u32)>,
    pub(super) lanes: bool,
}

impl Work {
    /// The unit that performs it, or will perform it.
    pub(super) fn performer(&self) -> Agent {
        match (self.agent, self.lanes, self.place) {
            (Some(agent), ..) => agent,
            (None, true, _) => Agent::LaneCopy,
            (None, false, Some(_)) => Agent::TensorCore,
            (None, false, None) => Agent::BulkCopy,
        }
    }

    /// Whether its warp waits for it by groups, not by a barrier.
    pub(super) fn is_grouped(&self) -> bool {
        self.group.is_some()
    }
}

/// The works of a cluster, numbered from 1 on; the oldest are dropped.
#[derive(Debug, Default)]
pub(super) struct Works {
    kept: VecDeque<Work>,
    pub(super) first: u32,
}

impl Works {
    pub(super) fn get(&self, number: u32) -> Option<&Work> {
        self.kept.get(number.checked_sub(self.first)? as usize)
    }

    /// The number of the last one.
    pub(super) fn last(&self) -> u32 {
        (self.first + self.kept.len() as u32).saturating_sub(1)
    }

    /// The recorded ones, with their numbers.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, &Work)> {
        (self.first..).zip(&self.kept)
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Work> {
        self.kept.get_mut(number.checked_sub(self.first)? as usize)
    }

    pub(super) fn push(&mut self, number: u32, work: Work) {
        if self.kept.is_empty() {
            self.first = number;
        }
        self.kept.push_back(work);
        if self.kept.len() > WORKS {
            self.kept.pop_front();
            self.first += 1;
        }
    }
}
