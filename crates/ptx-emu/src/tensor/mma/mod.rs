//! `mma.sync`: one warp multiplies an m×k tile by a k×8 tile, all operands in registers.
//!
//! With g = lane/4 and t = lane%4, and p elements to a register word, every shape is laid out
//! alike. With h = m/8, word i of A holds row g + 8·(i mod h) and k = p·(4·⌊i/h⌋ + t) + e; word j
//! of B holds column g and k = p·(4j + t) + e; words of C and D hold rows g and g + 8, columns 2t
//! and 2t + 1.

pub(crate) mod narrow;
pub(crate) mod octets;
pub(crate) mod sparse;

use thiserror::Error;

use super::fused::{Fused, Term, dot_f16, dot_f32};
use super::{Element, Numerics};
use crate::numeric::halves::{Half, HalfMode};
use crate::numeric::{FloatMode, Lanes, arith};

/// The type of C and D.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Accumulator {
    /// Two columns to a register.
    F16,
    F32,
    /// Two register words, the lower first.
    F64,
    S32,
}

/// What single-bit operands do instead of multiplying.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum BitProduct {
    #[default]
    And,
    Xor,
}

/// Everything about an `mma.sync` but its registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Form {
    m: usize,
    k: usize,
    a: Element,
    b: Element,
    d: Accumulator,
    bits: BitProduct,
    satfinite: bool,
}

/// What is wrong with an `mma.sync`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum MmaError {
    #[error("there is no mma.sync m{m}n{n}k{k} of {a:?} by {b:?} into {d:?}")]
    Form {
        m: u32,
        n: u32,
        k: u32,
        a: Element,
        b: Element,
        d: Accumulator,
    },
    #[error("mma.sync operand {operand} has {expected} register words, not {got}")]
    Registers {
        operand: char,
        expected: usize,
        got: usize,
    },
}

/// Register words of the largest D.
const MAX_D: usize = 8;

impl Form {
    /// Checks shape and types.
    pub(crate) fn new(
        (m, n, k): (u32, u32, u32),
        a: Element,
        b: Element,
        d: Accumulator,
        bits: BitProduct,
        satfinite: bool,
    ) -> Result<Self, MmaError> {
        use Accumulator::{F16, F32, F64, S32};
        let pairs = match (a, b, d) {
            (Element::F16, Element::F16, F16 | F32) => true,
            (Element::E4m3 | Element::E5m2, Element::E4m3 | Element::E5m2, F16 | F32) => true,
            (Element::S8 | Element::U8, Element::S8 | Element::U8, S32) => true,
            (Element::S4 | Element::U4, Element::S4 | Element::U4, S32) => true,
            (Element::Bf16 | Element::Tf32, _, F32)
            | (Element::F64, _, F64)
            | (Element::B1, _, S32) => a == b,
            _ => false,
        };
        let shapes: &[(u32, u32)] = match a {
            Element::F16 | Element::Bf16 => &[(16, 8), (16, 16)],
            Element::Tf32 => &[(16, 4), (16, 8)],
            Element::F64 => &[(8, 4), (16, 4), (16, 8), (16, 16)],
            Element::E4m3 | Element::E5m2 => &[(16, 16), (16, 32)],
            Element::S8 | Element::U8 => &[(8, 16), (16, 16), (16, 32)],
            Element::S4 | Element::U4 => &[(8, 32), (16, 32), (16, 64)],
            Element::B1 => &[(8, 128), (16, 128), (16, 256)],
            Element::E2m3 | Element::E3m2 | Element::E2m1 => &[],
        };
        if !pairs || n != 8 || !shapes.contains(&(m, k)) {
            return Err(MmaError::Form { m, n, k, a, b, d });
        }
        Ok(Self {
            m: m as usize,
            k: k as usize,
            a,
            b,
            d,
            bits,
            satfinite,
        })
    }

    /// Register words of A.
    pub(crate) fn a_registers(&self) -> usize {
        self.m * self.k * self.a.bits() as usize / 1024
    }

    /// Register words of B.
    pub(crate) fn b_registers(&self) -> usize {
        8 * self.k * self.b.bits() as usize / 1024
    }

    /// Register words of C and of D.
    pub(crate) fn d_registers(&self) -> usize {
        let bits = match self.d {
            Accumulator::F16 => 16,
            Accumulator::F32 | Accumulator::S32 => 32,
            Accumulator::F64 => 64,
        };
        self.m * 8 * bits / 1024
    }

    /// Rows, columns and depth.
    pub(crate) fn shape(&self) -> [u32; 3] {
        [self.m as u32, 8, self.k as u32]
    }

    /// Bits of an element of A and B.
    pub(crate) fn bits(&self) -> u32 {
        self.a.bits()
    }

    /// Multiplications and additions, as FLOP are counted.
    pub(crate) fn flops(&self) -> u64 {
        (2 * self.m * 8 * self.k) as u64
    }

    /// D = A·B + C. The first [`Form::d_registers`] words of the result are D.
    pub(crate) fn run(
        &self,
        a: &[&Lanes],
        b: &[&Lanes],
        c: &[&Lanes],
        numerics: Numerics,
    ) -> Result<[Lanes; MAX_D], MmaError> {
        let counts = [
            ('A', self.a_registers(), a.len()),
            ('B', self.b_registers(), b.len()),
            ('C', self.d_registers(), c.len()),
        ];
        for (operand, expected, got) in counts {
            if expected != got {
                return Err(MmaError::Registers {
                    operand,
                    expected,
                    got,
                });
            }
        }
        // Hopper has no fp8 product at warp level: it widens the codes to f16, multiplies the lower
        // two of each word and then the upper two, and adds C at the end.
        let fused = Fused::new(self.a).zip(Fused::new(self.b));
        let fused = fused.map(|(left, right)| (left.on_halves(), right.on_halves()));
        Ok(match (self.a, numerics, fused) {
            (Element::F64, _, _) => self.doubles(a, b, c),
            (Element::B1, _, _) => self.bit_counts(a, b, c),
            (_, Numerics::Exact, Some(fused)) => self.fused(&fused, a, b, c),
            (_, _, Some(_)) => match self.vectors(a, b, c) {
                Some(d) => d,
                None => self.floats(a, b, c),
            },
            (_, _, None) => self.integers(a, b, c),
        })
    }

    /// Elements of one word of A or B: (row or column, k, code), by the common layout.
    fn each(
        registers: &[&Lanes],
        bits: u32,
        halves: usize,
        mut each: impl FnMut(usize, usize, u32),
    ) {
        let per_word = (32 / bits) as usize;
        let mask = u32::MAX >> (32 - bits);
        for (index, register) in registers.iter().enumerate() {
            let (half, block) = (index % halves, index / halves);
            for (lane, word) in register.iter().enumerate() {
                let first = (4 * block + lane % 4) * per_word;
                for e in 0..per_word {
                    let code = word >> (e as u32 * bits) & mask;
                    each(8 * half + lane / 4, first + e, code);
                }
            }
        }
    }

    /// Both operands decoded: rows of A and columns of B.
    fn operands<T: Copy, const K: usize>(
        &self,
        a: &[&Lanes],
        b: &[&Lanes],
        zero: T,
        left: impl Fn(u32) -> T,
        right: impl Fn(u32) -> T,
    ) -> ([[T; K]; 16], [[T; K]; 8]) {
        let (mut rows, mut columns) = ([[zero; K]; 16], [[zero; K]; 8]);
        Self::each(a, self.a.bits(), self.m / 8, |r, k, code| {
            rows[r][k] = left(code)
        });
        Self::each(b, self.b.bits(), 1, |c, k, code| {
            columns[c][k] = right(code)
        });
        (rows, columns)
    }

    /// Maps every element of C to one of D: `each` gets row, column and the old value.
    fn accumulate(
        &self,
        c: &[&Lanes],
        each: impl FnMut(usize, usize, u32) -> u32,
    ) -> [Lanes; MAX_D] {
        accumulate(self.m, self.d, c, each)
    }

    /// [`Form::floats`] on vector units, for the shapes that fill them.
    #[cfg(target_arch = "x86_64")]
    fn vectors(&self, a: &[&Lanes], b: &[&Lanes], c: &[&Lanes]) -> Option<[Lanes; MAX_D]> {
        if self.d != Accumulator::F32 {
            return None;
        }
        let (a, b, c) = (a.try_into().ok()?, b.try_into().ok()?, c.try_into().ok()?);
        let sums = super::wgmma::fragments((self.a, a), (self.b, b), c)?;
        let mut d = [[0; 32]; MAX_D];
        d[..4].copy_from_slice(&sums);
        Some(d)
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn vectors(&self, _: &[&Lanes], _: &[&Lanes], _: &[&Lanes]) -> Option<[Lanes; MAX_D]> {
        None
    }

    fn floats(&self, a: &[&Lanes], b: &[&Lanes], c: &[&Lanes]) -> [Lanes; MAX_D] {
        const K: usize = 32;
        let (rows, columns) =
            self.operands::<f32, K>(a, b, 0.0, |x| self.a.value(x), |x| self.b.value(x));
        // Products are exact in f32, so this rounds like a fused multiply-add.
        let sum = |row: usize, column: usize, first: f32| {
            let terms = rows[row].iter().zip(&columns[column]).take(self.k);
            terms.fold(first, |sum, (x, y)| sum + x * y)
        };
        self.accumulate(c, |row, column, old| match self.d {
            Accumulator::F16 => {
                let total = sum(row, column, Half::F16.widen(old as u16));
                u32::from(Half::F16.narrow(total))
            }
            _ => arith::canonical_f32(sum(row, column, f32::from_bits(old))),
        })
    }

    fn fused(
        &self,
        (left, right): &(Fused, Fused),
        a: &[&Lanes],
        b: &[&Lanes],
        c: &[&Lanes],
    ) -> [Lanes; MAX_D] {
        const K: usize = 32;
        let (rows, columns) = self.operands::<Term, K>(
            a,
            b,
            Term::default(),
            |x| left.term(x, false),
            |x| right.term(x, false),
        );
        self.accumulate(c, |row, column, old| {
            let (x, y) = (&rows[row][..self.k], &columns[column][..self.k]);
            self.fused_sum((left, right), x, y, old)
        })
    }

    /// One element of D.
    fn fused_sum(&self, fused: (&Fused, &Fused), x: &[Term], y: &[Term], old: u32) -> u32 {
        let dot = |x: &[Term], y: &[Term], sum: u32| match self.d {
            Accumulator::F16 => dot_f16(fused, x, y, Half::F16.widen(sum as u16)).into(),
            _ => dot_f32(fused, x, y, f32::from_bits(sum)),
        };
        match self.a.bits() {
            8 => {
                let [lower, upper] = [0, 2].map(|first| (halved(x, first), halved(y, first)));
                let sum = dot(&lower.0, &lower.1, 0);
                self.add(dot(&upper.0, &upper.1, sum), old)
            }
            _ => dot(x, y, old),
        }
    }

    /// The separate addition of C that ends an fp8 product.
    fn add(&self, sum: u32, addend: u32) -> u32 {
        match self.d {
            Accumulator::F16 => {
                let mode = HalfMode::default();
                Half::F16.add(sum as u16, addend as u16, mode).into()
            }
            _ => arith::add_f32(sum, addend, FloatMode::default()),
        }
    }

    fn integers(&self, a: &[&Lanes], b: &[&Lanes], c: &[&Lanes]) -> [Lanes; MAX_D] {
        const K: usize = 64;
        let (rows, columns) =
            self.operands::<i32, K>(a, b, 0, |x| self.a.integer(x), |x| self.b.integer(x));
        self.accumulate(c, |row, column, old| {
            let dot: i32 = rows[row]
                .iter()
                .zip(&columns[column])
                .map(|(x, y)| x * y)
                .sum();
            let sum = match self.satfinite {
                true => (old as i32).saturating_add(dot),
                false => (old as i32).wrapping_add(dot),
            };
            sum as u32
        })
    }

    fn bit_counts(&self, a: &[&Lanes], b: &[&Lanes], c: &[&Lanes]) -> [Lanes; MAX_D] {
        let words = self.k / 32;
        let rows_per_word = self.m / 8;
        self.accumulate(c, |row, column, old| {
            let count: u32 = (0..words)
                .map(|w| {
                    let (block, t) = (w / 4, w % 4);
                    let x = a[block * rows_per_word + row / 8][4 * (row % 8) + t];
                    let y = b[block][4 * column + t];
                    match self.bits {
                        BitProduct::And => (x & y).count_ones(),
                        BitProduct::Xor => (x ^ y).count_ones(),
                    }
                })
                .sum();
            old.wrapping_add(count)
        })
    }

    /// f64 sums in order of k, each step fused.
    fn doubles(&self, a: &[&Lanes], b: &[&Lanes], c: &[&Lanes]) -> [Lanes; MAX_D] {
        let value = |registers: &[&Lanes], index: usize, lane: usize| {
            let (low, high) = (registers[2 * index][lane], registers[2 * index + 1][lane]);
            f64::from_bits(u64::from(high) << 32 | u64::from(low))
        };
        let mut d = [[0; 32]; MAX_D];
        for row in 0..self.m {
            for column in 0..8 {
                let index = 2 * (row / 8) + (column & 1);
                let lane = 4 * (row % 8) + column / 2;
                let sum = (0..self.k).fold(value(c, index, lane), |sum, k| {
                    let x = value(a, k / 4 * (self.m / 8) + row / 8, 4 * (row % 8) + k % 4);
                    let y = value(b, k / 4, 4 * column + k % 4);
                    x.mul_add(y, sum)
                });
                let bits = arith::canonical_f64(sum);
                d[2 * index][lane] = bits as u32;
                d[2 * index + 1][lane] = (bits >> 32) as u32;
            }
        }
        d
    }
}

/// Maps every element of C, of `m` rows, to one of D: `each` gets row, column and the old value.
fn accumulate(
    m: usize,
    kind: Accumulator,
    c: &[&Lanes],
    mut each: impl FnMut(usize, usize, u32) -> u32,
) -> [Lanes; MAX_D] {
    let mut d = [[0; 32]; MAX_D];
    for row in 0..m {
        for column in 0..8 {
            let register = 2 * (row / 8) + (column & 1);
            let lane = 4 * (row % 8) + column / 2;
            match kind {
                Accumulator::F16 => {
                    let shift = 16 * (register & 1);
                    let old = c[register / 2][lane] >> shift & 0xffff;
                    d[register / 2][lane] |= each(row, column, old) << shift;
                }
                _ => d[register][lane] = each(row, column, c[register][lane]),
            }
        }
    }
    d
}

/// The two terms from `first` on of each four: one half of every fp8 word.
fn halved(terms: &[Term], first: usize) -> Vec<Term> {
    let words = terms.as_chunks::<4>().0;
    words
        .iter()
        .flat_map(|word| [word[first], word[first + 1]])
        .collect()
}

#[cfg(test)]
mod tests;
