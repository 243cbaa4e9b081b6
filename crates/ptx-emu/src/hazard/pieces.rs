//! Splits an access into the pieces of its lanes, and those into words.

use std::ops::Range;

use super::shadow::Lanes;
use crate::exec::listen::visit::{Bytes, Visit};

/// A part of an access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// Contiguous whole words, and their lanes.
    Words(Range<u64>, Lanes),
    /// Some bytes of a word, and the lane.
    Bytes(u64, u8, u8),
}

/// The parts of an access in the order of its lanes, with neighbours joined. If lanes read the same
/// bytes, the last one represents all.
#[inline]
pub(super) fn parts(visit: &Visit<'_>, mut see: impl FnMut(Part)) {
    let Bytes::Lanes {
        at, each, low, end, ..
    } = visit.bytes
    else {
        return pieces(visit, |first, len, lane| {
            parts_of(first, len, lane, &mut see)
        });
    };
    let mut lanes = visit.from.lanes;
    let reads = !visit.act.writes();
    if reads && lanes != 0 && low + each == end {
        let last = 31 - lanes.leading_zeros() as u8;
        return parts_of(low.into(), each.into(), last, &mut see);
    }
    let whole = (low | each) & 3 == 0;
    let words = |first: u32, end: u32| u64::from(first / 4)..u64::from(end / 4);
    if whole && lanes == u32::MAX && end - low == 32 * each {
        let run = at.iter().zip((low..).step_by(each as usize));
        if run.fold(true, |run, (at, next)| run & (*at == next)) {
            let lanes = Lanes::from(0, each / 4);
            return see(Part::Words(words(low, end), lanes));
        }
    }
    let mut grouped = false;
    while lanes != 0 {
        let first = lanes.trailing_zeros();
        let start = at[first as usize];
        let (mut lane, mut end) = (first, start + each);
        lanes &= lanes - 1;
        let next = |lanes: u32| at[lanes.trailing_zeros() as usize & 31];
        if reads && lanes != 0 && next(lanes) == start {
            grouped = true;
            continue;
        }
        if !whole || start & 3 != 0 {
            parts_of(start.into(), each.into(), lane as u8, &mut see);
            continue;
        }
        // In groups that read the same bytes, the first lane of the next group does not count.
        while !grouped && lanes != 0 && lanes.trailing_zeros() == lane + 1 && next(lanes) == end {
            (lane, end) = (lane + 1, end + each);
            lanes &= lanes - 1;
        }
        see(Part::Words(
            words(start, end),
            Lanes::from(first as u8, each / 4),
        ));
    }
}

/// The parts of one lane's piece.
fn parts_of(first: u64, len: u64, lane: u8, see: &mut impl FnMut(Part)) {
    match (first | len) & 3 {
        0 if len > 0 => {
            let words = first / 4..(first + len) / 4;
            see(Part::Words(words, Lanes::one(lane)));
        }
        _ => each_word(first, len, |word, bytes| {
            see(Part::Bytes(word, bytes, lane))
        }),
    }
}

/// Pieces of some bytes, each with its lane.
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

    #[test]
    fn lanes_one_behind_the_other_are_one_part() {
        let whole = |words: Range<u64>, first, each| Part::Words(words, Lanes::from(first, each));
        let parts_of = |act, lanes, each: u32, at: [u32; 32]| {
            let visit = Visit {
                agent: Agent::Thread,
                from: Origin {
                    lanes,
                    ..Origin::default()
                },
                act,
                order: Order::Weak,
                room: Room::Shared { cta: 0 },
                bytes: Bytes::Lanes {
                    at: &at,
                    each,
                    low: at.into_iter().min().unwrap_or(0),
                    end: at.into_iter().max().unwrap_or(0) + each,
                    dense: false,
                },
            };
            let mut all = Vec::new();
            parts(&visit, |part| all.push(part));
            all
        };
        let run = |each: u32| std::array::from_fn(|lane| 64 + each * lane as u32);
        let all = u32::MAX;
        assert_eq!(parts_of(Act::Read, all, 8, run(8)), [whole(16..80, 0, 2)]);
        assert_eq!(parts_of(Act::Write, all, 4, run(4)), [whole(16..48, 0, 1)]);
        // The last lane represents all that read the same bytes.
        let same = [64; 32];
        assert_eq!(
            parts_of(Act::Read, 0xff0, 4, same),
            [whole(16..17, 11, u32::MAX)]
        );
        assert_eq!(parts_of(Act::Write, all, 4, same).len(), 32);
        let halves = parts_of(Act::Read, all, 2, run(2));
        assert_eq!(
            halves[..2],
            [Part::Bytes(16, 0b11, 0), Part::Bytes(16, 0b1100, 1)]
        );
        let mut turned = run(4);
        turned.swap(0, 1);
        let turned = parts_of(Act::Write, all, 4, turned);
        let expected = [
            whole(17..18, 0, 1),
            whole(16..17, 1, 1),
            whole(18..48, 2, 1),
        ];
        assert_eq!(turned, expected);
        let rows = std::array::from_fn(|lane| 64 + 16 * (lane as u32 / 4));
        let rows = parts_of(Act::Read, all ^ 0xf0, 16, rows);
        assert_eq!(rows[..2], [whole(16..20, 3, 4), whole(24..28, 11, 4)]);
        assert_eq!(rows.len(), 7);
    }
}
