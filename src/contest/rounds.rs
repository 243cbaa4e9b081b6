//! The history of the rounds: each round's question, the result of its newest run, the promoted
//! design and its gain.
//!
//! A design is promoted only by a complete run of the round as it is written now, in which it
//! validated on every shape and passed the round's gate; of several such designs, the fastest.

use std::path::{Path, PathBuf};

use super::jury::{Outcome, outcomes};
use crate::present::gap;
use dgx_core::config::{Baseline, Gate, Round, Selection};
use dgx_core::diagnostic::InputError;
use dgx_core::domain::{ContenderId, Interval, Shape, Timing};
use dgx_core::files;
use dgx_core::gate::{self, ComparedWith, GateReport, Ruling};
use dgx_core::rank::{EntrantKind, Ranking};
use dgx_core::record::schema::ContenderRecord;
use dgx_core::record::{ReadError, Run, header, is_called_after, runs_in};
use dgx_core::stats::CONFIDENCE;

/// One round of the history.
pub(crate) struct RoundHistory {
    pub round: Round,
    pub found: Option<RoundResult>,
}

/// The result of a round's newest run: of the runs that count, or if none does, of all.
pub(crate) struct RoundResult {
    pub evidence: Evidence,
    pub gate: Option<GateReport>,
    pub promoted: Option<Promotion>,
    pub outcomes: Vec<Outcome>,
}

/// A design that later rounds must beat.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Promotion {
    pub contender: ContenderId,
    pub over: ContenderId,
    pub speedup: Interval,
    /// Over the beginning of the unbroken chain of promotions.
    pub total: f64,
    pub since: ContenderId,
}

/// Reads every round in `configs` and its newest run in `results` (or in
/// `results/baselines`), in the order of the rounds' names. A file that is not a round is passed
/// over with a warning.
pub(crate) fn history(configs: &Path, results: &Path) -> Result<Vec<RoundHistory>, InputError> {
    let mut chapters = Vec::new();
    for path in round_files(configs)? {
        let round = match Round::read(&path) {
            Ok(round) => round,
            Err(error) => {
                remark!("warning: passed over: {error}; {}", error.remedy());
                continue;
            }
        };
        let found = evidence(&round, results)?.map(|e| find(&round, e));
        chapters.push(RoundHistory { round, found });
    }
    chain(&mut chapters);
    Ok(chapters)
}

fn read_error(error: ReadError) -> InputError {
    InputError::new(error.to_string(), error.remedy())
}

/// `round1.toml` … `round10.toml` in the order of their numbers, then the rest.
fn round_files(configs: &Path) -> Result<Vec<PathBuf>, InputError> {
    std::fs::read_dir(configs).map_err(|error| {
        InputError::new(
            format!("cannot read {}: {error}", configs.display()),
            "run dgx where the rounds are, or give their folder with --configs",
        )
    })?;
    let mut files = files::ending_in(configs, "toml");
    files.sort_by_key(|p| {
        let stem = p.file_stem().and_then(|s| s.to_str()).unwrap_or_default();
        let number = stem
            .strip_prefix("round")
            .and_then(|n| n.parse::<u32>().ok());
        (number.unwrap_or(u32::MAX), stem.to_owned())
    });
    Ok(files)
}

/// The run that represents a round.
pub(crate) struct Evidence {
    pub run: Run,
    pub ranking: Ranking,
    /// Why the run cannot promote a design; empty if it counts.
    pub departures: Vec<String>,
    /// Newer runs that do not count, each with its reasons.
    pub skipped: Vec<(PathBuf, Vec<String>)>,
}

/// The newest run of a round that counts, or if none does, the newest. Measured runs come before
/// modelled ones, and those before recorded numbers, whatever their dates.
pub(crate) fn evidence(round: &Round, results: &Path) -> Result<Option<Evidence>, InputError> {
    let mut skipped = Vec::new();
    let mut first = None;
    for path in runs_of(&round.name, results) {
        let run = dgx_core::record::read(&path).map_err(read_error)?;
        let ranking = Ranking::of(&run);
        let departures = departures(round, &run, &ranking);
        let counts = departures.is_empty();
        let mut evidence = Evidence {
            run,
            ranking,
            departures,
            skipped: Vec::new(),
        };
        if counts {
            evidence.skipped = skipped;
            return Ok(Some(evidence));
        }
        skipped.push((path, evidence.departures.clone()));
        first.get_or_insert(evidence);
    }
    Ok(first)
}

/// The run files of a round, in the order in which they are tried.
fn runs_of(round: &str, results: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for dir in [results.to_owned(), results.join("baselines")] {
        for path in runs_in(&dir) {
            let header = match header(&path) {
                Ok(header) => header,
                // A broken file of another round is not this round's concern.
                Err(error) => {
                    if is_called_after(&path, round) {
                        remark!("warning: passed over: {error}; {}", error.remedy());
                    }
                    continue;
                }
            };
            if header.name != round {
                continue;
            }
            let weight = match header.device.timing {
                Timing::Measured => 2,
                Timing::Modelled => 1,
                Timing::Recorded => 0,
                // Proves nothing about any design.
                Timing::Scripted => continue,
            };
            let started = header.started.parse::<jiff::Timestamp>().ok();
            found.push((weight, started, path));
        }
    }
    found.sort();
    found.into_iter().rev().map(|(_, _, path)| path).collect()
}

/// Why a run is not a complete run of the round as it is written; empty if it is.
fn departures(round: &Round, run: &Run, ranking: &Ranking) -> Vec<String> {
    let header = &run.header;
    let gaps = gate::gaps(run, ranking);
    let mut why: Vec<String> = gaps.iter().map(gap).collect();
    if !header.departures.is_empty() {
        why.push(format!("it was swept with {}", header.departures.join(" ")));
    }
    let of = |selection: &Selection, id: &ContenderRecord| {
        let fixed = |(name, value): (&String, &i64)| id.params.get(name) == Some(value);
        selection.variant == id.variant && selection.params.iter().all(fixed)
    };
    let baseline = |id: &ContenderRecord| match &round.baseline {
        Baseline::Contender(selection) => of(selection, id),
        Baseline::WinnerOf { .. } => id.id == header.baseline,
    };
    let swept = |s: &&Selection| header.contenders.iter().any(|c| of(s, c));
    let named = |s: &Selection| ContenderId::new(&s.variant, &s.params).to_string();
    let absent = round.contenders.iter().filter(|s| !swept(s));
    let absent: Vec<String> = absent.map(named).collect();
    if !absent.is_empty() {
        why.push(format!("{} did not compete", absent.join(", ")));
    }
    let listed = |c: &&ContenderRecord| round.contenders.iter().any(|s| of(s, c)) || baseline(c);
    let strangers: Vec<&str> = header
        .contenders
        .iter()
        .filter(|c| !listed(c))
        .map(|c| c.id.as_str())
        .collect();
    if !strangers.is_empty() {
        why.push(format!("{} is not of the round", strangers.join(", ")));
    }
    if !run.contender(&header.baseline).is_some_and(baseline) {
        why.push(format!("its baseline was {}", header.baseline));
    }
    let same = |s: &Shape| run.shape(&s.name) == Some(s);
    if header.shapes.len() != round.shapes.len() || !round.shapes.iter().all(same) {
        why.push("its shapes are not those of the round".to_owned());
    }
    let (settings, asked) = (&header.settings, &round.measurement);
    let fewer = settings.min_blocks < asked.min_blocks || settings.processes < asked.processes;
    if run.timing().sampled() && fewer {
        why.push(format!(
            "it took {} blocks in {} processes, and the round asks for {} in {}",
            settings.min_blocks, settings.processes, asked.min_blocks, asked.processes
        ));
    }
    why
}

fn find(round: &Round, evidence: Evidence) -> RoundResult {
    let Evidence { run, ranking, .. } = &evidence;
    let gate = round
        .gate
        .as_ref()
        .and_then(|rules| judged(run, ranking, rules));
    let promoted = match evidence.departures.is_empty() {
        true => promotion(round, run, ranking, gate.as_ref()),
        false => None,
    };
    let mut names: Vec<String> = round.pitches.iter().map(|p| p.design.clone()).collect();
    // A claim in front matter counts unless a pitch replaces it.
    let pitched = |id: &ContenderId| {
        let built = |p: &dgx_core::config::Pitch| p.contender.clone().unwrap_or(p.design.clone());
        let same = |name: String| name == id.as_str() || name == id.variant();
        round.pitches.iter().map(built).any(same)
    };
    let claiming = run.header.contenders.iter().filter(|c| c.claim.is_some());
    names.extend(
        claiming
            .filter(|c| !pitched(&c.id))
            .map(|c| c.id.to_string()),
    );
    let outcomes = outcomes(round, &names, Some((run, ranking)));
    RoundResult {
        evidence,
        gate,
        promoted,
        outcomes,
    }
}

/// The gate in the config that a run was made from.
pub(crate) fn rules_of(run: &Run) -> Result<Option<Gate>, InputError> {
    let config = &run.header.config;
    if config.text.trim().is_empty() {
        return Ok(None);
    }
    Ok(config.round()?.gate)
}

fn judged(run: &Run, ranking: &Ranking, rules: &Gate) -> Option<GateReport> {
    let over = match &rules.over {
        None => run.header.baseline.clone(),
        Some(name) => run.entrants().find(|id| id.as_str() == name)?.clone(),
    };
    // A contender that cannot be judged is not promoted.
    gate::judge(run, ranking, rules, ComparedWith::Contender(&over), false).ok()
}

/// The fastest contender that validated on every shape and passed every rule.
fn promotion(
    round: &Round,
    run: &Run,
    ranking: &Ranking,
    gate: Option<&GateReport>,
) -> Option<Promotion> {
    let reference = ranking.reference.clone()?;
    let passed = |id: &ContenderId| match gate {
        None => round.gate.is_none(),
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
        r.place.is_some() && r.kind == EntrantKind::Contender && ahead && passed(&r.contender)
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
fn chain(chapters: &mut [RoundHistory]) {
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

/// The contender that a complete run of the round promoted.
fn winner(round: &Round, results: &Path) -> Result<Option<ContenderId>, InputError> {
    let Some(found) = evidence(round, results)?.map(|e| find(round, e)) else {
        return Ok(None);
    };
    if !found.evidence.departures.is_empty() {
        return Ok(None);
    }
    // A round that promoted none keeps its baseline.
    let ranking = found.evidence.ranking;
    let standing = ranking.reference.filter(|_| ranking.baseline_valid);
    Ok(found.promoted.map(|p| p.contender).or(standing))
}

/// The round of this name: the file beside the one that names it.
fn beside(round: &Round, name: &str) -> Result<Option<Round>, InputError> {
    let path = round.file.path.with_file_name(format!("{name}.toml"));
    match path.is_file() {
        true => Ok(Some(Round::read(&path)?).filter(|r| r.name == name)),
        false => Ok(None),
    }
}

/// Replaces `{ winner_of = … }` by the winner's name, if a run of the named round has a winner.
pub(crate) fn settle_baseline(round: &mut Round, results: &Path) -> Result<(), InputError> {
    let Baseline::WinnerOf {
        round: earlier,
        span,
    } = &round.baseline
    else {
        return Ok(());
    };
    let Some(earlier) = beside(round, earlier)? else {
        return Ok(());
    };
    if let Some(id) = winner(&earlier, results)? {
        let selection = Selection::parse(id.as_str(), span.clone());
        if let Ok(selection) = selection {
            round.baseline = Baseline::Contender(selection);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::record::synthetic::Synthetic;

    /// `configs/` with two rounds, `results/` with a run of the first in which interleaved takes
    /// this share of the baseline's time.
    fn workplace(time: f64) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let configs = dir.path().join("configs");
        std::fs::create_dir_all(&configs).unwrap();
        std::fs::create_dir_all(dir.path().join("results/baselines")).unwrap();
        let field = field(time);
        let names: Vec<String> = field
            .entries
            .iter()
            .map(|e| format!("{:?}", e.name))
            .collect();
        let groups = |s: &Shape| {
            let all: Vec<String> = s.groups.iter().map(|g| g.to_toml()).collect();
            format!("{{ name = {:?}, groups = [{}] }}", s.name, all.join(", "))
        };
        let shapes: Vec<String> = field.shapes.iter().map(groups).collect();
        let round = |baseline: &str| {
            format!(
                "question = \"Which?\"\ncontenders = [{}]\nbaseline = {baseline}\n\
                 shapes = [{}]\n[measure]\nmin_blocks = 2\nprocesses = 1\n\
                 [gate]\ncontenders = [\"interleaved\"]\nmin_geomean = 1.2\n",
                names.join(", "),
                shapes.join(", ")
            )
        };
        std::fs::write(configs.join("round4.toml"), round("\"two-pass\"")).unwrap();
        let fifth = round("{ winner_of = \"round4\" }");
        std::fs::write(configs.join("round5.toml"), fifth).unwrap();
        std::fs::write(dir.path().join("results/baselines/r4.jsonl"), field.text()).unwrap();
        dir
    }

    fn field(time: f64) -> Synthetic {
        let mut field = Synthetic::round4();
        field.entries[2].time = time;
        field
    }

    /// The baseline of round 5.
    fn baseline(dir: &tempfile::TempDir) -> Option<String> {
        let mut round = Round::read(&dir.path().join("configs/round5.toml")).unwrap();
        settle_baseline(&mut round, &dir.path().join("results")).unwrap();
        match round.baseline {
            Baseline::Contender(selection) => Some(selection.variant),
            Baseline::WinnerOf { .. } => None,
        }
    }

    fn chapters(dir: &tempfile::TempDir) -> Vec<RoundHistory> {
        history(&dir.path().join("configs"), &dir.path().join("results")).unwrap()
    }

    #[test]
    fn a_winner_that_passed_its_gate_becomes_the_next_baseline() {
        let dir = workplace(0.52);
        assert_eq!(baseline(&dir).as_deref(), Some("interleaved"));
        let chapters = chapters(&dir);
        assert_eq!(chapters.len(), 2);
        let found = chapters[0].found.as_ref().unwrap();
        assert_eq!(
            found.promoted.as_ref().unwrap().contender.as_str(),
            "interleaved"
        );
        assert!(chapters[1].found.is_none());
    }

    #[test]
    fn a_broken_file_hides_no_other_round() {
        let dir = workplace(0.52);
        std::fs::write(dir.path().join("configs/a.toml"), "question = 3\n").unwrap();
        let names: Vec<String> = chapters(&dir).into_iter().map(|c| c.round.name).collect();
        assert_eq!(names, ["round4", "round5"]);
    }

    #[test]
    fn a_winner_that_failed_its_gate_is_not_promoted() {
        assert_eq!(baseline(&workplace(0.9)).as_deref(), Some("two-pass"));
    }

    #[test]
    fn a_round_never_run_has_no_winner() {
        let dir = workplace(0.52);
        std::fs::remove_file(dir.path().join("results/baselines/r4.jsonl")).unwrap();
        assert_eq!(baseline(&dir), None);
    }

    #[test]
    fn a_scripted_run_is_no_evidence() {
        let dir = workplace(0.52);
        let mut scripted = field(0.9);
        scripted.entries[1].time = 0.3;
        scripted.timing = Timing::Scripted;
        let newer = scripted
            .text()
            .replacen("\"started\":\"20", "\"started\":\"21", 1);
        std::fs::write(dir.path().join("results/r4.jsonl"), newer).unwrap();
        assert_eq!(baseline(&dir).as_deref(), Some("interleaved"));
        let found_chapters = chapters(&dir);
        let found = found_chapters[0].found.as_ref().unwrap();
        assert_eq!(found.evidence.run.timing(), Timing::Measured);
        std::fs::remove_file(dir.path().join("results/baselines/r4.jsonl")).unwrap();
        assert_eq!(baseline(&dir), None);
        assert!(chapters(&dir)[0].found.is_none(), "it is no evidence");
    }

    #[test]
    fn only_a_complete_run_of_the_round_rewrites_history() {
        // In all of these sequential would win.
        let partial = || {
            let mut field = field(0.9);
            field.entries[1].time = 0.3;
            field
        };
        let mut fewer_shapes = partial();
        fewer_shapes.shapes.truncate(2);
        let mut fewer_contenders = partial();
        fewer_contenders.entries.remove(2);
        let mut strangers = partial();
        strangers.entries[2].name = "somebody";
        let whole = partial().text();
        let end = whole.trim_end().rfind('\n').unwrap() + 1;
        let without = |from: &str, to: &str| {
            assert!(whole.contains(from), "{from}");
            whole.replacen(from, to, 1)
        };
        let only = "\"departures\":[\"--only sequential\"],\"settings\":";
        let cases = [
            ("--only sequential", without("\"settings\":", only)),
            ("its shapes are not", fewer_shapes.text()),
            ("interleaved did not compete", fewer_contenders.text()),
            ("somebody is not of the round", strangers.text()),
            ("it did not end", whole[..end].to_owned()),
            (
                "it was stopped",
                without("\"complete\":true", "\"complete\":false"),
            ),
            (
                "its baseline was interleaved",
                // Its second entry changes too.
                without("\"baseline\":\"two-pass\"", "\"baseline\":\"interleaved\"")
                    .replace("\"two-pass\",\"arm\":1", "\"interleaved\",\"arm\":1"),
            ),
        ];
        for (why, text) in cases {
            let dir = workplace(0.52);
            let newer = text.replacen("\"started\":\"20", "\"started\":\"21", 1);
            assert_ne!(newer, text);
            let path = dir.path().join("results/r4.jsonl");
            std::fs::write(&path, newer).unwrap();
            assert_eq!(baseline(&dir).as_deref(), Some("interleaved"), "{why}");
            let found_chapters = chapters(&dir);
            let found = found_chapters[0].found.as_ref().unwrap();
            assert_eq!(found.evidence.skipped.len(), 1, "{why}");
            assert!(
                found.evidence.skipped[0].1.join("; ").contains(why),
                "{:?}",
                found.evidence.skipped
            );
            // Alone it is shown, and promotes nothing.
            std::fs::remove_file(dir.path().join("results/baselines/r4.jsonl")).unwrap();
            assert_eq!(baseline(&dir), None, "{why}");
            let found_chapters = chapters(&dir);
            assert!(
                found_chapters[0].found.as_ref().unwrap().promoted.is_none(),
                "{why}"
            );
        }
        // A complete one that is newer does.
        let dir = workplace(0.52);
        let newer = field(0.9)
            .text()
            .replacen("\"started\":\"20", "\"started\":\"21", 1);
        std::fs::write(dir.path().join("results/r4.jsonl"), newer).unwrap();
        assert_eq!(baseline(&dir).as_deref(), Some("two-pass"));
    }
}
