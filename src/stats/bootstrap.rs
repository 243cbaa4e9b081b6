//! The hierarchical bootstrap: process → block → sample.
//!
//! Blocks of one process share what that process drew (addresses, clocks), so
//! resampling blocks alone claims more than was seen. Resampling processes and
//! blocks naively errs both ways: it counts block noise twice, and with few
//! processes it sees too little of what lies between them. So the effects are
//! first scaled to the variance components an analysis of variance finds
//! (pooled over the shapes, since one shape has too few processes to say), and
//! the interval uses Student's t at Satterthwaite's degrees of freedom.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::Contrast;
use crate::domain::Interval;

/// A mean of logarithms and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogEstimate {
    pub mean: f64,
    /// `None` where there is nothing to estimate it from: one block, or a
    /// point estimate.
    pub se: Option<f64>,
    pub df: f64,
    pub blocks: usize,
}

impl LogEstimate {
    /// A number that came without samples.
    pub fn point(mean: f64) -> Self {
        Self {
            mean,
            se: None,
            df: f64::INFINITY,
            blocks: 0,
        }
    }

    /// The same comparison read the other way round.
    pub fn reversed(self) -> Self {
        Self {
            mean: -self.mean,
            ..self
        }
    }

    /// Half the width of the interval, in logarithms.
    pub fn half_width(&self, confidence: f64) -> Option<f64> {
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

    /// Two-sided probability of a mean this far from zero were the truth zero.
    pub fn p_value(&self) -> Option<f64> {
        let se = self.se?;
        if se == 0.0 {
            return Some(if self.mean == 0.0 { 1.0 } else { 0.0 });
        }
        let t = (self.mean / se).abs();
        Some((2.0 * (1.0 - cdf(self.df, t))).clamp(0.0, 1.0))
    }
}

/// Student's t at `df`; statrs wants finite degrees, and past a million the
/// difference from the normal is below printing.
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

/// Estimates per shape and for the mean over the shapes.
#[derive(Clone, Debug, PartialEq)]
pub struct Bootstrap {
    pub shapes: Vec<LogEstimate>,
    /// The mean of logs over shapes: the log of the geometric mean.
    pub geomean: LogEstimate,
}

/// One shape's contrast, taken apart for resampling.
struct Parts {
    mean: f64,
    blocks: usize,
    /// Process effects, scaled to their variance component.
    effects: Vec<f64>,
    /// Residual samples of each block of each process, scaled likewise.
    residuals: Vec<Vec<Vec<f64>>>,
    ids: Vec<u32>,
    within: f64,
    between: f64,
}

/// Mean squares of a one-way layout with processes as classes.
struct Anova {
    grand: f64,
    means: Vec<f64>,
    within: f64,
    /// Mean square between over mean square within; 1 where processes do not differ.
    f: f64,
    between_df: f64,
    within_df: f64,
    /// Effective blocks per process.
    n0: f64,
}

fn anova(contrast: &Contrast) -> Option<Anova> {
    let block_means: Vec<Vec<f64>> = contrast
        .processes
        .iter()
        .map(|p| p.blocks.iter().map(|b| mean(b)).collect())
        .collect();
    let n = contrast.block_count() as f64;
    let p = block_means.len() as f64;
    if n < 1.0 {
        return None;
    }
    let grand = block_means.iter().flatten().sum::<f64>() / n;
    let means: Vec<f64> = block_means.iter().map(|b| mean(b)).collect();
    let squares: f64 = block_means
        .iter()
        .zip(&means)
        .flat_map(|(blocks, m)| blocks.iter().map(move |x| (x - m).powi(2)))
        .sum();
    let between: f64 = block_means
        .iter()
        .zip(&means)
        .map(|(blocks, m)| blocks.len() as f64 * (m - grand).powi(2))
        .sum();
    let (between_df, within_df) = (p - 1.0, n - p);
    let within = if within_df > 0.0 {
        squares / within_df
    } else {
        0.0
    };
    let sum_squares: f64 = block_means.iter().map(|b| (b.len() as f64).powi(2)).sum();
    let n0 = if between_df > 0.0 {
        (n - sum_squares / n) / between_df
    } else {
        n
    };
    let f = if between_df > 0.0 && within > 0.0 {
        between / between_df / within
    } else {
        1.0
    };
    Some(Anova {
        grand,
        means,
        within,
        f,
        between_df,
        within_df,
        n0,
    })
}

/// How much more the process means scatter than block noise explains, pooled
/// over the shapes: 1 where processes make no difference.
fn pooled_f(layouts: &[Anova]) -> (f64, f64) {
    let usable = layouts.iter().filter(|a| a.within > 0.0);
    let (sum, df) = usable.fold((0.0, 0.0), |(sum, df), a| {
        (sum + a.f * a.between_df, df + a.between_df)
    });
    if df > 0.0 {
        ((sum / df).max(1.0), df)
    } else {
        (1.0, 0.0)
    }
}

impl Parts {
    fn new(contrast: &Contrast, layout: &Anova, f: f64) -> Self {
        let blocks = contrast.block_count();
        let n = blocks as f64;
        let target = (f - 1.0) * layout.within / layout.n0;
        let spread: f64 = contrast
            .processes
            .iter()
            .zip(&layout.means)
            .map(|(p, m)| p.blocks.len() as f64 * (m - layout.grand).powi(2))
            .sum::<f64>()
            / n;
        let effect_scale = if spread > 0.0 {
            (target / spread).sqrt()
        } else {
            0.0
        };
        let residual_scale = if layout.within_df > 0.0 {
            (n / layout.within_df).sqrt()
        } else {
            1.0
        };
        let residuals = contrast
            .processes
            .iter()
            .zip(&layout.means)
            .map(|(p, m)| {
                let scaled = |b: &Vec<f64>| b.iter().map(|x| (x - m) * residual_scale).collect();
                p.blocks.iter().map(scaled).collect()
            })
            .collect();
        let effect = |m: &f64| (m - layout.grand) * effect_scale;
        Self {
            mean: layout.grand,
            blocks,
            effects: layout.means.iter().map(effect).collect(),
            residuals,
            ids: contrast.processes.iter().map(|p| p.id).collect(),
            within: layout.within / n,
            between: target * layout.n0 / n,
        }
    }

    /// The mean's deviation in one resample; `drawn` are process ids.
    fn deviation(&self, drawn: &[u32], rng: &mut ChaCha8Rng) -> f64 {
        let (mut sum, mut count) = (0.0, 0usize);
        for id in drawn.iter().take(self.ids.len()) {
            let process = match self.ids.iter().position(|own| own == id) {
                Some(found) => found,
                None => below(rng, self.ids.len()),
            };
            let blocks = &self.residuals[process];
            for _ in 0..blocks.len() {
                let block = &blocks[below(rng, blocks.len())];
                sum += self.effects[process] + resampled_mean(block, rng);
            }
            count += blocks.len();
        }
        sum / count.max(1) as f64
    }

    fn variance(&self) -> f64 {
        self.within + self.between
    }
}

fn resampled_mean(block: &[f64], rng: &mut ChaCha8Rng) -> f64 {
    match block {
        [only] => *only,
        many => {
            let draws = (0..many.len()).map(|_| many[below(rng, many.len())]);
            draws.sum::<f64>() / many.len() as f64
        }
    }
}

/// Uniform in 0..n by multiply and shift; its bias is below 1e-7 for any block count.
fn below(rng: &mut ChaCha8Rng, n: usize) -> usize {
    ((u64::from(rng.next_u32()) * n as u64) >> 32) as usize
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Satterthwaite's degrees for a variance of which `share` lies between processes.
fn degrees(share: f64, between_df: f64, within_df: f64) -> f64 {
    let between = if share > 0.0 {
        share.powi(2) / between_df.max(1.0)
    } else {
        0.0
    };
    let within = (1.0 - share).powi(2) / within_df.max(1.0);
    1.0 / (between + within)
}

/// The same estimates without resampling: exact for means, and what adaptive
/// sampling uses between blocks, where a bootstrap would cost too much.
/// `None` when a shape has no values.
pub fn moments(contrasts: &[Contrast]) -> Option<Bootstrap> {
    let (parts, layouts, f, f_df) = prepare(contrasts)?;
    let shapes = shape_estimates(&parts, &layouts, f, f_df, |_, part| part.variance().sqrt());
    let count = parts.len() as f64;
    let variance = parts.iter().map(Parts::variance).sum::<f64>() / count.powi(2);
    let geomean = geomean_estimate(&parts, &layouts, &shapes, f, variance.sqrt());
    Some(Bootstrap { shapes, geomean })
}

/// The hierarchical bootstrap over the shapes' contrasts. `None` when there
/// are no shapes, or a shape has no values.
pub fn bootstrap(contrasts: &[Contrast], resamples: usize, seed: u64) -> Option<Bootstrap> {
    let (parts, layouts, f, f_df) = prepare(contrasts)?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut ids: Vec<u32> = parts.iter().flat_map(|p| p.ids.iter().copied()).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut sums = vec![0.0; parts.len() + 1];
    let mut drawn = vec![0; ids.len()];
    for _ in 0..resamples {
        // One draw of processes serves all shapes, so that what a process
        // does to all of them does not average out.
        drawn.fill_with(|| ids[below(&mut rng, ids.len())]);
        let mut total = 0.0;
        for (part, sum) in parts.iter().zip(&mut sums) {
            let deviation = part.deviation(&drawn, &mut rng);
            *sum += deviation.powi(2);
            total += deviation;
        }
        sums[parts.len()] += (total / parts.len() as f64).powi(2);
    }
    let se = |sum: f64| (sum / resamples.max(1) as f64).sqrt();
    let shapes = shape_estimates(&parts, &layouts, f, f_df, |i, _| se(sums[i]));
    let geomean = geomean_estimate(&parts, &layouts, &shapes, f, se(sums[parts.len()]));
    Some(Bootstrap { shapes, geomean })
}

fn prepare(contrasts: &[Contrast]) -> Option<(Vec<Parts>, Vec<Anova>, f64, f64)> {
    let layouts: Vec<Anova> = contrasts.iter().map(anova).collect::<Option<_>>()?;
    if layouts.is_empty() {
        return None;
    }
    let (f, f_df) = pooled_f(&layouts);
    let zip = contrasts.iter().zip(&layouts);
    let parts = zip.map(|(c, a)| Parts::new(c, a, f)).collect();
    Some((parts, layouts, f, f_df))
}

fn shape_estimates(
    parts: &[Parts],
    layouts: &[Anova],
    f: f64,
    f_df: f64,
    se: impl Fn(usize, &Parts) -> f64,
) -> Vec<LogEstimate> {
    let share = (f - 1.0) / f;
    let each = parts.iter().zip(layouts).enumerate();
    each.map(|(i, (part, layout))| LogEstimate {
        mean: part.mean,
        se: (layout.within_df > 0.0).then(|| se(i, part)),
        df: degrees(share, f_df, layout.within_df),
        blocks: part.blocks,
    })
    .collect()
}

/// The mean over shapes. Its share between processes has only the processes
/// themselves as degrees: what they do may be common to all shapes.
fn geomean_estimate(
    parts: &[Parts],
    layouts: &[Anova],
    shapes: &[LogEstimate],
    f: f64,
    se: f64,
) -> LogEstimate {
    let known = shapes.iter().all(|s| s.se.is_some());
    let between_df = layouts.iter().map(|a| a.between_df).fold(0.0, f64::max);
    let within_df = layouts.iter().map(|a| a.within_df).sum();
    LogEstimate {
        mean: parts.iter().map(|p| p.mean).sum::<f64>() / parts.len() as f64,
        se: known.then_some(se),
        df: degrees((f - 1.0) / f, between_df, within_df),
        blocks: parts.iter().map(|p| p.blocks).sum(),
    }
}

/// ln(base / candidate) of two estimates of ln(time) that share no blocks
/// (two runs): variances add, degrees by Welch.
pub fn unpaired(base: &LogEstimate, candidate: &LogEstimate) -> LogEstimate {
    let mean = base.mean - candidate.mean;
    let blocks = base.blocks.min(candidate.blocks);
    let (Some(a), Some(b)) = (base.se, candidate.se) else {
        return LogEstimate {
            blocks,
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Process;
    use proptest::prelude::*;

    fn contrast(processes: &[&[f64]]) -> Contrast {
        let process = |(id, values): (usize, &&[f64])| Process {
            id: id as u32,
            blocks: values.iter().map(|v| vec![*v]).collect(),
        };
        Contrast {
            processes: processes.iter().enumerate().map(process).collect(),
        }
    }

    #[test]
    fn one_block_has_an_estimate_and_no_interval() {
        let one = bootstrap(&[contrast(&[&[0.5]])], 100, 1).unwrap();
        assert_eq!(one.geomean.mean, 0.5);
        assert_eq!(one.geomean.ratio(0.95).lower, None);
        assert_eq!(one.geomean.p_value(), None);
    }

    #[test]
    fn no_values_no_answer() {
        assert!(bootstrap(&[Contrast::default()], 100, 1).is_none());
        assert!(bootstrap(&[], 100, 1).is_none());
    }

    #[test]
    fn processes_that_disagree_widen_the_interval() {
        let calm: &[f64] = &[0.010, 0.012, 0.011, 0.009, 0.010, 0.012];
        let shifted: Vec<f64> = calm.iter().map(|v| v + 0.05).collect();
        let same = bootstrap(&[contrast(&[calm, calm, calm])], 500, 1).unwrap();
        let differ = bootstrap(&[contrast(&[calm, &shifted, calm])], 500, 1).unwrap();
        let width = |b: &Bootstrap| b.geomean.half_width(0.95).unwrap();
        assert!(width(&differ) > 10.0 * width(&same));
    }

    proptest! {
        #[test]
        fn resampling_agrees_with_the_closed_form(
            values in prop::collection::vec(-0.1..0.1f64, 24..60)
        ) {
            let third = values.len() / 3;
            let (a, rest) = values.split_at(third);
            let (b, c) = rest.split_at(third);
            let shapes = [contrast(&[a, b, c])];
            let drawn = bootstrap(&shapes, 1500, 7).unwrap();
            let exact = moments(&shapes).unwrap();
            prop_assert_eq!(drawn.geomean.mean, exact.geomean.mean);
            let ratio = drawn.geomean.se.unwrap() / exact.geomean.se.unwrap();
            prop_assert!((0.85..1.15).contains(&ratio), "{ratio}");
        }

        #[test]
        fn shifting_every_value_shifts_the_interval(
            values in prop::collection::vec(-0.1..0.1f64, 4..40), shift in -1.0..1.0f64
        ) {
            let moved: Vec<f64> = values.iter().map(|v| v + shift).collect();
            let before = bootstrap(&[contrast(&[&values])], 200, 3).unwrap().geomean;
            let after = bootstrap(&[contrast(&[&moved])], 200, 3).unwrap().geomean;
            prop_assert!((after.mean - before.mean - shift).abs() < 1e-9);
            prop_assert!((after.se.unwrap() - before.se.unwrap()).abs() < 1e-9);
        }
    }
}
