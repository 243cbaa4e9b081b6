use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Memory, Region};

/// Which 32-byte sectors of each allocation a launch has touched.
pub(crate) struct Footprint {
    regions: Vec<Sectors>,
}

/// The sectors of one allocation, a bit each.
struct Sectors {
    words: Box<[AtomicU64]>,
    /// Which [`STRIDE`]s of words have a bit set.
    strides: Box<[AtomicBool]>,
}

/// Words to whose bits one look is taken when they are counted.
pub(crate) const STRIDE: usize = 4096;

/// Cleared sets that no launch uses now: to clear what one launch touched takes less time than to
/// make a new set for a large allocation.
static SPARE: Mutex<Spares> = Mutex::new(Spares {
    sets: Vec::new(),
    words: 0,
});

struct Spares {
    sets: Vec<Sectors>,
    words: usize,
}

/// Words of all spare sets, at most; and of a set that is worth keeping, at least.
const MOST_SPARE: usize = 32 << 20;
const LEAST_SPARE: usize = 512;

impl Spares {
    fn take(&mut self, words: usize) -> Option<Sectors> {
        let at = self.sets.iter().rposition(|set| set.words.len() == words)?;
        self.words -= words;
        Some(self.sets.swap_remove(at))
    }

    fn keep(&mut self, set: Sectors) {
        let words = set.words.len();
        if self.words + words <= MOST_SPARE {
            self.words += words;
            self.sets.push(set);
        }
    }
}

fn spares() -> MutexGuard<'static, Spares> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sectors {
    fn of(region: &Region) -> Self {
        let words = region.len.div_ceil(SECTOR * 64) as usize;
        let spare = (words >= LEAST_SPARE).then(|| spares().take(words));
        spare.flatten().unwrap_or_else(|| Self::new(words))
    }

    fn new(words: usize) -> Self {
        let zeros = Box::into_raw(vec![0u64; words].into_boxed_slice());
        // SAFETY: an `AtomicU64` lies in memory as a `u64` does, and nobody else has these.
        let words = unsafe { Box::from_raw(zeros as *mut [AtomicU64]) };
        let strides = words.chunks(STRIDE).map(|_| AtomicBool::new(false));
        Self {
            strides: strides.collect(),
            words,
        }
    }

    #[inline(always)]
    fn add(&self, word: usize, bits: u64) {
        let cell = &self.words[word];
        if !cell.load(Ordering::Relaxed) & bits != 0 {
            cell.fetch_or(bits, Ordering::Relaxed);
            self.strides[word / STRIDE].store(true, Ordering::Relaxed);
        }
    }

    #[inline(never)]
    fn mark_words(&self, offset: u64, bytes: u64) {
        for (word, bits) in words_of(offset, offset + bytes) {
            self.add(word, bits);
        }
    }

    fn clear(&mut self) {
        let strides = self.words.chunks_mut(STRIDE).zip(&mut self.strides);
        for (words, touched) in strides {
            if std::mem::take(touched.get_mut()) {
                words.iter_mut().for_each(|word| *word.get_mut() = 0);
            }
        }
    }

    fn count(&self) -> u64 {
        let strides = self.words.chunks(STRIDE).zip(&self.strides);
        let touched = strides.filter(|(_, touched)| touched.load(Ordering::Relaxed));
        let bits = |w: &AtomicU64| u64::from(w.load(Ordering::Relaxed).count_ones());
        touched.flat_map(|(words, _)| words).map(bits).sum()
    }
}

/// Bytes per footprint bit: a sector of the L2 cache.
pub(crate) const SECTOR: u64 = 32;
/// Bytes over which looking at every sector is less work than looking at every lane.
const NEAR: u32 = 32 << 10;

/// The words of a set of sectors that hold those of `[first, end)`, and which of their bits.
#[inline(always)]
pub(crate) fn words_of(first: u64, end: u64) -> impl Iterator<Item = (usize, u64)> {
    let (first, last) = (first / SECTOR, (end - 1) / SECTOR);
    let (from, to) = ((first / 64) as usize, (last / 64) as usize);
    (from..to + 1).map(move |word| {
        let head = if word == from {
            u64::MAX << (first % 64)
        } else {
            u64::MAX
        };
        let tail = if word == to {
            u64::MAX >> (63 - last % 64)
        } else {
            u64::MAX
        };
        (word, head & tail)
    })
}

/// Whether all sectors of `[first, end)` are in a set.
#[inline(always)]
fn is_marked(words: &[AtomicU64], first: u64, end: u64) -> bool {
    let (first, last) = (first / SECTOR, (end - 1) / SECTOR);
    let (head, tail) = (u64::MAX << (first % 64), u64::MAX >> (63 - last % 64));
    let words = &words[(first / 64) as usize..=(last / 64) as usize];
    let lacks = |word: &AtomicU64| !word.load(Ordering::Relaxed);
    match words {
        [] => true,
        [only] => lacks(only) & head & tail == 0,
        [front, inner @ .., back] => {
            let missing = inner.iter().fold(0, |missing, word| missing | lacks(word));
            (lacks(front) & head) | missing | (lacks(back) & tail) == 0
        }
    }
}

impl Footprint {
    /// Of nothing, if nobody asks for it; then nothing may be marked.
    pub(crate) fn new(memory: &Memory, wanted: bool) -> Self {
        let regions = memory.regions.iter().filter(|_| wanted);
        Self {
            regions: regions.map(Sectors::of).collect(),
        }
    }

    /// The set of a region's sectors, and which strides of it have any.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn set(&self, region: usize) -> (&[AtomicU64], &[AtomicBool]) {
        let set = &self.regions[region];
        (&set.words, &set.strides)
    }

    /// Marks `[offset, offset + bytes)` of a region.
    #[inline(always)]
    pub(crate) fn mark(&self, region: usize, offset: u64, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let sectors = &self.regions[region];
        let (first, last) = (offset / SECTOR, (offset + bytes - 1) / SECTOR);
        if first / 64 == last / 64 {
            let bits = u64::MAX >> (63 - (last - first)) << (first % 64);
            return sectors.add((first / 64) as usize, bits);
        }
        sectors.mark_words(offset, bytes);
    }

    /// Marks the sectors of a warp's aligned accesses (of at most a sector each), which lie in
    /// `[low, end)` of a region.
    #[inline(always)]
    pub(crate) fn mark_lanes(&self, region: usize, at: &[u32; 32], (low, end): (u32, u32)) {
        let sectors = &self.regions[region];
        // Loops come back to what is marked already.
        if self.holds(region, (low, end)) {
            return;
        }
        // Neighbours often share a word, and writing it is dear.
        let (mut word, mut bits) = (at[0] as usize / SECTOR as usize / 64, 0);
        for &a in at {
            let sector = a as usize / SECTOR as usize;
            if sector / 64 != word {
                sectors.add(word, bits);
                (word, bits) = (sector / 64, 0);
            }
            bits |= 1 << (sector % 64);
        }
        sectors.add(word, bits);
    }

    /// Whether all of a short range `[low, end)` is marked.
    #[inline(always)]
    pub(crate) fn holds(&self, region: usize, (low, end): (u32, u32)) -> bool {
        let words = &self.regions[region].words;
        end - low < NEAR && is_marked(words, low.into(), end.into())
    }

    /// Marks the sectors of bits of two words of a region's set.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn mark_bits(&self, region: usize, first: usize, bits: [u64; 2]) {
        let sectors = &self.regions[region];
        sectors.add(first, bits[0]);
        if bits[1] != 0 {
            sectors.add(first + 1, bits[1]);
        }
    }

    /// Bytes of all touched sectors.
    pub(crate) fn bytes(&self) -> u64 {
        self.regions.iter().map(Sectors::count).sum::<u64>() * SECTOR
    }
}

impl Drop for Footprint {
    fn drop(&mut self) {
        for mut set in std::mem::take(&mut self.regions) {
            if set.words.len() >= LEAST_SPARE {
                set.clear();
                spares().keep(set);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn footprint_counts_each_sector_once() {
        let mut memory = Memory::new();
        memory.alloc(1 << 20).unwrap();
        let footprint = Footprint::new(&memory, true);
        footprint.mark(0, 0, 4096);
        footprint.mark(0, 4000, 200);
        footprint.mark(0, 4195, 1);
        assert_eq!(footprint.bytes(), 4096 + 128);
    }

    #[test]
    fn lanes_mark_their_own_sectors() {
        let mut memory = Memory::new();
        memory.alloc(1 << 16).unwrap();
        let footprint = Footprint::new(&memory, true);
        for (step, all) in [(64, 32), (64, 32), (32, 48), (500, 75), (4, 75)] {
            let at = std::array::from_fn(|lane| lane as u32 * step);
            footprint.mark_lanes(0, &at, (0, 31 * step + 4));
            assert_eq!(footprint.bytes(), all * SECTOR, "{step}");
        }
    }

    #[test]
    fn the_next_footprint_begins_empty() {
        let mut memory = Memory::new();
        memory.alloc(7 << 20).unwrap();
        for _ in 0..2 {
            let footprint = Footprint::new(&memory, true);
            footprint.mark(0, 5 << 20, 64);
            assert_eq!(footprint.bytes(), 64);
        }
    }
}
