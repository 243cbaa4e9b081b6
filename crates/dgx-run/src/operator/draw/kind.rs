//! Special rows: padding, and the corner cases of the formats.

use rand::Rng;
use rand::rngs::ChaCha8Rng;

use super::{OperandDraw, OperandSide};
use crate::operator::SCALE_BLOCK;

use dgx_core::domain::Distribution;

/// The largest finite e4m3, 448.
const LARGEST_SCALE: u8 = 0x7e;
/// A tensor with fewer rows has no row whose whole part of C is zero or NaN: little would be left
/// to compare.
const FEW_ROWS: usize = 8;
/// One row in this many is padding, besides those of the run.
const PADDING: u64 = 32;
/// A tensor with this many rows has the largest scale of each sign.
const MANY_ROWS: usize = 64;
/// The run of padding is at most this part of the rows.
const LONGEST_RUN: usize = 8;
/// At most one row in this many of A, of B1 and of B2 has a NaN.
const NANS: usize = 8;

/// The change of a row after it was drawn. Rows with a single block give sums that fp32 represents
/// exactly: their expected values do not depend on the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowKind {
    Ordinary,
    /// All elements are zero, of either sign.
    Empty,
    /// All bits are zero.
    Blank,
    /// The scale of this block is NaN; its elements may all be zero.
    Nan {
        block: usize,
        empty: bool,
        /// The next block's is NaN too.
        twice: bool,
    },
    /// Half of the scales are negative.
    Signed,
    /// All scales are many times as large: sums of many blocks exceed fp16.
    Ridge,
    /// One block, with the largest scale, or the most negative.
    Top {
        negative: bool,
    },
    /// One block, with a scale from the top binade.
    Summit,
    /// One block, whose product with a summit is about fp16's largest.
    Steep,
    /// One element in that block, whose product with a summit is below 1.
    Whisper,
    /// One element whose product is so small that C stays within fp16 beside a ridge.
    Murmur,
    /// One element, whose C is among fp16's smallest numbers.
    Faint,
}

impl OperandDraw {
    pub(super) fn kind(
        &self,
        side: OperandSide,
        rows: usize,
        index: usize,
        random: u64,
    ) -> RowKind {
        let few = rows < FEW_ROWS;
        let corner = self.distribution != Distribution::Full;
        if let Some((block, twice)) = self.nan_block(side, rows, index).filter(|_| corner) {
            let empty = random >> 24 & 1 == 1;
            return RowKind::Nan {
                block,
                empty,
                twice,
            };
        }
        if let Some(kind) = self.top(side, rows, index).filter(|_| corner) {
            return kind;
        }
        if !few && (random.is_multiple_of(PADDING) || self.in_run(side, rows, index)) {
            // Zeros in B1, in B2, or in both.
            let spared = match random >> 8 & 3 {
                0 => side == OperandSide::Right(0),
                1 => side == OperandSide::Right(1),
                _ => false,
            };
            return match random >> 16 & 1 {
                _ if spared => RowKind::Ordinary,
                0 => RowKind::Empty,
                _ => RowKind::Blank,
            };
        }
        if !corner {
            return RowKind::Ordinary;
        }
        match side {
            OperandSide::Left => of_a(random >> 32 & 31),
            OperandSide::Right(0) => of_b(random >> 32 & 31)[0],
            OperandSide::Right(_) => of_b(random >> 32 & 31)[1],
        }
    }

    /// If a tensor has enough rows, four of them are not random: the first four without a NaN from
    /// a drawn row on.
    fn top(&self, side: OperandSide, rows: usize, index: usize) -> Option<RowKind> {
        let first = self.top_row as usize % rows;
        let place = (index + rows - first) % rows;
        if rows < MANY_ROWS || place >= 4 * NANS {
            return None;
        }
        let before = (0..place).map(|place| (first + place) % rows);
        let free = before.filter(|row| self.nan_block(side, rows, *row).is_none());
        let place = free.count();
        let top = RowKind::Top {
            negative: place.is_multiple_of(2),
        };
        (place < 4).then_some(match (side, place / 2) {
            (OperandSide::Left, _) | (OperandSide::Right(0), 0) | (OperandSide::Right(1), 1) => top,
            _ => RowKind::Whisper,
        })
    }

    /// Whether the row is in the run of padding.
    fn in_run(&self, side: OperandSide, rows: usize, index: usize) -> bool {
        let [length, start] = match side {
            OperandSide::Left => self.runs[0],
            OperandSide::Right(_) => self.runs[1],
        };
        let length = length as usize % (rows / LONGEST_RUN + 1);
        let start = start as usize % (rows - length + 1);
        (start..start + length).contains(&index)
    }

    /// The block in which the row has a NaN, and whether the next has one too. Rows of this kind
    /// use the blocks in turn, because a call shuffles them: with enough rows, the first and the
    /// last block of every call have a NaN. Some rows of B1 and B2 have one in a block where A has
    /// one too; and some rows of each tensor have two.
    fn nan_block(&self, side: OperandSide, rows: usize, index: usize) -> Option<(usize, bool)> {
        let blocks = self.levels.len();
        let each = (rows / NANS).min(blocks);
        let more = each.div_ceil(NANS);
        let single = match side {
            OperandSide::Left => each,
            OperandSide::Right(_) => 2 * each + more,
        };
        let all = single + more;
        let apart = rows.checked_div(all)?;
        let [row, block] = self.nans.map(|drawn| drawn as usize);
        let place = (index + rows - row % rows) % rows;
        let nth = Some(place / apart).filter(|nth| place.is_multiple_of(apart) && *nth < all)?;
        let twice = nth >= single;
        let nth = match (side, nth % 2) {
            _ if twice => nth - single,
            (OperandSide::Left, _) => nth,
            _ if nth >= 2 * each => nth - 2 * each,
            (OperandSide::Right(0), 0) => nth / 2,
            (OperandSide::Right(1), 1) => nth / 2 + each,
            _ => return None,
        };
        Some(((block + nth) % blocks, twice))
    }

    pub(super) fn alter(
        &self,
        rng: &mut ChaCha8Rng,
        side: OperandSide,
        kind: RowKind,
        row: &mut [u8],
        scales: &mut [u8],
    ) {
        let signed = self.distribution == Distribution::Corner;
        let random = rng.next_u32();
        match kind {
            RowKind::Ordinary => {}
            RowKind::Empty => row.iter_mut().for_each(|byte| *byte &= 0x88),
            RowKind::Blank => {
                row.fill(0);
                scales.fill(0);
            }
            RowKind::Nan {
                block,
                empty,
                twice,
            } => {
                let nan = 0x7f | u8::from(signed && random >> 31 == 1) << 7;
                let next = (block + 1) % scales.len();
                scales[block] = nan;
                if twice {
                    scales[next] = nan;
                }
                if empty {
                    elements(row, block).fill(0);
                }
            }
            RowKind::Ridge => {
                let steps = match side {
                    OperandSide::Left => 8 << 3,
                    OperandSide::Right(_) => 11 << 3,
                };
                for scale in scales {
                    *scale = scale.saturating_add(steps).min(LARGEST_SCALE);
                }
            }
            RowKind::Signed if signed => {
                for scale in scales {
                    *scale ^= (rng.next_u32() as u8) & 0x80;
                }
            }
            RowKind::Signed => {}
            _ => {
                row.fill(0);
                self.fill_block(rng, side, kind, random, (row, scales));
            }
        }
    }

    /// Fills one block of a row of zeros, which are the kinds with a single block.
    fn fill_block(
        &self,
        rng: &mut ChaCha8Rng,
        side: OperandSide,
        kind: RowKind,
        random: u32,
        (row, scales): (&mut [u8], &mut [u8]),
    ) {
        let signed = self.distribution == Distribution::Corner;
        match kind {
            RowKind::Top { negative } => {
                rng.fill_bytes(elements(row, self.high));
                scales[self.high] = LARGEST_SCALE | u8::from(signed && negative) << 7;
            }
            RowKind::Summit | RowKind::Steep => {
                rng.fill_bytes(elements(row, self.high));
                let [first, count] = match kind {
                    RowKind::Summit => [0x78, 7],
                    _ => [0x48, 24],
                };
                scales[self.high] = (first + random % count) as u8;
            }
            RowKind::Whisper => {
                single_element(elements(row, self.high), random, 1);
                scales[self.high] = 1;
            }
            RowKind::Murmur => {
                single_element(elements(row, self.low), random, 1 + (random >> 8) as u8 % 7);
                scales[self.low] = 1;
            }
            RowKind::Faint => {
                // Where the other side's scales are large, and where they are small.
                let (loud, quiet) = match side {
                    OperandSide::Left => (self.low, self.high),
                    OperandSide::Right(_) => (self.high, self.low),
                };
                let (block, least, codes) = match random >> 24 & 1 {
                    0 => (loud, 1, 3),
                    _ => (quiet, 8, 32),
                };
                single_element(elements(row, block), random, 1 + (random >> 8) as u8 % 7);
                scales[block] = least + (random >> 16) as u8 % codes;
            }
            RowKind::Ordinary
            | RowKind::Empty
            | RowKind::Blank
            | RowKind::Nan { .. }
            | RowKind::Ridge
            | RowKind::Signed => {}
        }
    }
}

/// Of 32 slots.
fn of_a(slot: u64) -> RowKind {
    match slot {
        0..6 => RowKind::Summit,
        6..11 => RowKind::Faint,
        11..17 => RowKind::Signed,
        17..20 => RowKind::Ridge,
        _ => RowKind::Ordinary,
    }
}

/// Of 32 slots, the rows of B1 and B2.
fn of_b(slot: u64) -> [RowKind; 2] {
    match slot {
        0 => [RowKind::Summit; 2],
        1..6 => [RowKind::Steep, RowKind::Whisper],
        6..11 => [RowKind::Whisper, RowKind::Steep],
        11..16 => [RowKind::Faint; 2],
        16..22 => [RowKind::Signed; 2],
        22..25 => [RowKind::Ridge, RowKind::Murmur],
        25..28 => [RowKind::Murmur, RowKind::Ridge],
        _ => [RowKind::Ordinary; 2],
    }
}

/// The packed elements of a block.
fn elements(row: &mut [u8], block: usize) -> &mut [u8] {
    &mut row[block * SCALE_BLOCK / 2..][..SCALE_BLOCK / 2]
}

/// One element of a block, of this magnitude and a random sign, among zeros.
fn single_element(elements: &mut [u8], random: u32, magnitude: u8) {
    let place = random as usize % SCALE_BLOCK;
    let code = magnitude | (random >> 28) as u8 & 8;
    elements.fill(0);
    elements[place / 2] = code << (4 * (place % 2));
}
