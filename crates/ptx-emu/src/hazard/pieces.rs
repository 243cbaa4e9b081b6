//! An access taken apart: into the pieces of its lanes, and those into words.

use crate::exec::door::{Bytes, Visit};

/// Pieces of some bytes, with the lane each is of.
pub(super) fn pieces(visit: &Visit<'_>, mut see: impl FnMut(u64, u64, u8)) {
    match visit.bytes {
        Bytes::Piece { first, len } => {
            see(first, len, visit.from.lanes.trailing_zeros() as u8 & 31);
        }
        Bytes::Lanes { at, each, .. } => {
            let mut lanes = visit.from.lanes;
            while lanes != 0 {
                let lane = lanes.trailing_zeros();
                lanes &= lanes - 1;
                see(at[lane as usize].into(), each.into(), lane as u8);
            }
        }
        Bytes::Tile { matrix, rows } => {
            for chunk in matrix.chunks(rows) {
                see(chunk.into(), 16, 0);
            }
        }
        Bytes::Columns { .. } => {}
    }
}

/// The first byte of an access.
pub(super) fn words_at(visit: &Visit<'_>) -> u64 {
    let mut first = None;
    pieces(visit, |at, _, _| {
        first.get_or_insert(at);
    });
    first.unwrap_or(0)
}

/// The words of a piece, with the bytes of each.
pub(super) fn each_word(first: u64, len: u64, mut see: impl FnMut(u64, u8)) {
    let end = first + len;
    let mut word = first / 4;
    while word * 4 < end {
        let from = first.saturating_sub(word * 4).min(4);
        let to = (end - word * 4).min(4);
        see(word, ((1u16 << to) - (1 << from)) as u8);
        word += 1;
    }
}
