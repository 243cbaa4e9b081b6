//! Products with a sparse A, of which every row picks its own elements of B's columns.
//!
//! Four bits of metadata place a chunk's stored elements, as in [`super::super::sparse`]; a chunk is
//! four elements of a row, of packed 4-bit floats eight, of tf32 two. In tensor memory the sixteen
//! chunks of a row are two columns of its lane; of kind::f16 and tf32 its eight chunks are four in
//! each of two lanes, in the half of a word that rows r and r + 8 of sixteen share. That is how
//! CUTLASS lays them out (`Sm1xxGemmSparseConfig`, `tmem_e_frg`), whose tests check it.

use super::super::fused::{Fused, Term, dot_f16, dot_f32, dot_f32_scaled};
use super::super::scaled::{Factor, GROUP, GroupSum, HALVES, sum_of_groups};
use super::super::sparse::{MAX_STORED, dot_integers, pick, place_chunk, undefined};
use super::form::Scaling;
use super::fours::GROUPS;
use super::operand::{Operands, Row, codes};
use super::product::{Product, Tables, TensorColumns, place};
use super::{BLOCK, Block, Form, Kind, LANES, Sum};

/// Where a row's stored elements belong in its whole depth; `None` if the metadata is undefined.
type Places = Option<[u8; MAX_STORED]>;

/// The four bits of a row's chunk.
fn bits(form: &Form, words: &[u32], at: TensorColumns, row: usize, chunk: usize) -> u32 {
    let (column, lane, shift) = match form.kind {
        Kind::F16 | Kind::Tf32 => (
            form.sparse.unwrap_or(0) as usize,
            row / 16 * 16 + chunk / 4 * 8 + row % 8,
            row / 8 % 2 * 16 + chunk % 4 * 4,
        ),
        _ => (chunk / 8, row, chunk % 8 * 4),
    };
    words[(at.metadata as usize + column) * LANES + lane] >> shift & 0xf
}

/// Where the elements of a row belong. Of a chunk whose bits are undefined nothing comes if its
/// elements are zero, as they are where CUTLASS has filled up a tile.
fn places(
    form: &Form,
    words: &[u32],
    at: TensorColumns,
    row: usize,
    is_zero: impl Fn(usize) -> bool,
) -> Places {
    let stored = form.kind.depth() as usize;
    let each = match form.kind {
        Kind::Tf32 => 1,
        kind if kind.fours() => 4,
        _ => 2,
    };
    let mut places = [0; MAX_STORED];
    for (chunk, of_chunk) in places[..stored].chunks_exact_mut(each).enumerate() {
        let bits = bits(form, words, at, row, chunk);
        let defined = place_chunk(bits, 2 * each * chunk, of_chunk, true);
        if !defined && !(each * chunk..each * (chunk + 1)).all(&is_zero) {
            return None;
        }
    }
    Some(places)
}

impl Product {
    /// The part of a CTA, of which `rows` are A's.
    pub(super) fn sparse(
        &self,
        operands: &Operands,
        rows: &[Row],
        blocks: &[Block],
        (words, at): (&mut [u32], TensorColumns),
        scales: Option<(Scaling, &Tables)>,
    ) {
        let form = &self.form;
        let (a, b) = (rows_of(form, operands, rows), columns_of(form, operands));
        let places: Vec<Places> = a
            .iter()
            .enumerate()
            .map(|(row, codes)| {
                let is_zero = |k: usize| form.a.value(codes[k]) == 0.0;
                places(form, words, at, row, is_zero)
            })
            .collect();
        let dots = Dots::new(form, &a, &b);
        for (number, block) in blocks.iter().enumerate() {
            for n in 0..block.width {
                let column = (block.n + n) as usize;
                for i in 0..BLOCK {
                    let row = block.row as usize + i;
                    let word = &mut words[place(block, at, n) + i];
                    let old = if self.accumulate { *word } else { 0 };
                    let factors = scales.map(|(scaling, tables)| Factors {
                        scaling,
                        words: [tables.a[number][i], tables.of_b(number)[n as usize]],
                    });
                    *word = match &places[row] {
                        Some(places) => {
                            let places = &places[..form.kind.depth() as usize];
                            dots.dot(form, (row, column), places, (old, factors))
                        }
                        None => undefined(form.a, form.d == Sum::F16),
                    };
                }
            }
        }
    }
}

/// The codes of every row that A stores.
fn rows_of(form: &Form, operands: &Operands, rows: &[Row]) -> Vec<Vec<u32>> {
    let of = |row: &Row| {
        let mut all = Vec::with_capacity(MAX_STORED);
        codes(row, form.a, operands.packing[0], |code| all.push(code));
        all
    };
    rows.iter().map(of).collect()
}

/// The codes of every column of B, twice as many.
fn columns_of(form: &Form, operands: &Operands) -> Vec<Vec<u32>> {
    let both = operands.b.iter().zip(&operands.b_next);
    let of = |(first, second): (&Row, &Row)| {
        let mut all = Vec::with_capacity(2 * MAX_STORED);
        for row in [first, second] {
            codes(row, form.b, operands.packing[1], |code| all.push(code));
        }
        all
    };
    both.map(of).collect()
}

/// The scale words of a row and of a column.
#[derive(Clone, Copy)]
struct Factors {
    scaling: Scaling,
    words: [u32; 2],
}

impl Factors {
    /// The scales of group `g` of sixteen stored codes.
    fn of(&self, g: usize) -> [Option<Factor>; 2] {
        std::array::from_fn(|operand| {
            let byte = self.scaling.byte(operand, g);
            let code = (self.words[operand] >> (8 * byte)) as u8;
            self.scaling.scale.factor(code)
        })
    }
}

/// Rows and columns, ready to be multiplied.
enum Dots {
    Integers([Vec<Vec<i32>>; 2]),
    /// Halves of 4-bit floats.
    Fours([Vec<Vec<i8>>; 2]),
    Floats([Fused; 2], [Vec<Vec<Term>>; 2]),
}

impl Dots {
    fn new(form: &Form, a: &[Vec<u32>], b: &[Vec<u32>]) -> Self {
        let operands = [(a, form.a, form.negate), (b, form.b, false)];
        if form.kind.fours() {
            return Self::Fours(operands.map(|(rows, _, negate)| {
                let sign = if negate { -1 } else { 1 };
                converted(rows, |code| sign * HALVES[code as usize & 15])
            }));
        }
        match (Fused::blackwell(form.a), Fused::blackwell(form.b)) {
            (Some(left), Some(right)) => Self::Floats(
                [left, right],
                [
                    converted(a, |code| left.term(code, form.negate)),
                    converted(b, |code| right.term(code, false)),
                ],
            ),
            _ => Self::Integers(
                operands
                    .map(|(rows, element, _)| converted(rows, |code| element.value(code) as i32)),
            ),
        }
    }

    /// One element of D.
    fn dot(
        &self,
        form: &Form,
        (row, column): (usize, usize),
        places: &[u8],
        (old, factors): (u32, Option<Factors>),
    ) -> u32 {
        let depth = places.len();
        match self {
            Self::Integers([a, b]) => {
                let picked = pick(&b[column], places);
                dot_integers(&a[row], &picked[..depth], old, form.saturate)
            }
            Self::Fours([a, b]) => {
                let picked = pick(&b[column], places);
                let terms = (0..GROUPS).map(|g| {
                    let group = GROUP * g..GROUP * (g + 1);
                    let sum = group_sum(&a[row][group.clone()], &picked[group]);
                    let [left, right] = factors.map_or([None; 2], |factors| factors.of(g));
                    (sum, left, right)
                });
                sum_of_groups(terms, f32::from_bits(old))
            }
            Self::Floats([left, right], [a, b]) => {
                let picked = pick(&b[column], places);
                let (fused, x, y) = ((left, right), &a[row][..], &picked[..depth]);
                match (form.d, factors.map(|factors| factors.of(0))) {
                    (Sum::F16, _) => {
                        let old = half::f16::from_bits(old as u16).to_f32();
                        dot_f16(fused, x, y, old).into()
                    }
                    (_, None) => dot_f32(fused, x, y, f32::from_bits(old)),
                    (_, Some([Some(s), Some(t)])) => {
                        let power = s.exponent + t.exponent;
                        dot_f32_scaled(fused, (x, y), power, f32::from_bits(old))
                    }
                    (_, Some(_)) => crate::numeric::NAN_F32,
                }
            }
        }
    }
}

fn converted<T>(rows: &[Vec<u32>], mut each: impl FnMut(u32) -> T) -> Vec<Vec<T>> {
    let of = |row: &Vec<u32>| row.iter().map(|&code| each(code)).collect();
    rows.iter().map(of).collect()
}

fn group_sum(x: &[i8], y: &[i8]) -> GroupSum {
    let products = x
        .iter()
        .zip(y)
        .map(|(x, y)| i32::from(i16::from(*x) * i16::from(*y)));
    GroupSum {
        quarters: products.clone().sum(),
        any: products.into_iter().any(|product| product != 0),
    }
}
