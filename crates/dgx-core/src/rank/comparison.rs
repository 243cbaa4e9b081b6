//! Two contenders side by side: within one run (paired by block) or across two.

use super::{Judgement, Margin, Ranking};
use crate::domain::ContenderId;
use crate::record::Run;
use crate::stats::{Contrast, Estimates, LogEstimate, unpaired};

/// ln(time of base / time of candidate): positive if the candidate is faster.
#[derive(Clone, Debug)]
pub struct Comparison {
    pub shapes: Vec<(String, LogEstimate)>,
    pub geomean: LogEstimate,
    /// The smallest detectable difference in the mean, and on each shape.
    pub margin: Margin,
    margins: Vec<Margin>,
}

impl Comparison {
    /// The judgement of the mean.
    pub fn judgement(&self) -> Judgement {
        self.margin.judge(&self.geomean)
    }

    /// Each shape, its ratio, and the judgement of it.
    pub fn judged(&self) -> impl Iterator<Item = (&str, &LogEstimate, Judgement)> {
        let each = self.shapes.iter().zip(&self.margins);
        each.map(|((shape, estimate), margin)| (shape.as_str(), estimate, margin.judge(estimate)))
    }

    pub fn shape(&self, name: &str) -> Option<&LogEstimate> {
        self.shapes.iter().find(|(s, _)| s == name).map(|(_, e)| e)
    }
}

impl Ranking {
    /// `candidate` over `base`, on the shapes where both are valid; `None` if there is no such
    /// shape.
    pub fn compare(
        &self,
        run: &Run,
        base: &ContenderId,
        candidate: &ContenderId,
    ) -> Option<Comparison> {
        if run.tool.is_some() {
            let side = |contender| ComparedSide::new(run, self, contender);
            return compare_runs(side(base), side(candidate));
        }
        let (shapes, estimates) = self.paired(run, base, candidate)?;
        let names = || shapes.iter().map(|s| run.header.shapes[*s].name.clone());
        let margin = |shape: Option<&str>| Margin::within(run, self, shape);
        Some(Comparison {
            margin: margin(None),
            margins: names().map(|name| margin(Some(&name))).collect(),
            shapes: names().zip(estimates.shapes).collect(),
            geomean: estimates.geomean,
        })
    }

    /// The same by the shapes' indices.
    pub(super) fn paired(
        &self,
        run: &Run,
        base: &ContenderId,
        candidate: &ContenderId,
    ) -> Option<(Vec<usize>, Estimates)> {
        let arms = (run.arm(base)?, run.arm(candidate)?);
        let logs = |id: &ContenderId| {
            let cells = self.cells_of(id).iter();
            cells.map(|c| c.time.as_ref().map(|t| t.log.mean))
        };
        let both = logs(base).zip(logs(candidate)).enumerate();
        let (shapes, points): (Vec<usize>, Vec<LogEstimate>) = both
            .filter_map(|(shape, (b, c))| Some((shape, LogEstimate::point(b? - c?))))
            .unzip();
        let contrasts: Vec<Contrast> = shapes
            .iter()
            .map(|s| run.tally.ratios(*s, arms.0, arms.1))
            .collect();
        // Without common blocks on some shape nothing can be paired.
        let estimates = Estimates::of(&contrasts).or_else(|| of_points(points))?;
        Some((shapes, estimates))
    }
}

/// From numbers without samples; `None` if there are none.
fn of_points(shapes: Vec<LogEstimate>) -> Option<Estimates> {
    let sum: f64 = shapes.iter().map(|s| s.mean).sum();
    let mean = sum / shapes.len() as f64;
    (!shapes.is_empty()).then_some(Estimates {
        shapes,
        geomean: LogEstimate::point(mean),
    })
}

/// One side of a comparison across runs.
#[derive(Clone, Copy)]
pub struct ComparedSide<'a> {
    pub run: &'a Run,
    pub ranking: &'a Ranking,
    pub contender: &'a ContenderId,
}

/// Across two runs: their blocks cannot be paired, so each side's noise counts in full and drift
/// between the runs is not removed. Shapes are matched by name and must have the same groups.
pub fn compare_runs(base: ComparedSide, candidate: ComparedSide) -> Option<Comparison> {
    let mut shapes = Vec::new();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for shape in &candidate.run.header.shapes {
        let same = base.run.shape(&shape.name).is_some_and(|s| s == shape);
        let (true, Some(b), Some(c)) = (same, base.time(&shape.name), candidate.time(&shape.name))
        else {
            continue;
        };
        shapes.push((shape.name.clone(), unpaired(&b, &c)));
        before.push((base.run.times(base.contender, &shape.name), b));
        after.push((candidate.run.times(candidate.contender, &shape.name), c));
    }
    let geomean = unpaired(&overall(&before)?, &overall(&after)?);
    let margin = |shape: Option<&str>| Margin::between(base.side(), candidate.side(), shape);
    let margins = shapes.iter().map(|(name, _)| margin(Some(name))).collect();
    Some(Comparison {
        margin: margin(None),
        margins,
        shapes,
        geomean,
    })
}

impl<'a> ComparedSide<'a> {
    pub fn new(run: &'a Run, ranking: &'a Ranking, contender: &'a ContenderId) -> Self {
        Self {
            run,
            ranking,
            contender,
        }
    }

    fn side(&self) -> (&'a Run, &'a Ranking) {
        (self.run, self.ranking)
    }

    fn time(&self, shape: &str) -> Option<LogEstimate> {
        let cell = self.ranking.cell(self.contender, shape)?;
        Some(cell.time.as_ref()?.log)
    }
}

/// The mean over shapes, from samples if every shape has them; `None` without shapes.
fn overall(shapes: &[(Contrast, LogEstimate)]) -> Option<LogEstimate> {
    let contrasts: Vec<Contrast> = shapes.iter().map(|(c, _)| c.clone()).collect();
    let points = || of_points(shapes.iter().map(|(_, e)| *e).collect());
    Some(Estimates::of(&contrasts).or_else(points)?.geomean)
}
