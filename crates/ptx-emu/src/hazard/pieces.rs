//! An access taken apart: into the pieces of its lanes, and those into words.

use crate::exec::listen::visit::{Bytes, Visit};

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
    match visit.bytes {
        Bytes::Piece { first, .. } => first,
        Bytes::Lanes { at, .. } => match visit.from.lanes {
            0 => 0,
            lanes => at[lanes.trailing_zeros() as usize].into(),
        },
        Bytes::Tile { matrix, rows } => matrix.chunks(rows).next().unwrap_or(0).into(),
        Bytes::Columns { .. } => 0,
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::listen::agent::Agent;
    use crate::exec::listen::visit::{Act, Room};
    use crate::exec::origin::Origin;
    use crate::op::Order;
    use crate::tensor::descriptor::{Major, Matrix};
    use crate::tensor::swizzle::Swizzle;

    #[test]
    fn the_first_byte_is_that_of_the_first_piece() {
        let at: [u32; 32] = std::array::from_fn(|lane| 1000 - 8 * lane as u32);
        let lanes = Bytes::Lanes {
            at: &at,
            each: 8,
            low: 752,
            end: 1008,
            dense: true,
        };
        let tile = |swizzle, major, start| Matrix {
            start,
            leading: 128,
            stride: 1024,
            base_offset: 0,
            swizzle,
            major,
            unit: 8,
        };
        let tiles = [
            tile(Swizzle::None, Major::K, 0x1c20),
            tile(Swizzle::B128, Major::K, 0x1ca0),
            tile(Swizzle::B128, Major::Mn, 0x1ca0),
        ];
        let tiles = tiles
            .each_ref()
            .map(|matrix| Bytes::Tile { matrix, rows: 64 });
        let columns = Bytes::Columns {
            first: 3,
            count: 4,
            lanes: 1,
        };
        let piece = Bytes::Piece { first: 77, len: 9 };
        for bytes in tiles.into_iter().chain([lanes, columns, piece]) {
            for lanes in [u32::MAX, 0xf0, 1 << 31, 0] {
                let visit = Visit {
                    agent: Agent::Thread,
                    from: Origin {
                        lanes,
                        ..Origin::default()
                    },
                    act: Act::Read,
                    order: Order::Weak,
                    room: Room::Shared { cta: 0 },
                    bytes,
                };
                let mut first = None;
                pieces(&visit, |at, _, _| {
                    first.get_or_insert(at);
                });
                assert_eq!(words_at(&visit), first.unwrap_or(0), "{visit:?}");
            }
        }
    }
}
