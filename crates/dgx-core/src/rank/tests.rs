//! The statistics against a known truth: many simulated experiments with planted differences. They
//! are judged by the code that judges a run: [`Estimates`], and, in the last test, the whole way
//! from the text of a run file to a row of its table.

use rayon::prelude::*;

use super::Ranking;
use crate::domain::ContenderId;
use crate::record::synthetic::Synthetic;
use crate::stats::{CONFIDENCE, Contrast, Estimates, LogEstimate, Moments, detectable};

/// The layout and the noise of an experiment.
#[derive(Clone, Copy, Debug)]
struct Layout {
    shapes: usize,
    processes: u32,
    blocks: usize,
    /// Continues past `blocks` while the pair is open, up to this many.
    at_most: usize,
    /// Of one sample; a log ratio has √2 times as much.
    noise: f64,
    /// The effect of a process on one shape, and on all of them.
    between: f64,
    common: f64,
    /// Share of samples that stall, and by how much (log).
    stalls: (f64, f64),
}

/// The default preset (30 blocks a shape over five processes) on a quiet GPU.
const DEFAULT: Layout = Layout {
    shapes: 8,
    processes: 5,
    blocks: 6,
    at_most: 6,
    noise: 0.005,
    between: 0.0,
    common: 0.0,
    stalls: (0.0, 0.0),
};

/// A rate of 5 % is known to 0.2 percentage points.
const EXPERIMENTS: u64 = 10_000;

/// SplitMix64: hundreds of millions of draws, in a build with little optimisation.
struct Draw(u64);

impl Draw {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// By Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

impl Layout {
    fn experiment(&self, truth: f64, seed: u64) -> Vec<Contrast> {
        let mut rng = Draw(seed.wrapping_mul(0xd134_2543_de82_ef95));
        let common: Vec<f64> = (0..self.processes)
            .map(|_| self.common * rng.normal())
            .collect();
        let shape = |rng: &mut Draw| Contrast {
            processes: (0u32..)
                .zip(&common)
                .map(|(id, common)| {
                    let effect = truth + common + self.between * rng.normal();
                    (id, self.blocks(effect, rng))
                })
                .collect(),
        };
        (0..self.shapes).map(|_| shape(&mut rng)).collect()
    }

    /// One process's blocks of one shape, sampled until the faster contender is known, as in a
    /// sweep.
    fn blocks(&self, effect: f64, rng: &mut Draw) -> Moments {
        let mut values = Moments::default();
        let most = |n: u64| n < self.at_most as u64;
        while values.count < self.blocks as u64 || (most(values.count) && open(values)) {
            values.add(effect + self.error(rng));
        }
        values
    }

    fn error(&self, rng: &mut Draw) -> f64 {
        let (share, delay) = self.stalls;
        let mut stall = || match share > 0.0 && rng.uniform() < share {
            true => delay,
            false => 0.0,
        };
        let stalls = stall() - stall();
        std::f64::consts::SQRT_2 * self.noise * rng.normal() + stalls
    }

    fn judged(&self, truth: f64) -> Vec<Estimates> {
        let experiments = (0..EXPERIMENTS).into_par_iter();
        experiments
            .map(|seed| Estimates::of(&self.experiment(truth, seed)).unwrap())
            .collect()
    }

    /// Share of geometric-mean and of shape intervals that contain the truth.
    fn coverage(&self, truth: f64) -> (f64, f64) {
        let judged = self.judged(truth);
        let holds = |e: &LogEstimate| holds(e, truth);
        let mean = judged.iter().filter(|b| holds(&b.geomean)).count();
        let shapes = judged.iter().flat_map(|b| &b.shapes);
        let (held, all) = shapes.fold((0, 0), |(h, n), s| (h + usize::from(holds(s)), n + 1));
        (
            mean as f64 / judged.len() as f64,
            held as f64 / f64::from(all),
        )
    }

    /// Share of experiments in which the contenders are distinguished.
    fn told_apart(&self, truth: f64) -> f64 {
        let judged = self.judged(truth);
        let told = |b: &&Estimates| b.geomean.p_value().unwrap() < 1.0 - CONFIDENCE;
        judged.iter().filter(told).count() as f64 / judged.len() as f64
    }

    fn assert_covers(&self) {
        let (mean, shapes) = self.coverage(0.1);
        let wanted = 0.93..=0.97;
        assert!(wanted.contains(&mean), "geometric mean {mean}: {self:?}");
        assert!(wanted.contains(&shapes), "shapes {shapes}: {self:?}");
    }
}

fn holds(estimate: &LogEstimate, truth: f64) -> bool {
    (estimate.mean - truth).abs() <= estimate.half_width(CONFIDENCE).unwrap()
}

fn open(values: Moments) -> bool {
    let so_far = Contrast {
        processes: vec![(0, values)],
    };
    let estimate = Estimates::single(&so_far).unwrap();
    let half = estimate.half_width(CONFIDENCE).unwrap();
    let distance = estimate.mean.abs();
    distance <= half && distance + half > 0.005f64.ln_1p()
}

#[test]
fn intervals_cover_when_processes_agree() {
    DEFAULT.assert_covers();
}

#[test]
fn intervals_cover_when_processes_differ() {
    for size in [0.001, 0.002, 0.006] {
        Layout {
            between: size,
            ..DEFAULT
        }
        .assert_covers();
        Layout {
            common: size,
            ..DEFAULT
        }
        .assert_covers();
    }
}

#[test]
fn intervals_cover_for_one_shape_and_for_many_processes() {
    Layout {
        shapes: 1,
        between: 0.006,
        ..DEFAULT
    }
    .assert_covers();
    Layout {
        shapes: 3,
        processes: 10,
        blocks: 12,
        common: 0.002,
        ..DEFAULT
    }
    .assert_covers();
}

#[test]
fn intervals_cover_when_sampling_goes_on_until_decided() {
    Layout {
        shapes: 3,
        at_most: 20,
        ..DEFAULT
    }
    .assert_covers();
}

/// Fewer than four processes are judged by their blocks, which is valid if no process has the same
/// effect on all shapes.
#[test]
fn intervals_of_two_processes_cover_what_differs_by_shape() {
    for between in [0.0, 0.002] {
        Layout {
            processes: 2,
            blocks: 15,
            between,
            ..DEFAULT
        }
        .assert_covers();
    }
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
    let stalling = Layout {
        stalls: (0.03, 0.05),
        ..DEFAULT
    };
    let noisy = Layout {
        noise: 0.02,
        ..DEFAULT
    };
    let two = Layout {
        processes: 2,
        blocks: 15,
        ..DEFAULT
    };
    for layout in [DEFAULT, stalling, noisy, two] {
        let rate = layout.told_apart(0.0);
        assert!(rate <= 0.05, "{rate}: {layout:?}");
    }
}

#[test]
fn one_percent_is_found_at_half_a_percent_of_noise() {
    let rate = DEFAULT.told_apart(0.01f64.ln_1p());
    assert!(rate > 0.999, "{rate}");
    let one_shape = Layout {
        shapes: 1,
        ..DEFAULT
    };
    let rate = one_shape.told_apart(0.01f64.ln_1p());
    assert!(rate > 0.99, "{rate}");
}

#[test]
fn detectable_effects_are_detected() {
    let judged = DEFAULT.judged(0.0);
    let effects = judged.iter().filter_map(|b| detectable(b.geomean));
    let mean = effects.map(|d| d.effect).sum::<f64>() / judged.len() as f64;
    let power = DEFAULT.told_apart(mean.ln_1p());
    assert!((0.75..0.95).contains(&power), "{power}");
}

/// From the text of a run file to the interval of a row: nothing between the samples and the table
/// may degrade the estimates.
#[test]
fn the_intervals_of_a_table_cover() {
    let field = Synthetic {
        shapes: vec![crate::record::synthetic::dense(256, 3072, 4096)],
        processes: 5,
        blocks: 3,
        process_noise: 0.004,
        ..Synthetic::round4()
    };
    let fast = ContenderId::from_text("interleaved");
    let experiments = 600u64;
    let held = (0..experiments).into_par_iter().filter(|&seed| {
        let run = Synthetic {
            seed,
            ..field.clone()
        }
        .run();
        let ranking = Ranking::of(&run);
        let found = ranking.row(&fast).unwrap().speedup.unwrap();
        holds(&found, (1.0f64 / 0.52).ln())
    });
    let share = held.count() as f64 / experiments as f64;
    // Four standard errors of the simulation either side.
    assert!((0.915..=0.985).contains(&share), "{share}");
}
