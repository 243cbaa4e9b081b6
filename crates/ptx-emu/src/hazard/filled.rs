//! Shared and tensor memory of clusters without full checks: records only whether anything wrote
//! the bytes that are read. One bit per byte, or per block of lanes of a column, is enough for
//! that.

use super::Sighting;
use super::columns::{LANES, blocks_of};
use super::finding::Hazard;
use super::pieces::pieces;
use super::watcher::{Remembered, Watcher};
use super::words::Side;
use crate::exec::listen::visit::{Bytes, Visit};
use crate::exec::origin::Origin;

/// The initialised part of a CTA's memories.
#[derive(Debug, Default)]
pub(super) struct Filled {
    shared: Bits,
    /// The blocks of lanes of each column.
    columns: Vec<u8>,
}

/// A bit for each byte.
#[derive(Debug, Default)]
struct Bits(Vec<u64>);

/// The words that contain `first..end`, with its bits in each.
fn words(first: u64, end: u64) -> impl Iterator<Item = (usize, u64)> {
    let last = end.saturating_sub(1) / 64;
    (first / 64..=last).map(move |word| {
        let from = first.saturating_sub(word * 64).min(63);
        let to = (end - word * 64).min(64);
        (word as usize, u64::MAX << from & u64::MAX >> (64 - to))
    })
}

impl Bits {
    fn fill(&mut self, first: u64, end: u64) {
        if first >= end {
            return;
        }
        let most = (end.div_ceil(64)) as usize;
        if self.0.len() < most {
            self.0.resize(most, 0);
        }
        for (word, bits) in words(first, end) {
            self.0[word] |= bits;
        }
    }

    /// The first uninitialised byte of `first..end`.
    fn hole(&self, first: u64, end: u64) -> Option<u64> {
        if first >= end {
            return None;
        }
        words(first, end).find_map(|(word, bits)| {
            let missing = bits & !self.0.get(word).copied().unwrap_or(0);
            (missing != 0).then(|| word as u64 * 64 + u64::from(missing.trailing_zeros()))
        })
    }

    /// The first uninitialised byte of an access, and the lanes that read such bytes.
    fn first_hole(&self, visit: &Visit<'_>) -> Option<(u64, u32)> {
        // Usually everything between the first and the last of them is initialised.
        if let Bytes::Lanes { low, end, .. } = visit.bytes {
            self.hole(low.into(), end.into())?;
        }
        let (mut hole, mut lanes) = (None, 0);
        pieces(visit, |first, len, lane| {
            if let Some(at) = self.hole(first, first + len) {
                hole.get_or_insert(at);
                lanes |= 1 << lane;
            }
        });
        Some((hole?, lanes))
    }
}

impl Filled {
    /// Newly allocated columns are uninitialised.
    pub(super) fn allocate(&mut self, first: u32, columns: u32) {
        let end = (first + columns) as usize;
        if self.columns.len() < end {
            self.columns.resize(end, 0);
        }
        self.columns[first as usize..end].fill(0);
    }
}

impl Watcher<'_> {
    fn filled(&mut self, cta: u32) -> Option<&mut Filled> {
        match &mut self.memory {
            Remembered::Filled(all) => all.get_mut(cta as usize),
            Remembered::Users(..) => None,
        }
    }

    pub(super) fn glance_at_shared(&mut self, visit: &Visit<'_>, cta: u32) {
        let read = visit.act.reads() && self.detector.doubts(visit.agent, visit.from.pc);
        let Some(Filled { shared, .. }) = self.filled(cta) else {
            return;
        };
        let hole = read.then(|| shared.first_hole(visit)).flatten();
        if visit.act.writes() {
            match visit.bytes {
                Bytes::Lanes {
                    low,
                    end,
                    dense: true,
                    ..
                } => shared.fill(low.into(), end.into()),
                _ => pieces(visit, |first, len, _| shared.fill(first, first + len)),
            }
        }
        let Some((hole, lanes)) = hole else { return };
        let from = Origin {
            lanes: visit.from.lanes & lanes,
            ..visit.from
        };
        let here = Side::new(visit.agent, visit.act, from);
        let sighting = Sighting::one(Hazard::UninitialisedShared, here);
        self.report(sighting.at(self.detector.shared_spot(cta, hole as u32)));
    }

    pub(super) fn glance_at_tensor(&mut self, visit: &Visit<'_>, cta: u32) {
        let Bytes::Columns {
            first,
            count,
            lanes,
        } = visit.bytes
        else {
            return;
        };
        let blocks = blocks_of(lanes);
        let Some(Filled { columns, .. }) = self.filled(cta) else {
            return;
        };
        let end = (first + count) as usize;
        if columns.len() < end {
            columns.resize(end, 0);
        }
        let mut hole = None;
        for (column, filled) in (first..).zip(&mut columns[first as usize..end]) {
            let missing = blocks & !*filled;
            if visit.act.reads() && missing != 0 {
                hole.get_or_insert((column, LANES * missing.trailing_zeros()));
            }
            if visit.act.writes() {
                *filled |= blocks;
            }
        }
        let Some((column, lane)) = hole else { return };
        let here = Side::new(visit.agent, visit.act, visit.from);
        let sighting = Sighting::one(Hazard::UninitialisedTensor, here);
        self.report(sighting.at(self.detector.tensor_spot(cta, column, lane)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_is_the_first_byte_that_nobody_filled() {
        let mut bits = Bits::default();
        assert_eq!(bits.hole(0, 0), None);
        assert_eq!(bits.hole(70, 71), Some(70));
        bits.fill(10, 200);
        assert_eq!(bits.hole(10, 200), None);
        assert_eq!(bits.hole(9, 12), Some(9));
        assert_eq!(bits.hole(128, 260), Some(200));
        bits.fill(200, 256);
        assert_eq!((bits.hole(63, 256), bits.hole(64, 257)), (None, Some(256)));
        bits.fill(5, 5);
        assert_eq!(bits.hole(5, 6), Some(5));
    }
}
