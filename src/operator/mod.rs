//! The operator itself: its data, its formats, and the f64 answer to it.
//! Knows nothing of kernels.

mod distribution;

pub use distribution::Distribution;
