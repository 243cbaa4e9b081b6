//! Scales from the wrong place: other rows or blocks, another atom or tensor; or left out, or used
//! twice, in one product alone. An atom holds the scales of 128 rows by 64 of K as Blackwell's
//! tensor cores read them, row r, scale j at `r % 32 * 16 + r / 32 * 4 + j`. The values of a few
//! wrong elements are computed with each such mistake and compared.

use super::guess::{Hypothesis, away, explained_share, few_of, holds};
use super::{Element, Evidence};
use crate::operator::{GroupOperands, SCALE_BLOCK, decode_e2m1, decode_e4m3, silu};

/// Rows of an atom, and scales of each of them.
const ATOM_ROWS: usize = 128;
const ATOM_SCALES: usize = 4;

/// All mistakes, made on demand.
pub(super) fn hypotheses<'e>(
    evidence: &'e Evidence<'e>,
    sample: &'e [Element],
) -> impl Iterator<Item = Hypothesis> + 'e {
    let redo = move || {
        let few = few_of(sample);
        let sums = few.iter().map(|element| {
            let operands = &evidence.operands.groups[element.group];
            BlockSums::of(operands, element)
        });
        let sums: Vec<BlockSums<'e>> = sums.collect();
        (few, sums)
    };
    let redone = std::iter::once_with(redo).filter(|(few, _)| !few.is_empty());
    redone.flat_map(move |(few, sums)| {
        let misread = readings().flat_map(|reading| WHOSE.map(|whose| (reading, whose)));
        let misread = misread.map(|(reading, whose)| ScaleMistake::Misread(reading, whose));
        let mistakes = MIXED.iter().map(ScaleMistake::Mixed).chain(misread);
        mistakes.map(move |mistake| {
            let pairs = few.iter().zip(&sums);
            let held = pairs.filter(|(element, sums)| {
                let value = match mistake {
                    ScaleMistake::Mixed((factors, _)) => sums.with(None, *factors),
                    ScaleMistake::Misread(reading, whose) => {
                        sums.with(Some((reading, whose)), RIGHT)
                    }
                };
                holds(evidence, element, value)
            });
            let explained = explained_share(held.map(|(element, _)| element), few.len());
            let what = match mistake {
                ScaleMistake::Mixed((_, what)) => (*what).to_owned(),
                ScaleMistake::Misread(reading, whose) => tell(reading, whose),
            };
            Hypothesis::new(what, explained, &few)
        })
    })
}

enum ScaleMistake {
    Mixed(&'static (Factors, &'static str)),
    Misread(ScaleReading, Whose),
}

/// How often the scales of A, of B1 and of B2 occur in each block of A·B1ᵀ, and of A·B2ᵀ: if right,
/// once A's and once its own.
type Factors = [[i32; 3]; 2];

const RIGHT: Factors = [[1, 1, 0], [1, 0, 1]];

const MIXED: [(Factors, &str); 15] = [
    (
        [[1, 1, 0], [1, 1, 0]],
        "has the scales of B1 for those of B2",
    ),
    (
        [[1, 0, 1], [1, 0, 1]],
        "has the scales of B2 for those of B1",
    ),
    (
        [[1, 0, 1], [1, 1, 0]],
        "has the scales of B1 and B2 exchanged",
    ),
    (
        [[0, 1, 0], [1, 0, 1]],
        "lacks the scales of A in A·B1ᵀ alone",
    ),
    (
        [[1, 1, 0], [0, 0, 1]],
        "lacks the scales of A in A·B2ᵀ alone",
    ),
    ([[0, 0, 0], [1, 0, 1]], "ignores all scales in A·B1ᵀ alone"),
    ([[1, 1, 0], [0, 0, 0]], "ignores all scales in A·B2ᵀ alone"),
    ([[2, 1, 0], [2, 0, 1]], "has the scales of A twice"),
    (
        [[2, 1, 0], [1, 0, 1]],
        "has the scales of A twice in A·B1ᵀ alone",
    ),
    (
        [[1, 1, 0], [2, 0, 1]],
        "has the scales of A twice in A·B2ᵀ alone",
    ),
    ([[1, 2, 0], [1, 0, 2]], "has the scales of B1 and B2 twice"),
    ([[1, 2, 0], [1, 0, 1]], "has the scales of B1 twice"),
    ([[1, 1, 0], [1, 0, 2]], "has the scales of B2 twice"),
    (
        [[2, 0, 0], [2, 0, 0]],
        "has the scales of A for those of B1 and B2",
    ),
    (
        [[0, 2, 0], [0, 0, 2]],
        "has the scales of B1 and B2 for those of A",
    ),
];

/// Which of A, B1 and B2 have wrong scales.
type Whose = [bool; 3];

const WHOSE: [Whose; 5] = [
    [true, false, false],
    [false, true, false],
    [false, false, true],
    [false, true, true],
    [true; 3],
];

/// Which scale is used for a block of sixteen.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ScaleReading {
    /// Of another row.
    Rows(isize),
    /// Always of the first row.
    FirstRow,
    /// Always of the first block.
    FirstBlock,
    /// One scale for several blocks, as if blocks were larger.
    Coarse(usize),
    /// The same, in rows that are shorter by that factor.
    Dense(usize),
    /// This many atoms further among the `of` of a K step, cyclically.
    Round { atoms: usize, of: usize },
    /// Of an earlier K step, this many atoms back; the first uses its own.
    Late(usize),
    /// This many atoms further in memory, where the first of the next rows follows the last.
    Along(isize),
    /// An atom read as 128 rows of four scales, one after the other.
    RowByRow,
    /// Such rows read as an atom.
    Scattered,
}

/// All readings that are tried, the simplest first.
fn readings() -> impl Iterator<Item = ScaleReading> {
    let rows = [64, 32, 96, 128, 16, 8, 4, 2, 1].into_iter();
    let rows = rows.flat_map(|by| [ScaleReading::Rows(-by), ScaleReading::Rows(by)]);
    let index = [
        ScaleReading::Coarse(2),
        ScaleReading::Dense(2),
        ScaleReading::Coarse(4),
        ScaleReading::Dense(4),
        ScaleReading::FirstBlock,
        ScaleReading::FirstRow,
    ];
    let round = [2, 4, 8].into_iter();
    let round = round.flat_map(|of| (1..of).map(move |atoms| ScaleReading::Round { atoms, of }));
    let late = [1, 2, 4].into_iter().map(ScaleReading::Late);
    let along = [1, -1, 2, -2, 4, -4].into_iter().map(ScaleReading::Along);
    let layouts = [ScaleReading::RowByRow, ScaleReading::Scattered];
    let rows = rows.chain(index);
    rows.chain(round).chain(late).chain(along).chain(layouts)
}

impl ScaleReading {
    /// The row and block that are read instead; `None` before the first.
    fn place(self, row: usize, block: usize, across: usize) -> Option<(usize, usize)> {
        let (atom, within) = (block / ATOM_SCALES, block % ATOM_SCALES);
        let at = |atom: usize| atom * ATOM_SCALES + within;
        let (above, r) = (row / ATOM_ROWS * ATOM_ROWS, row % ATOM_ROWS);
        Some(match self {
            Self::Rows(by) => (row.checked_add_signed(by)?, block),
            Self::FirstRow => (0, block),
            Self::FirstBlock => (row, 0),
            Self::Coarse(by) => (row, block / by),
            Self::Dense(by) => {
                let place = (row * across + block) / by;
                (place / across, place % across)
            }
            Self::Round { atoms, of } => (row, at(atom / of * of + (atom + atoms) % of)),
            Self::Late(atoms) => (row, at(atom.checked_sub(atoms).unwrap_or(atom))),
            Self::Along(atoms) => {
                let all = across.div_ceil(ATOM_SCALES);
                let place = (row / ATOM_ROWS * all + atom).checked_add_signed(atoms)?;
                (place / all * ATOM_ROWS + r, at(place % all))
            }
            Self::RowByRow => (above + r / 4 + r % 4 * 32, block),
            Self::Scattered => (above + r % 32 * 4 + r / 32, block),
        })
    }
}

fn tell(reading: ScaleReading, whose: Whose) -> String {
    let (tensors, noun) = match whose {
        [true, false, _] => ("A", "row"),
        [false, true, false] => ("B1", "column"),
        [false, false, _] => ("B2", "column"),
        [false, true, true] => ("B1 and B2", "column"),
        [true, true, _] => ("A, B1 and B2", "row and column"),
    };
    let far = |atoms: usize| match atoms {
        1 => "one atom (64 of K)".to_owned(),
        n => format!("{n} atoms ({} of K)", 64 * n),
    };
    let wrong_atom = format!("has the scales of {tensors} from the wrong atom:");
    match reading {
        ScaleReading::Rows(by) if by % 32 == 0 && by.unsigned_abs() < ATOM_ROWS => format!(
            "has the scales of {tensors} from {}, the wrong part of an atom's {ATOM_ROWS}",
            away(noun, by)
        ),
        ScaleReading::Rows(by) => format!("has the scales of {tensors} from {}", away(noun, by)),
        ScaleReading::FirstRow => {
            format!("has the scales of {tensors} from the first {noun} always")
        }
        ScaleReading::FirstBlock => {
            format!("has the scales of {tensors} from the first 16 of K always")
        }
        ScaleReading::Coarse(by) => format!(
            "has the scales of {tensors} indexed by {} of K, not by {SCALE_BLOCK}",
            by * SCALE_BLOCK
        ),
        ScaleReading::Dense(by) => format!(
            "has the scales of {tensors} indexed by {} of K, not by {SCALE_BLOCK}, rows included",
            by * SCALE_BLOCK
        ),
        ScaleReading::Round { atoms, of } => {
            format!("{wrong_atom} {} on in every {of}", far(atoms))
        }
        ScaleReading::Late(atoms) => format!("{wrong_atom} {} late", far(atoms)),
        ScaleReading::Along(atoms) => {
            let way = if atoms < 0 { "back" } else { "on" };
            format!("{wrong_atom} {} {way}", far(atoms.unsigned_abs()))
        }
        ScaleReading::RowByRow => {
            format!("has the scale atoms of {tensors} read row by row, not as 32 rows by 4")
        }
        ScaleReading::Scattered => {
            format!("has row-major scales of {tensors} read as if they lay in atoms")
        }
    }
}

/// The parts of one element of C: the sums of its blocks without scales.
struct BlockSums<'a> {
    operands: &'a GroupOperands,
    element: Element,
    /// Of A·B1ᵀ and of A·B2ᵀ.
    blocks: [Vec<f64>; 2],
}

impl<'a> BlockSums<'a> {
    fn of(operands: &'a GroupOperands, element: &Element) -> Self {
        let width = operands.left().columns() / 2;
        let row = |packed: &'a [u8], row: usize| {
            packed[row * width..][..width].chunks_exact(SCALE_BLOCK / 2)
        };
        let product = |b: &'a [u8]| {
            let pairs = row(&operands.left().elements, element.row).zip(row(b, element.column));
            pairs.map(|(x, y)| dot(x, y)).collect()
        };
        Self {
            operands,
            element: *element,
            blocks: [
                product(&operands.gate().elements),
                product(&operands.up().elements),
            ],
        }
    }

    /// C's element with the scales of some tensors misread, and each product's blocks scaled this
    /// often.
    fn with(&self, misread: Option<(ScaleReading, Whose)>, factors: Factors) -> f64 {
        let Self {
            operands, element, ..
        } = self;
        let across = operands.left().columns() / SCALE_BLOCK;
        let scales = |codes: &[u8], row: usize, tensor: usize| -> Vec<f64> {
            let place = |block| match misread {
                Some((reading, whose)) if whose[tensor] => reading.place(row, block, across),
                _ => Some((row, block)),
            };
            // Atoms are padded with zeros beyond the rows.
            let code = |(row, block): (usize, usize)| match block < across {
                true => codes.get(row * across + block).copied(),
                false => None,
            };
            let code = |block| place(block).and_then(code).unwrap_or(0);
            (0..across).map(|block| decode_e4m3(code(block))).collect()
        };
        let a = scales(&operands.left().scales, element.row, 0);
        let b1 = scales(&operands.gate().scales, element.column, 1);
        let b2 = scales(&operands.up().scales, element.column, 2);
        self.scaled([&a, &b1, &b2], factors)
    }

    fn scaled(&self, scales: [&[f64]; 3], factors: Factors) -> f64 {
        let sum = |product: usize| -> f64 {
            let blocks = self.blocks[product].iter().enumerate();
            let scaled = blocks.map(|(block, sum)| {
                let powers = scales.iter().zip(factors[product]);
                let by: f64 = powers.map(|(scale, n)| scale[block].powi(n)).product();
                sum * by
            });
            scaled.sum()
        };
        silu(sum(0)) * sum(1)
    }
}

/// The product of two packed blocks, without their scales.
fn dot(x: &[u8], y: &[u8]) -> f64 {
    let pairs = x.iter().zip(y);
    let of = |(x, y): (&u8, &u8)| {
        decode_e2m1(x & 15) * decode_e2m1(y & 15) + decode_e2m1(x >> 4) * decode_e2m1(y >> 4)
    };
    pairs.map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_atom_is_read_where_it_lies() {
        let place = |reading: ScaleReading, row, block| reading.place(row, block, 32);
        let round = ScaleReading::Round { atoms: 1, of: 4 };
        assert_eq!(place(round, 5, 13), Some((5, 1)));
        assert_eq!(place(ScaleReading::Along(1), 5, 30), Some((133, 2)));
        assert_eq!(place(ScaleReading::Along(-1), 5, 1), None);
        assert_eq!(place(ScaleReading::Late(2), 5, 9), Some((5, 1)));
        assert_eq!(place(ScaleReading::Late(2), 5, 7), Some((5, 7)));
        // Bytes 20 to 23 of an atom are the second four of its second sixteen.
        assert_eq!(place(ScaleReading::RowByRow, 5, 0), Some((33, 0)));
        for row in 0..256 {
            let (there, _) = place(ScaleReading::RowByRow, row, 0).expect("a place");
            assert_eq!(place(ScaleReading::Scattered, there, 0), Some((row, 0)));
        }
    }

    #[test]
    fn no_two_readings_are_the_same() {
        let all: Vec<ScaleReading> = readings().collect();
        for (i, reading) in all.iter().enumerate() {
            assert!(!all[..i].contains(reading), "{reading:?}");
        }
    }
}
