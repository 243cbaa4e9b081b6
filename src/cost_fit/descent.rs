//! Moves costs to where the choice by them loses least. A predicted time is taken to be off by
//! some per cent, so a pick has a probability of being chosen on each shape; what is minimised is
//! the expected loss over all shapes and the error of the times themselves.

use super::{Call, Costs, Sample};

/// By how much a predicted time is off, as a share of it.
const ERROR: f64 = 0.025;
/// The weight of the squared errors of the times beside the loss.
const TRUTH: f64 = 1.0;
/// A larger loss counts as this one: a few shapes must not decide all costs.
const MOST_LOST: f64 = 0.3;
const STEPS: i32 = 300;
/// The first step, as a share of the coefficient that would explain all of a time.
const STEP: f64 = 0.01;

pub(super) fn least_loss(samples: &[Sample], mut costs: Costs, free: &[bool]) -> Costs {
    let scales = scales(samples, &costs);
    let zeros: Costs = costs.iter().map(|terms| vec![0.0; terms.len()]).collect();
    let (mut mean, mut square) = (zeros.clone(), zeros.clone());
    // Adam (Kingma and Ba, 2015) with steps that shrink.
    for turn in 1..=STEPS {
        let mut slopes = zeros.clone();
        for sample in samples {
            add_slopes(sample, &costs, &mut slopes);
        }
        let step = STEP * (1.02 - f64::from(turn) / f64::from(STEPS));
        let (mean_part, square_part) = (1.0 - 0.9_f64.powi(turn), 1.0 - 0.99_f64.powi(turn));
        for pick in (0..costs.len()).filter(|pick| free[*pick]) {
            for term in 0..costs[pick].len() {
                let scale = scales[pick][term];
                let slope = slopes[pick][term] * scale / samples.len() as f64;
                let (mean, square) = (&mut mean[pick][term], &mut square[pick][term]);
                *mean = 0.9 * *mean + 0.1 * slope;
                *square = 0.99 * *square + 0.01 * slope * slope;
                let direction = *mean / mean_part / ((*square / square_part).sqrt() + 1e-9);
                let cost = &mut costs[pick][term];
                *cost = (*cost - step * scale * direction).max(0.0);
            }
        }
    }
    costs
}

/// For each term the coefficient with which it alone would explain the times; 0 where it is always 0.
fn scales(samples: &[Sample], costs: &Costs) -> Costs {
    let calls = || samples.iter().flat_map(|sample| &sample.calls);
    let of = |pick: usize, term: usize| {
        let shares = calls().filter(|call| call.pick == pick);
        let shares = shares.map(|call| call.terms[term] as f64 / (call.micros * 1e3));
        let (count, sum) = shares.fold((0, 0.0), |(count, sum), share| (count + 1, sum + share));
        if sum > 0.0 {
            f64::from(count) / sum
        } else {
            0.0
        }
    };
    let terms = |(pick, cost): (usize, &Vec<f64>)| (0..cost.len()).map(|i| of(pick, i)).collect();
    costs.iter().enumerate().map(terms).collect()
}

/// Adds what a small change of each coefficient adds to what is minimised on one shape.
fn add_slopes(sample: &Sample, costs: &Costs, slopes: &mut Costs) {
    let best = sample.calls.iter().map(|call| call.micros);
    let best = best.fold(f64::MAX, f64::min);
    let predicted: Vec<f64> = sample
        .calls
        .iter()
        .map(|call| call.reckoned(costs).max(1e-3))
        .collect();
    let lost: Vec<f64> = sample
        .calls
        .iter()
        .map(|call| (call.micros / best - 1.0).min(MOST_LOST))
        .collect();
    let chances = chances(&predicted);
    let expected: f64 = chances
        .iter()
        .zip(&lost)
        .map(|(chance, lost)| chance * lost)
        .sum();
    for (i, call) in sample.calls.iter().enumerate() {
        // By the logarithm of the predicted time.
        let choice = chances[i] * (expected - lost[i]) / ERROR;
        let truth = TRUTH * 2.0 * (predicted[i] / call.micros).ln() * sample.weight(call);
        add(
            call,
            (choice + truth) / (predicted[i] * 1e3),
            &mut slopes[call.pick],
        );
    }
}

fn add(call: &Call, slope: f64, slopes: &mut [f64]) {
    for (sum, value) in slopes.iter_mut().zip(&call.terms) {
        *sum += slope * *value as f64;
    }
}

/// The probability of each to be the lowest.
fn chances(predicted: &[f64]) -> Vec<f64> {
    let lowest = predicted.iter().copied().fold(f64::MAX, f64::min);
    let weights = predicted
        .iter()
        .map(|time| (time / lowest).powf(-1.0 / ERROR));
    let weights: Vec<f64> = weights.collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}
