//! Where warps wait for one another: barriers of CTAs and clusters, and mbarriers.

use std::collections::BTreeSet;

use ptx_emu::trace::BarrierAt;

use super::way::Way;
use super::{Cta, Item, Parked, Sim, Ticks, ticks};
use crate::times::{Activity, Cause};

/// Threads of a warp.
const LANES: u32 = 32;

#[derive(Debug, Default)]
pub(super) struct Gate {
    pub(super) arrived: u32,
    /// Threads it is for.
    pub(super) threads: u32,
    pub(super) waiting: Vec<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Mbarrier {
    pub(super) count: i64,
    pub(super) pending: i64,
    pub(super) bytes: i64,
    pub(super) phase: u32,
    pub(super) waiting: Vec<Question>,
}

/// A warp that waits for the end of a parity.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question {
    pub(super) warp: usize,
    /// What it waits with; without one it stands still.
    pub(super) board: Option<u8>,
    pub(super) parity: u32,
    /// When it asked.
    pub(super) asked: Ticks,
}

impl Sim<'_> {
    /// A barrier of the CTA.
    pub(super) fn meet(
        &mut self,
        index: usize,
        now: Ticks,
        id: u32,
        threads: u32,
        waits: bool,
    ) -> bool {
        let cta = self.warps[index].cta;
        let way = self.way(index, now);
        let gate = self.ctas[cta].barriers.entry(id).or_default();
        gate.arrived += LANES;
        gate.threads = threads;
        if let Some(open) = self.open_gate(cta, id, now, way) {
            if waits {
                self.hold(index, now, open, Activity::Barrier);
            }
            return true;
        }
        if waits {
            let gate = self.ctas[cta].barriers.entry(id).or_default();
            gate.waiting.push(index);
            self.warps[index].parked = Some((Parked::Gate, Activity::Barrier, now));
            self.warps[index].step += 1;
            return false;
        }
        true
    }

    /// Opens a barrier of a CTA if all have arrived, and says when. The one of the whole CTA does not
    /// wait for warps that have gone; of others they may have been told how many come.
    fn open_gate(&mut self, cta: usize, id: u32, now: Ticks, mut way: Way) -> Option<Ticks> {
        let Cta {
            barriers,
            warps,
            warps_left,
            ..
        } = &mut self.ctas[cta];
        let gate = barriers.get_mut(&id)?;
        let gone = match id == 0 && gate.threads >= *warps as u32 * LANES {
            true => (*warps - *warps_left) as u32 * LANES,
            false => 0,
        };
        if gate.arrived == 0 || gate.arrived + gone < gate.threads {
            return None;
        }
        gate.arrived = 0;
        let latency = ticks(self.machine.barrier_latency);
        let open = now + latency;
        way.go(Cause::Barriers, latency);
        for other in std::mem::take(&mut gate.waiting) {
            self.wake(other, open, way);
        }
        Some(open)
    }

    /// Opens the barriers of a CTA that waited for nobody but a warp that has gone.
    pub(super) fn open_gates(&mut self, cta: usize, now: Ticks, way: Way) {
        let ids: BTreeSet<u32> = self.ctas[cta].barriers.keys().copied().collect();
        for id in ids {
            self.open_gate(cta, id, now, way);
        }
    }

    /// Opens the cluster's barrier if all warps that are left have arrived.
    pub(super) fn open_cluster(&mut self, cluster: usize, now: Ticks, mut way: Way) {
        let state = &mut self.clusters[cluster];
        if state.gate.arrived == 0 || state.gate.arrived < state.warps {
            return;
        }
        state.gate.arrived = 0;
        state.phase += 1;
        let latency = ticks(self.machine.cluster_latency);
        state.opened = now + latency;
        way.go(Cause::Barriers, latency);
        let open = state.opened;
        for waiting in std::mem::take(&mut state.gate.waiting) {
            self.wake(waiting, open, way);
        }
    }

    /// A warp that stood at a barrier goes on, when the last has come this way.
    pub(super) fn wake(&mut self, index: usize, at: Ticks, way: Way) {
        let warp = &mut self.warps[index];
        warp.next = warp.next.max(at);
        let next = warp.next;
        if let Some((_, activity, since)) = warp.parked.take() {
            self.spend(index, activity, since, at);
            self.adopt(index, way, at);
        }
        self.push(next, Item::Warp(index));
    }

    /// Arrivals and bytes are on their way to a barrier of a CTA's cluster.
    pub(super) fn send(
        &mut self,
        at: Ticks,
        cta: usize,
        barrier: BarrierAt,
        (arrivals, bytes): (u32, u32),
        way: Way,
    ) {
        let (cluster, way) = (self.ctas[cta].cluster, self.ways.keep(way));
        let item = Item::Reach {
            cluster,
            barrier,
            arrivals,
            bytes,
            way,
        };
        self.push(at, item);
    }

    pub(super) fn reach(
        &mut self,
        cluster: usize,
        barrier: BarrierAt,
        arrivals: u32,
        bytes: u32,
        now: Ticks,
        way: Way,
    ) {
        let state = self.clusters[cluster].mbarriers.entry(barrier).or_default();
        state.pending -= i64::from(arrivals);
        state.bytes -= i64::from(bytes);
        if state.pending > 0 || state.bytes != 0 {
            return;
        }
        let ended = state.phase % 2;
        state.phase += 1;
        state.pending += state.count;
        let m = self.machine;
        let waiting = std::mem::take(&mut state.waiting);
        let (through, still): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .partition(|question| question.parity % 2 == ended);
        state.waiting = still;
        for Question {
            warp, board, asked, ..
        } in through
        {
            // Questions go the way of arrivals: whom the last one was ahead of has not stood still.
            let wake = match now <= asked + ticks(m.arrive_latency) {
                true => now.max(asked + ticks(m.phase_latency)),
                false => now + ticks(m.wake_latency),
            };
            let mut way = way;
            way.go(Cause::Barriers, wake - now);
            match board {
                None => self.wake(warp, wake, way),
                Some(board) => {
                    let state = &mut self.warps[warp];
                    let at = usize::from(board);
                    state.phases[at] -= 1;
                    state.boards[at] = state.boards[at].max(wake);
                    let waits = |&(parked, ..): &(Parked, _, _)| parked == Parked::Board(at);
                    if state.phases[at] == 0
                        && let Some((_, activity, since)) = state.parked.take_if(|p| waits(p))
                    {
                        let next = state.next.max(state.boards[at]);
                        self.spend(warp, activity, since, next);
                        self.adopt(warp, way, wake);
                        self.push(next, Item::Warp(warp));
                    }
                }
            }
        }
    }
}
