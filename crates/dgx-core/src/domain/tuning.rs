use serde::{Deserialize, Serialize};

use super::Micros;

/// How the yardstick computes one shape: chosen once per run, before the first block, and used by
/// all its processes, so that its times repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tuning {
    pub shape: String,
    /// Name and version; an algorithm is valid only for its library.
    pub library: String,
    /// One for each group of the shape, in its order.
    pub gemms: Vec<Algorithm>,
}

/// Hexadecimal digits of an algorithm's code: cuBLASLt's eight words of 64 bits.
pub const ALGORITHM_DIGITS: usize = 128;

/// One of the library's algorithms, the fastest of those it offered.
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
