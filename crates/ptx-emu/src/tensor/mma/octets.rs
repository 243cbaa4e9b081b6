//! `mma.sync.m8n8k4` of f16, the oldest: four products side by side, each by the eight lanes of a
//! quad pair (lanes 4q to 4q + 3 and 16 + 4q to 19 + 4q).

use super::super::Numerics;
use super::super::fused::{Fused, Term, dot_f16, dot_f32};
use super::super::sparse::dot_floats;
use super::{Accumulator, Element};
use crate::numeric::Lanes;
use crate::numeric::halves::Half;

/// The layouts and sums of one m8n8k4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Octets {
    pub a_by_column: bool,
    pub b_by_row: bool,
    /// f16 or f32.
    pub c: Accumulator,
    /// f16 or f32.
    pub d: Accumulator,
}

/// (row, column) of element `e` of C or D in a lane.
fn place(accumulator: Accumulator, lane: usize, e: usize) -> (usize, usize) {
    let upper = 4 * (lane / 16);
    match accumulator {
        Accumulator::F16 => (upper + lane % 4, e),
        _ => (upper + (lane & 1) + (e & 2), (e & 4) + (lane & 2) + (e & 1)),
    }
}

/// Half `e` of a lane's packed registers.
fn half(registers: &[&Lanes], lane: usize, e: usize) -> u32 {
    registers[e / 2][lane] >> (16 * (e & 1)) & 0xffff
}

impl Octets {
    /// Register words of C or D of a type.
    pub(crate) fn registers(accumulator: Accumulator) -> usize {
        match accumulator {
            Accumulator::F16 => 4,
            _ => 8,
        }
    }

    /// Multiplications and additions.
    pub(crate) const FLOPS: u64 = 2 * 8 * 8 * 4 * 4;

    /// D = A·B + C; A and B have two register words. `None` if some operand has another number.
    pub(crate) fn run(
        &self,
        a: &[&Lanes],
        b: &[&Lanes],
        c: &[&Lanes],
        numerics: Numerics,
    ) -> Option<Vec<Lanes>> {
        let fused = Fused::new(Element::F16)?;
        if a.len() != 2 || b.len() != 2 || c.len() != Self::registers(self.c) {
            return None;
        }
        let mut d = vec![[0; 32]; Self::registers(self.d)];
        for quad_pair in 0..4 {
            let lanes = (0..4).flat_map(|t| [4 * quad_pair + t, 16 + 4 * quad_pair + t]);
            let (mut rows, mut columns) = ([[0; 4]; 8], [[0; 4]; 8]);
            let mut old = [[0f32; 8]; 8];
            for lane in lanes.clone() {
                let (t, upper) = (lane % 4, 4 * (lane / 16));
                for e in 0..4 {
                    let (row, k) = if self.a_by_column {
                        (upper + e, t)
                    } else {
                        (upper + t, e)
                    };
                    rows[row][k] = half(a, lane, e);
                    let (column, k) = if self.b_by_row {
                        (upper + e, t)
                    } else {
                        (upper + t, e)
                    };
                    columns[column][k] = half(b, lane, e);
                }
                for e in 0..8 {
                    let (row, column) = place(self.c, lane, e);
                    old[row][column] = match self.c {
                        Accumulator::F16 => Half::F16.widen(half(c, lane, e) as u16),
                        _ => f32::from_bits(c[e][lane]),
                    };
                }
            }
            for lane in lanes {
                for e in 0..8 {
                    let (row, column) = place(self.d, lane, e);
                    let sum = self.sum(
                        &fused,
                        &rows[row],
                        &columns[column],
                        old[row][column],
                        numerics,
                    );
                    match self.d {
                        Accumulator::F16 => d[e / 2][lane] |= sum << (16 * (e & 1)),
                        _ => d[e][lane] = sum,
                    }
                }
            }
        }
        Some(d)
    }

    fn sum(&self, fused: &Fused, x: &[u32; 4], y: &[u32; 4], old: f32, numerics: Numerics) -> u32 {
        let narrow = self.d == Accumulator::F16;
        match numerics {
            Numerics::Fast => {
                let [x, y] = [x, y].map(|codes| codes.map(|code| Element::F16.value(code)));
                let sum = dot_floats(&x, &y, old.to_bits(), false);
                match narrow {
                    true => u32::from(Half::F16.narrow(f32::from_bits(sum))),
                    false => sum,
                }
            }
            Numerics::Exact => {
                let [x, y]: [[Term; 4]; 2] =
                    [x, y].map(|codes| codes.map(|code| fused.term(code, false)));
                match narrow {
                    true => dot_f16((fused, fused), &x, &y, old).into(),
                    false => dot_f32((fused, fused), &x, &y, old),
                }
            }
        }
    }
}
