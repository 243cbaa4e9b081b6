//! The operator itself, C = silu(A·B1ᵀ) ⊙ (A·B2ᵀ): its number formats, its
//! data, and the f64 answer to it. Knows nothing of kernels.

#[cfg(target_arch = "x86_64")]
mod blocks;
mod cache;
mod distribution;
mod draw;
mod format;
mod operands;
mod oracle;
mod shuffle;

pub(crate) use cache::{ANSWERS, ANSWERS_LIMIT, OracleCache, is_ours};
pub(crate) use distribution::Distribution;
pub(crate) use format::{decode_e2m1, decode_e4m3};
pub(crate) use operands::{GroupOperands, Operands, SCALE_BLOCK};
pub(crate) use oracle::{GroupOracle, Oracle, silu};
pub(crate) use shuffle::{Drawn, Shuffle, drawing, mix};
