//! Data whose partial sums are exact in fp32 in any order, and far larger than the result: an error
//! that a kernel makes by rounding or dropping a term is then as large as the result, and no
//! tolerance hides it.
//!
//! | value | data |
//! |---|---|
//! | `a @ b.T` of two tensors | [`product`]: thirds along the sum that cancel but for a few |
//! | a mean or sum of `x * x` | [`rows`]: whole numbers, one with a third of the sum |
//! | `softmax(x, -1)` | [`rows`]: each element c or c − 128 |
//! | attention | [`attention`]: each query meets one key |

mod attention;
mod product;
mod recipe;
mod rows;
#[cfg(test)]
mod tests;

use dgx_core::operator::{ElementType, Number, Tensor};
use rayon::prelude::*;

pub use recipe::Recipe;

use crate::operator::format::{pack, quantise, rounded};

/// A tensor's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactData {
    pub elements: Vec<u8>,
    /// Empty unless the type is block-scaled.
    pub scales: Vec<u8>,
}

/// Random bits that depend only on a seed and a place.
fn bits(seed: u64, place: [usize; 3]) -> u64 {
    let mixed = |state: u64, word: u64| {
        let mut x = (state ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    place
        .iter()
        .fold(mixed(seed, 0), |state, word| mixed(state, *word as u64))
}

/// A number from 0 to below `below`.
fn below(seed: u64, place: [usize; 3], below: usize) -> usize {
    (bits(seed, place) % below.max(1) as u64) as usize
}

fn sign(seed: u64, place: [usize; 3]) -> f64 {
    if bits(seed, place) & 1 == 0 {
        1.0
    } else {
        -1.0
    }
}

/// Whether the type can represent the value.
fn fits(element: ElementType, value: f64) -> bool {
    rounded(element, value) == value
}

/// A tensor that the recipe does not use: small numbers of few bits, in its range.
fn ordinary(tensor: &Tensor, sizes: &[u64], extents: &[usize], seed: u64) -> ExactData {
    let count: usize = extents.iter().product();
    let (low, high) = tensor
        .range(sizes)
        .unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
    let number = |at: usize| {
        let choice = below(seed, [at, 0, 0], 4);
        let drawn: f64 = match tensor.element.number() {
            Number::Real => [0.5, 1.0, 1.5, 2.0][choice],
            Number::Integer => [1.0, 2.0, 3.0, 4.0][choice],
            Number::Truth => [0.0, 1.0, 0.0, 1.0][choice],
        };
        drawn.clamp(low, high)
    };
    let numbers: Vec<f64> = (0..count).into_par_iter().map(number).collect();
    let width = extents.last().copied().unwrap_or(1);
    let (elements, scales) = quantise(tensor.element, &numbers, width);
    ExactData { elements, scales }
}

/// Numbers of a type without scales, as bytes.
fn plain(element: ElementType, numbers: &[f64], extents: &[usize]) -> ExactData {
    let width = extents.last().copied().unwrap_or(1);
    ExactData {
        elements: pack(element, numbers, width),
        scales: Vec::new(),
    }
}
