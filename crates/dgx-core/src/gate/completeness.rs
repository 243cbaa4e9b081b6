//! What a run lacks, by itself and compared with an earlier one. A gate that ignored this would
//! pass a contender that was dropped or never timed.

use super::choice::GateError;
use super::gap::{Gap, Impossible};
use super::ruling::{Finding, Rule, Ruling};
use crate::config::Gate;
use crate::domain::{ContenderId, Shape, Status, Timing};
use crate::rank::Ranking;
use crate::record::Run;

/// Why a run is incomplete; empty if it is complete.
pub fn gaps(run: &Run, ranking: &Ranking) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let recorded = run.timing() == Timing::Recorded;
    match &run.end {
        None if !recorded => gaps.push(Gap::NotEnded),
        Some(end) if !end.complete => {
            let line = |why: &String| why.lines().next().unwrap_or_default().to_owned();
            gaps.push(Gap::Stopped(end.reason.as_ref().map(line)));
        }
        _ => {}
    }
    let contenders = || {
        ranking
            .cells
            .iter()
            .filter(|c| !run.is_yardstick(&c.contender))
    };
    let of = contenders().count();
    let unjudged = contenders().filter(|c| c.status.is_none()).count();
    if unjudged > 0 && !recorded {
        gaps.push(Gap::Unjudged {
            cells: unjudged,
            of,
        });
    }
    let right = |status: Option<Status>| match status {
        Some(status) => status == Status::Ok,
        None => recorded,
    };
    let untimed = contenders()
        .filter(|c| right(c.status) && c.time.is_none())
        .count();
    if untimed > 0 {
        gaps.push(Gap::Untimed { cells: untimed, of });
    }
    gaps.extend(too_few_processes(run));
    gaps.extend(holes(run));
    gaps.extend(run.header.shard.as_ref().map(|s| Gap::Shard {
        number: s.number,
        of: s.of,
    }));
    if contenders().any(|c| c.status == Some(Status::NotValidated)) {
        gaps.push(Gap::NotValidated);
    }
    let impossible = impossible(run, ranking);
    if !impossible.is_empty() {
        gaps.push(Gap::Impossible(impossible));
    }
    if run.timing() == Timing::Scripted {
        gaps.push(Gap::Scripted);
    }
    gaps
}

/// Times below the minimum that the recorded device needs at its highest clock. A sweep rejects
/// them; a file that has them was edited, or names another device than its own.
pub fn impossible(run: &Run, ranking: &Ranking) -> Vec<Impossible> {
    let ceiling = run.header.device.ceiling();
    let Some(ceiling) = ceiling.filter(|_| run.timing() != Timing::Scripted) else {
        return Vec::new();
    };
    let cells = ranking.cells.iter().filter_map(|cell| {
        let time = cell.time.as_ref()?.estimate();
        let (least, _) = ceiling.floor(&run.least_work(&cell.contender, &cell.shape)?);
        (time.0 < least.0).then(|| Impossible {
            contender: cell.contender.clone(),
            shape: cell.shape.clone(),
            time,
            least,
        })
    });
    cells.collect()
}

/// The fewest blocks with which a process counts: its time limit ends it after two at the earliest.
const FEWEST: u64 = 2;

/// Shapes that were timed in fewer processes than planned: with less variation between processes,
/// all results would look more certain.
fn too_few_processes(run: &Run) -> Option<Gap> {
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
    let shapes: Vec<(String, usize)> = (run.header.shapes.iter())
        .filter_map(|shape| Some((shape.name.clone(), least(shape)?)))
        .filter(|(_, has)| *has < settings.processes as usize)
        .collect();
    (!shapes.is_empty()).then_some(Gap::Thin {
        processes: settings.processes,
        blocks: FEWEST,
        shapes,
    })
}

/// Blocks that were deleted: the rest may be a selection.
pub fn holes(run: &Run) -> Option<Gap> {
    let names = run.header.shapes.iter().map(|shape| &shape.name);
    let holes: Vec<(String, u64)> = names
        .map(|name| (name.clone(), run.missing_blocks(name)))
        .filter(|(_, missing)| *missing > 0)
        .collect();
    (!holes.is_empty()).then_some(Gap::Holes(holes))
}

/// What the baseline run has and this one lacks.
pub(super) fn lacking(
    run: &Run,
    base: &Run,
    base_ranking: &Ranking,
    gate: &Gate,
) -> Result<Vec<Finding>, GateError> {
    let lacking = |contender: &ContenderId, shape: Option<&str>, found: &str| Finding {
        ruling: Ruling::Undecided,
        wanted: "as in the baseline run".to_owned(),
        found: found.to_owned(),
        reason: Some("missing cells cannot be judged".to_owned()),
        ..Finding::passed(Rule::Complete, contender, shape)
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
