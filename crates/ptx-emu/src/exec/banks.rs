//! Shared-memory bank conflicts.

use std::cell::RefCell;

use super::access::lanes;
use super::cluster::Cluster;
use super::warp::{Warp, each};

/// Entries of the pattern cache.
const ENTRIES: usize = 1024;

/// Keeps an instruction's entries of different warps apart from its neighbours'.
const PRIME: u32 = 131;

thread_local! {
    static CACHE: RefCell<ConflictCache> = RefCell::default();
}

/// The last access pattern of each instruction of each warp and what it cost: loops and CTAs repeat
/// themselves, and moving a whole pattern by a multiple of 128 bytes changes nothing. What a
/// pattern costs depends on nothing else, so a thread keeps it beyond the CTA.
#[derive(Default)]
struct ConflictCache {
    entries: Vec<Entry>,
    /// A lane for every word of shared memory: scratch of [`count_leaders`].
    leader: Vec<u8>,
}

#[derive(Clone)]
struct Entry {
    mask: u32,
    bytes: u32,
    phase: u32,
    deltas: [u32; 32],
    extra: u32,
}

const EMPTY: Entry = Entry {
    mask: 0,
    bytes: 0,
    phase: 0,
    deltas: [0; 32],
    extra: 0,
};

/// Wavefronts beyond the least a warp access of `bytes` per lane needs.
pub(super) fn extra_wavefronts(mask: u32, at: &[u64; 32], bytes: u64) -> u32 {
    let lanes_per_pass = match bytes {
        16 => 8,
        8 => 16,
        _ => 32,
    };
    let words = (bytes / 4).max(1);
    let mut extra = 0;
    for first in (0..32).step_by(lanes_per_pass) {
        // Distinct words of each bank; a pass touches at most 32.
        let mut per_bank = [0u32; 32];
        let mut seen = [0u64; 32];
        let mut count = 0;
        let pass = lanes(mask).filter(|l| (first..first + lanes_per_pass).contains(l));
        for word in pass.flat_map(|l| (0..words).map(move |k| at[l] / 4 + k)) {
            if !seen[..count].contains(&word) {
                seen[count] = word;
                count += 1;
                per_bank[word as usize % 32] += 1;
            }
        }
        extra += per_bank.into_iter().max().unwrap_or(0).saturating_sub(1);
    }
    extra
}

/// As [`extra_wavefronts`] for aligned accesses of a power of two up to 16 bytes in the CTA's own
/// memory. Of the lanes on one word the last to write its number there is the one that counts.
fn count_leaders(mask: u32, at: &[u32; 32], bytes: u32, leader: &mut Vec<u8>) -> u32 {
    let shift = bytes.max(4).trailing_zeros();
    // A pass takes as many lanes as fill 128 bytes, and there are as many places for them.
    let lanes_per_pass = 128 >> shift;
    let place = |lane: usize| (at[lane] >> shift) as usize;
    let most = lanes(mask).map(place).max().unwrap_or(0);
    if leader.len() <= most {
        leader.resize(most + 1, 0);
    }
    let mut extra = 0;
    for first in (0..32).step_by(lanes_per_pass) {
        let all = u32::MAX >> (32 - lanes_per_pass) << first & mask;
        for lane in lanes(all) {
            leader[place(lane)] = lane as u8;
        }
        let mut per_bank = [0u8; 32];
        for lane in lanes(all) {
            let word = place(lane);
            per_bank[word % lanes_per_pass] += u8::from(leader[word] == lane as u8);
        }
        let most = per_bank.into_iter().fold(0, u8::max);
        extra += u32::from(most.saturating_sub(1));
    }
    extra
}

/// Whether no two lanes of a pass lie in the same banks, for accesses as [`count_leaders`] takes
/// them. What most kernels have seen to needs no counting.
#[inline(always)]
fn apart(mask: u32, at: &[u32; 32], bytes: u32) -> bool {
    let shift = bytes.max(4).trailing_zeros();
    // As many places in a pass as it has lanes: all passes together fill one word of bits.
    let within = (128 >> shift) - 1;
    let mut places = 0u32;
    for (i, &a) in at.iter().enumerate() {
        places |= (mask >> i & 1) << ((a >> shift & within) | (i as u32 & !within));
    }
    places.count_ones() == mask.count_ones()
}

impl Cluster<'_> {
    /// Counts the conflicts of one shared access in the CTA's own memory.
    #[inline(always)]
    pub(super) fn count_conflicts(&mut self, w: &Warp, mask: u32, at: &[u32; 32], bytes: u32) {
        if apart(mask, at, bytes) {
            return;
        }
        let extra = CACHE.with_borrow_mut(
            #[inline(always)]
            |cache| cache.extra(w.pc + PRIME * w.index, mask, at, bytes),
        );
        self.counters.bank_conflicts += u64::from(extra);
    }
}

impl ConflictCache {
    #[inline(always)]
    fn extra(&mut self, place: u32, mask: u32, at: &[u32; 32], bytes: u32) -> u32 {
        let first = at[0];
        let deltas: [u32; 32] = each(
            #[inline(always)]
            |i| at[i].wrapping_sub(first),
        );
        if self.entries.is_empty() {
            self.entries = vec![EMPTY; ENTRIES];
        }
        let entry = &mut self.entries[place as usize % ENTRIES];
        let mut differs = (entry.mask ^ mask) | (entry.phase ^ (first % 128));
        for (delta, known) in deltas.iter().zip(&entry.deltas) {
            differs |= delta ^ known;
        }
        if differs | (entry.bytes ^ bytes) != 0 {
            *entry = Entry {
                mask,
                bytes,
                phase: first % 128,
                deltas,
                extra: count_leaders(mask, at, bytes, &mut self.leader),
            };
        }
        entry.extra
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_conflict_and_broadcasts_do_not() {
        let at = |f: fn(u64) -> u64| each(|i| f(i as u64));
        assert_eq!(extra_wavefronts(u32::MAX, &at(|i| 4 * i), 4), 0);
        assert_eq!(extra_wavefronts(u32::MAX, &at(|_| 64), 4), 0);
        assert_eq!(extra_wavefronts(u32::MAX, &at(|i| 8 * i), 4), 1);
        assert_eq!(extra_wavefronts(u32::MAX, &at(|i| 128 * i), 4), 31);
        assert_eq!(extra_wavefronts(u32::MAX, &at(|i| 16 * i), 16), 0);
        assert_eq!(extra_wavefronts(u32::MAX, &at(|i| 128 * i), 16), 4 * 7);
    }

    #[test]
    fn the_quick_count_is_the_plain_one() {
        let mut state = 1u32;
        let mut draw = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 8
        };
        let mut leader = Vec::new();
        for round in 0..20_000 {
            let bytes = 1 << (round % 5);
            let span = 4 << (draw() % 14);
            let mask = [u32::MAX, draw() << 8 | 1, 1 << (draw() % 32)][draw() as usize % 3];
            let at: [u32; 32] = each(|_| 1024 + draw() % span / bytes * bytes);
            let wide = at.map(u64::from);
            let plain = extra_wavefronts(mask, &wide, bytes.into());
            let quick = count_leaders(mask, &at, bytes, &mut leader);
            assert_eq!(quick, plain, "{bytes} bytes, mask {mask:#x}, {at:?}");
            assert!(!apart(mask, &at, bytes) || plain == 0);
            let spread = each(|i| 1024 + i as u32 * bytes.max(4));
            assert!(apart(mask, &spread, bytes));
        }
    }
}
