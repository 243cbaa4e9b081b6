//! Compares every element of outputs with the oracle, row by row.

use rayon::prelude::*;

use super::{Allowed, small};
use crate::operator::{GroupOracle, Oracle, OutputValues};

/// The result of comparing every element.
#[derive(Clone, Copy, Default)]
pub(super) struct ComparedElements {
    /// The largest error over its tolerance.
    pub(super) worst: f64,
    pub(super) wrong: usize,
    /// Elements that pass, but are too small for that to mean much.
    pub(super) doubtful: usize,
}

impl ComparedElements {
    fn with(self, other: Self) -> Self {
        Self {
            worst: self.worst.max(other.worst),
            wrong: self.wrong + other.wrong,
            doubtful: self.doubtful + other.doubtful,
        }
    }

    /// The largest error over its tolerance, if no element needs a closer look.
    pub(super) fn plainly_right(self) -> Option<f64> {
        (self.wrong == 0 && self.doubtful == 0).then_some(self.worst)
    }
}

pub(super) fn survey_all(
    outputs: &[OutputValues],
    oracle: &Oracle,
    tolerances: &[Allowed],
) -> ComparedElements {
    let groups = outputs.iter().zip(&oracle.groups).zip(tolerances);
    let surveys = groups.map(|((output, answer), allowed)| survey(output, answer, allowed));
    surveys.fold(ComparedElements::default(), ComparedElements::with)
}

fn survey(output: &OutputValues, answer: &GroupOracle, allowed: &Allowed) -> ComparedElements {
    assert_eq!(output.len(), answer.len(), "every element of a group");
    let gated = answer.is_gated();
    let columns = answer.columns;
    let of_row = |row: usize| {
        let tolerance = allowed.at(row);
        let element = |i: usize| {
            let (found, expected) = (output.at(i), answer.c(i));
            let worst = tolerance.error(found, expected);
            // Counted by acceptance, so that no incomparable element is missed.
            let accepted = worst <= 1.0;
            ComparedElements {
                worst,
                wrong: usize::from(!accepted),
                doubtful: usize::from(match gated {
                    true => small::doubtful(found, expected, tolerance),
                    false => small::is_zeroed(found, expected, tolerance),
                }),
            }
        };
        let elements = (row * columns..(row + 1) * columns).map(element);
        elements.fold(ComparedElements::default(), ComparedElements::with)
    };
    (0..answer.rows)
        .into_par_iter()
        .with_min_len((4096 / columns.max(1)).max(1))
        .map(of_row)
        .reduce(ComparedElements::default, ComparedElements::with)
}
