//! Tensor memory of one CTA: its words, who allocated them, and what is still to be done to them.

pub(crate) mod layouts;
pub(crate) mod multiprocessors;
pub(crate) mod reach;
pub(crate) mod rectangle;
pub(crate) mod work;

use std::collections::VecDeque;
use std::ops::Range;

use crate::exec::origin::Origin;
use crate::op::CtaGroup;
use crate::tensor::tcgen05::{COLUMNS, LANES};
use layouts::Layouts;
use reach::Reach;
use work::{Collected, Issued};

/// What nobody has written reads as: NaN.
pub(crate) const POISON: u32 = u32::MAX;

/// Columns of a granule, the least that is allocated.
pub(crate) const GRANULE: u32 = 32;

/// Columns that were allocated together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub first: u32,
    pub columns: u32,
    /// The instruction that allocated them.
    pub pc: u32,
}

/// A warp that waits for its peer to allocate as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ask {
    pub warp: u32,
    pub columns: u32,
    pub pc: u32,
    /// Where, once both have asked.
    pub granted: Option<u32>,
}

/// Tensor memory of one CTA.
#[derive(Default)]
pub(crate) struct Tmem {
    /// Column after column; empty until the first allocation.
    pub(crate) words: Vec<u32>,
    /// Lanes of each column that were written since they were allocated.
    written: Vec<u128>,
    pub(crate) pieces: Vec<Piece>,
    /// Columns of the last allocation.
    pub(crate) last: Option<u32>,
    pub(crate) relinquished: bool,
    pub(crate) group: Option<CtaGroup>,
    pub(crate) ask: Option<Ask>,
    /// What the collector's buffers hold.
    pub(crate) collected: [Option<Collected>; 4],
    pub(crate) layouts: Layouts,
    /// What has been issued and not performed.
    pub(crate) queue: VecDeque<Issued>,
    /// The last product.
    pub(crate) multiplied: Option<Origin>,
    /// Barriers in this CTA's shared memory that a `commit` has named.
    pub(crate) committed: Vec<u32>,
    /// The multiprocessor, where its columns are shared with other CTAs.
    pub(crate) sm: u32,
    /// Freed, and not yet known to those.
    pub(crate) freed: Vec<Piece>,
}

impl Tmem {
    /// That of a CTA that begins, in the place of another.
    pub(crate) fn renew(&mut self) {
        *self = Self {
            words: std::mem::take(&mut self.words),
            written: std::mem::take(&mut self.written),
            ..Self::default()
        };
    }

    /// Bytes it holds on to.
    pub(crate) fn storage(&self) -> usize {
        size_of_val(&self.words[..]) + size_of_val(&self.written[..])
    }

    /// The instruction that allocated columns nobody has freed, and how many there are.
    pub(crate) fn leak(&self) -> Option<(u32, u32)> {
        let first = self.pieces.first()?;
        Some((first.pc, self.pieces.iter().map(|p| p.columns).sum()))
    }

    /// The last product, if no `commit` has named this barrier.
    pub(crate) fn uncommitted(&self, barrier: u32) -> Option<Origin> {
        self.multiplied
            .filter(|_| !self.committed.contains(&barrier))
    }

    /// Who issued the last product.
    pub(crate) fn issuer(&self) -> Option<Origin> {
        self.multiplied
    }

    /// Columns nobody has.
    pub(crate) fn free(&self) -> u32 {
        COLUMNS as u32 - self.pieces.iter().map(|p| p.columns).sum::<u32>()
    }

    /// Where so many columns can be had.
    pub(crate) fn find(&self, columns: u32) -> Option<u32> {
        first_run(&self.pieces, columns)
    }

    /// Takes columns, whose contents are nobody's.
    pub(crate) fn take(&mut self, piece: Piece) {
        self.words.resize(COLUMNS * LANES, POISON);
        self.written.resize(COLUMNS, 0);
        let columns = piece.first as usize..(piece.first + piece.columns) as usize;
        self.words[columns.start * LANES..columns.end * LANES].fill(POISON);
        self.written[columns].fill(0);
        self.pieces.push(piece);
        self.last = Some(piece.columns);
    }

    /// Whether all of these columns are allocated.
    pub(crate) fn holds(&self, columns: &Range<u32>) -> bool {
        let mut at = columns.start;
        while at < columns.end {
            let Some(piece) = self
                .pieces
                .iter()
                .find(|p| (p.first..p.first + p.columns).contains(&at))
            else {
                return false;
            };
            at = piece.first + piece.columns;
        }
        true
    }

    /// The first column of a reach that has a lane nobody has written.
    pub(crate) fn unwritten(&self, reach: &Reach) -> Option<u32> {
        let missing = |column: &u32| self.written[*column as usize] & reach.lanes != reach.lanes;
        reach.columns.clone().find(missing)
    }

    pub(crate) fn mark(&mut self, reach: &Reach, written: bool) {
        for column in reach.columns.clone() {
            let lanes = &mut self.written[column as usize];
            match written {
                true => *lanes |= reach.lanes,
                false => *lanes &= !reach.lanes,
            }
        }
    }
}

/// The first run of so many columns beside these that begins at a multiple of them.
pub(super) fn first_run(taken: &[Piece], columns: u32) -> Option<u32> {
    let free = |first: u32| {
        let meets = |p: &Piece| p.first < first + columns && first < p.first + p.columns;
        !taken.iter().any(meets)
    };
    (0..COLUMNS as u32)
        .step_by(columns as usize)
        .find(|&first| free(first))
}

/// The lane and column of an address. Bits above the 128 lanes are ignored.
pub(crate) fn split(address: u32) -> (u32, u32) {
    (address >> 16 & 127, address & 0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_aligned_run_that_fits_is_taken() {
        let mut tmem = Tmem::default();
        let mut take = |columns| {
            let first = tmem.find(columns)?;
            tmem.take(Piece {
                first,
                columns,
                pc: 0,
            });
            Some(first)
        };
        let taken = [
            take(64),
            take(32),
            take(128),
            take(32),
            take(256),
            take(256),
        ];
        let expected = [Some(0), Some(64), Some(128), Some(96), Some(256), None];
        assert_eq!(taken, expected);
        assert!(tmem.holds(&(0..512)));
        assert_eq!(tmem.free(), 0);
        tmem.pieces.retain(|p| p.first != 96);
        assert!(!tmem.holds(&(90..97)) && tmem.holds(&(90..96)));
        assert_eq!(tmem.find(32), Some(96));
    }

    #[test]
    fn what_nobody_wrote_is_known() {
        let mut tmem = Tmem::default();
        tmem.take(Piece {
            first: 0,
            columns: 32,
            pc: 0,
        });
        let reach = |columns, lanes| Reach { columns, lanes };
        tmem.mark(&reach(0..4, 0xffff), true);
        assert_eq!(tmem.unwritten(&reach(0..4, 0xff)), None);
        assert_eq!(tmem.unwritten(&reach(2..6, 0xff)), Some(4));
        assert_eq!(tmem.unwritten(&reach(1..2, 0x1_0000)), Some(1));
    }
}
