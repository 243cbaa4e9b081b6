//! What `tcgen05.ld`, `st` and `cp` move: which word of tensor memory goes where.

/// `.32x32b` and its like, with `.xN`: words of registers and of tensor memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct MoveShape {
    pub lanes: MoveLanes,
    /// N of `.xN`.
    pub times: u32,
}

/// The lanes by columns of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum MoveLanes {
    L32x32,
    L16x64,
    L16x128,
    L16x256,
    L16x32x2,
}

impl MoveShape {
    /// The shape of these words; `None` if there is none.
    pub(crate) fn new(lanes: &str, times: u32) -> Option<Self> {
        let (lanes, most) = match lanes {
            "32x32b" => (MoveLanes::L32x32, 128),
            "16x64b" => (MoveLanes::L16x64, 128),
            "16x128b" => (MoveLanes::L16x128, 64),
            "16x256b" => (MoveLanes::L16x256, 32),
            "16x32bx2" => (MoveLanes::L16x32x2, 128),
            _ => return None,
        };
        (times.is_power_of_two() && times <= most).then_some(Self { lanes, times })
    }

    /// Registers of a thread.
    pub(crate) fn registers(self) -> usize {
        self.times as usize
            * match self.lanes {
                MoveLanes::L32x32 | MoveLanes::L16x64 | MoveLanes::L16x32x2 => 1,
                MoveLanes::L16x128 => 2,
                MoveLanes::L16x256 => 4,
            }
    }

    /// Columns from the first to one past the last, of one half if there are two.
    pub(crate) fn columns(self) -> u32 {
        self.times
            * match self.lanes {
                MoveLanes::L32x32 | MoveLanes::L16x32x2 => 1,
                MoveLanes::L16x64 => 2,
                MoveLanes::L16x128 => 4,
                MoveLanes::L16x256 => 8,
            }
    }

    /// Bits of a lane that lie together.
    pub(crate) fn bits(self) -> u32 {
        match self.lanes {
            MoveLanes::L32x32 | MoveLanes::L16x32x2 => 32,
            MoveLanes::L16x64 => 64,
            MoveLanes::L16x128 => 128,
            MoveLanes::L16x256 => 256,
        }
    }

    /// Lanes of tensor memory that a warp reaches.
    pub(crate) fn tall(self) -> u32 {
        match self.lanes {
            MoveLanes::L32x32 => 32,
            _ => 16,
        }
    }

    /// Whether thread `t` moves the second half of `.16x32bx2`.
    pub(crate) fn second(self, t: usize) -> bool {
        self.lanes == MoveLanes::L16x32x2 && t >= 16
    }

    /// Lane and column, from where the move or its half begins, of register `j` in thread `t`.
    pub(crate) fn place(self, t: usize, j: usize) -> (usize, usize) {
        match self.lanes {
            MoveLanes::L32x32 => (t, j),
            MoveLanes::L16x64 => ((t >> 2) + 8 * (t & 1), (t >> 1 & 1) + 2 * j),
            MoveLanes::L16x128 => ((t >> 2) + 8 * (j & 1), (t & 3) + 4 * (j >> 1)),
            MoveLanes::L16x256 => (
                (t >> 2) + 8 * (j >> 1 & 1),
                2 * (t & 3) + (j & 1) + 8 * (j >> 2),
            ),
            MoveLanes::L16x32x2 => (t % 16, j),
        }
    }
}

/// `.128x256b` and its like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CopyShape {
    S128x256,
    S128x128,
    S4x256,
    /// `.64x128b.warpx2::02_13`
    S64x128Halves,
    /// `.64x128b.warpx2::01_23`
    S64x128Pairs,
    /// `.32x128b.warpx4`
    S32x128,
}

impl CopyShape {
    /// Rows of the source.
    pub(crate) fn rows(self) -> u32 {
        match self {
            CopyShape::S128x256 | CopyShape::S128x128 => 128,
            CopyShape::S4x256 => 4,
            CopyShape::S64x128Halves | CopyShape::S64x128Pairs => 64,
            CopyShape::S32x128 => 32,
        }
    }

    /// 16-byte chunks of a row.
    pub(crate) fn chunks(self) -> u32 {
        match self {
            CopyShape::S128x256 | CopyShape::S4x256 => 2,
            _ => 1,
        }
    }

    /// Columns of the destination.
    pub(crate) fn columns(self) -> u32 {
        4 * self.chunks()
    }

    /// Lanes that a row goes to.
    pub(crate) fn lanes(self, row: u32) -> impl Iterator<Item = u32> {
        let (first, step, count) = match self {
            CopyShape::S128x256 | CopyShape::S128x128 => (row, 0, 1),
            CopyShape::S4x256 => (32 * row, 0, 1),
            CopyShape::S64x128Halves => (row, 64, 2),
            CopyShape::S64x128Pairs => (row % 32 + 64 * (row / 32), 32, 2),
            CopyShape::S32x128 => (row, 32, 4),
        };
        (0..count).map(move |i| first + step * i)
    }
}

/// `.b8x16.b4x16_p64` and `.b8x16.b6x16_p32`: sixteen small codes become a byte each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Unpacked {
    Fours,
    Sixes,
}

impl Unpacked {
    /// A chunk with its codes in bytes: six bits are the low ones, four those above two zeros.
    pub(crate) fn widen(self, chunk: [u8; 16]) -> [u8; 16] {
        let packed = u128::from_le_bytes(chunk);
        std::array::from_fn(|i| match self {
            Unpacked::Fours => (packed >> (4 * i) & 0xf) as u8 * 4,
            Unpacked::Sixes => (packed >> (6 * i) & 0x3f) as u8,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_shape_fills_its_rectangle_once() {
        for (name, times) in [
            ("32x32b", 8),
            ("16x64b", 4),
            ("16x128b", 2),
            ("16x256b", 2),
            ("16x32bx2", 4),
        ] {
            let shape = MoveShape::new(name, times).expect("a shape");
            let mut seen = BTreeSet::new();
            for t in 0..32 {
                for j in 0..shape.registers() {
                    let (lane, column) = shape.place(t, j);
                    let half = shape.second(t);
                    assert!(lane < shape.tall() as usize, "{name}");
                    assert!(column < shape.columns() as usize, "{name}");
                    assert!(seen.insert((half, lane, column)), "{name} {lane} {column}");
                }
            }
            let halves = if name == "16x32bx2" { 2 } else { 1 };
            let all = shape.tall() * shape.columns() * halves;
            assert_eq!(seen.len(), all as usize, "{name}");
        }
        assert_eq!(MoveShape::new("32x32b", 3), None);
        assert_eq!(MoveShape::new("16x256b", 64), None);
    }

    #[test]
    fn the_last_shape_is_a_fragment_of_mma() {
        let shape = MoveShape::new("16x256b", 1).expect("a shape");
        assert_eq!(shape.place(5, 3), (9, 3));
    }

    #[test]
    fn copies_reach_their_lanes() {
        let all = |shape: CopyShape, row| shape.lanes(row).collect::<Vec<_>>();
        assert_eq!(all(CopyShape::S32x128, 5), [5, 37, 69, 101]);
        assert_eq!(all(CopyShape::S64x128Halves, 40), [40, 104]);
        assert_eq!(all(CopyShape::S64x128Pairs, 40), [72, 104]);
        assert_eq!(all(CopyShape::S4x256, 2), [64]);
    }

    #[test]
    fn small_codes_get_bytes() {
        let mut chunk = [0; 16];
        chunk[0] = 0xba;
        assert_eq!(Unpacked::Fours.widen(chunk)[..3], [0x28, 0x2c, 0]);
        assert_eq!(Unpacked::Sixes.widen(chunk)[..3], [0x3a, 0x02, 0]);
    }
}
