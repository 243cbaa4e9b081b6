//! The error that a correct kernel may have in a sum over K. Tensor cores keep partial sums in 24
//! bits and truncate the rest, so the error follows the size of the partial sums, not of the
//! result. Where a product cancels to almost nothing and the gate multiplies it by a large factor,
//! an element can miss a tolerance based on its own size alone, with any kernel that adds in fp32.
//! docs/internals/validation.md derives the bound.

use super::Element;
use super::reduction::Terms;
use crate::operator::{GroupOperands, silu};

/// Half a unit in the last place of 24 bits, over the value.
const HALF_ULP: f64 = 1.0 / (1 << 24) as f64;
/// Products that a tensor core adds at once.
const STEP: f64 = 16.0;
/// Deviations by which a random error may exceed its expectation.
const DEVIATIONS: f64 = 6.0;
/// Maximum slope of silu.
const SLOPE: f64 = 1.1;

/// The largest error that the sums of a correct kernel leave in the element.
pub(super) fn allowance(operands: &GroupOperands, element: &Element) -> f64 {
    let [gate, up] = Terms::of(operands, element).products();
    let (lost_gate, lost_up) = (loss(&gate), loss(&up));
    let (gate, up): (f64, f64) = (gate.iter().sum(), up.iter().sum());
    silu(gate).abs() * lost_up + SLOPE * lost_gate * (up.abs() + lost_up)
}

/// The maximum error of a sum of these terms, in any order that does not depend on them.
fn loss(terms: &[f64]) -> f64 {
    let count = terms.len() as f64;
    let sum: f64 = terms.iter().sum();
    let scatter = terms.iter().map(|term| term * term).sum::<f64>().sqrt();
    let partial = sum.abs() + DEVIATIONS * scatter / 2.0;
    // Every step truncates half a place on average, always towards zero; and every addition errs by
    // up to half a place, at random.
    let places = count / STEP + DEVIATIONS * (count / 3.0).sqrt();
    places * HALF_ULP * partial
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum as Hopper's tensor cores compute it, for terms whose exponents are those of their
    /// operands: sixteen at a time, aligned to the largest of them and the sum so far, cut off 25
    /// bits below, truncated to 24 bits.
    fn truncated(terms: &[f64]) -> f64 {
        let cut = |x: f64, unit: f64| (x / unit).trunc() * unit;
        let exponent = |x: f64| 2f64.powi(x.abs().log2().floor() as i32);
        terms.chunks(16).fold(0.0, |sum: f64, step| {
            let largest = step.iter().fold(sum.abs(), |top, x| x.abs().max(top));
            if largest == 0.0 {
                return 0.0;
            }
            let unit = exponent(largest) / 2f64.powi(25);
            let total = cut(sum, unit) + step.iter().map(|x| cut(*x, unit)).sum::<f64>();
            match total == 0.0 {
                true => 0.0,
                false => cut(total, exponent(total) / 2f64.powi(23)),
            }
        })
    }

    fn in_f32(terms: &[f64]) -> f64 {
        f64::from(terms.iter().fold(0.0, |sum: f32, x| sum + *x as f32))
    }

    /// Multiples of 2⁻²⁰ between −1 and 1: exact in f32, and their sums in f64.
    fn walk(seed: u64, count: usize) -> Vec<f64> {
        const UNITS: u64 = 1 << 20;
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        (0..count)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state % (2 * UNITS + 1)) as f64 / UNITS as f64 - 1.0
            })
            .collect()
    }

    #[test]
    fn no_order_of_random_terms_loses_more() {
        for count in [256, 4096, 16384] {
            let mut worst = 0.0_f64;
            for seed in 1..=24 {
                let terms = walk(seed, count);
                let exact: f64 = terms.iter().sum();
                for sum in [truncated(&terms), in_f32(&terms)] {
                    worst = worst.max((sum - exact).abs() / loss(&terms));
                }
            }
            assert!(worst < 1.0, "{count}: {worst}");
            // The bound is not far too large either.
            assert!(worst > 0.01, "{count}: {worst}");
        }
    }

    /// The bound stays far below any single term: a missing term is noticed.
    #[test]
    fn a_lost_term_is_no_rounding() {
        for count in [256, 4096, 16384] {
            let terms = walk(7, count);
            let typical = (1.0 / 3.0_f64).sqrt();
            assert!(loss(&terms) < typical / 16.0, "{count}: {}", loss(&terms));
        }
    }
}
