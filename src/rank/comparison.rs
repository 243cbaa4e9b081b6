//! Two contenders side by side: within one run (paired by block) or across two.

use std::slice;

use super::Ranking;
use crate::domain::ContenderId;
use crate::record::Run;
use crate::stats::{Arm, LogEstimate, RESAMPLES, SEED, bootstrap, log_ratios, log_times, unpaired};

/// ln(time of base / time of candidate): positive where the candidate is faster.
#[derive(Clone, Debug)]
pub struct Comparison {
    pub shapes: Vec<(String, LogEstimate)>,
    pub geomean: LogEstimate,
}

impl Comparison {
    pub fn shape(&self, name: &str) -> Option<&LogEstimate> {
        self.shapes.iter().find(|(s, _)| s == name).map(|(_, e)| e)
    }
}

/// `candidate` over `base` on those of `shapes` where both are timed; `None`
/// where there is no such shape. Cells must have been found valid before:
/// `ranking` says which are.
fn paired(
    run: &Run,
    valid: impl Fn(&ContenderId, &str) -> Option<LogEstimate>,
    base: &ContenderId,
    candidate: &ContenderId,
) -> Option<Comparison> {
    let mut names = Vec::new();
    let mut points = Vec::new();
    let mut contrasts = Vec::new();
    for shape in &run.header.shapes {
        let (Some(b), Some(c)) = (valid(base, &shape.name), valid(candidate, &shape.name)) else {
            continue;
        };
        let (b_arm, c_arm) = (Arm::first(base), Arm::first(candidate));
        contrasts.push(log_ratios(&run.blocks, &shape.name, &b_arm, &c_arm));
        points.push(LogEstimate::point(b.mean - c.mean));
        names.push(shape.name.clone());
    }
    if names.is_empty() {
        return None;
    }
    // Without a block in common on some shape there is nothing to pair.
    let (shapes, geomean) = match bootstrap(&contrasts, RESAMPLES, SEED) {
        Some(estimates) => (estimates.shapes, estimates.geomean),
        None => {
            let mean = points.iter().map(|p| p.mean).sum::<f64>() / points.len() as f64;
            (points, LogEstimate::point(mean))
        }
    };
    Some(Comparison {
        shapes: names.into_iter().zip(shapes).collect(),
        geomean,
    })
}

impl Ranking {
    /// `candidate` over `base`, on the shapes where both are valid.
    pub fn compare(
        &self,
        run: &Run,
        base: &ContenderId,
        candidate: &ContenderId,
    ) -> Option<Comparison> {
        let valid = |c: &ContenderId, s: &str| Some(self.cell(c, s)?.time.as_ref()?.log);
        paired(run, valid, base, candidate)
    }
}

/// One side of a comparison across runs.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    pub run: &'a Run,
    pub ranking: &'a Ranking,
    pub contender: &'a ContenderId,
}

/// Across two runs: nothing pairs their blocks, so each side's noise counts in
/// full and drift between the runs is not removed. Shapes are matched by name
/// and must have the same groups.
pub fn compare_runs(base: Side, candidate: Side) -> Option<Comparison> {
    let mut shapes = Vec::new();
    let (mut base_sides, mut candidate_sides) = (Vec::new(), Vec::new());
    for shape in &candidate.run.header.shapes {
        let same = base.run.shape(&shape.name).is_some_and(|s| s == shape);
        let (true, Some(b), Some(c)) =
            (same, side(base, &shape.name), side(candidate, &shape.name))
        else {
            continue;
        };
        shapes.push((shape.name.clone(), unpaired(&b.1, &c.1)));
        base_sides.push(b);
        candidate_sides.push(c);
    }
    if shapes.is_empty() {
        return None;
    }
    let geomean = unpaired(&overall(&base_sides), &overall(&candidate_sides));
    Some(Comparison { shapes, geomean })
}

type TimedShape = (crate::stats::Contrast, LogEstimate);

fn side(side: Side, shape: &str) -> Option<TimedShape> {
    let time = side.ranking.cell(side.contender, shape)?.time.as_ref()?;
    let contrast = log_times(&side.run.blocks, shape, &Arm::first(side.contender));
    let log = match bootstrap(slice::from_ref(&contrast), RESAMPLES, SEED) {
        Some(estimates) => estimates.geomean,
        None => time.log,
    };
    Some((contrast, log))
}

/// The mean over shapes, from samples where every shape has them.
fn overall(shapes: &[TimedShape]) -> LogEstimate {
    let contrasts: Vec<_> = shapes.iter().map(|(c, _)| c.clone()).collect();
    match bootstrap(&contrasts, RESAMPLES, SEED) {
        Some(estimates) => estimates.geomean,
        None => {
            let sum: f64 = shapes.iter().map(|(_, e)| e.mean).sum();
            LogEstimate::point(sum / shapes.len() as f64)
        }
    }
}
