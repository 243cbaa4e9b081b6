//! A jury's scores, given before anything was measured.

use super::limits::SCORE;
use super::round::{Juror, Jury};
use super::wire;
use crate::diagnostic::{InputError, did_you_mean};
use crate::document::{Document, Spanned, Table};
use crate::domain::printable_line;

pub(super) fn read(document: &Document<'_>, wire: wire::Jury) -> Result<Jury, InputError> {
    let candidates = wire.candidates.get_ref().clone();
    if candidates.is_empty() || wire.juror.get_ref().is_empty() {
        return Err(document.error(
            wire.candidates.span(),
            "a jury without candidates or jurors",
            "list the candidates and add a [[jury.juror]], or leave [jury] out",
        ));
    }
    let jurors = wire
        .juror
        .into_inner()
        .into_iter()
        .map(|juror| read_juror(document, &candidates, juror))
        .collect::<Result<_, _>>()?;
    let candidates = candidates.iter().map(|name| printable_line(name));
    Ok(Jury {
        candidates: candidates.collect(),
        jurors,
    })
}

fn read_juror(
    document: &Document<'_>,
    candidates: &[String],
    wire: wire::Juror,
) -> Result<Juror, InputError> {
    let span = wire.criteria.span();
    let mut criteria: Vec<_> = wire.criteria.into_inner().into_iter().collect();
    criteria.sort_by_key(|(name, _)| name.span().start);
    let total: f64 = criteria.iter().map(|(_, weight)| weight).sum();
    // NaN is neither: a weight that cannot be compared is refused as well.
    let positive = criteria.iter().all(|(_, weight)| *weight >= 0.0);
    let whole = (total - 1.0).abs() < 1e-6;
    if !(positive && whole) {
        return Err(document.error(
            span,
            format!("the weights add up to {total}"),
            "make them positive and add up to 1",
        ));
    }
    for name in wire.announced.keys() {
        known(document, candidates, name)?;
    }
    for name in wire.scores.get_ref().keys() {
        known(document, candidates, name)?;
    }
    if let Some(vote) = &wire.vote {
        known(document, candidates, vote)?;
    }
    let scores = candidates
        .iter()
        .map(|candidate| scores_of(document, candidate, &wire.scores, criteria.len()))
        .collect::<Result<_, _>>()?;
    let announced = candidates
        .iter()
        .map(|candidate| {
            let found = wire
                .announced
                .iter()
                .find(|(k, _)| k.get_ref() == candidate);
            found.map(|(_, total)| *total)
        })
        .collect();
    Ok(Juror {
        name: printable_line(wire.name.get_ref()),
        criteria: criteria
            .into_iter()
            .map(|(name, weight)| (printable_line(name.get_ref()), weight))
            .collect(),
        scores,
        announced,
        vote: wire.vote.map(|vote| printable_line(vote.get_ref())),
    })
}

fn known(
    document: &Document<'_>,
    candidates: &[String],
    name: &Spanned<String>,
) -> Result<(), InputError> {
    if candidates.contains(name.get_ref()) {
        return Ok(());
    }
    let remedy = did_you_mean(name.get_ref(), candidates.iter().map(String::as_str))
        .unwrap_or_else(|| format!("the candidates are {}", candidates.join(", ")));
    let message = format!("`{}` is not a candidate", name.get_ref());
    Err(document.error(name.span(), message, remedy))
}

fn scores_of(
    document: &Document<'_>,
    candidate: &str,
    scores: &Spanned<Table<Spanned<Vec<f64>>>>,
    criteria: usize,
) -> Result<Vec<f64>, InputError> {
    let found = scores
        .get_ref()
        .iter()
        .find(|(key, _)| key.get_ref() == candidate);
    let Some((_, list)) = found else {
        return Err(document.error(
            scores.span(),
            format!("`{candidate}` has no scores"),
            "score every candidate",
        ));
    };
    let in_range = |score: &f64| SCORE.contains(score);
    if list.get_ref().len() != criteria || !list.get_ref().iter().all(in_range) {
        return Err(document.error(
            list.span(),
            format!(
                "`{candidate}` needs {criteria} scores from {} to {}",
                SCORE.start(),
                SCORE.end()
            ),
            "give one score per criterion, in their order",
        ));
    }
    Ok(list.get_ref().clone())
}
