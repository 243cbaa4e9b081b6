//! Which sectors of a CTA's shared memory were read and written at all.
//!
//! Global memory has a [`crate::memory::Footprint`] that all CTAs mark at once; a CTA's shared
//! memory belongs to one host thread, so plain words do.

use std::ops::Range;

use crate::memory::{SECTOR, words_of};
use crate::mixed::MixedMap;
use crate::tensor::descriptor::{Major, Matrix};

/// Bytes over which looking at every sector is less work than marking every lane.
const NEAR: u64 = 8 << 10;

/// The sectors of one CTA's shared memory that were used.
#[derive(Default)]
pub(crate) struct Touched {
    read: Vec<u64>,
    written: Vec<u64>,
    /// Tiles of products that were asked for: loops come back to the same few.
    tiles: MixedMap<(u64, u32, u32), Tile>,
}

/// An operand tile of a product.
struct Tile {
    /// From its first byte to its last.
    span: Range<u32>,
    marked: bool,
}

impl Touched {
    /// Nothing of so many bytes.
    pub(crate) fn renew(&mut self, bytes: u32) {
        let words = u64::from(bytes).div_ceil(SECTOR * 64) as usize;
        for set in [&mut self.read, &mut self.written] {
            set.clear();
            set.resize(words, 0);
        }
        self.tiles.clear();
    }

    /// The sectors read, and those written.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn sets(&mut self) -> [*mut u64; 2] {
        [self.read.as_mut_ptr(), self.written.as_mut_ptr()]
    }

    /// Marks `[offset, offset + bytes)`, which the caller has checked.
    #[inline]
    pub(crate) fn mark(&mut self, offset: u64, bytes: u64, write: bool) {
        let words = if write {
            &mut self.written
        } else {
            &mut self.read
        };
        for (word, bits) in words_of(offset, offset + bytes.max(1)) {
            if let Some(place) = words.get_mut(word) {
                *place |= bits;
            }
        }
    }

    /// Marks the sectors of a warp's aligned accesses (of at most a sector each), which lie in
    /// `[low, end)`.
    #[inline(always)]
    pub(crate) fn mark_lanes(&mut self, at: &[u32; 32], (low, end): (u64, u64), write: bool) {
        let words = if write {
            &mut self.written
        } else {
            &mut self.read
        };
        // Loops come back to what is marked already.
        if end - low < NEAR {
            let mut missing = 0;
            for (word, bits) in words_of(low, end) {
                missing |= !words[word] & bits;
            }
            if missing == 0 {
                return;
            }
        }
        for &a in at {
            let sector = u64::from(a) / SECTOR;
            words[sector as usize / 64] |= 1 << (sector % 64);
        }
    }

    fn tile(&mut self, matrix: &Matrix, rows: u32) -> &mut Tile {
        let unit = if matrix.major == Major::Mn {
            matrix.unit
        } else {
            0
        };
        let key = (matrix.encode(), rows, unit);
        self.tiles.entry(key).or_insert_with(|| {
            let (mut first, mut last) = (u32::MAX, 0);
            for address in matrix.chunks(rows) {
                (first, last) = (first.min(address), last.max(address));
            }
            Tile {
                span: first..last.saturating_add(16),
                marked: false,
            }
        })
    }

    /// The bytes an operand tile with `rows` rows (or columns) lies within.
    pub(crate) fn span_of(&mut self, matrix: &Matrix, rows: u32) -> Range<u32> {
        self.tile(matrix, rows).span.clone()
    }

    /// Marks an operand tile as read.
    pub(crate) fn mark_tile(&mut self, matrix: &Matrix, rows: u32) {
        if std::mem::replace(&mut self.tile(matrix, rows).marked, true) {
            return;
        }
        for address in matrix.chunks(rows) {
            self.mark(u64::from(address), 16, false);
        }
    }

    /// Bytes of all sectors read, and of all written.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let sum = |words: &[u64]| words.iter().map(|w| u64::from(w.count_ones())).sum::<u64>();
        (sum(&self.read) * SECTOR, sum(&self.written) * SECTOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_counts_once_however_often_it_is_used() {
        let mut touched = Touched::default();
        touched.renew(8192);
        touched.mark(0, 4096, true);
        touched.mark(4000, 200, true);
        assert_eq!(touched.bytes(), (0, 4096 + 128));
        let at = std::array::from_fn(|lane| 1024 + 128 * lane as u32);
        for _ in 0..2 {
            touched.mark_lanes(&at, (1024, 1024 + 31 * 128 + 4), false);
            assert_eq!(touched.bytes().0, 32 * 32);
        }
    }
}
