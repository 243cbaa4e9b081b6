//! `wgmma.mma_async.sp`: A is stored at half its depth, with the layout of a dense A; B has two
//! dense tiles' depth. Rows pick their elements of B one by one, so this is slower than the dense
//! kernels.

use std::cell::OnceCell;

use super::super::descriptor::Matrix;
use super::super::fused::{Fused, dot_f16, dot_f32};
use super::super::sparse::{MAX_STORED, Pattern, dot_floats, dot_integers, pick, undefined};
use super::super::{Element, Numerics};
use super::exact::place;
use super::expand::{each_a, each_b};
use super::{Accumulator, Form, Step, WgmmaError};
use crate::numeric::Lanes;
use crate::numeric::halves::Half;

/// One sparse instruction of a chain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SparseStep<'a> {
    /// As a dense one, B being its first half.
    pub step: Step<'a>,
    /// The metadata register of each of the four warps.
    pub metadata: [&'a Lanes; 4],
    pub selector: u8,
}

/// Both halves of B, each a dense tile.
fn halves(b: &Matrix) -> Result<[Matrix; 2], WgmmaError> {
    let next = b.next_k().ok_or(WgmmaError::SparseSwizzle)?;
    Ok([*b, next])
}

impl Form {
    /// Runs a chain of sparse instructions on one accumulator; the other arguments as for a dense one.
    pub(crate) fn run_sparse(
        &self,
        steps: &[SparseStep<'_>],
        shared: &[u8],
        d: &mut [&mut Lanes],
        numerics: Numerics,
    ) -> Result<(), WgmmaError> {
        if d.len() != 4 * self.registers() {
            return Err(WgmmaError::Registers {
                n: self.n,
                expected: self.registers(),
                got: d.len() / 4,
            });
        }
        let half = self.d == Accumulator::F16;
        let sign = if self.negate { -1.0 } else { 1.0 };
        let fused = Fused::new(self.a).zip(Fused::new(self.b));
        for sparse in steps {
            self.check_majors(&sparse.step)?;
            match (fused, numerics) {
                (None, _) if self.a == Element::B1 => {
                    return Err(WgmmaError::Types {
                        a: self.a,
                        b: self.b,
                        d: self.d,
                    });
                }
                (None, _) => self.products(
                    sparse,
                    shared,
                    d,
                    (|x| self.a.integer(x), |x| self.b.integer(x)),
                    |x, y, old| dot_integers(x, y, old, self.satfinite),
                ),
                (Some(_), Numerics::Fast) => self.products(
                    sparse,
                    shared,
                    d,
                    (|x| sign * self.a.value(x), |x| self.b.value(x)),
                    |x, y, old| dot_floats(x, y, old, half),
                ),
                (Some((left, right)), Numerics::Exact) => self.products(
                    sparse,
                    shared,
                    d,
                    (|x| left.term(x, self.negate), |x| right.term(x, false)),
                    |x, y, old| match half {
                        true => {
                            let old = Half::F16.widen(old as u16);
                            dot_f16((&left, &right), x, y, old).into()
                        }
                        false => dot_f32((&left, &right), x, y, f32::from_bits(old)),
                    },
                ),
            }?;
        }
        Ok(())
    }

    fn products<T: Copy + Default>(
        &self,
        sparse: &SparseStep<'_>,
        shared: &[u8],
        d: &mut [&mut Lanes],
        (left, right): (impl Fn(u32) -> T, impl Fn(u32) -> T),
        dot: impl Fn(&[T], &[T], u32) -> u32,
    ) -> Result<(), WgmmaError> {
        let (k, registers) = (self.k() as usize, self.registers());
        let pattern = Pattern::new(self.a, 2 * k, sparse.selector, false)?;
        let step = &sparse.step;
        let columns = self.columns(step, shared, right)?;
        for (warp, metadata) in sparse.metadata.iter().enumerate() {
            let values = OnceCell::new();
            let (places, unknown) = pattern.places(metadata, |chunk| {
                let values = values.get_or_init(|| {
                    let rows = self.rows(step, warp, shared, |x| self.a.value(x)).ok()?;
                    Some((rows, self.columns(step, shared, |x| self.b.value(x)).ok()?))
                });
                let zero = |(rows, columns): &([_; 16], Vec<f32>)| {
                    chunk.adds_nothing(rows, columns.chunks_exact(2 * k))
                };
                values.as_ref().is_some_and(zero)
            });
            let rows = self.rows(step, warp, shared, &left)?;
            let slab = &mut d[warp * registers..(warp + 1) * registers];
            for (r, row) in rows.iter().enumerate() {
                for (c, column) in columns.chunks_exact(2 * k).enumerate() {
                    let picked = pick(column, &places[r][..k]);
                    let (register, lane) = place(r, c);
                    let (word, shift, mask) = match self.d {
                        Accumulator::F16 => {
                            (&mut slab[register / 2][lane], 16 * (register & 1), 0xffff)
                        }
                        _ => (&mut slab[register][lane], 0, u32::MAX),
                    };
                    let old = if step.accumulate {
                        *word >> shift & mask
                    } else {
                        0
                    };
                    let new = match unknown[r] {
                        true => undefined(self.a, self.d == Accumulator::F16),
                        false => dot(&row[..k], &picked[..k], old),
                    };
                    *word = *word & !(mask << shift) | new << shift;
                }
            }
        }
        Ok(())
    }
    /// B's columns, each of twice the depth of a dense tile.
    fn columns<T: Copy + Default>(
        &self,
        step: &Step<'_>,
        shared: &[u8],
        decode: impl Fn(u32) -> T,
    ) -> Result<Vec<T>, WgmmaError> {
        let k = self.k() as usize;
        let mut columns = vec![T::default(); self.n as usize * 2 * k];
        for (half, b) in halves(&step.b)?.iter().enumerate() {
            for group in 0..self.n as usize / 8 {
                each_b(self, b, group, shared, |column, at, code| {
                    columns[(8 * group + column) * 2 * k + half * k + at] = decode(code);
                })?;
            }
        }
        Ok(columns)
    }

    /// The stored elements of a warp's rows of A.
    fn rows<T: Copy + Default>(
        &self,
        step: &Step<'_>,
        warp: usize,
        shared: &[u8],
        decode: impl Fn(u32) -> T,
    ) -> Result<[[T; MAX_STORED]; 16], WgmmaError> {
        let mut rows = [[T::default(); MAX_STORED]; 16];
        each_a(self, step, warp, shared, |row, at, code| {
            rows[row][at] = decode(code);
        })?;
        Ok(rows)
    }
}
