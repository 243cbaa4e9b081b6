//! The calls that a validation makes of a cell. There are several, because state that one call
//! leaves in the variables of its module or elsewhere can break the next. Their number, data and
//! order are random, so that a kernel cannot distinguish them.

use rand::seq::SliceRandom;
use rand::{Rng, RngExt};

use crate::backend::Poison;
use crate::operator::drawing;

use dgx_core::domain::Distribution;

/// Minimum calls of a cell: one with each poison.
const LEAST: usize = 1 + Poison::OTHERS.len();
const MOST: usize = 6;

/// The purpose of a call, besides its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallPurpose {
    /// Its time is modelled, if the backend does that.
    Time,
    /// It is watched for hazards, if the backend does that.
    Hazards,
    Result,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScheduledCall {
    pub distribution: Distribution,
    pub purpose: CallPurpose,
    /// Added to the schedule: a different order for each call; an order may show what another
    /// hides.
    pub schedule: u64,
    /// The contents of outputs and scratch before it.
    pub poison: Poison,
    /// Whether its buffers lie in the opposite order, if the backend does that.
    pub mirrored: bool,
}

/// The calls of a cell in order. The first two are for time and hazards, so that both exist even if
/// a cell has no others. The first has NaN in its outputs, so that an element that is never written
/// is wrong in every cell.
pub(super) fn calls(distributions: &[Distribution], seed: u64, cell: &str) -> Vec<ScheduledCall> {
    let mut rng = drawing(seed, cell);
    if distributions.is_empty() {
        return Vec::new();
    }
    // Times are compared between contenders, so all use the same data.
    let timed = match distributions.contains(&Distribution::Benchmark) {
        true => Distribution::Benchmark,
        false => pick(distributions, &mut rng),
    };
    let mut others: Vec<Distribution> = distributions.to_vec();
    others.retain(|d| *d != timed);
    others.shuffle(&mut rng);
    // A kernel that looks at its data may be racy only on those it is timed on.
    others.push(timed);
    let count = rng.random_range(LEAST..=MOST).max(others.len() + 1);
    while others.len() + 1 < count {
        others.push(pick(distributions, &mut rng));
    }
    let mut calls: Vec<ScheduledCall> = [timed]
        .into_iter()
        .chain(others)
        .zip(0..)
        .map(|(distribution, schedule)| ScheduledCall {
            distribution,
            purpose: match schedule {
                0 => CallPurpose::Time,
                1 => CallPurpose::Hazards,
                _ if distribution == timed => CallPurpose::Hazards,
                _ => CallPurpose::Result,
            },
            schedule,
            poison: Poison::Nan,
            mirrored: match schedule {
                0 => false,
                1 => true,
                _ => rng.random(),
            },
        })
        .collect();
    calls[..2].shuffle(&mut rng);
    calls[2..].shuffle(&mut rng);
    let mut poisons = Poison::OTHERS;
    poisons.shuffle(&mut rng);
    for (call, poison) in calls[1..].iter_mut().zip(poisons.into_iter().cycle()) {
        call.poison = poison;
    }
    calls
}

fn pick(from: &[Distribution], rng: &mut impl Rng) -> Distribution {
    from[rng.random_range(0..from.len())]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn number_and_order_of_calls_are_drawn_and_all_data_come_up() {
        let (mut counts, mut orders) = (BTreeSet::new(), BTreeSet::new());
        for seed in 0..200 {
            let calls = calls(&Distribution::USUAL, seed, "x on y");
            counts.insert(calls.len());
            let names: Vec<Distribution> = calls.iter().map(|c| c.distribution).collect();
            assert!(Distribution::USUAL.iter().all(|d| names.contains(d)));
            let purposes = |wanted| calls[..2].iter().filter(|c| c.purpose == wanted).count();
            assert_eq!(
                (purposes(CallPurpose::Time), purposes(CallPurpose::Hazards)),
                (1, 1)
            );
            let timed = calls
                .iter()
                .find(|c| c.purpose == CallPurpose::Time)
                .unwrap();
            assert_eq!(timed.distribution, Distribution::Benchmark);
            assert_eq!(timed.schedule, 0);
            let mirrored = calls[..2].iter().filter(|c| c.mirrored).count();
            assert!(mirrored == 1 && !timed.mirrored, "{calls:?}");
            let watched = calls.iter().filter(|c| c.purpose == CallPurpose::Hazards);
            let watched: Vec<Distribution> = watched.map(|c| c.distribution).collect();
            assert!(watched.contains(&Distribution::Benchmark), "{calls:?}");
            assert!(
                calls[..2]
                    .iter()
                    .any(|c| c.distribution != Distribution::Benchmark)
            );
            orders.insert(names);
        }
        assert_eq!(counts, BTreeSet::from([5, 6]));
        assert!(orders.len() > 20, "{}", orders.len());
    }

    #[test]
    fn every_poison_comes_up_and_nan_first() {
        let mut seconds = BTreeSet::new();
        for seed in 0..50 {
            for distributions in [&Distribution::USUAL[..], &[Distribution::Full]] {
                let calls = calls(distributions, seed, "x on y");
                let kinds: BTreeSet<Poison> = calls.iter().map(|c| c.poison).collect();
                assert_eq!(kinds.len(), 5, "{calls:?}");
                assert_eq!(calls[0].poison, Poison::Nan);
                seconds.insert(calls[1].poison);
            }
        }
        assert_eq!(seconds, BTreeSet::from(Poison::OTHERS));
    }

    #[test]
    fn one_distribution_is_called_with_again() {
        let calls = calls(&[Distribution::Full], 1, "x on y");
        assert!(calls.len() >= 4);
        assert!(calls.iter().all(|c| c.distribution == Distribution::Full));
        assert!(super::calls(&[], 1, "x on y").is_empty());
    }
}
