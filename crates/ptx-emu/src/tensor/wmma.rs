//! `wmma`: tiles whose spread over registers is nobody's business but the hardware's.
//!
//! The ISA leaves open which lane holds which element, so any layout that `load`, `mma` and
//! `store` agree on is right. This one is that of `mma.sync`: a tile is cut into pieces of 16 (or
//! 8) rows and 8 columns, and a piece's registers are the fragments of one `mma.sync`. Where the
//! ISA gives a fragment more registers than the tile fills, the words repeat.

use thiserror::Error;

use super::mma::{Accumulator, BitProduct, Form, MmaError};
use super::{Element, Numerics};
use crate::numeric::Lanes;
use crate::numeric::halves::Half;

/// Which matrix a fragment is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    /// m × k
    A,
    /// k × n
    B,
    /// m × n: C and D
    C,
}

/// m, n and k.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    pub m: u32,
    pub n: u32,
    pub k: u32,
}

/// One fragment's layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Fragment {
    pub part: Part,
    pub shape: Shape,
    /// Bits of an element.
    pub bits: u32,
}

/// What is wrong with a `wmma.mma`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum WmmaError {
    #[error("wmma: {0}")]
    Mma(#[from] MmaError),
    #[error("wmma operand {operand} has {got} register words, not {expected} or a multiple")]
    Registers {
        operand: char,
        expected: u32,
        got: usize,
    },
}

impl Fragment {
    /// Elements of one register: a word, or one f64.
    pub(crate) fn per_register(&self) -> u32 {
        (32 / self.bits).max(1)
    }

    fn size(&self) -> (u32, u32) {
        let Shape { m, n, k } = self.shape;
        match self.part {
            Part::A => (m, k),
            Part::B => (k, n),
            Part::C => (m, n),
        }
    }

    /// Registers the tile fills.
    pub(crate) fn registers(&self) -> u32 {
        let (rows, columns) = self.size();
        rows * columns / (32 * self.per_register())
    }

    /// Row and column of the element at place `e` of a lane's register.
    pub(crate) fn element(&self, register: u32, lane: u32, e: u32) -> (u32, u32) {
        let (group, t) = (lane / 4, lane % 4);
        let per_register = self.per_register();
        let k_blocks = self.shape.k / (4 * per_register);
        match self.part {
            Part::A => {
                let (row, block) = self.rows(register, k_blocks);
                (row + group, per_register * (4 * block + t) + e)
            }
            Part::B => {
                let (piece, block) = (register / k_blocks, register % k_blocks);
                (per_register * (4 * block + t) + e, 8 * piece + group)
            }
            Part::C => {
                let value = register * per_register + e;
                let (row, piece) = self.rows(value / 2, self.shape.n / 8);
                (row + group, 8 * piece + 2 * t + value % 2)
            }
        }
    }

    /// First row and inner block of the `index`th eight rows: sixteen rows have both halves of a
    /// block side by side.
    fn rows(&self, index: u32, blocks: u32) -> (u32, u32) {
        if self.shape.m < 16 {
            return (0, index);
        }
        let (piece, rest) = (index / (2 * blocks), index % (2 * blocks));
        (16 * piece + 8 * (rest % 2), rest / 2)
    }

    /// Where an element lies in memory, in elements; `stride` is between rows, or between columns
    /// of a column-major matrix. Without one the matrix is dense.
    pub(crate) fn offset(
        &self,
        (row, column): (u32, u32),
        by_column: bool,
        stride: Option<u32>,
    ) -> u64 {
        let (rows, columns) = self.size();
        let (major, minor, dense) = match by_column {
            true => (column, row, rows),
            false => (row, column, columns),
        };
        u64::from(major) * u64::from(stride.unwrap_or(dense)) + u64::from(minor)
    }
}

/// Everything about a `wmma.mma` but its registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Wmma {
    shape: Shape,
    /// One piece of it.
    piece: Form,
    a: Element,
    b: Element,
    c: Accumulator,
    d: Accumulator,
    /// Rows of a piece: fewer in the tile mean zeros below.
    rows: u32,
}

impl Wmma {
    /// Checks shape and types.
    pub(crate) fn new(
        shape: Shape,
        (a, b): (Element, Element),
        (c, d): (Accumulator, Accumulator),
        bits: BitProduct,
        satfinite: bool,
    ) -> Result<Self, WmmaError> {
        // f16 and bf16 have no mma.sync of eight rows; a piece of sixteen does, half of it idle.
        let rows = match a {
            Element::F16 | Element::Bf16 | Element::Tf32 => 16,
            _ => shape.m.min(16),
        };
        // Sums are made in the wider of the two types.
        let sum = if c == Accumulator::F32 { c } else { d };
        let piece = Form::new((rows, 8, shape.k), a, b, sum, bits, satfinite)?;
        Ok(Self {
            shape,
            piece,
            a,
            b,
            c,
            d,
            rows,
        })
    }

    /// Rows, columns and depth.
    pub(crate) fn shape(&self) -> [u32; 3] {
        let Shape { m, n, k } = self.shape;
        [m, n, k]
    }

    /// Bits of an element of A and B.
    pub(crate) fn bits(&self) -> u32 {
        self.a.bits()
    }

    /// Multiplications and additions.
    pub(crate) fn flops(&self) -> u64 {
        let Shape { m, n, k } = self.shape;
        2 * u64::from(m) * u64::from(n) * u64::from(k)
    }

    fn words(&self, part: Part, bits: u32) -> u32 {
        let fragment = Fragment {
            part,
            shape: self.shape,
            bits,
        };
        fragment.registers() * bits.div_ceil(32)
    }

    /// D = A·B + C, all as register words.
    pub(crate) fn run(
        &self,
        a: &[Lanes],
        b: &[Lanes],
        c: &[Lanes],
        numerics: Numerics,
    ) -> Result<Vec<Lanes>, WmmaError> {
        let a_words = self.words(Part::A, self.a.bits());
        let b_words = self.words(Part::B, self.b.bits());
        let c_words = self.words(Part::C, width(self.c));
        for (operand, expected, got) in [
            ('A', a_words, a.len()),
            ('B', b_words, b.len()),
            ('C', c_words, c.len()),
        ] {
            if got == 0 || !got.is_multiple_of(expected as usize) {
                return Err(WmmaError::Registers {
                    operand,
                    expected,
                    got,
                });
            }
        }
        let c = convert(&c[..c_words as usize], self.c, self.sum());
        let (rows, columns) = ((self.shape.m / self.rows).max(1), self.shape.n / 8);
        let a_each = a_words as usize / rows as usize;
        let b_each = b_words as usize / columns as usize;
        let c_each = c.len() / (rows * columns) as usize;
        let mut d = Vec::with_capacity(c.len());
        for row in 0..rows as usize {
            let left = self.below(&a[row * a_each..(row + 1) * a_each], 1);
            for column in 0..columns as usize {
                let right: Vec<&Lanes> = b[column * b_each..(column + 1) * b_each].iter().collect();
                let at = (row * columns as usize + column) * c_each;
                let addend = self.below(&c[at..at + c_each], c_each);
                let sums = self.piece.run(&left, &right, &addend, numerics)?;
                d.extend_from_slice(&sums[..c_each]);
            }
        }
        Ok(convert(&d, self.sum(), self.d))
    }

    fn sum(&self) -> Accumulator {
        if self.c == Accumulator::F32 {
            self.c
        } else {
            self.d
        }
    }

    /// The words of a piece: after each `run` words of a tile with too few rows come as many
    /// zeros.
    fn below<'w>(&self, words: &'w [Lanes], run: usize) -> Vec<&'w Lanes> {
        match self.shape.m < self.rows {
            false => words.iter().collect(),
            true => words
                .chunks(run)
                .flat_map(|some| some.iter().chain(std::iter::repeat_n(&ZEROS, run)))
                .collect(),
        }
    }
}

static ZEROS: Lanes = [0; 32];

fn width(accumulator: Accumulator) -> u32 {
    match accumulator {
        Accumulator::F16 => 16,
        Accumulator::F32 | Accumulator::S32 => 32,
        Accumulator::F64 => 64,
    }
}

/// Words of an accumulator in another of the two float types.
fn convert(words: &[Lanes], from: Accumulator, to: Accumulator) -> Vec<Lanes> {
    match (from, to) {
        (Accumulator::F16, Accumulator::F32) => words
            .iter()
            .flat_map(|word| {
                [0, 16].map(|shift| word.map(|w| Half::F16.widen((w >> shift) as u16).to_bits()))
            })
            .collect(),
        (Accumulator::F32, Accumulator::F16) => {
            let narrow = |bits: u32| u32::from(Half::F16.narrow(f32::from_bits(bits)));
            let pairs = words.as_chunks::<2>().0.iter();
            pairs
                .map(|[low, high]| {
                    std::array::from_fn(|lane| narrow(high[lane]) << 16 | narrow(low[lane]))
                })
                .collect()
        }
        _ => words.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: [(u32, u32, u32, u32); 9] = [
        (16, 16, 16, 16),
        (32, 8, 16, 16),
        (8, 32, 16, 16),
        (16, 16, 16, 8),
        (32, 8, 16, 8),
        (8, 32, 16, 8),
        (16, 16, 8, 32),
        (8, 8, 4, 64),
        (8, 8, 32, 4),
    ];

    #[test]
    fn every_element_has_one_place() {
        for (m, n, k, bits) in SHAPES {
            for part in [Part::A, Part::B, Part::C] {
                let bits = match part {
                    Part::C if bits == 64 => 64,
                    Part::C => 32,
                    _ => bits,
                };
                let shape = Shape { m, n, k };
                let fragment = Fragment { part, shape, bits };
                let mut seen = std::collections::BTreeSet::new();
                for register in 0..fragment.registers() {
                    for lane in 0..32 {
                        for e in 0..fragment.per_register() {
                            seen.insert(fragment.element(register, lane, e));
                        }
                    }
                }
                let (rows, columns) = fragment.size();
                assert_eq!(seen.len() as u32, rows * columns, "{fragment:?}");
                assert_eq!(seen.last(), Some(&(rows - 1, columns - 1)), "{fragment:?}");
            }
        }
    }

    #[test]
    fn strides_go_along_the_layout() {
        let fragment = Fragment {
            part: Part::B,
            shape: Shape { m: 8, n: 32, k: 16 },
            bits: 16,
        };
        assert_eq!(fragment.offset((3, 5), false, None), 3 * 32 + 5);
        assert_eq!(fragment.offset((3, 5), true, None), 5 * 16 + 3);
        assert_eq!(fragment.offset((3, 5), true, Some(100)), 503);
    }
}
