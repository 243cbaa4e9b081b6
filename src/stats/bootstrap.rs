//! The hierarchical bootstrap: process → block → sample.
//!
//! Blocks of one process share what that process drew (addresses, clocks), so
//! resampling blocks alone claims more than was seen. Processes are drawn
//! first, then blocks within each, then samples within a block; what is drawn
//! are effects and residuals scaled to their variance components.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::components::{Components, Parts, Scale};
use super::{Contrast, LogEstimate};

/// Estimates per shape and for the mean over the shapes.
#[derive(Clone, Debug, PartialEq)]
pub struct Bootstrap {
    pub shapes: Vec<LogEstimate>,
    /// The mean of logs over shapes: the log of the geometric mean.
    pub geomean: LogEstimate,
}

/// The same estimates without resampling: exact for means, and what adaptive
/// sampling uses between blocks, where a bootstrap would cost too much.
/// `None` when a shape has no values.
pub fn moments(contrasts: &[Contrast]) -> Option<Bootstrap> {
    let components = Components::of(contrasts)?;
    Some(estimates(&components, |_, variance| variance.sqrt()))
}

/// The hierarchical bootstrap over the shapes' contrasts. `None` when there
/// are no shapes, or a shape has no values.
pub fn bootstrap(contrasts: &[Contrast], resamples: usize, seed: u64) -> Option<Bootstrap> {
    let components = Components::of(contrasts)?;
    let shapes = &components.shapes;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let most = shapes.iter().map(|s| s.effects.len()).max()?;
    let mut sums = vec![0.0; shapes.len() + 1];
    let mut drawn = vec![0; most];
    for _ in 0..resamples {
        // One draw of processes serves all shapes, so that what a process
        // does to all of them does not average out.
        drawn.fill_with(|| rng.next_u32());
        let mut total = Deviation::default();
        for (part, sum) in shapes.iter().zip(&mut sums) {
            let deviation = Deviation::draw(part, components.by_process, &drawn, &mut rng);
            *sum += deviation.at(part.scale).powi(2);
            total.add(deviation, part, components.by_process);
        }
        sums[shapes.len()] += (total.at(components.scale) / shapes.len() as f64).powi(2);
    }
    Some(estimates(&components, |index, _| {
        (sums[index] / resamples.max(1) as f64).sqrt()
    }))
}

/// `se` is asked with the place (shapes, then their mean) and the variance in
/// closed form.
fn estimates(components: &Components, se: impl Fn(usize, f64) -> f64) -> Bootstrap {
    let shapes: Vec<LogEstimate> = components
        .shapes
        .iter()
        .enumerate()
        .map(|(index, part)| LogEstimate {
            mean: part.mean,
            se: part.variance.map(|v| se(index, v)),
            df: part.df,
            blocks: part.blocks,
        })
        .collect();
    let count = shapes.len();
    let geomean = LogEstimate {
        mean: shapes.iter().map(|s| s.mean).sum::<f64>() / count as f64,
        se: components.variance.map(|v| se(count, v)),
        df: components.df,
        blocks: shapes.iter().map(|s| s.blocks).sum(),
    };
    Bootstrap { shapes, geomean }
}

/// How far the mean of one resample lies off, by cause.
#[derive(Clone, Copy, Debug, Default)]
struct Deviation {
    effects: f64,
    residuals: f64,
}

impl Deviation {
    /// `drawn` holds a random number for each process to draw.
    fn draw(part: &Parts, by_process: bool, drawn: &[u32], rng: &mut ChaCha8Rng) -> Self {
        let (mut sum, mut weights) = (Self::default(), 0.0);
        let processes = part.effects.len();
        for number in drawn.iter().take(processes) {
            let process = scaled(*number, processes);
            let blocks = &part.residuals[process];
            let draws = (0..blocks.len()).map(|_| {
                let block = &blocks[scaled(rng.next_u32(), blocks.len())];
                resampled_mean(block, rng)
            });
            let mean = draws.sum::<f64>() / blocks.len() as f64;
            let weight = if by_process { 1.0 } else { blocks.len() as f64 };
            sum.effects += weight * part.effects[process];
            sum.residuals += weight * mean;
            weights += weight;
        }
        Self {
            effects: sum.effects / weights,
            residuals: sum.residuals / weights,
        }
    }

    fn at(self, scale: Scale) -> f64 {
        scale.effects * self.effects + scale.residuals * self.residuals
    }

    /// Towards the mean over shapes. Processes as observations are scaled
    /// there once more on their own; pooled ones keep the scale of their shape.
    fn add(&mut self, shape: Self, part: &Parts, by_process: bool) {
        let scale = if by_process { 1.0 } else { part.scale.effects };
        self.effects += scale * shape.effects;
        self.residuals += shape.residuals;
    }
}

fn resampled_mean(block: &[f64], rng: &mut ChaCha8Rng) -> f64 {
    match block {
        [only] => *only,
        many => {
            let draws = (0..many.len()).map(|_| many[scaled(rng.next_u32(), many.len())]);
            draws.sum::<f64>() / many.len() as f64
        }
    }
}

/// A random number brought to 0..n by multiply and shift; the bias is below
/// 1e-7 for any block count.
fn scaled(number: u32, n: usize) -> usize {
    ((u64::from(number) * n as u64) >> 32) as usize
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
