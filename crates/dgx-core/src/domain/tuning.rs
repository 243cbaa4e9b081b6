use serde::{Deserialize, Serialize};

use super::Micros;

/// How the yardstick computes one shape: found once in a run, before its first
/// block there, and kept by all its processes, so that its times repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tuning {
    pub shape: String,
    /// Name and version; an algorithm means nothing to another library.
    pub library: String,
    /// One for each group of the shape, in its order.
    pub gemms: Vec<Algorithm>,
}

/// Hexadecimal digits of an algorithm's code: cuBLASLt's eight words of 64 bits.
pub const ALGORITHM_DIGITS: usize = 128;

/// One of the library's ways to multiply, the fastest of those it offered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Algorithm {
    /// The library's own record of it, in hexadecimal.
    pub code: String,
    /// The same for a reader: id, tile, stages, split of K, ….
    pub text: String,
    /// The median time it won with.
    pub micros: Micros,
    /// How many were tried.
    pub candidates: u32,
}
