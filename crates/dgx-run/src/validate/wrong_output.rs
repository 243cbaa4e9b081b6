//! A wrong output in full, for debugging: which elements are wrong, the neighbours of the first,
//! where they are, and what they resemble.

use super::guess::{self, Hypothesis};
use super::{Element, Evidence, Judgement, Mismatch, OutputName, Tolerance, judge};
use crate::operator::{Operands, Oracle, OutputValues};

/// Wrong elements listed one by one.
const TOLD: usize = 8;
/// Rows and columns shown around the first of them.
const AROUND: (usize, usize) = (3, 5);
/// Maximum rows and columns of a chart.
const CHART: (usize, usize) = (16, 32);

/// Everything known about a wrong output.
#[derive(Clone, Debug, PartialEq)]
pub struct WrongOutput {
    pub mismatch: Mismatch,
    /// Indexed by [`Element::group`].
    pub answers: Vec<OutputName>,
    /// The first wrong elements.
    pub elements: Vec<Element>,
    pub patch: Neighbours,
    /// Wrong elements of each answer.
    pub by_group: Vec<usize>,
    /// All elements of each answer.
    pub elements_of: Vec<usize>,
    /// Of each answer that has wrong elements.
    pub charts: Vec<ErrorMap>,
    /// The hypotheses that fit, the best first.
    pub fits: Vec<Hypothesis>,
}

/// The neighbours of an element.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbours {
    pub first_row: usize,
    pub first_column: usize,
    /// Row by row, with whether it is wrong.
    pub rows: Vec<Vec<(Element, bool)>>,
}

/// Where an answer is wrong, field by field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorMap {
    pub group: usize,
    /// Rows and columns of C in one field.
    pub field: (usize, usize),
    /// Row by row: wrong elements, and all elements of the field.
    pub rows: Vec<Vec<(usize, usize)>>,
}

/// All details of an output, if it is wrong. `earlier` is the expected output of the call before,
/// if there was one.
pub fn explain_wrong(
    outputs: &[OutputValues],
    operands: &Operands,
    oracle: &Oracle,
    tolerance: Tolerance,
    earlier: Option<&Oracle>,
) -> Option<WrongOutput> {
    let Judgement::Wrong(mismatch) = judge(outputs, operands, oracle, tolerance) else {
        return None;
    };
    let evidence = Evidence::new(outputs, operands, oracle, tolerance);
    let wrong = evidence.wrong_elements();
    let sample = evidence.sample(&wrong);
    let places = wrong.iter().enumerate().flat_map(|(group, flags)| {
        let flagged = flags.iter().enumerate().filter(|(_, wrong)| **wrong);
        flagged.map(move |(index, _)| (group, index))
    });
    let charts = wrong.iter().enumerate();
    Some(WrongOutput {
        elements: places
            .take(TOLD)
            .map(|(group, index)| evidence.element(group, index))
            .collect(),
        patch: patch(&evidence, &wrong, mismatch.first),
        elements_of: wrong.iter().map(Vec::len).collect(),
        by_group: wrong
            .iter()
            .map(|flags| flags.iter().filter(|wrong| **wrong).count())
            .collect(),
        charts: charts
            .filter(|(_, flags)| flags.contains(&true))
            .map(|(group, flags)| ErrorMap::of(group, flags, oracle.groups[group].columns))
            .collect(),
        fits: guess::fits(&evidence, &sample, earlier),
        answers: OutputName::all(operands),
        mismatch: *mismatch,
    })
}

fn patch(evidence: &Evidence<'_>, wrong: &[Vec<bool>], first: Element) -> Neighbours {
    let answer = &evidence.oracle.groups[first.group];
    let (first_row, rows) = window(first.row, AROUND.0, answer.rows);
    let (first_column, columns) = window(first.column, AROUND.1, answer.columns);
    let place = |row: usize, column: usize| {
        let index = row * answer.columns + column;
        (
            evidence.element(first.group, index),
            wrong[first.group][index],
        )
    };
    Neighbours {
        first_row,
        first_column,
        rows: (first_row..first_row + rows)
            .map(|row| {
                (first_column..first_column + columns)
                    .map(|column| place(row, column))
                    .collect()
            })
            .collect(),
    }
}

/// The start of a stretch of `wanted` around `middle`, and its length, within `len`.
fn window(middle: usize, wanted: usize, len: usize) -> (usize, usize) {
    let length = wanted.min(len);
    let start = middle.saturating_sub(length / 2).min(len - length);
    (start, length)
}

impl ErrorMap {
    /// Whether every element is wrong.
    pub fn is_full(&self) -> bool {
        self.rows.iter().flatten().all(|(wrong, all)| wrong == all)
    }

    fn of(group: usize, flags: &[bool], n: usize) -> Self {
        let m = flags.len() / n;
        // Fields that divide tiles, which are powers of two.
        let side = |len: usize, most: usize| len.div_ceil(most).next_power_of_two();
        let field = (side(m, CHART.0), side(n, CHART.1));
        let mut rows = vec![vec![(0, 0); n.div_ceil(field.1)]; m.div_ceil(field.0)];
        for (index, wrong) in flags.iter().enumerate() {
            let at = &mut rows[index / n / field.0][index % n / field.1];
            at.0 += usize::from(*wrong);
            at.1 += 1;
        }
        Self { group, field, rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_counts_every_element_once() {
        let (m, n) = (40, 200);
        let wrong: Vec<bool> = (0..m * n).map(|i| i / n >= 36 && i % n < 8).collect();
        let chart = ErrorMap::of(1, &wrong, n);
        assert_eq!(chart.field, (4, 8));
        assert_eq!((chart.rows.len(), chart.rows[0].len()), (10, 25));
        assert_eq!(chart.rows[9][0], (32, 32));
        let all: usize = chart.rows.iter().flatten().map(|(_, all)| all).sum();
        let bad: usize = chart.rows.iter().flatten().map(|(bad, _)| bad).sum();
        assert_eq!((all, bad), (m * n, 4 * 8));
    }

    #[test]
    fn what_lies_around_stays_inside() {
        assert_eq!(window(0, 5, 128), (0, 5));
        assert_eq!(window(64, 5, 128), (62, 5));
        assert_eq!(window(127, 5, 128), (123, 5));
        assert_eq!(window(0, 3, 1), (0, 1));
    }
}
