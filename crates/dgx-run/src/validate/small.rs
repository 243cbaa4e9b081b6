//! Elements so small that zero is within the absolute tolerance. If an element's own sums are
//! certain, it is compared by its rounding error instead: on the grid of fp16 below its normal
//! numbers, and relative to its size above them.

use rayon::prelude::*;

use super::{Evidence, Tolerance};
use crate::operator::OutputElement;
use dgx_core::operator::ElementType;

/// The smallest normal number of fp16, and the distance of two numbers below it.
pub(super) const NORMAL: f64 = 1.0 / (1 << 14) as f64;
const UNIT: f64 = 1.0 / (1 << 24) as f64;
/// Below this, a zero is described as a missing small value.
pub(super) const HIDDEN: f64 = 1.0 / 1000.0;
/// Units by which an element may be wrong, besides the loss of its sums.
const UNITS: f64 = 2.0;
/// Maximum relative error of a normal number: less precise arithmetic within the tolerance is not a
/// mistake, but zero for a number is.
const COARSE: f64 = 0.5;
/// As a share of the absolute tolerance, which is about the rounding of a row's largest element:
/// smaller values may be lost in 16-bit intermediates.
const NEGLIGIBLE: f64 = 1.0 / (1 << 12) as f64;
/// Maximum elements that are checked closely: each needs both its sums.
const MOST: usize = 1 << 14;

/// A wrong element that the tolerance accepts.
pub(super) struct SmallError {
    pub group: usize,
    pub index: usize,
    /// Its error over the rounding error.
    pub error: f64,
}

/// Whether an element that passes needs a closer check.
pub(super) fn doubtful(found: OutputElement, expected: f64, tolerance: Tolerance) -> bool {
    let miss = miss(found, expected);
    miss.is_finite()
        && miss > allowed(expected, tolerance.rtol)
        && tolerance.accepts(found, expected)
}

/// Whether a number that passes is zero, although it is far above the smallest that its type, or
/// its row, can represent.
pub(super) fn is_zeroed(found: OutputElement, expected: f64, tolerance: Tolerance) -> bool {
    let size = expected.abs();
    found.value() == 0.0
        && size.is_finite()
        && size > normal(found.element).max(NEGLIGIBLE * tolerance.atol)
        && tolerance.accepts(found, expected)
}

/// The smallest normal number of a type.
pub(super) fn normal(element: ElementType) -> f64 {
    element.least_step() / (2.0 * element.unit_roundoff())
}

fn allowed(expected: f64, rtol: f64) -> f64 {
    match expected.abs() {
        small if small < NORMAL => UNITS * UNIT + rtol * small,
        normal => COARSE * normal,
    }
}

fn miss(found: OutputElement, expected: f64) -> f64 {
    (found.value() - expected).abs()
}

/// The elements with a larger error than their sums may lose. If there are very many, only some.
pub(super) fn missed(evidence: &Evidence<'_>) -> Vec<SmallError> {
    let groups = evidence.outputs.iter().zip(&evidence.oracle.groups);
    let groups = groups.enumerate();
    let doubts: Vec<(usize, usize)> = groups
        .flat_map(|(group, (output, answer))| {
            let places = output.all().enumerate();
            let doubts = places.filter(|(i, found)| match answer.is_gated() {
                true => doubtful(*found, answer.c(*i), evidence.tolerances[group].everywhere),
                false => {
                    let tolerance = evidence.tolerances[group].at(*i / answer.columns);
                    is_zeroed(*found, answer.c(*i), tolerance)
                }
            });
            let doubts: Vec<usize> = doubts.map(|(i, _)| i).collect();
            doubts.into_iter().map(move |i| (group, i))
        })
        .collect();
    let stride = doubts.len().div_ceil(MOST).max(1);
    let some = doubts.into_par_iter().step_by(stride);
    some.map(|(group, index)| {
        let element = evidence.element(group, index);
        let lost = evidence.allowance(&element);
        let allowed = match evidence.oracle.groups[group].is_gated() {
            true => allowed(element.expected, evidence.tolerances[group].everywhere.rtol) + lost,
            false => COARSE * element.expected.abs() + lost,
        };
        SmallError {
            group,
            index,
            error: miss(element.found, element.expected) / allowed,
        }
    })
    .filter(|missed| missed.error > 1.0)
    .collect()
}
