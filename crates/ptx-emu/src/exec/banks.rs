//! Shared-memory bank conflicts.

use super::access::lanes;
use super::cluster::Cluster;
use super::warp::each;

/// Entries of the pattern cache.
const ENTRIES: usize = 256;

/// The last access pattern of each instruction and what it cost: loops repeat themselves, and
/// moving a whole pattern by a multiple of 128 bytes changes nothing.
#[derive(Default)]
pub(crate) struct ConflictCache {
    entries: Vec<Entry>,
}

#[derive(Clone)]
struct Entry {
    pc: u32,
    mask: u32,
    bytes: u32,
    phase: u32,
    deltas: [u32; 32],
    extra: u32,
}

const EMPTY: Entry = Entry {
    pc: u32::MAX,
    mask: 0,
    bytes: 0,
    phase: 0,
    deltas: [0; 32],
    extra: 0,
};

/// Wavefronts beyond the least a warp access of `bytes` per lane needs.
fn extra_wavefronts(mask: u32, at: &[u64; 32], bytes: u64) -> u32 {
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

impl Cluster<'_> {
    /// Counts the conflicts of one shared access.
    #[inline]
    pub(super) fn count_conflicts(&mut self, pc: u32, mask: u32, at: &[u64; 32], bytes: u64) {
        let first = at[0] as u32;
        let deltas: [u32; 32] = each(
            #[inline(always)]
            |i| (at[i] as u32).wrapping_sub(first),
        );
        if self.conflicts.entries.is_empty() {
            self.conflicts.entries = vec![EMPTY; ENTRIES];
        }
        let entry = &mut self.conflicts.entries[pc as usize % ENTRIES];
        let known = entry.pc == pc
            && entry.mask == mask
            && entry.bytes == bytes as u32
            && entry.phase == first % 128
            && entry.deltas == deltas;
        if !known {
            *entry = Entry {
                pc,
                mask,
                bytes: bytes as u32,
                phase: first % 128,
                deltas,
                extra: extra_wavefronts(mask, at, bytes),
            };
        }
        self.counters.bank_conflicts += u64::from(entry.extra);
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
}
