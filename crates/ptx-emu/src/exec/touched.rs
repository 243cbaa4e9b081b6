//! Which sectors of a CTA's shared memory were read and written at all.
//!
//! Global memory has a [`crate::memory::Footprint`] that all CTAs mark at once; a CTA's shared
//! memory belongs to one host thread, so plain words do.

use std::collections::HashMap;
use std::ops::Range;

use super::cluster::{Cluster, Cta};
use super::copy::SharedAt;
use crate::tensor::descriptor::{Major, Matrix};

/// Bytes per bit, as for global memory.
const SECTOR: u64 = 32;

/// The sectors of one CTA's shared memory that were used.
pub(crate) struct Touched {
    read: Vec<u64>,
    written: Vec<u64>,
    /// Tiles of wgmma already marked, and the bytes they lie within: loops come back to the same
    /// few.
    tiles: HashMap<(u64, u32, bool), Range<u32>>,
}

impl Touched {
    pub(crate) fn new(bytes: u32) -> Self {
        let words = u64::from(bytes).div_ceil(SECTOR * 64) as usize;
        Self {
            read: vec![0; words],
            written: vec![0; words],
            tiles: HashMap::new(),
        }
    }

    /// Marks `[offset, offset + bytes)`, which the caller has checked.
    #[inline]
    pub(super) fn mark(&mut self, offset: u64, bytes: u64, write: bool) {
        let words = if write {
            &mut self.written
        } else {
            &mut self.read
        };
        let (first, last) = (offset / SECTOR, (offset + bytes.max(1) - 1) / SECTOR);
        for word in first / 64..=last / 64 {
            let low = first.max(word * 64) - word * 64;
            let high = last.min(word * 64 + 63) - word * 64;
            if let Some(bits) = words.get_mut(word as usize) {
                *bits |= (u64::MAX >> (63 - high)) & (u64::MAX << low);
            }
        }
    }

    /// Marks what a warp's lanes access: `bytes` each, aligned, and no more than a sector.
    #[inline]
    pub(super) fn mark_lanes(&mut self, at: &[u64; 32], (low, high): (u64, u64), access: LaneRun) {
        if high - low < access.total {
            return self.mark(low, high + access.bytes - low, access.write);
        }
        // Aligned accesses of at most a sector lie in one each; neighbours often share its word.
        let words = if access.write {
            &mut self.written
        } else {
            &mut self.read
        };
        let (mut word, mut bits) = (0, 0);
        for &a in at {
            let sector = a / SECTOR;
            if sector / 64 != word {
                if let Some(place) = words.get_mut(word as usize) {
                    *place |= bits;
                }
                (word, bits) = (sector / 64, 0);
            }
            bits |= 1 << (sector % 64);
        }
        if let Some(place) = words.get_mut(word as usize) {
            *place |= bits;
        }
    }

    /// Marks an operand tile of wgmma with `rows` rows (or columns) as read; from its first byte
    /// to its last.
    pub(super) fn mark_tile(&mut self, matrix: &Matrix, rows: u32) -> Range<u32> {
        let key = (matrix.encode(), rows, matrix.major == Major::Mn);
        if let Some(range) = self.tiles.get(&key) {
            return range.clone();
        }
        let (mut first, mut last) = (u32::MAX, 0);
        for address in matrix.chunks(rows) {
            self.mark(u64::from(address), 16, false);
            (first, last) = (first.min(address), last.max(address));
        }
        let range = first..last.saturating_add(16);
        self.tiles.insert(key, range.clone());
        range
    }

    /// Bytes of all sectors read, and of all written.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let sum = |words: &[u64]| words.iter().map(|w| u64::from(w.count_ones())).sum::<u64>();
        (sum(&self.read) * SECTOR, sum(&self.written) * SECTOR)
    }
}

/// One access of a warp, for [`Touched::mark_lanes`].
#[derive(Debug, Clone, Copy)]
pub(super) struct LaneRun {
    /// Bytes per lane.
    pub(super) bytes: u64,
    /// Bytes of all active lanes.
    pub(super) total: u64,
    pub(super) write: bool,
}

impl Cluster<'_> {
    /// Counts bytes a copy put into shared memory, or took from it.
    pub(super) fn copied(&mut self, at: SharedAt, bytes: u64, write: bool) {
        match write {
            true => self.counters.shared_async_written += bytes,
            false => self.counters.shared_async_read += bytes,
        }
        let cta = &mut self.ctas[at.cta as usize];
        cta.touched.mark(u64::from(at.offset), bytes, write);
    }

    /// Adds what the CTAs' shared memories saw to the counters, once they are done.
    pub(crate) fn settle(&mut self) {
        for (read, written) in self.ctas.iter().map(|cta: &Cta| cta.touched.bytes()) {
            self.counters.shared_unique_read += read;
            self.counters.shared_unique_written += written;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_counts_once_however_often_it_is_used() {
        let mut touched = Touched::new(8192);
        touched.mark(0, 4096, true);
        touched.mark(4000, 200, true);
        assert_eq!(touched.bytes(), (0, 4096 + 128));
        let at = std::array::from_fn(|lane| 1024 + 128 * lane as u64);
        let run = LaneRun {
            bytes: 4,
            total: 128,
            write: false,
        };
        touched.mark_lanes(&at, (1024, 1024 + 31 * 128), run);
        assert_eq!(touched.bytes().0, 32 * 32);
    }
}
