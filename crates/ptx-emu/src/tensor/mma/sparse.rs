//! `mma.sp`: as `mma.sync`, with half of A's elements and metadata that places them.

use std::cell::OnceCell;

use thiserror::Error;

use super::super::fused::{Fused, Term};
use super::super::sparse::{Pattern, SparseError, dot_floats, dot_integers, pick, undefined};
use super::super::{Element, Numerics};
use super::{Accumulator, BitProduct, Form, MAX_D, MmaError};
use crate::numeric::Lanes;

/// The deepest product, of 4-bit integers.
const MAX_K: usize = 128;

/// What is wrong with an `mma.sp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Form(#[from] MmaError),
    #[error(transparent)]
    Sparse(#[from] SparseError),
}

/// Everything about an `mma.sp` but its registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Sparse {
    /// With the depth of B; A has half of it.
    form: Form,
    pattern: Pattern,
}

/// Register fragments of a sparse product.
pub(crate) struct Operands<'a> {
    pub a: &'a [&'a Lanes],
    pub b: &'a [&'a Lanes],
    pub c: &'a [&'a Lanes],
    pub metadata: &'a Lanes,
}

impl Sparse {
    /// Checks shape, types and selector; the shape is m16n8 with this `k`.
    pub(crate) fn new(
        k: u32,
        (a, b): (Element, Element),
        d: Accumulator,
        satfinite: bool,
        (selector, ordered): (u8, bool),
    ) -> Result<Self, Error> {
        use Accumulator::{F16, F32, S32};
        use Element::{Bf16, E4m3, E5m2, S4, S8, Tf32, U4, U8};
        let fits = matches!(
            (a, b, d, k),
            (Element::F16, Element::F16, F16 | F32, 16 | 32)
                | (Bf16, Bf16, F32, 16 | 32)
                | (Tf32, Tf32, F32, 8 | 16)
                | (E4m3 | E5m2, E4m3 | E5m2, F16 | F32, 64)
                | (S8 | U8, S8 | U8, S32, 32 | 64)
                | (S4 | U4, S4 | U4, S32, 64 | 128)
        );
        if !fits {
            let (m, n) = (16, 8);
            return Err(MmaError::Form { m, n, k, a, b, d }.into());
        }
        let form = Form {
            m: 16,
            k: k as usize,
            a,
            b,
            d,
            bits: BitProduct::And,
            satfinite,
        };
        let pattern = Pattern::new(a, k as usize, selector, ordered)?;
        Ok(Self { form, pattern })
    }

    /// Rows, columns and depth of B.
    pub(crate) fn shape(&self) -> [u32; 3] {
        self.form.shape()
    }

    /// Bits of an element of A and B.
    pub(crate) fn bits(&self) -> u32 {
        self.form.bits()
    }

    /// Multiplications and additions done: those of the stored elements.
    pub(crate) fn flops(&self) -> u64 {
        self.form.flops() / 2
    }

    /// D = A·B + C.
    pub(crate) fn run(
        &self,
        operands: &Operands<'_>,
        numerics: Numerics,
    ) -> Result<[Lanes; MAX_D], Error> {
        let form = &self.form;
        let counts = [
            ('A', form.a_registers() / 2, operands.a.len()),
            ('B', form.b_registers(), operands.b.len()),
            ('C', form.d_registers(), operands.c.len()),
        ];
        for (operand, expected, got) in counts {
            if expected != got {
                let wrong = MmaError::Registers {
                    operand,
                    expected,
                    got,
                };
                return Err(wrong.into());
            }
        }
        let half = form.d == Accumulator::F16;
        let fused = Fused::new(form.a).zip(Fused::new(form.b));
        match (fused, numerics) {
            (None, _) => self.products(
                operands,
                |x| form.a.integer(x),
                |x| form.b.integer(x),
                |x, y, old| dot_integers(x, y, old, form.satfinite),
            ),
            (Some(_), Numerics::Fast) => self.products(
                operands,
                |x| form.a.value(x),
                |x| form.b.value(x),
                |x, y, old| dot_floats(x, y, old, half),
            ),
            (Some((left, right)), Numerics::Exact) => {
                let (left, right) = (left.on_halves(), right.on_halves());
                self.products(
                    operands,
                    |x| left.term(x, false),
                    |x| right.term(x, false),
                    |x: &[Term], y, old| form.fused_sum((&left, &right), x, y, old),
                )
            }
        }
    }

    fn products<T: Copy + Default>(
        &self,
        operands: &Operands<'_>,
        left: impl Fn(u32) -> T,
        right: impl Fn(u32) -> T,
        dot: impl Fn(&[T], &[T], u32) -> u32,
    ) -> Result<[Lanes; MAX_D], Error> {
        let form = &self.form;
        let values = OnceCell::new();
        let (places, unknown) = self.pattern.places(operands.metadata, |chunk| {
            let (rows, columns) = values.get_or_init(|| {
                let (a, b) = (|x| form.a.value(x), |x| form.b.value(x));
                form.operands::<f32, MAX_K>(operands.a, operands.b, 0.0, a, b)
            });
            chunk.adds_nothing(rows, columns.iter().map(|column| &column[..]))
        });
        let (rows, columns) =
            form.operands::<T, MAX_K>(operands.a, operands.b, T::default(), left, right);
        let stored = self.pattern.stored();
        Ok(form.accumulate(operands.c, |row, column, old| {
            if unknown[row] {
                return undefined(form.a, form.d == Accumulator::F16);
            }
            let picked = pick(&columns[column], &places[row][..stored]);
            dot(&rows[row][..stored], &picked[..stored], old)
        }))
    }
}
