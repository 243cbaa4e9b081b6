//! The operator itself, C = silu(A·B1ᵀ) ⊙ (A·B2ᵀ): its number formats, its
//! data, and the f64 answer to it. Knows nothing of kernels.

#[cfg(target_arch = "x86_64")]
mod blocks;
mod cache;
mod draw;
mod evaluate;
mod format;
mod operands;
mod oracle;
mod shuffle;
mod symmetry;

pub use cache::OracleCache;
pub use cache::{ANSWERS, ANSWERS_LIMIT, is_ours};
pub use draw::exact::{ExactData, Recipe};
pub use evaluate::{Arithmetic, Evaluator, Moved, Problem, Unfit};
pub use format::{Packed, decode, encode, pack, quantise, rounded};
pub(crate) use format::{decode_e2m1, decode_e4m3};
pub use operands::GroupOperands;
pub use operands::Operands;
pub(crate) use operands::SCALE_BLOCK;
pub use oracle::GroupOracle;
pub use oracle::Oracle;
pub(crate) use oracle::silu;
pub(crate) use shuffle::Shuffle;
pub use shuffle::{Drawn, drawing};
pub use symmetry::{Symmetry, symmetries};
