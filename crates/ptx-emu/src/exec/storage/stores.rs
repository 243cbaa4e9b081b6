//! Stores to global memory, each as a warp made it.
//!
//! Most kernels write their results once and never look at them. To keep what they store as it
//! comes, and to write it all when it is published, takes less time than to copy it into pages.

#![cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "only machine code keeps its stores so")
)]

use crate::exec::lanes::{V32, lanes};
use crate::exec::storage::pointers::fetch;

/// Stores kept, at most: more may well be to the same places.
const MOST: usize = 1 << 11;

/// Rows that are asked for before they are read.
const AHEAD: usize = 8;

/// Where the lanes of a store are, in an allocation.
pub(crate) enum Lie {
    /// All one behind the other, from an offset on.
    Run(u32),
    /// Each at its own offset.
    Apart(V32),
}

/// A word of each of some lanes.
struct Store {
    region: u32,
    lanes: u32,
    /// The offset of the first lane, if all lie one behind the other.
    run: Option<u32>,
}

/// What a cluster has stored.
#[derive(Default)]
pub(super) struct Stores {
    made: Vec<Store>,
    /// Of each store its words, and before them its lanes' offsets unless they lie one behind the
    /// other.
    rows: Vec<V32>,
    /// Allocations that were stored to, a bit each.
    regions: u64,
}

/// Bytes of an allocation that a store writes.
pub(super) struct Piece<'s> {
    pub(super) region: usize,
    pub(super) first: usize,
    pub(super) words: &'s [u32],
}

impl Stores {
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.made.is_empty()
    }

    /// Whether there are any to an allocation.
    #[inline(always)]
    pub(super) fn hold(&self, region: usize) -> bool {
        region < 64 && self.regions >> region & 1 == 1
    }

    /// Whether one more to an allocation can be kept.
    #[inline(always)]
    pub(super) fn take(&self, region: usize) -> bool {
        region < 64 && self.made.len() < MOST
    }

    pub(super) fn clear(&mut self) {
        self.made.clear();
        self.rows.clear();
        self.regions = 0;
    }

    /// Keeps a word of each of some lanes.
    #[inline(always)]
    pub(super) fn push(&mut self, region: usize, lanes: u32, at: Lie, words: V32) {
        self.regions |= 1 << region;
        let run = match at {
            Lie::Run(first) => Some(first),
            Lie::Apart(offsets) => {
                self.rows.push(offsets);
                None
            }
        };
        self.rows.push(words);
        self.made.push(Store {
            region: region as u32,
            lanes,
            run,
        });
    }

    /// Calls `each` with what was stored, the first first.
    #[inline(always)]
    pub(super) fn replay(&self, mut each: impl FnMut(Piece<'_>)) {
        let mut rows = self.rows.iter();
        for store in &self.made {
            // Where many clusters keep many, they are in no near cache any more.
            if let Some(row) = rows.as_slice().get(AHEAD) {
                fetch::<_, 2>(row);
            }
            let region = store.region as usize;
            let mut next = || rows.next().map_or(&[0; 32], |row| &row.0);
            if let Some(first) = store.run {
                let (first, words) = (first as usize, &next()[..]);
                each(Piece {
                    region,
                    first,
                    words,
                });
                continue;
            }
            let (offsets, words) = (next(), next());
            for lane in lanes(store.lanes) {
                each(Piece {
                    region,
                    first: offsets[lane] as usize,
                    words: &words[lane..=lane],
                });
            }
        }
    }
}
