//! The right value in the wrong place: rows or columns shifted or exchanged,
//! groups mixed up, C stored transposed.

use super::guess::{Hypothesis, LEAST, TELLING, away, holds, share_of_telling};
use super::{Element, Evidence};

/// Distances at which kernels misplace rows and columns.
const DISTANCES: [isize; 8] = [1, 2, 8, 16, 32, 64, 128, 256];
/// Sizes of blocks of rows or columns that kernels swap in pairs.
const EXCHANGED: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// The displacements tested in every wrong output.
pub(super) fn displaced<'e>(
    evidence: &'e Evidence<'e>,
    sample: &'e [Element],
) -> impl Iterator<Item = Hypothesis> + 'e {
    shifted(evidence, sample)
        .chain(groups(evidence, sample))
        .chain(exchanged(evidence, sample))
        .chain(std::iter::once_with(|| transposed(evidence, sample)))
}

fn shifted<'e>(
    evidence: &'e Evidence<'e>,
    sample: &'e [Element],
) -> impl Iterator<Item = Hypothesis> + 'e {
    let distances = DISTANCES.into_iter().flat_map(|d| [d, -d]);
    distances.flat_map(move |distance| {
        let ways = [(distance, 0, "row"), (0, distance, "column")];
        ways.into_iter().map(move |(rows, columns, noun)| {
            let tells = |e: &Element| {
                let row = e.row.checked_add_signed(rows)?;
                let column = e.column.checked_add_signed(columns)?;
                holds_of(evidence, e, e.group, row, column)
            };
            let what = format!("holds the value of {}", away(noun, distance));
            Hypothesis::new(what, share_of_telling(sample, tells), sample)
        })
    })
}

fn groups<'e>(
    evidence: &'e Evidence<'e>,
    sample: &'e [Element],
) -> impl Iterator<Item = Hypothesis> + 'e {
    (0..evidence.oracle.groups.len()).map(move |other| {
        let tells = |e: &Element| match e.group == other {
            true => Some(false),
            false => holds_of(evidence, e, other, e.row, e.column),
        };
        let what = format!("holds the values of group {other}");
        Hypothesis::new(what, share_of_telling(sample, tells), sample)
    })
}

/// Fragments with two of their blocks swapped.
fn exchanged<'e>(
    evidence: &'e Evidence<'e>,
    sample: &'e [Element],
) -> impl Iterator<Item = Hypothesis> + 'e {
    EXCHANGED.into_iter().flat_map(move |block| {
        let ways = [(block, 0, "rows"), (0, block, "columns")];
        ways.into_iter().map(move |(rows, columns, noun)| {
            let tells =
                |e: &Element| holds_of(evidence, e, e.group, e.row ^ rows, e.column ^ columns);
            let what = match block {
                1 => format!("has neighbouring {noun} exchanged"),
                _ => format!("has {noun} exchanged in blocks of {block}"),
            };
            Hypothesis::new(what, share_of_telling(sample, tells), sample)
        })
    })
}

/// Column-major: element (row, column) lies at the row-major place of another.
fn transposed(evidence: &Evidence<'_>, sample: &[Element]) -> Hypothesis {
    let tells = |e: &Element| {
        let answer = &evidence.oracle.groups[e.group];
        let at = e.row * answer.columns + e.column;
        let (row, column) = (at % answer.rows, at / answer.rows);
        let moved = (row, column) != (e.row, e.column);
        moved.then(|| holds_of(evidence, e, e.group, row, column))?
    };
    let what = "holds C transposed: it is stored column by column";
    Hypothesis::new(what, share_of_telling(sample, tells), sample)
}

/// Elements by which an unlisted displacement is looked for, and places that each may come from.
const SEEDS: usize = 6;
const ORIGINS: usize = 4096;

/// Any displacement at all: where else in its group do a few distinctive values belong, and do they
/// agree on the distance?
pub(super) fn anywhere(evidence: &Evidence<'_>, sample: &[Element]) -> Option<Hypothesis> {
    let mut telling: Vec<&Element> = sample
        .iter()
        .filter(|e| e.got().is_finite() && e.got().abs() > TELLING)
        .collect();
    telling.sort_by(|a, b| b.got().abs().total_cmp(&a.got().abs()));
    if telling.len() < LEAST {
        return None;
    }
    let candidates = |e: &Element| -> Vec<(isize, isize)> {
        let answer = &evidence.oracle.groups[e.group];
        let n = answer.columns;
        let here = |index: &usize| evidence.tolerance(e).accepts(e.found, answer.c(*index));
        let places = (0..answer.len()).filter(here).take(ORIGINS);
        let apart = |to: usize, from: usize| to as isize - from as isize;
        places
            .map(|index| (apart(index / n, e.row), apart(index % n, e.column)))
            .collect()
    };
    let mut agreed = candidates(telling[0]);
    let others = telling
        .iter()
        .skip(1)
        .step_by((telling.len() / SEEDS).max(1));
    for other in others.take(SEEDS) {
        let theirs = candidates(other);
        // One may have been shifted in from beyond the edge.
        let both: Vec<_> = agreed
            .iter()
            .copied()
            .filter(|d| theirs.contains(d))
            .collect();
        if !both.is_empty() {
            agreed = both;
        }
    }
    let fits = agreed.into_iter().take(SEEDS).map(|(rows, columns)| {
        let tells = |e: &Element| {
            let row = e.row.checked_add_signed(rows)?;
            let column = e.column.checked_add_signed(columns)?;
            holds_of(evidence, e, e.group, row, column)
        };
        let what = match (rows, columns) {
            (rows, 0) => format!("holds the value of {}", away("row", rows)),
            (0, columns) => format!("holds the value of {}", away("column", columns)),
            (rows, columns) => format!(
                "holds the value of {} and {}",
                away("row", rows),
                away("column", columns)
            ),
        };
        Hypothesis::new(what, share_of_telling(sample, tells), sample)
    });
    fits.max_by(|a, b| a.share.total_cmp(&b.share))
}

/// Whether the element has the right value of that place, if there is one.
fn holds_of(
    evidence: &Evidence<'_>,
    element: &Element,
    group: usize,
    row: usize,
    column: usize,
) -> Option<bool> {
    let answer = &evidence.oracle.groups[group];
    let inside = row < answer.rows && column < answer.columns;
    inside.then(|| holds(evidence, element, answer.c(row * answer.columns + column)))
}
