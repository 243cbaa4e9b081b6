//! Judges a whole run: which contenders are correct, which is fastest, and how certain that is.
//! Every table, export, gate and report reads its results from here, so they cannot disagree.

mod build;
mod cell;
mod comparable;
mod comparison;
mod margin;
mod repeat;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use crate::domain::{ContenderId, Interval, Status};
use crate::record::{Resources, Run};
use crate::stats::{Detectable, LogEstimate, RankPosition};

pub use cell::{Cell, Timed};
pub use comparable::{Mismatch, describe, mismatch, same_card};
pub use comparison::{ComparedSide, Comparison, compare_runs};
pub use margin::Margin;
pub use margin::SystematicError;
pub use margin::{GRAVE, Judgement, limit};
pub use repeat::{Disagreement, Repeat, Repeated, Spread};

/// One run, judged.
#[derive(Clone, Debug)]
pub struct Ranking {
    /// The contender that speedups are over: the baseline, or the first valid contender if the
    /// baseline is not valid.
    pub reference: Option<ContenderId>,
    /// The reference is the baseline the run named.
    pub baseline_valid: bool,
    /// Ranked contenders and the yardstick by speed, then the others.
    pub rows: Vec<Row>,
    /// Entrants in the header's order, the shapes of each in the header's order.
    pub cells: Vec<Cell>,
    /// Every pair of ranked contenders, Holm-corrected.
    pub pairs: Vec<Pair>,
    /// The distance, in logarithms, within which two times without samples tie.
    pub tie_margin: f64,
    /// The difference that the run can detect, by its A/A arm, for the geometric mean.
    pub detectable: Option<Detectable>,
    /// The same for each shape, in the header's order.
    pub shape_detectable: Vec<Option<Detectable>>,
    index: Index,
}

/// The places of entrants and shapes in the table of cells.
#[derive(Clone, Debug, Default)]
struct Index {
    entrants: HashMap<ContenderId, usize>,
    shapes: HashMap<String, usize>,
}

impl Index {
    fn of(run: &Run) -> Self {
        let shapes = run.header.shapes.iter().map(|s| s.name.clone());
        Self {
            entrants: run.entrants().cloned().zip(0..).collect(),
            shapes: shapes.zip(0..).collect(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntrantKind {
    Contender,
    Baseline,
    Yardstick,
}

/// One entrant over all shapes.
#[derive(Clone, Debug)]
pub struct Row {
    pub contender: ContenderId,
    pub kind: EntrantKind,
    /// `None` for the yardstick and for contenders that are not ok on every shape.
    pub place: Option<RankPosition>,
    /// The gravest status of its cells; `None` while some are unknown, or unchecked.
    pub status: Option<Status>,
    pub expect: Status,
    /// Shapes on which it is valid and timed.
    pub valid_shapes: usize,
    /// Over the reference, on the shapes where both are valid.
    pub speedup: Option<LogEstimate>,
    pub over_yardstick: Option<LogEstimate>,
    /// Geometric mean over shapes of the minimum possible time over the time taken.
    pub roofline: Option<f64>,
    pub resources: Option<Resources>,
}

/// Two ranked contenders against each other, by their indices in the header.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    pub a: usize,
    pub b: usize,
    /// Time of `a` over time of `b`: above 1, `b` is faster.
    pub ratio: LogEstimate,
    /// Holm-corrected; `None` for times without samples.
    pub p: Option<f64>,
    pub differ: bool,
}

impl Ranking {
    pub fn row(&self, contender: &ContenderId) -> Option<&Row> {
        self.rows.iter().find(|r| r.contender == *contender)
    }

    pub fn cell(&self, contender: &ContenderId, shape: &str) -> Option<&Cell> {
        let shape = *self.index.shapes.get(shape)?;
        self.cells_of(contender).get(shape)
    }

    /// A contender's cells, the shapes in the header's order.
    pub fn cells_of(&self, contender: &ContenderId) -> &[Cell] {
        let shapes = self.index.shapes.len();
        let row = self.index.entrants.get(contender);
        let cells = row.and_then(|r| self.cells.get(r * shapes..(r + 1) * shapes));
        cells.unwrap_or_default()
    }

    /// The best ranked contender that is not the baseline.
    pub fn challenger(&self) -> Option<&Row> {
        self.rows
            .iter()
            .find(|r| r.place.is_some() && r.kind == EntrantKind::Contender)
    }

    /// All contenders that share first place.
    pub fn winners(&self) -> impl Iterator<Item = &Row> {
        let first = |r: &&Row| r.place.is_some_and(|p| p.rank == 1);
        self.rows.iter().filter(first)
    }
}

impl Row {
    pub fn speedup_interval(&self) -> Option<Interval> {
        Some(self.speedup?.ratio(crate::stats::CONFIDENCE))
    }

    /// Whether its verdict differs from the one its variant declares.
    pub fn unexpected(&self) -> bool {
        let looked = self.status.filter(|s| *s != Status::NotValidated);
        looked.is_some_and(|s| s != self.expect)
    }
}
