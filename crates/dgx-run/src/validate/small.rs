//! Elements below the normal numbers of fp16. The absolute tolerance would take
//! zero for any of them. Where an element's own sums are sure, it is compared
//! on the grid of fp16 instead.

use half::f16;
use rayon::prelude::*;

use super::{Evidence, rounding};

/// The least normal number of fp16, and the distance of two numbers below it.
pub(super) const NORMAL: f64 = 1.0 / (1 << 14) as f64;
const UNIT: f64 = 1.0 / (1 << 24) as f64;
/// Units by which an element may be off, beside what its sums lose.
const UNITS: f64 = 2.0;
/// Elements that are looked at closely: each takes both its sums.
const MOST: usize = 1 << 14;

/// Whether an element that passes needs a closer look.
pub(super) fn doubtful(bits: u16, expected: f64, rtol: f64) -> bool {
    expected.abs() < NORMAL && miss(bits, expected) > allowed(expected, rtol)
}

fn allowed(expected: f64, rtol: f64) -> f64 {
    UNITS * UNIT + rtol * expected.abs()
}

fn miss(bits: u16, expected: f64) -> f64 {
    (f16::from_bits(bits).to_f64() - expected).abs()
}

/// Group and place of the elements that are off by more than their sums may
/// lose. Of very many, some.
pub(super) fn missed(evidence: &Evidence<'_>) -> Vec<(usize, usize)> {
    let rtol = evidence.tolerance.rtol;
    let groups = evidence.c.iter().zip(&evidence.oracle.groups).enumerate();
    let doubts: Vec<(usize, usize)> = groups
        .flat_map(|(group, (output, answer))| {
            let places = output.par_iter().enumerate();
            let doubts = places.filter(|(i, bits)| doubtful(**bits, answer.c(*i), rtol));
            let doubts: Vec<usize> = doubts.map(|(i, _)| i).collect();
            doubts.into_iter().map(move |i| (group, i))
        })
        .collect();
    let stride = doubts.len().div_ceil(MOST).max(1);
    let some = doubts.into_par_iter().step_by(stride);
    some.filter(|&(group, index)| {
        let element = evidence.element(group, index);
        let lost = rounding::allowance(&evidence.operands.groups[group], &element);
        miss(element.bits, element.expected) > allowed(element.expected, rtol) + lost
    })
    .collect()
}
