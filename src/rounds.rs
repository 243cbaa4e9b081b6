//! The story of the rounds: what each asked, what its newest run found, who
//! was promoted, and what that came to.
//!
//! A design is promoted only by a run in which it validated on every shape and
//! passed that round's gate; among those, the fastest is.

use std::path::{Path, PathBuf};

use crate::claims::{Outcome, outcomes};
use crate::config::{Baseline, Gate, Round};
use crate::diagnostic::{InputError, SourceFile};
use crate::domain::{ContenderId, Interval};
use crate::gate::{self, GateReport, Over, Ruling};
use crate::rank::{Kind, Ranking};
use crate::record::schema::Timing;
use crate::record::{ReadError, Run, header, runs_in};
use crate::stats::CONFIDENCE;

/// One round of the history.
pub struct Chapter {
    pub round: Round,
    pub found: Option<Found>,
}

/// What a round's newest run says.
pub struct Found {
    pub run: Run,
    pub ranking: Ranking,
    pub gate: Option<GateReport>,
    pub promoted: Option<Promotion>,
    pub outcomes: Vec<Outcome>,
}

/// A design that became what later rounds must beat.
#[derive(Clone, Debug, PartialEq)]
pub struct Promotion {
    pub contender: ContenderId,
    pub over: ContenderId,
    pub speedup: Interval,
    /// Over where the unbroken chain of promotions began.
    pub total: f64,
    pub since: ContenderId,
}

/// Reads every round in `configs` and its newest run in `results` (or in
/// `results/baselines`), in the order of the rounds' names.
pub fn history(configs: &Path, results: &Path) -> Result<Vec<Chapter>, InputError> {
    let mut chapters = Vec::new();
    for path in round_files(configs)? {
        let round = Round::read(&path)?;
        let found = newest_run_of(&round.name, results)
            .map_err(read_error)?
            .map(|run| find(&round, run))
            .transpose()?;
        chapters.push(Chapter { round, found });
    }
    chain(&mut chapters);
    Ok(chapters)
}

fn read_error(error: ReadError) -> InputError {
    InputError::new(error.to_string(), error.remedy())
}

/// `round1.toml` … `round10.toml` in the order of their numbers, then the rest.
fn round_files(configs: &Path) -> Result<Vec<PathBuf>, InputError> {
    let entries = std::fs::read_dir(configs).map_err(|error| {
        InputError::new(
            format!("cannot read {}: {error}", configs.display()),
            "run dgx where the rounds are, or give their folder with --configs",
        )
    })?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort_by_key(|p| {
        let stem = p.file_stem().and_then(|s| s.to_str()).unwrap_or_default();
        let number = stem
            .strip_prefix("round")
            .and_then(|n| n.parse::<u32>().ok());
        (number.unwrap_or(u32::MAX), stem.to_owned())
    });
    Ok(files)
}

/// The newest readable run of a round. A measured run is preferred to a
/// modelled one, and that to recorded numbers, whatever their dates.
pub fn newest_run_of(round: &str, results: &Path) -> Result<Option<Run>, ReadError> {
    let mut best: Option<(u8, String, PathBuf)> = None;
    for dir in [results.to_owned(), results.join("baselines")] {
        for path in runs_in(&dir) {
            // A broken file of another round is not this round's concern.
            let Ok(header) = header(&path) else { continue };
            if header.name != round {
                continue;
            }
            let weight = match header.device.timing {
                Timing::Measured => 2,
                Timing::Modelled => 1,
                Timing::Recorded => 0,
            };
            let candidate = (weight, header.started, path);
            if best.as_ref().is_none_or(|b| candidate > *b) {
                best = Some(candidate);
            }
        }
    }
    best.map(|(_, _, path)| crate::record::read(&path))
        .transpose()
}

fn find(round: &Round, run: Run) -> Result<Found, InputError> {
    let ranking = Ranking::of(&run);
    let rules = rules_of(&run)?;
    let gate = rules
        .as_ref()
        .and_then(|rules| judged(&run, &ranking, rules));
    let promoted = promotion(&run, &ranking, gate.as_ref());
    let mut names: Vec<String> = round.pitches.iter().map(|p| p.design.clone()).collect();
    // A claim in front matter is told unless a pitch told it already.
    let pitched = |id: &ContenderId| {
        let built = |p: &crate::config::Pitch| p.contender.clone().unwrap_or(p.design.clone());
        let same = |name: String| name == id.as_str() || name == id.variant();
        round.pitches.iter().map(built).any(same)
    };
    let claiming = run.header.contenders.iter().filter(|c| c.claim.is_some());
    names.extend(
        claiming
            .filter(|c| !pitched(&c.id))
            .map(|c| c.id.to_string()),
    );
    let outcomes = outcomes(round, &names, Some((&run, &ranking)));
    Ok(Found {
        run,
        ranking,
        gate,
        promoted,
        outcomes,
    })
}

/// The gate of the config a run was made from: the rules of its day.
pub fn rules_of(run: &Run) -> Result<Option<Gate>, InputError> {
    let config = &run.header.config;
    if config.text.trim().is_empty() {
        return Ok(None);
    }
    let file = SourceFile {
        path: config.path.clone().into(),
        text: config.text.as_str().into(),
    };
    Ok(Round::from_source(file)?.gate)
}

fn judged(run: &Run, ranking: &Ranking, rules: &Gate) -> Option<GateReport> {
    let over = match &rules.over {
        None => run.header.baseline.clone(),
        Some(name) => run.entrants().find(|id| id.as_str() == name)?.clone(),
    };
    // A round with nobody to judge has no gate to pass.
    gate::judge(run, ranking, rules, Over::Contender(&over), false).ok()
}

/// The fastest contender that validated everywhere and passed every rule.
fn promotion(run: &Run, ranking: &Ranking, gate: Option<&GateReport>) -> Option<Promotion> {
    let reference = ranking.reference.clone()?;
    let passed = |id: &ContenderId| match gate {
        None => true,
        Some(report) => {
            let mut own = report
                .findings
                .iter()
                .filter(|f| f.contender == *id)
                .peekable();
            own.peek().is_some() && own.all(|f| f.ruling == Ruling::Passed)
        }
    };
    let promoted = ranking.rows.iter().find(|r| {
        let ahead = r
            .speedup_interval()
            .is_some_and(|i| i.lower.unwrap_or(i.estimate) > 1.0);
        r.place.is_some() && r.kind == Kind::Contender && ahead && passed(&r.contender)
    })?;
    let speedup = ranking
        .compare(run, &reference, &promoted.contender)?
        .geomean;
    Some(Promotion {
        contender: promoted.contender.clone(),
        speedup: speedup.ratio(CONFIDENCE),
        total: speedup.mean.exp(),
        since: reference.clone(),
        over: reference,
    })
}

/// Multiplies promotions where a round started from the one before.
fn chain(chapters: &mut [Chapter]) {
    let mut champion: Option<Promotion> = None;
    for chapter in chapters {
        let Some(found) = &mut chapter.found else {
            continue;
        };
        let Some(promoted) = &mut found.promoted else {
            continue;
        };
        if let Some(before) = champion.filter(|c| c.contender == promoted.over) {
            promoted.total *= before.total;
            promoted.since = before.since;
        }
        champion = Some(promoted.clone());
    }
}

/// The contender a round's newest run promoted.
pub fn winner(round: &str, results: &Path) -> Result<Option<ContenderId>, InputError> {
    let Some(run) = newest_run_of(round, results).map_err(read_error)? else {
        return Ok(None);
    };
    let ranking = Ranking::of(&run);
    let gate = rules_of(&run)?.and_then(|rules| judged(&run, &ranking, &rules));
    let promoted = promotion(&run, &ranking, gate.as_ref());
    // A round that promoted nobody leaves its baseline standing.
    Ok(promoted
        .map(|p| p.contender)
        .or(ranking.reference.filter(|_| ranking.baseline_valid)))
}

/// Puts the winner's name in place of `{ winner_of = … }`, where the named
/// round has a run that has one.
pub fn settle_baseline(round: &mut Round, results: &Path) -> Result<(), InputError> {
    let Baseline::WinnerOf {
        round: earlier,
        span,
    } = &round.baseline
    else {
        return Ok(());
    };
    if let Some(id) = winner(earlier, results)? {
        let selection = crate::config::Selection::parse(id.as_str(), span.clone());
        if let Ok(selection) = selection {
            round.baseline = Baseline::Contender(selection);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::synthetic::Synthetic;

    /// `configs/` with two rounds, `results/` with a run of the first.
    fn workplace(time: f64) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let configs = dir.path().join("configs");
        std::fs::create_dir_all(&configs).unwrap();
        std::fs::create_dir_all(dir.path().join("results/baselines")).unwrap();
        let round = |baseline: &str| {
            format!(
                "question = \"Which?\"\ncontenders = [\"two-pass\", \"interleaved\"]\n\
                 baseline = {baseline}\nshapes = [{{ m = 256, n = 4096, k = 7168 }}]\n\
                 [gate]\ncontenders = [\"interleaved\"]\nmin_geomean = 1.2\n"
            )
        };
        let fourth = round("\"two-pass\"");
        std::fs::write(configs.join("round4.toml"), &fourth).unwrap();
        let fifth = round("{ winner_of = \"round4\" }");
        std::fs::write(configs.join("round5.toml"), fifth).unwrap();
        let mut field = Synthetic::round4();
        field.entries[2].time = time;
        let config = serde_json::to_string(&fourth).unwrap();
        let text = field
            .text()
            .replacen("\"text\":\"\"", &format!("\"text\":{config}"), 1);
        std::fs::write(dir.path().join("results/baselines/r4.jsonl"), text).unwrap();
        dir
    }

    #[test]
    fn a_winner_that_passed_its_gate_becomes_the_next_baseline() {
        let dir = workplace(0.52);
        let results = dir.path().join("results");
        let mut round = Round::read(&dir.path().join("configs/round5.toml")).unwrap();
        settle_baseline(&mut round, &results).unwrap();
        let Baseline::Contender(selection) = &round.baseline else {
            panic!("{:?}", round.baseline);
        };
        assert_eq!(selection.variant, "interleaved");
        let chapters = history(&dir.path().join("configs"), &results).unwrap();
        assert_eq!(chapters.len(), 2);
        let found = chapters[0].found.as_ref().unwrap();
        assert_eq!(
            found.promoted.as_ref().unwrap().contender.as_str(),
            "interleaved"
        );
        assert!(chapters[1].found.is_none());
    }

    #[test]
    fn a_winner_that_failed_its_gate_is_not_promoted() {
        let dir = workplace(0.9);
        let found = winner("round4", &dir.path().join("results")).unwrap();
        assert_eq!(found.unwrap().as_str(), "two-pass");
    }

    #[test]
    fn a_round_never_run_has_no_winner() {
        let dir = workplace(0.52);
        assert_eq!(winner("round9", &dir.path().join("results")).unwrap(), None);
    }
}
