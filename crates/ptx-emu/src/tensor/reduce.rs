//! Element-wise reductions of bulk copies into memory.

use thiserror::Error;

use crate::numeric::arith::Extremum;
use crate::numeric::halves::{Half, HalfMode};
use crate::numeric::{FloatMode, arith};

/// What is done to each element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ReduceOp {
    Add,
    Min,
    Max,
    /// Count up, wrapping to zero past the operand.
    Inc,
    /// Count down, wrapping to the operand below zero or above it.
    Dec,
    And,
    Or,
    Xor,
}

/// Element type of a reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ReduceType {
    U32,
    S32,
    U64,
    S64,
    B32,
    B64,
    F16,
    Bf16,
    F32,
    F64,
}

/// A reduction that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Reduction {
    op: ReduceOp,
    element: ReduceType,
}

/// A combination no instruction has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("there is no bulk reduction {op:?} on {element:?}")]
pub(crate) struct ReductionError {
    pub op: ReduceOp,
    pub element: ReduceType,
}

impl Reduction {
    pub(crate) fn new(op: ReduceOp, element: ReduceType) -> Result<Self, ReductionError> {
        use ReduceOp::{Add, And, Dec, Inc, Max, Min, Or, Xor};
        use ReduceType::{B32, B64, Bf16, F16, F32, F64, S32, S64, U32, U64};
        let exists = match op {
            Add => !matches!(element, B32 | B64),
            Min | Max => matches!(element, U32 | S32 | U64 | S64 | F16 | Bf16),
            Inc | Dec => element == U32,
            And | Or | Xor => matches!(element, B32 | B64 | U32 | S32 | U64 | S64),
        };
        // Float sums exist in every width; float extrema only in the 16-bit types.
        let exists = exists && !(matches!(op, Min | Max) && matches!(element, F32 | F64));
        match exists {
            true => Ok(Self { op, element }),
            false => Err(ReductionError { op, element }),
        }
    }

    /// Combines `source` into `target`, which are equally long.
    pub(crate) fn apply(&self, target: &mut [u8], source: &[u8]) {
        match self.element {
            ReduceType::F16 => self.halves(Half::F16, target, source),
            ReduceType::Bf16 => self.halves(Half::Bf16, target, source),
            ReduceType::F32 => words(target, source, |a, b| {
                arith::add_f32(a, b, FloatMode::default())
            }),
            ReduceType::F64 => doubles(target, source, arith::add_f64_in_l2),
            ReduceType::U32 | ReduceType::B32 => words(target, source, |a, b| {
                self.unsigned(a.into(), b.into()) as u32
            }),
            ReduceType::S32 => words(target, source, |a, b| {
                self.signed((a as i32).into(), (b as i32).into()) as u32
            }),
            ReduceType::U64 | ReduceType::B64 => {
                doubles(target, source, |a, b| self.unsigned(a, b))
            }
            ReduceType::S64 => doubles(target, source, |a, b| {
                self.signed(a as i64, b as i64) as u64
            }),
        }
    }

    fn halves(&self, kind: Half, target: &mut [u8], source: &[u8]) {
        let pairs = target
            .as_chunks_mut::<2>()
            .0
            .iter_mut()
            .zip(source.as_chunks::<2>().0);
        for (to, from) in pairs {
            let (a, b) = (u16::from_le_bytes(*to), u16::from_le_bytes(*from));
            let extremum = |max| {
                let which = Extremum {
                    max,
                    ..Extremum::default()
                };
                kind.extremum(a, b, which)
            };
            let result = match self.op {
                ReduceOp::Min => extremum(false),
                ReduceOp::Max => extremum(true),
                _ => kind.add(a, b, HalfMode::default()),
            };
            *to = result.to_le_bytes();
        }
    }

    fn unsigned(&self, a: u64, b: u64) -> u64 {
        match self.op {
            ReduceOp::Add => a.wrapping_add(b),
            ReduceOp::Min => a.min(b),
            ReduceOp::Max => a.max(b),
            ReduceOp::Inc => {
                if a >= b {
                    0
                } else {
                    a + 1
                }
            }
            ReduceOp::Dec => {
                if a == 0 || a > b {
                    b
                } else {
                    a - 1
                }
            }
            ReduceOp::And => a & b,
            ReduceOp::Or => a | b,
            ReduceOp::Xor => a ^ b,
        }
    }

    fn signed(&self, a: i64, b: i64) -> i64 {
        match self.op {
            ReduceOp::Min => a.min(b),
            ReduceOp::Max => a.max(b),
            _ => self.unsigned(a as u64, b as u64) as i64,
        }
    }
}

fn words(target: &mut [u8], source: &[u8], op: impl Fn(u32, u32) -> u32) {
    for (to, from) in target
        .as_chunks_mut::<4>()
        .0
        .iter_mut()
        .zip(source.as_chunks::<4>().0)
    {
        *to = op(u32::from_le_bytes(*to), u32::from_le_bytes(*from)).to_le_bytes();
    }
}

fn doubles(target: &mut [u8], source: &[u8], op: impl Fn(u64, u64) -> u64) {
    for (to, from) in target
        .as_chunks_mut::<8>()
        .0
        .iter_mut()
        .zip(source.as_chunks::<8>().0)
    {
        *to = op(u64::from_le_bytes(*to), u64::from_le_bytes(*from)).to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn once(op: ReduceOp, element: ReduceType, a: u32, b: u32) -> u32 {
        let mut target = a.to_le_bytes();
        Reduction::new(op, element)
            .expect("exists")
            .apply(&mut target, &b.to_le_bytes());
        u32::from_le_bytes(target)
    }

    #[test]
    fn reductions_follow_their_type() {
        assert_eq!(once(ReduceOp::Min, ReduceType::S32, u32::MAX, 1), u32::MAX);
        assert_eq!(once(ReduceOp::Min, ReduceType::U32, u32::MAX, 1), 1);
        assert_eq!(once(ReduceOp::Inc, ReduceType::U32, 7, 7), 0);
        assert_eq!(once(ReduceOp::Dec, ReduceType::U32, 0, 7), 7);
        assert_eq!(
            once(
                ReduceOp::Add,
                ReduceType::F32,
                1f32.to_bits(),
                2f32.to_bits()
            ),
            3f32.to_bits()
        );
        assert_eq!(
            once(ReduceOp::Add, ReduceType::F16, 0x3c00_4000, 0x3c00_3c00),
            0x4000_4200
        );
        assert_eq!(
            once(ReduceOp::Max, ReduceType::Bf16, 0x3f80_bf80, 0xbf80_3f80),
            0x3f80_3f80
        );
        assert!(Reduction::new(ReduceOp::Xor, ReduceType::F32).is_err());
        assert!(Reduction::new(ReduceOp::Max, ReduceType::F32).is_err());
    }
}
