//! What a warp has issued and not yet waited for.

use std::collections::VecDeque;

use crate::exec::lanes::V32;
use crate::exec::storage::tmem::rectangle::Loaded;
use crate::op::R32;

/// One entry of a warp's queue.
#[derive(Clone)]
pub(crate) enum Pending {
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
pub(crate) struct Issued {
    pub(crate) pc: u32,
    pub(crate) work: u64,
    pub(crate) a_desc: u64,
    pub(crate) b_desc: u64,
    pub(crate) fragments: Option<Box<[V32; 4]>>,
    /// Of a sparse instruction.
    pub(crate) metadata: Option<Box<V32>>,
    pub(crate) accumulate: bool,
    /// An operand tile was still on its way when the instruction was issued.
    pub(crate) early: bool,
}

/// What a warp has issued and not yet waited for.
#[derive(Default, Clone)]
pub(crate) struct WgmmaQueue {
    pub(crate) entries: VecDeque<(u64, Pending)>,
    /// Number of the group being filled.
    pub(crate) current: u64,
    /// In-flight slots of the 32-bit file.
    pub(crate) locked: Vec<u64>,
    /// Accumulators someone read too early: their true values, to be put back.
    pub(crate) poisoned: Vec<(u32, V32)>,
}

impl WgmmaQueue {
    /// Nothing has been issued.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        if !self.entries.is_empty() {
            self.entries.clear();
        }
        self.current = 0;
        self.locked.clear();
        self.poisoned.clear();
    }

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

    pub(crate) fn lock(&mut self, slot: R32) {
        self.lock_word(slot.0 / 64, 1 << (slot.0 % 64));
    }

    pub(crate) fn lock_word(&mut self, word: u32, slots: u64) {
        let word = word as usize;
        if self.locked.len() <= word {
            self.locked.resize(word + 1, 0);
        }
        self.locked[word] |= slots;
    }

    /// Number of groups that must be complete so that at most `n` are pending.
    pub(crate) fn below(&self, n: u32) -> u64 {
        self.current.saturating_sub(u64::from(n))
    }

    pub(crate) fn pending_below(&self, below: u64) -> bool {
        self.entries
            .front()
            .is_some_and(|(group, _)| *group < below)
    }

    /// Queues a load from tensor memory.
    pub(crate) fn defer_load(&mut self, loaded: Loaded) {
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
