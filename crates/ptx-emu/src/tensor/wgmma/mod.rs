//! `wgmma.mma_async`: a warpgroup multiplies a 64×K tile by a K×N tile into its registers.
//!
//! The accumulator stays in register layout. In register i of a warp, lane l holds row
//! `l/4 + 8·((i/2)&1)` and column `8·(i/4) + 2·(l%4) + (i&1)`; so with A expanded to one vector
//! per k in which each row's value stands four times, and B to one vector per k of four columns,
//! the inner loop is a fused multiply-add over whole registers and no layout is ever converted.

mod exact;
mod expand;
mod kernel;
mod sparse;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "x86_64")]
pub(super) use kernel::fragments;
pub(crate) use sparse::SparseStep;
use thiserror::Error;

use super::descriptor::Matrix;
use super::sparse::SparseError;
use super::{Element, Numerics};
use crate::numeric::Lanes;
use crate::numeric::simd::Level;

/// The type of D.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Accumulator {
    F32,
    /// Two columns to a register.
    F16,
    S32,
}

/// Everything about a wgmma that is known before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Form {
    n: u32,
    a: Element,
    b: Element,
    d: Accumulator,
    /// The product of `imm-scale-a` and `imm-scale-b` is −1.
    negate: bool,
    satfinite: bool,
}

/// The A operand of one instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OperandA<'a> {
    /// In shared memory; the descriptor's majorness is `imm-trans-a`.
    Shared(Matrix),
    /// The four fragment registers of each of the four warps.
    Registers([[&'a Lanes; 4]; 4]),
}

/// One instruction of a chain: they share form and accumulator.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step<'a> {
    pub a: OperandA<'a>,
    pub b: Matrix,
    /// `scale-d`: add to D instead of overwriting it.
    pub accumulate: bool,
}

/// What is wrong with a wgmma.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum WgmmaError {
    #[error("wgmma has no shape m64n{n}: n is a multiple of 8 from 8 to 256{}", .integer.then_some(", and of 16 above 32 for integers").unwrap_or(""))]
    Shape { n: u32, integer: bool },
    #[error("wgmma cannot multiply {a:?} by {b:?} into {d:?}")]
    Types {
        a: Element,
        b: Element,
        d: Accumulator,
    },
    #[error(
        "wgmma operand {operand} reads shared address {address:#x}, past the CTA's {size} bytes: check the descriptor's offsets"
    )]
    OutOfShared {
        operand: char,
        address: u32,
        size: usize,
    },
    #[error(
        "wgmma operand {operand} of type {element:?} cannot be MN-major: only f16 and bf16 can be transposed"
    )]
    Transposed { operand: char, element: Element },
    #[error(transparent)]
    Sparse(#[from] SparseError),
    #[error(
        "a sparse wgmma reads 64 bytes of each row of B, and a 32-byte swizzle has 32: use 64 or 128"
    )]
    SparseSwizzle,
    #[error("wgmma m64n{n} has {expected} accumulator registers per warp, not {got}")]
    Registers { n: u32, expected: usize, got: usize },
}

impl Form {
    /// Checks shape and types. `negate` tells whether exactly one of the scales is −1.
    pub(crate) fn new(
        n: u32,
        a: Element,
        b: Element,
        d: Accumulator,
        negate: bool,
        satfinite: bool,
    ) -> Result<Self, WgmmaError> {
        use Accumulator::{F16, F32, S32};
        let types = matches!(
            (a, b, d),
            (Element::F16, Element::F16, F16 | F32)
                | (Element::Bf16, Element::Bf16, F32)
                | (Element::Tf32, Element::Tf32, F32)
                | (
                    Element::E4m3 | Element::E5m2,
                    Element::E4m3 | Element::E5m2,
                    F16 | F32
                )
                | (Element::S8 | Element::U8, Element::S8 | Element::U8, S32)
                | (Element::B1, Element::B1, S32)
        );
        if !types {
            return Err(WgmmaError::Types { a, b, d });
        }
        let integer = d == S32;
        let shape = match integer {
            true => n == 8 || n == 24 || (n.is_multiple_of(16) && (16..=256).contains(&n)),
            false => n.is_multiple_of(8) && (8..=256).contains(&n),
        };
        if !shape {
            return Err(WgmmaError::Shape { n, integer });
        }
        Ok(Self {
            n,
            a,
            b,
            d,
            negate,
            satfinite,
        })
    }

    /// Bits of an element of A and B.
    pub(crate) fn bits(&self) -> u32 {
        self.a.bits()
    }

    /// K of the shape: 32 bytes of A.
    pub(crate) fn k(&self) -> u32 {
        256 / self.a.bits()
    }

    /// Accumulator registers of each warp.
    pub(crate) fn registers(&self) -> usize {
        let columns_per_register = if self.d == Accumulator::F16 { 2 } else { 1 };
        (self.n / 2) as usize / columns_per_register
    }

    /// Runs a chain of instructions on one accumulator, with the vector instructions of `level` or
    /// the machine's best.
    ///
    /// `shared` is the CTA's shared memory from address 0. `d` holds the accumulator registers of
    /// warp 0 in order, then those of warps 1, 2 and 3.
    pub(crate) fn run_at(
        &self,
        level: Level,
        steps: &[Step<'_>],
        shared: &[u8],
        d: &mut [&mut Lanes],
        numerics: Numerics,
    ) -> Result<(), WgmmaError> {
        let level = level.min(Level::best());
        if d.len() != 4 * self.registers() {
            return Err(WgmmaError::Registers {
                n: self.n,
                expected: self.registers(),
                got: d.len() / 4,
            });
        }
        // What came before an instruction that overwrites D does not matter.
        let first = steps.iter().rposition(|s| !s.accumulate).unwrap_or(0);
        let steps = &steps[first..];
        for step in steps {
            self.check_majors(step)?;
        }
        match (self.d, numerics) {
            (Accumulator::S32, _) if self.a == Element::B1 => exact::bits(self, steps, shared, d),
            (Accumulator::S32, _) => kernel::integers(self, level, steps, shared, d),
            (_, Numerics::Exact) => exact::floats(self, steps, shared, d),
            (Accumulator::F32, Numerics::Fast) => kernel::floats(self, level, steps, shared, d),
            (Accumulator::F16, Numerics::Fast) => kernel::halves(self, level, steps, shared, d),
        }
    }

    fn check_majors(&self, step: &Step<'_>) -> Result<(), WgmmaError> {
        use super::descriptor::Major;
        let transposable = |element| matches!(element, Element::F16 | Element::Bf16);
        let transposed_a = matches!(step.a, OperandA::Shared(m) if m.major == Major::Mn);
        if transposed_a && !transposable(self.a) {
            return Err(WgmmaError::Transposed {
                operand: 'A',
                element: self.a,
            });
        }
        if step.b.major == Major::Mn && !transposable(self.b) {
            return Err(WgmmaError::Transposed {
                operand: 'B',
                element: self.b,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
