//! Fits the costs of a variant's picks to recorded times: the time of each contender on a shape,
//! and the loss from calling the one with the lowest predicted cost. Only numbers: the plan
//! computes the values of the terms on a shape.

mod descent;
mod solve;

/// Nanoseconds for each term of each pick.
pub(crate) type Costs = Vec<Vec<f64>>;

/// A shape that was timed.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub shape: String,
    /// One for each pick that can run the shape and has a time.
    pub calls: Vec<Call>,
}

/// A pick on a shape.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub pick: usize,
    /// Values of the terms of its cost.
    pub terms: Vec<i64>,
    pub micros: f64,
}

impl Call {
    fn reckoned(&self, costs: &Costs) -> f64 {
        let terms = self.terms.iter().zip(&costs[self.pick]);
        terms
            .map(|(value, nanos)| *value as f64 * nanos)
            .sum::<f64>()
            / 1e3
    }
}

impl Sample {
    /// The weight of an error: high if another pick takes about as long. If none does, a wrong cost
    /// picks as well as the right one.
    fn weight(&self, call: &Call) -> f64 {
        let others = self.calls.iter().filter(|other| other.pick != call.pick);
        let rival = others.map(|other| other.micros).fold(f64::MAX, f64::min);
        let near = (rival / call.micros).min(call.micros / rival);
        near.max(LEAST).powi(2)
    }
}

/// The closeness assumed for a time far from all others.
const LEAST: f64 = 0.5;

/// The costs with the lowest relative errors over all times, moved to where the choice by them
/// loses least. A pick with fewer times than terms keeps its cost.
pub(crate) fn fit(samples: &[Sample], written: &Costs) -> Costs {
    let determined = |pick: usize| {
        let calls = samples.iter().flat_map(|sample| &sample.calls);
        calls.filter(|call| call.pick == pick).count() >= written[pick].len()
    };
    let free: Vec<bool> = (0..written.len()).map(determined).collect();
    let costs = least_errors(samples, written, &free);
    match regrets(samples, &costs).last() {
        Some(worst) if worst.share > 0.0 => descent::least_loss(samples, costs, &free),
        _ => costs,
    }
}

fn least_errors(samples: &[Sample], written: &Costs, free: &[bool]) -> Costs {
    let of = |(pick, kept): (usize, &Vec<f64>)| {
        let mut rows = Vec::new();
        for sample in samples {
            for call in sample.calls.iter().filter(|call| call.pick == pick) {
                let weight = sample.weight(call);
                let scale = weight / (call.micros * 1e3);
                let row = call.terms.iter().map(|value| *value as f64 * scale);
                rows.push((row.collect(), weight));
            }
        }
        let found = free[pick].then(|| solve::least_squares(&rows, kept.len()));
        found.flatten().unwrap_or_else(|| kept.clone())
    };
    written.iter().enumerate().map(of).collect()
}

/// The errors of one pick's predicted times, as shares of the measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Errors {
    pub pick: usize,
    /// Ascending.
    pub shares: Vec<f64>,
}

pub(crate) fn errors(samples: &[Sample], costs: &Costs) -> Vec<Errors> {
    let of = |pick: usize| {
        let calls = samples.iter().flat_map(|sample| &sample.calls);
        let calls = calls.filter(|call| call.pick == pick);
        let off = |call: &Call| (call.reckoned(costs) / call.micros - 1.0).abs();
        let mut shares: Vec<f64> = calls.map(off).collect();
        shares.sort_by(f64::total_cmp);
        Errors { pick, shares }
    };
    (0..costs.len()).map(of).collect()
}

/// The loss on a shape from calling the pick with the lowest predicted cost.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Regret {
    pub shape: String,
    pub chosen: usize,
    pub best: usize,
    /// As a share of the best pick's time.
    pub share: f64,
}

/// On every shape, the lowest first.
pub(crate) fn regrets(samples: &[Sample], costs: &Costs) -> Vec<Regret> {
    let of = |sample: &Sample| {
        let cheapest = |of: &dyn Fn(&Call) -> f64| {
            let calls = sample.calls.iter();
            calls.min_by(|a, b| of(a).total_cmp(&of(b)))
        };
        let chosen = cheapest(&|call| call.reckoned(costs))?;
        let best = cheapest(&|call| call.micros)?;
        Some(Regret {
            shape: sample.shape.clone(),
            chosen: chosen.pick,
            best: best.pick,
            share: chosen.micros / best.micros - 1.0,
        })
    };
    let mut regrets: Vec<Regret> = samples.iter().filter_map(of).collect();
    regrets.sort_by(|a, b| a.share.total_cmp(&b.share));
    regrets
}

/// The value that this share of the ascending `values` does not exceed; 0 if there are none.
pub(crate) fn percentile(values: &[f64], share: f64) -> f64 {
    let place = (share * values.len() as f64).ceil() as usize;
    values.get(place.saturating_sub(1)).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests;
