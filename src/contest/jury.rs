//! The jury's votes, counted again, and how well they predicted the measurement.

use dgx_core::claims::{self, ClaimVerdict};
use dgx_core::config::{Jury, Pitch, Round};
use dgx_core::domain::{ContenderId, Interval, Status};
use dgx_core::rank::Ranking;
use dgx_core::record::Run;
use dgx_core::stats::{CONFIDENCE, kendall_tau};

/// Totals are announced with two decimals; a recount that differs by more than half a unit of the
/// second decimal is a different total.
const ROUNDING: f64 = 0.005 + 1e-9;

/// One candidate's scores, recounted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JuryTally {
    pub candidate: String,
    /// A total per juror.
    pub totals: Vec<f64>,
    /// As announced, if it was.
    pub announced: Vec<Option<f64>>,
    pub mean: f64,
    pub votes: usize,
}

impl JuryTally {
    /// The juror's announced total where the recount disagrees with it.
    pub(crate) fn misannounced(&self, juror: usize) -> Option<f64> {
        let announced = self.announced.get(juror).copied().flatten()?;
        let total = self.totals.get(juror)?;
        ((announced - total).abs() > ROUNDING).then_some(announced)
    }
}

/// The recount, best first.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recount {
    pub jurors: Vec<String>,
    /// The candidate each juror voted for: on record, or the best total.
    pub votes: Vec<String>,
    pub tallies: Vec<JuryTally>,
}

/// Weighs every score again.
pub(crate) fn recount(jury: &Jury) -> Recount {
    let mut tallies: Vec<JuryTally> = jury
        .candidates
        .iter()
        .enumerate()
        .map(|(index, candidate)| {
            let totals: Vec<f64> = jury.jurors.iter().map(|j| total(j, index)).collect();
            JuryTally {
                candidate: candidate.clone(),
                mean: totals.iter().sum::<f64>() / totals.len().max(1) as f64,
                announced: jury
                    .jurors
                    .iter()
                    .map(|j| j.announced.get(index).copied().flatten())
                    .collect(),
                totals,
                votes: 0,
            }
        })
        .collect();
    let votes: Vec<String> = jury
        .jurors
        .iter()
        .enumerate()
        .map(|(juror, j)| j.vote.clone().unwrap_or_else(|| favourite(&tallies, juror)))
        .collect();
    for tally in &mut tallies {
        tally.votes = votes.iter().filter(|v| **v == tally.candidate).count();
    }
    tallies.sort_by(|a, b| b.votes.cmp(&a.votes).then(b.mean.total_cmp(&a.mean)));
    Recount {
        jurors: jury.jurors.iter().map(|j| j.name.clone()).collect(),
        votes,
        tallies,
    }
}

fn total(juror: &dgx_core::config::Juror, candidate: usize) -> f64 {
    let scores = juror.scores.get(candidate).map_or(&[][..], Vec::as_slice);
    let weighted = juror.criteria.iter().zip(scores);
    weighted.map(|((_, weight), score)| weight * score).sum()
}

fn favourite(tallies: &[JuryTally], juror: usize) -> String {
    let best = tallies.iter().reduce(|best, tally| {
        if tally.totals[juror] > best.totals[juror] {
            tally
        } else {
            best
        }
    });
    best.map_or(String::new(), |t| t.candidate.clone())
}

/// The status of a candidate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub candidate: String,
    pub contender: Option<ContenderId>,
    pub status: Option<Status>,
    /// Lowest and highest speedup promised.
    pub claimed: Option<(f64, f64)>,
    /// The contender that the claim is over.
    pub over: Option<ContenderId>,
    pub measured: Option<Interval>,
    pub verdict: ClaimVerdict,
    /// The outcome as the round's file tells it.
    pub story: Option<String>,
}

/// Each candidate's promise beside the measured result. `names` are the candidates in the wanted
/// order.
pub(crate) fn outcomes(
    round: &Round,
    names: &[String],
    found: Option<(&Run, &Ranking)>,
) -> Vec<Outcome> {
    names
        .iter()
        .map(|name| outcome(round, name, found))
        .collect()
}

fn outcome(round: &Round, name: &str, found: Option<(&Run, &Ranking)>) -> Outcome {
    let pitch: Option<&Pitch> = round.pitches.iter().find(|p| p.design == name);
    let promised = pitch.and_then(|p| p.claim);
    let mut outcome = Outcome {
        candidate: name.to_owned(),
        contender: None,
        status: None,
        claimed: promised,
        over: found.and_then(|(_, ranking)| ranking.reference.clone()),
        measured: None,
        verdict: ClaimVerdict::Untested,
        story: pitch.and_then(|p| p.outcome.clone()),
    };
    let Some((run, ranking)) = found else {
        return outcome;
    };
    let Some(id) = entrant(run, ranking, built_as(round, name)) else {
        return outcome;
    };
    // A pitch in a round is over that round's baseline; a variant's claim names its own.
    if let (None, Some(own)) = (promised, claims::judge(run, ranking, &id)) {
        outcome.claimed = Some((own.claim.geomean, own.claim.geomean));
        outcome.over = own.over;
    }
    outcome.status = ranking.row(&id).and_then(|row| row.status);
    outcome.measured = outcome.over.as_ref().and_then(|over| {
        let whole = ranking.row(&id)?.valid_shapes == run.header.shapes.len();
        let other = whole && *over != id;
        let comparison = other.then(|| ranking.compare(run, over, &id))??;
        Some(comparison.geomean.ratio(CONFIDENCE))
    });
    if let (Some((least, _)), Some(measured)) = (&outcome.claimed, &outcome.measured) {
        outcome.verdict = ClaimVerdict::of(*least, measured, ranking.noise());
    }
    outcome.contender = Some(id);
    outcome
}

/// The name a candidate was built under.
fn built_as<'a>(round: &'a Round, name: &'a str) -> &'a str {
    let pitch = round.pitches.iter().find(|p| p.design == name);
    pitch.and_then(|p| p.contender.as_deref()).unwrap_or(name)
}

/// The contender that a name means in a run: itself, or the best of the variant's parameters, since
/// a pitch was for the idea. The baseline represents its variant only if nothing else does.
fn entrant(run: &Run, ranking: &Ranking, name: &str) -> Option<ContenderId> {
    let exact = run.header.contenders.iter().find(|c| c.id.as_str() == name);
    if let Some(exact) = exact {
        return Some(exact.id.clone());
    }
    // Rows are sorted best first.
    let own: Vec<&ContenderId> = ranking
        .rows
        .iter()
        .map(|r| &r.contender)
        .filter(|id| id.variant() == name)
        .collect();
    let challenger = own
        .iter()
        .find(|id| ranking.reference.as_ref() != Some(**id));
    challenger.or(own.first()).map(|id| (*id).clone())
}

/// Kendall's τ between the jury's mean scores and measured speeds, and the number of candidates.
/// `None` if fewer than two were measured.
pub(crate) fn foresight(
    round: &Round,
    recount: &Recount,
    run: &Run,
    ranking: &Ranking,
) -> Option<(f64, usize)> {
    let mut scores = Vec::new();
    let mut speeds = Vec::new();
    for tally in &recount.tallies {
        let Some(id) = entrant(run, ranking, built_as(round, &tally.candidate)) else {
            continue;
        };
        let row = ranking.row(&id)?;
        let speed = match ranking.reference.as_ref() == Some(&id) {
            true => Some(0.0),
            false => row.place.and(row.speedup).map(|s| s.mean),
        };
        if let Some(speed) = speed {
            scores.push(tally.mean);
            speeds.push(speed);
        }
    }
    Some((kendall_tau(&scores, &speeds)?, scores.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::config::Juror;

    /// Round 4 as recorded.
    fn round4() -> Jury {
        let juror = |name: &str, weights: [f64; 4], scores: [[f64; 4]; 3]| Juror {
            name: name.to_owned(),
            criteria: weights
                .iter()
                .map(|w| ("criterion".to_owned(), *w))
                .collect(),
            scores: scores.iter().map(|s| s.to_vec()).collect(),
            announced: vec![None; 3],
            vote: None,
        };
        Jury {
            candidates: ["sequential", "interleaved", "two-pass"]
                .map(String::from)
                .to_vec(),
            jurors: vec![
                juror(
                    "performance",
                    [0.4, 0.3, 0.2, 0.1],
                    [
                        [7.0, 6.0, 5.0, 8.0],
                        [5.0, 4.0, 9.0, 4.0],
                        [9.0, 9.0, 3.0, 10.0],
                    ],
                ),
                juror(
                    "pragmatic",
                    [0.4, 0.25, 0.2, 0.15],
                    [
                        [7.0, 8.0, 7.0, 8.0],
                        [5.0, 4.0, 4.0, 6.0],
                        [9.0, 10.0, 10.0, 7.0],
                    ],
                ),
            ],
        }
    }

    #[test]
    fn recounts_the_totals_on_record() {
        let recount = recount(&round4());
        let total = |name: &str| {
            let tally = recount
                .tallies
                .iter()
                .find(|t| t.candidate == name)
                .unwrap();
            tally
                .totals
                .iter()
                .map(|t| format!("{t:.2}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(total("sequential"), ["6.40", "7.40"]);
        assert_eq!(total("interleaved"), ["5.40", "4.70"]);
        assert_eq!(total("two-pass"), ["7.90", "9.15"]);
        assert_eq!(recount.votes, ["two-pass", "two-pass"]);
        assert_eq!(recount.tallies[0].candidate, "two-pass");
    }

    #[test]
    fn a_total_off_in_the_second_decimal_is_noticed() {
        let mut jury = round4();
        jury.jurors[1].announced = vec![Some(7.40), Some(4.75), Some(9.15)];
        let recount = recount(&jury);
        let off = |name: &str| {
            let tally = recount
                .tallies
                .iter()
                .find(|t| t.candidate == name)
                .unwrap();
            tally.misannounced(1)
        };
        assert_eq!(off("sequential"), None);
        assert_eq!(off("interleaved"), Some(4.75));
    }

    #[test]
    fn the_jury_of_round_4_foresaw_the_opposite() {
        let run = dgx_core::record::synthetic::Synthetic::round4().run();
        let ranking = Ranking::of(&run);
        let round = Round::read("configs/round4.toml".as_ref()).unwrap();
        let recount = recount(round.jury.as_ref().unwrap());
        let (tau, count) = foresight(&round, &recount, &run, &ranking).unwrap();
        assert_eq!((tau, count), (-1.0, 3));
    }
}
