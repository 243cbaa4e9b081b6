//! The statistics against a known truth: simulated experiments, many of them,
//! whose every difference is planted.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::{Bootstrap, CONFIDENCE, Contrast, Process, bootstrap, detectable};
use crate::record::synthetic::normal;

/// How an experiment is laid out and how noisy it is.
#[derive(Clone, Copy)]
struct Layout {
    shapes: usize,
    processes: u32,
    blocks: u32,
    /// Of one sample; a log ratio has √2 of it.
    noise: f64,
    between: f64,
    /// Share of samples that stall, and by how much (log).
    stalls: (f64, f64),
}

/// The default preset (30 blocks a shape over two processes) on a quiet GPU.
const DEFAULT: Layout = Layout {
    shapes: 8,
    processes: 2,
    blocks: 15,
    noise: 0.005,
    between: 0.0,
    stalls: (0.0, 0.0),
};

const EXPERIMENTS: u64 = 800;

impl Layout {
    fn experiment(&self, truth: f64, seed: u64) -> Vec<Contrast> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let shape = |rng: &mut ChaCha8Rng| Contrast {
            processes: (0..self.processes)
                .map(|id| {
                    let effect = self.between * normal(rng);
                    let value = |rng: &mut ChaCha8Rng| truth + effect + self.error(rng);
                    Process {
                        id,
                        blocks: (0..self.blocks).map(|_| vec![value(rng)]).collect(),
                    }
                })
                .collect(),
        };
        (0..self.shapes).map(|_| shape(&mut rng)).collect()
    }

    fn error(&self, rng: &mut ChaCha8Rng) -> f64 {
        let side = |rng: &mut ChaCha8Rng| {
            let stalled = normal(rng).abs() < self.stalls.0 * 1.2533;
            self.noise * normal(rng) + if stalled { self.stalls.1 } else { 0.0 }
        };
        side(rng) - side(rng)
    }

    fn judged(&self, truth: f64) -> Vec<Bootstrap> {
        let experiments = (0..EXPERIMENTS).into_par_iter();
        experiments
            .map(|seed| bootstrap(&self.experiment(truth, seed), 200, seed).unwrap())
            .collect()
    }

    /// Share of geometric-mean and of shape intervals that hold the truth.
    fn coverage(&self, truth: f64) -> (f64, f64) {
        let judged = self.judged(truth);
        let holds =
            |e: &super::LogEstimate| (e.mean - truth).abs() <= e.half_width(CONFIDENCE).unwrap();
        let mean = judged.iter().filter(|b| holds(&b.geomean)).count();
        let shapes = judged.iter().flat_map(|b| &b.shapes);
        let (held, all) = shapes.fold((0, 0), |(h, n), s| (h + usize::from(holds(s)), n + 1));
        (
            mean as f64 / judged.len() as f64,
            held as f64 / f64::from(all),
        )
    }
}

/// 93 to 97 %, give or take one standard error of the simulation itself.
fn assert_covers(layout: Layout) {
    let (mean, shapes) = layout.coverage(0.1);
    let slack = (0.95 * 0.05 / EXPERIMENTS as f64).sqrt();
    let wanted = 0.93 - slack..=0.97 + slack;
    assert!(wanted.contains(&mean), "geometric mean {mean}");
    assert!(wanted.contains(&shapes), "shapes {shapes}");
}

#[test]
fn intervals_cover_when_processes_agree() {
    assert_covers(DEFAULT);
}

#[test]
fn intervals_cover_when_processes_differ() {
    assert_covers(Layout {
        processes: 5,
        blocks: 6,
        between: 0.002,
        ..DEFAULT
    });
    assert_covers(Layout {
        processes: 5,
        blocks: 6,
        between: 0.006,
        ..DEFAULT
    });
}

#[test]
fn stalled_launches_never_make_intervals_too_narrow() {
    let (mean, shapes) = Layout {
        stalls: (0.03, 0.05),
        ..DEFAULT
    }
    .coverage(0.1);
    assert!(mean >= 0.93 && shapes >= 0.93, "{mean} {shapes}");
}

#[test]
fn identical_contenders_are_rarely_told_apart() {
    let judged = DEFAULT.judged(0.0);
    let told = |b: &&Bootstrap| b.geomean.p_value().unwrap() < 1.0 - CONFIDENCE;
    let rate = judged.iter().filter(told).count() as f64 / judged.len() as f64;
    assert!(rate <= 0.05 + 0.011, "{rate}");
}

#[test]
fn one_percent_is_found_at_half_a_percent_of_noise() {
    let judged = DEFAULT.judged(0.01f64.ln_1p());
    let found = |b: &&Bootstrap| b.geomean.ratio(CONFIDENCE).lower.unwrap() > 1.0;
    let rate = judged.iter().filter(found).count() as f64 / judged.len() as f64;
    assert!(rate > 0.99, "{rate}");
}

#[test]
fn detectable_effects_are_detected() {
    let judged = DEFAULT.judged(0.0);
    let effects = judged.iter().filter_map(|b| detectable(b.geomean));
    let mean = effects.map(|d| d.effect).sum::<f64>() / judged.len() as f64;
    let at_effect = DEFAULT.judged(mean.ln_1p());
    let found = |b: &&Bootstrap| b.geomean.p_value().unwrap() < 1.0 - CONFIDENCE;
    let power = at_effect.iter().filter(found).count() as f64 / at_effect.len() as f64;
    assert!((0.7..0.95).contains(&power), "{power}");
}
