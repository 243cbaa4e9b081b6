//! One round run twice: whether both runs agree.

use std::cmp::Ordering;

use super::{EntrantKind, Margin, Ranking, Row, SystematicError};
use crate::domain::ContenderId;
use crate::record::Run;
use crate::stats::{LogEstimate, RankPosition, unpaired};

/// Two runs with the same reference and the same shapes.
#[derive(Clone, Debug)]
pub struct Repeat {
    pub reference: ContenderId,
    /// All contenders ranked in both, in the second run's order.
    pub entries: Vec<Repeated>,
    /// Pairs that the two runs order or tie differently.
    pub disputes: Vec<Disagreement>,
}

/// A contender ranked in both runs.
#[derive(Clone, Debug)]
pub struct Repeated {
    pub contender: ContenderId,
    pub places: [RankPosition; 2],
    /// Over the reference, in each run.
    pub speedups: [LogEstimate; 2],
    /// The second speedup over the first.
    pub change: LogEstimate,
    /// The smallest detectable change, besides its interval.
    margin: Margin,
    /// Whether its source differs between the runs.
    pub edited: bool,
}

/// Two contenders whose places differ between the runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    pub pair: [ContenderId; 2],
    /// Of the first of the pair against the second: `Less` is ranked before, `Equal` tied.
    pub orders: [Ordering; 2],
}

/// How far two runs differ, over the contenders they share. No interval of either run contains
/// this, because each covers only its own card and hour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Contenders with a difference and its interval.
    pub contenders: usize,
    /// Half of them differ by more than this, as a share.
    pub median: f64,
    pub most: f64,
    /// How many differ by more than the runs can detect.
    pub beyond: usize,
}

impl Spread {
    /// From differences, each with its detectable minimum; `None` without intervals.
    pub fn of(changes: impl IntoIterator<Item = (LogEstimate, Margin)>) -> Option<Self> {
        let judged = changes
            .into_iter()
            .filter_map(|(change, margin)| Some((change.mean.abs(), margin.holds(&change)?)));
        let judged: Vec<(f64, bool)> = judged.collect();
        let mut sizes: Vec<f64> = judged.iter().map(|(size, _)| size.exp_m1()).collect();
        sizes.sort_by(f64::total_cmp);
        Some(Self {
            contenders: sizes.len(),
            median: *sizes.get(sizes.len() / 2)?,
            most: *sizes.last()?,
            beyond: judged.iter().filter(|(_, held)| !held).count(),
        })
    }
}

impl Repeated {
    /// Whether the two speedups agree within the interval of their difference; `None` without an
    /// interval.
    pub fn agrees(&self) -> Option<bool> {
        self.margin.holds(&self.change)
    }
}

impl Repeat {
    /// `None` if the runs cannot repeat each other: other references, other shapes, or only the
    /// reference ranked in both.
    pub fn of(first: (&Run, &Ranking), second: (&Run, &Ranking)) -> Option<Self> {
        let reference = second.1.reference.as_ref()?;
        if first.1.reference.as_ref() != Some(reference)
            || first.0.header.shapes != second.0.header.shapes
        {
            return None;
        }
        let systematic = SystematicError::between(first.0, second.0);
        let margin = Margin::of([None, None], systematic, second.0.timing());
        let rows = second
            .1
            .rows
            .iter()
            .filter(|r| r.kind != EntrantKind::Yardstick);
        let entries: Vec<Repeated> = rows
            .filter_map(|row| {
                let id = &row.contender;
                let before = first.1.row(id)?;
                let speedup = |row: &Row| match row.contender == *reference {
                    true => Some(LogEstimate::point(0.0)),
                    false => row.speedup,
                };
                let speedups = [speedup(before)?, speedup(row)?];
                let hash = |run: &Run| run.contender(id).map(|c| c.hash.clone());
                Some(Repeated {
                    contender: id.clone(),
                    places: [before.place?, row.place?],
                    change: unpaired(&speedups[1], &speedups[0]),
                    margin,
                    speedups,
                    edited: hash(first.0) != hash(second.0),
                })
            })
            .collect();
        (entries.len() > 1).then(|| Self {
            reference: reference.clone(),
            disputes: disputes(&entries),
            entries,
        })
    }

    /// All but the reference, which is 1 in both by definition.
    pub fn challengers(&self) -> impl Iterator<Item = &Repeated> {
        let other = |e: &&Repeated| e.contender != self.reference;
        self.entries.iter().filter(other)
    }

    /// How far the speedups differ, for contenders that are the same in both.
    pub fn spread(&self) -> Option<Spread> {
        let same = self.challengers().filter(|e| !e.edited);
        Spread::of(same.map(|e| (e.change, e.margin)))
    }

    /// Pairs whose order was compared.
    pub fn pairs(&self) -> usize {
        self.entries.len() * (self.entries.len() - 1) / 2
    }
}

fn disputes(entries: &[Repeated]) -> Vec<Disagreement> {
    let mut disputes = Vec::new();
    for (i, a) in entries.iter().enumerate() {
        for b in &entries[i + 1..] {
            let orders = [0, 1].map(|run| a.places[run].rank.cmp(&b.places[run].rank));
            if orders[0] != orders[1] {
                disputes.push(Disagreement {
                    pair: [a.contender.clone(), b.contender.clone()],
                    orders,
                });
            }
        }
    }
    disputes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Timing;
    use crate::record::synthetic::Synthetic;

    fn repeat(first: &Synthetic, second: &Synthetic) -> Option<Repeat> {
        let (a, b) = (first.run(), second.run());
        Repeat::of((&a, &Ranking::of(&a)), (&b, &Ranking::of(&b)))
    }

    #[test]
    fn the_same_round_with_other_noise_repeats() {
        let first = Synthetic::round4();
        let second = Synthetic {
            seed: first.seed + 1,
            ..Synthetic::round4()
        };
        let repeat = repeat(&first, &second).unwrap();
        assert_eq!(repeat.disputes, []);
        assert!(repeat.challengers().count() > 1);
        assert!(repeat.challengers().all(|e| e.agrees() == Some(true)));
    }

    #[test]
    fn a_contender_that_became_slower_is_noticed() {
        let mut second = Synthetic::round4();
        let slow = second.entries.iter().position(|e| e.name == "interleaved");
        second.entries[slow.unwrap()].time *= 2.2;
        let repeat = repeat(&Synthetic::round4(), &second).unwrap();
        let found = repeat
            .entries
            .iter()
            .find(|e| e.contender.as_str() == "interleaved");
        assert_eq!(found.unwrap().agrees(), Some(false));
        assert!(!repeat.disputes.is_empty());
    }

    #[test]
    fn the_spread_tells_noise_from_another_card() {
        let change = |mean: f64| LogEstimate {
            mean,
            se: Some(0.001),
            df: 8.0,
            blocks: 30,
            processes: 5,
        };
        let margin = Margin::of([None, None], SystematicError::None, Timing::Measured);
        let change = |mean: f64| (change(mean), margin);
        let quiet = Spread::of([0.001, -0.0005, 0.0].map(change)).unwrap();
        assert_eq!((quiet.contenders, quiet.beyond), (3, 0));
        let other = Spread::of([0.01, -0.02, 0.001, 0.004].map(change)).unwrap();
        assert_eq!((other.contenders, other.beyond), (4, 3));
        assert!(
            (other.most - 0.0202).abs() < 1e-4 && other.median > 0.004,
            "{other:?}"
        );
        assert_eq!(Spread::of([(LogEstimate::point(0.1), margin)]), None);
    }

    #[test]
    fn other_shapes_are_no_repetition() {
        let mut fewer = Synthetic::round4();
        fewer.shapes.truncate(1);
        assert!(repeat(&Synthetic::round4(), &fewer).is_none());
    }
}
