//! The smallest difference that this machine can detect: the baseline, timed against itself in the
//! same blocks, shows differences where there are none.

use super::estimate::quantile;
use super::{CONFIDENCE, LogEstimate};

/// Chance of finding a difference of exactly the minimum detectable effect.
const POWER: f64 = 0.8;

/// The smallest difference that a run can detect, as a share (0.003 = 0.3 %).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Detectable {
    pub effect: f64,
    /// How much the baseline may differ from itself, as a share: contenders that differ by less are
    /// tied, however small p is.
    pub noise: f64,
    /// The baseline over itself: its distance from 1 is bias.
    pub control: LogEstimate,
}

/// From the A/A arm's estimate; `None` if it has no spread.
///
/// A true difference δ is found with probability 0.8 (`POWER`) when δ = (t₀.₉₇₅ + t₀.₈)·se·(1 +
/// 1/4ν); the last factor, because the root of a variance from ν degrees of freedom is too small by
/// that on average. A larger bias of the arm itself is further evidence that small differences mean
/// nothing here, so the larger counts.
pub fn detectable(control: LogEstimate) -> Option<Detectable> {
    let se = control.se?;
    let unbiased = se * (1.0 + 0.25 / control.df);
    let chance = quantile(control.df, 0.5 + CONFIDENCE / 2.0) * unbiased;
    let effect = chance + quantile(control.df, POWER) * unbiased;
    let bias = control.mean.abs();
    Some(Detectable {
        effect: effect.max(bias).exp_m1(),
        noise: chance.max(bias).exp_m1(),
        control,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_nearly_three_standard_errors_or_the_bias() {
        let quiet = LogEstimate {
            mean: 0.0,
            se: Some(0.001),
            df: 1e6,
            blocks: 50,
            processes: 5,
        };
        let found = detectable(quiet).unwrap();
        assert!((found.effect - 0.0028).abs() < 1e-4, "{found:?}");
        assert!((found.noise - 0.00196).abs() < 1e-4, "{found:?}");
        let biased = LogEstimate {
            mean: -0.02,
            ..quiet
        };
        let found = detectable(biased).unwrap();
        assert!(found.effect > 0.02 && found.noise > 0.02, "{found:?}");
        assert!(detectable(LogEstimate::point(0.0)).is_none());
    }
}
