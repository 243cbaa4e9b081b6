//! Whether an output is right. Pure: bytes and an oracle in, a verdict out.

mod passed;

pub use passed::Passed;
