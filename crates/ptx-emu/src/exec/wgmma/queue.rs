//! What a warp has issued and not yet waited for.

use std::collections::VecDeque;

use crate::exec::lanes::V32;
use crate::exec::tcgen05::rectangle::Loaded;
use crate::op::R32;

/// One entry of a warp's queue.
#[derive(Clone)]
pub(super) enum Pending {
    Mma(Issued),
    /// A register copy that waits for its source.
    Copy {
        from: R32,
        to: R32,
    },
    /// A `tcgen05.ld`, which is waited for like these.
    Load(Loaded),
}

#[derive(Clone)]
pub(super) struct Issued {
    pub(super) pc: u32,
    pub(super) work: u64,
    pub(super) a_desc: u64,
    pub(super) b_desc: u64,
    pub(super) fragments: Option<Box<[V32; 4]>>,
    /// Of a sparse instruction.
    pub(super) metadata: Option<Box<V32>>,
    pub(super) accumulate: bool,
    /// An operand tile was still on its way when the instruction was issued.
    pub(super) early: bool,
}

/// What a warp has issued and not yet waited for.
#[derive(Default, Clone)]
pub(crate) struct WgmmaQueue {
    pub(super) entries: VecDeque<(u64, Pending)>,
    /// Number of the group being filled.
    pub(super) current: u64,
    /// In-flight slots of the 32-bit file.
    pub(super) locked: Vec<u64>,
    /// Accumulators someone read too early: their true values, to be put back.
    pub(super) poisoned: Vec<(u32, V32)>,
}

impl WgmmaQueue {
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        self.entries.is_empty()
    }

    #[inline(always)]
    pub(crate) fn is_locked(&self, slot: R32) -> bool {
        self.locked
            .get(slot.0 as usize / 64)
            .is_some_and(|word| word >> (slot.0 % 64) & 1 == 1)
    }

    pub(super) fn lock(&mut self, slot: R32) {
        self.lock_word(slot.0 / 64, 1 << (slot.0 % 64));
    }

    pub(super) fn lock_word(&mut self, word: u32, slots: u64) {
        let word = word as usize;
        if self.locked.len() <= word {
            self.locked.resize(word + 1, 0);
        }
        self.locked[word] |= slots;
    }

    /// Number of groups that must be complete so that at most `n` are pending.
    pub(super) fn below(&self, n: u32) -> u64 {
        self.current.saturating_sub(u64::from(n))
    }

    pub(in crate::exec) fn pending_below(&self, below: u64) -> bool {
        self.entries
            .front()
            .is_some_and(|(group, _)| *group < below)
    }

    /// Queues a load from tensor memory.
    pub(in crate::exec) fn defer_load(&mut self, loaded: Loaded) {
        self.entries
            .push_back((self.current, Pending::Load(loaded)));
    }

    /// Queues a move whose source is in flight.
    pub(crate) fn defer_copy(&mut self, from: R32, to: R32) {
        // In flight means in the queue: behind its producer, in the producer's group.
        let group = self
            .entries
            .back()
            .map_or(self.current, |(group, _)| *group);
        self.entries.push_back((group, Pending::Copy { from, to }));
        self.lock(to);
    }
}
