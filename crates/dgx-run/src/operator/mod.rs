//! What follows from an operator: number formats, data, expected results in f64, and the parameters
//! of kernels. This module knows no designs.
//!
//! | from the file | where | becomes |
//! |---|---|---|
//! | `type` | `format` | elements and scales as bits, and back |
//! | `[in.…]`, `range` | `draw`, `operands` | the data of a call |
//! | `value` | `evaluate`, `oracle`, `cache` | what a right kernel writes, in f64 on the CPU |
//! | `value` | `naive` | the kernel of `dgx new`; `naive/oracle`: the same answer on a GPU |
//! | `value` | `symmetry`, `fresh`, `shuffle` | other data for each timed call, whose answer is the first one moved |
//! | tensors, sizes, `const` | `abi` | `dgx/abi.cuh` and the parameters of a kernel |
//! | `rtol`, `atol`, `[mistake]` | `crate::validate` | verdicts and their explanation |
//!
//! Operations and bytes follow in dgx-core (`operator::work`). `gated` is the one form whose
//! parts are kept beside the result: a gated product of NVFP4.

pub(crate) mod abi;
mod cache;
mod draw;
pub(crate) mod evaluate;
mod format;
mod fresh;
mod gated;
mod naive;
mod operands;
mod oracle;
mod output_values;
mod shuffle;
mod symmetry;
mod tensor;

pub use cache::OracleCache;
pub use cache::{ANSWERS, ANSWERS_LIMIT, is_ours};
pub use draw::exact::{ExactData, Recipe};
pub use evaluate::{Arithmetic, Evaluator, Moved, Problem, Unfit};
pub use format::{Packed, decode, encode, pack, quantise, rounded};
pub(crate) use format::{decode_e2m1, decode_e4m3};
pub(crate) use fresh::{Axis, Moves, input_axes, of_scales};
pub(crate) use gated::is_gated;
pub use naive::naive;
pub(crate) use naive::{ORACLE_THREADS, OracleDevice, OracleKernels, solve};
pub(crate) use operands::SCALE_BLOCK;
pub use operands::{GroupOperands, Operands, ProblemKey};
pub use oracle::GroupOracle;
pub use oracle::Oracle;
pub(crate) use oracle::{silu, written_outputs};
pub use output_values::{OutputElement, OutputValues};
pub use shuffle::drawing;
pub(crate) use shuffle::{Shuffle, axes_of, unshuffled};
pub use tensor::Tensor;
