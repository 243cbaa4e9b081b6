//! Claimed speedups against measured ones.

use crate::domain::{Claim, ContenderId, Interval};
use crate::rank::Ranking;
use crate::record::Run;
use crate::stats::CONFIDENCE;

/// A claim beside its measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimResult {
    pub claim: Claim,
    /// The contender it was compared with; `over` may have named a variant.
    pub over: Option<ContenderId>,
    pub measured: Option<Interval>,
    pub verdict: ClaimVerdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimVerdict {
    /// The speedup reaches the claim, at the precision claims are printed in.
    Met,
    /// It does not.
    Missed,
    /// A gain was promised, but the contender is certainly slower, by more than noise.
    Reversed,
    /// One of the two is not valid or not in the run, or both are the same.
    Untested,
}

words!(ClaimVerdict {
    Met = "met",
    Missed = "missed",
    Reversed = "reversed",
    Untested = "untested",
});

impl ClaimVerdict {
    /// The verdict on a claimed speedup, in a run that cannot detect differences below `noise` (a
    /// share).
    pub fn of(claimed: f64, measured: &Interval, noise: f64) -> Self {
        let cents = |x: f64| (x * 100.0).round();
        let surely_at_most = measured.upper.unwrap_or(measured.estimate);
        if cents(measured.estimate) >= cents(claimed) {
            Self::Met
        } else if claimed > 1.0 && surely_at_most * (1.0 + noise) < 1.0 {
            Self::Reversed
        } else {
            Self::Missed
        }
    }
}

/// Compares the contender's own claim with the run; `None` if it made none.
pub fn judge(run: &Run, ranking: &Ranking, contender: &ContenderId) -> Option<ClaimResult> {
    let claim = run.contender(contender)?.claim.clone()?;
    let over = resolve(run, &claim.over, contender);
    let whole = |id: &ContenderId| {
        let row = ranking.row(id)?;
        (row.valid_shapes == run.header.shapes.len()).then_some(())
    };
    // A variant's claim over one of its own contenders does not apply to that one.
    let other = over.as_ref().filter(|over| *over != contender);
    let measured = other.and_then(|over| {
        whole(over).and(whole(contender))?;
        let comparison = ranking.compare(run, over, contender)?;
        Some(comparison.geomean.ratio(CONFIDENCE))
    });
    let verdict = measured.as_ref().map_or(ClaimVerdict::Untested, |m| {
        ClaimVerdict::of(claim.geomean, m, ranking.noise())
    });
    Some(ClaimResult {
        claim,
        over,
        measured,
        verdict,
    })
}

/// The contender that a name in a claim or lineage means: the one of that full name, the only one
/// of that variant, or the one with the most parameters in common.
pub fn resolve(run: &Run, name: &str, child: &ContenderId) -> Option<ContenderId> {
    let mut entrants = run.entrants();
    if let Some(exact) = entrants.find(|id| id.as_str() == name) {
        return Some(exact.clone());
    }
    let own = run.contender(child)?;
    let shared = |params: &std::collections::BTreeMap<String, i64>| {
        let same = |(k, v): &(&String, &i64)| own.params.get(*k) == Some(*v);
        params.iter().filter(same).count()
    };
    let siblings = run
        .header
        .contenders
        .iter()
        .filter(|c| c.variant == name && c.id != *child);
    let mut best: Option<(&crate::record::schema::ContenderRecord, usize)> = None;
    for candidate in siblings {
        let score = shared(&candidate.params);
        if best.is_none_or(|(_, most)| score > most) {
            best = Some((candidate, score));
        }
    }
    best.map(|(c, _)| c.id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts() {
        let measured = |estimate: f64| Interval {
            estimate,
            lower: Some(estimate - 0.01),
            upper: Some(estimate + 0.01),
        };
        assert_eq!(
            ClaimVerdict::of(1.6, &measured(1.92), 0.0),
            ClaimVerdict::Met
        );
        assert_eq!(
            ClaimVerdict::of(1.6, &measured(1.596), 0.0),
            ClaimVerdict::Met
        );
        assert_eq!(
            ClaimVerdict::of(1.33, &measured(1.31), 0.0),
            ClaimVerdict::Missed
        );
        assert_eq!(
            ClaimVerdict::of(1.5, &measured(0.735), 0.0),
            ClaimVerdict::Reversed
        );
        assert_eq!(
            ClaimVerdict::of(1.5, &measured(0.995), 0.0),
            ClaimVerdict::Missed
        );
        assert_eq!(
            ClaimVerdict::of(1.5, &measured(0.985), 0.01),
            ClaimVerdict::Missed
        );
        assert_eq!(
            ClaimVerdict::of(1.5, &Interval::point(0.9), 0.0),
            ClaimVerdict::Reversed
        );
        assert_eq!(
            ClaimVerdict::of(1.5, &Interval::point(f64::NAN), 0.0),
            ClaimVerdict::Missed
        );
    }
}
