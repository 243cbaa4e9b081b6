//! What a run lacks, by itself and beside an earlier one. A gate that looked
//! away would pass a contender that was dropped or never timed.

use super::judge::GateError;
use super::ruling::{Finding, Rule, Ruling};
use crate::config::Gate;
use crate::domain::{ContenderId, Shape, Status, Timing};
use crate::rank::Ranking;
use crate::record::Run;

/// Why a run is not whole; empty where it is.
pub fn gaps(run: &Run, ranking: &Ranking) -> Vec<String> {
    let mut gaps = Vec::new();
    let recorded = run.timing() == Timing::Recorded;
    match &run.end {
        None if !recorded => gaps.push("it did not end".to_owned()),
        Some(end) if !end.complete => {
            let why = end.reason.as_deref().unwrap_or("no reason is given");
            let line = why.lines().next().unwrap_or_default();
            gaps.push(format!("it was stopped: {line}"));
        }
        _ => {}
    }
    let contenders = || {
        ranking
            .cells
            .iter()
            .filter(|c| !run.is_yardstick(&c.contender))
    };
    let all = contenders().count();
    let unjudged = contenders().filter(|c| c.status.is_none()).count();
    if unjudged > 0 && !recorded {
        gaps.push(format!("{unjudged} of {all} cells have no verdict"));
    }
    let right = |status| status == Some(Status::Ok) || recorded;
    let untimed = contenders()
        .filter(|c| right(c.status) && c.time.is_none())
        .count();
    if untimed > 0 {
        gaps.push(format!(
            "{untimed} of {all} cells are right and have no time"
        ));
    }
    gaps.extend(thin(run));
    if run.timing() == Timing::Scripted {
        gaps.push("its times are scripted, so they prove nothing".to_owned());
    }
    gaps
}

/// Shapes named before the rest is counted.
const NAMED: usize = 8;
/// Blocks of a process that counts: its time limit ends it after two at the earliest.
const FEWEST: u64 = 2;

/// Shapes that were timed in fewer processes than the run set out to: with
/// less of what differs between processes, everything would look surer.
fn thin(run: &Run) -> Option<String> {
    if !run.timing().sampled() {
        return None;
    }
    let settings = &run.header.settings;
    let whole = |contender: &ContenderId, shape: &Shape| {
        let times = run.times(contender, &shape.name);
        let enough = |count: u64| count >= FEWEST;
        let processes = times.processes.iter();
        processes.filter(|(_, m)| enough(m.count)).count()
    };
    let least = |shape: &Shape| {
        let contenders = run.header.contenders.iter().map(|c| &c.id);
        contenders
            .filter(|id| run.status(id, &shape.name) == Some(Status::Ok))
            .filter(|id| run.samples(id, &shape.name).is_some())
            .map(|id| whole(id, shape))
            .min()
    };
    let lacking: Vec<(&str, usize)> = (run.header.shapes.iter())
        .filter_map(|shape| Some((shape.name.as_str(), least(shape)?)))
        .filter(|(_, has)| *has < settings.processes as usize)
        .collect();
    let mut list: Vec<String> = (lacking.iter().take(NAMED))
        .map(|(name, has)| format!("{name} in {has}"))
        .collect();
    if lacking.len() > NAMED {
        list.push(format!("{} more shapes in too few", lacking.len() - NAMED));
    }
    (!list.is_empty()).then(|| {
        format!(
            "it was to be timed in {} processes of {FEWEST} blocks or more, and was on {}",
            settings.processes,
            list.join(", ")
        )
    })
}

/// What the baseline run has and this one lacks.
pub fn lacking(
    run: &Run,
    base: &Run,
    base_ranking: &Ranking,
    gate: &Gate,
) -> Result<Vec<Finding>, GateError> {
    let lacking = |contender: &ContenderId, shape: Option<&str>, found: &str| Finding {
        rule: Rule::Complete,
        contender: contender.clone(),
        shape: shape.map(str::to_owned),
        ruling: Ruling::Undecided,
        wanted: "as in the baseline run".to_owned(),
        found: found.to_owned(),
        speedup: None,
        reason: Some("what is not there cannot be judged".to_owned()),
    };
    let common = |s: &&Shape| run.shape(&s.name) == Some(*s);
    if base.header.shapes.iter().filter(common).count() == 0 {
        return Err(GateError::NoCommonShape);
    }
    let mut findings = Vec::new();
    for shape in base.header.shapes.iter().filter(|s| !common(s)) {
        let found = match run.shape(&shape.name) {
            Some(_) => "other groups",
            None => "absent",
        };
        findings.push(lacking(&run.header.baseline, Some(&shape.name), found));
    }
    let asked = |id: &ContenderId| {
        let named = |n: &String| id.as_str() == n || id.variant() == n;
        gate.contenders.is_empty() || gate.contenders.iter().any(named)
    };
    for row in base_ranking.rows.iter().filter(|r| r.place.is_some()) {
        let id = &row.contender;
        if asked(id) && run.contender(id).is_none() {
            findings.push(lacking(id, None, "absent"));
        }
    }
    Ok(findings)
}
