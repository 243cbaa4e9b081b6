//! A mean of logarithms and its uncertainty.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::domain::Interval;

/// A mean of logarithms and its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogEstimate {
    pub mean: f64,
    /// `None` if it cannot be estimated: one block, or a point estimate.
    pub se: Option<f64>,
    pub df: f64,
    pub blocks: usize,
    /// Of the shape with the fewest. The error includes the variation between processes only if
    /// there are at least two.
    pub processes: usize,
}

impl LogEstimate {
    /// Whether its error lacks the variation between processes: the fewer there were, the more
    /// certain it would look.
    pub(crate) fn is_of_one_process(&self) -> bool {
        self.se.is_some() && self.processes < 2
    }

    /// A number without samples.
    pub fn point(mean: f64) -> Self {
        Self {
            mean,
            se: None,
            df: f64::INFINITY,
            blocks: 0,
            processes: 0,
        }
    }

    /// Half the width of the interval, in logarithms.
    pub(crate) fn half_width(&self, confidence: f64) -> Option<f64> {
        Some(self.se? * quantile(self.df, 0.5 + confidence / 2.0))
    }

    /// The ratio with its interval.
    pub fn ratio(&self, confidence: f64) -> Interval {
        let half = self.half_width(confidence);
        Interval {
            estimate: self.mean.exp(),
            lower: half.map(|h| (self.mean - h).exp()),
            upper: half.map(|h| (self.mean + h).exp()),
        }
    }

    /// Two-sided probability of a mean this far from zero if the truth were zero.
    pub(crate) fn p_value(&self) -> Option<f64> {
        let se = self.se?;
        if se == 0.0 {
            return Some(if self.mean == 0.0 { 1.0 } else { 0.0 });
        }
        let t = (self.mean / se).abs();
        Some((2.0 * (1.0 - cdf(self.df, t))).clamp(0.0, 1.0))
    }
}

/// Student's t at `df`; statrs needs finite degrees, and beyond a million the difference from the
/// normal distribution is too small to print.
fn student(df: f64) -> Option<StudentsT> {
    StudentsT::new(0.0, 1.0, df.clamp(1.0, 1e6)).ok()
}

/// The value a t-distributed variable stays below with this probability.
pub(super) fn quantile(df: f64, probability: f64) -> f64 {
    student(df).map_or(f64::INFINITY, |t| t.inverse_cdf(probability))
}

fn cdf(df: f64, t: f64) -> f64 {
    student(df).map_or(0.0, |s| s.cdf(t))
}

/// ln(base / candidate) of two estimates of ln(time) that share no blocks
/// (two runs): variances add, degrees by Welch.
pub(crate) fn unpaired(base: &LogEstimate, candidate: &LogEstimate) -> LogEstimate {
    let mean = base.mean - candidate.mean;
    let blocks = base.blocks.min(candidate.blocks);
    let processes = base.processes.min(candidate.processes);
    let (Some(a), Some(b)) = (base.se, candidate.se) else {
        return LogEstimate {
            blocks,
            processes,
            ..LogEstimate::point(mean)
        };
    };
    let (va, vb) = (a * a, b * b);
    let df = if va + vb > 0.0 {
        (va + vb).powi(2) / (va * va / base.df + vb * vb / candidate.df)
    } else {
        f64::INFINITY
    };
    LogEstimate {
        mean,
        se: Some((va + vb).sqrt()),
        df,
        blocks,
        processes,
    }
}
