//! Atomics: lanes that have the same word take turns, in L2 those of all SMs.

use super::memory::first_sector;
use super::{CYCLE, Sim, Ticks, ticks};
use crate::sass::Update;
use crate::times::{Activity, Cause};

/// Cycles of L2 for each update of a word. No probe asks for it; NVIDIA gave one operation a clock on
/// a common address for GK110 (its white paper, 2012) and has published nothing slower or faster since.
const UPDATE_INTERVAL: f64 = 1.0;

/// A sector that is updated.
#[derive(Debug, Default)]
pub(super) struct Sector {
    /// When L2 is free for its next update.
    free: Ticks,
    /// Cycles that L2 has had for it, those for the other SMs included.
    taken: f64,
    /// Whether an update has found it free: SMs are out of step then.
    parted: bool,
}

impl Sector {
    /// When a warp's turns begin, which take so many cycles. All SMs ask at once, and the last of them has its turns when all
    /// have. Once they are out of step the others are in the way as far as they keep it busy.
    fn update(&mut self, now: Ticks, own: f64, sms: f64) -> Ticks {
        self.parted |= self.taken > 0.0 && self.free <= now;
        let others = match self.parted {
            false => sms - 1.0,
            true => (sms - 1.0) * (self.taken / (now as f64 / CYCLE).max(1.0)).min(1.0),
        };
        self.taken += own * sms;
        let start = self.free.max(now) + ticks(own * others);
        self.free = start + ticks(own);
        start
    }
}

impl Sim<'_> {
    /// The updates of an atomic on global memory that reach L2 at `left`. A warp's own turns are part
    /// of the latency, which was measured on 32 lanes of one word (`global/atomic`).
    pub(super) fn update_global(
        &mut self,
        index: usize,
        now: Ticks,
        left: Ticks,
        issued: Option<u32>,
        board: Option<u8>,
    ) {
        let update = self.update_of(issued);
        let interval = match update {
            Update::InMemory | Update::Together => UPDATE_INTERVAL,
            // Who comes after another loads what that one has left.
            Update::InLoop => self.machine.atomic_latency,
        };
        let (sm, cta) = (self.warps[index].sm, self.warps[index].cta);
        let (mut start, mut end) = (left, left);
        for (at, turns) in std::mem::take(&mut self.warps[index].updates) {
            let (region, first) = first_sector(&at);
            let sms = self.work.updaters.get(&(region, first));
            let turn = match sms {
                Some(_) => 0,
                None => self.ctas[cta].turn,
            };
            let turns = match update {
                Update::Together => 1.0,
                Update::InMemory | Update::InLoop => f64::from(turns),
            };
            let sector = self.updated.entry((region, first, turn)).or_default();
            let begun = sector.update(now, turns * interval, sms.copied().unwrap_or(1.0));
            start = start.max(begun);
            end = end.max(sector.free);
        }
        // What is stored behind it comes to L2 behind it.
        let state = &mut self.sms[sm];
        state.stores = state.stores.max(end);
        let latency = ticks(self.machine.atomic_latency);
        let cause = match start - now > latency {
            true => Cause::L2,
            false => Cause::Latency,
        };
        self.occupy(index, board, start + latency, Activity::Memory, cause);
        if update == Update::InLoop {
            self.hold_on(index, now, end, Activity::Memory, cause);
        }
    }

    /// An atomic on shared memory.
    pub(super) fn update_shared(
        &mut self,
        index: usize,
        now: Ticks,
        turns: u32,
        issued: Option<u32>,
        (board, operands): (Option<u8>, Option<u8>),
    ) {
        let m = self.machine;
        let update = self.update_of(issued);
        let turns = match update {
            Update::Together => 1.0,
            Update::InMemory | Update::InLoop => f64::from(turns),
        };
        let state = &mut self.sms[self.warps[index].sm];
        let start = state.shared.max(now);
        state.shared = start + ticks(turns * m.shared_interval);
        let done = match update {
            // Each turn loads what the one before has left.
            Update::InLoop => start + ticks(turns * (m.shared_latency + m.shared_atomic_latency)),
            _ => state.shared + ticks(m.shared_atomic_latency - m.shared_interval),
        };
        let read = state.shared + ticks(m.operands_latency);
        self.warps[index].unfenced = true;
        self.occupy(index, operands, read, Activity::Result, Cause::Shared);
        self.occupy(index, board, done, Activity::Result, Cause::Shared);
        if update == Update::InLoop {
            self.hold_on(index, now, done, Activity::Result, Cause::Shared);
        }
    }

    fn update_of(&self, issued: Option<u32>) -> Update {
        issued.map_or(Update::InMemory, |op| {
            self.work.code.instructions[op as usize].update
        })
    }
}
