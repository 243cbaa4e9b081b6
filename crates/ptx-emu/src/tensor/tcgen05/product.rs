//! One `tcgen05.mma`: operands that have been read, times each other, into tensor memory.

use std::cell::RefCell;

use super::super::fused::{Fused, Term, dot_f16, dot_f32, dot_f32_scaled};
use super::super::scaled::{Factor, GROUP, GroupSum, HALVES, Scale, sum_of_groups};
use super::super::{Element, Numerics};
use super::form::Scaling;
use super::fours::{Columns, GROUPS, Rows, Tile};
use super::operand::{Operands, Row, codes};
use super::{BLOCK, Block, Form, LANES, Sum, floats};
use crate::numeric::arith::canonical_f32;
use crate::numeric::simd::Level;

/// Where in a CTA's tensor memory an instruction works, in columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TensorColumns {
    pub d: u32,
    /// 16 if D is in the upper half of the lanes.
    pub half: u32,
    /// Scales of A and B.
    pub scales: [u32; 2],
    /// What places the elements of a sparse A.
    pub metadata: u32,
}

/// What is computed of operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Product {
    pub form: Form,
    /// D is added to, after it was multiplied by 2 to minus `scale_d`.
    pub accumulate: bool,
    pub scale_d: u8,
    pub level: Level,
    pub mode: Numerics,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

#[derive(Default)]
struct Scratch {
    columns: Columns,
    floats: Vec<f32>,
    sums: Vec<[f32; BLOCK]>,
    words: Vec<u32>,
    right: Vec<[f32; GROUPS]>,
}

impl Product {
    /// Computes the part of CTA number `cta`. False if the copies of B's scales that the quarters
    /// of D read were not all the same.
    pub(crate) fn run(
        &self,
        operands: &Operands,
        cta: usize,
        words: &mut [u32],
        at: TensorColumns,
    ) -> bool {
        let form = &self.form;
        let blocks = form.blocks(at.half);
        if self.accumulate && self.scale_d > 0 {
            self.lower(&blocks, words, at);
        }
        let rows = &operands.a[cta];
        let Some(scaling) = form.scaling else {
            if form.sparse.is_some() {
                self.sparse(operands, rows, &blocks, (words, at), None);
                return true;
            }
            self.plain(operands, rows, &blocks, words, at);
            return true;
        };
        let tables = Tables::read(&blocks, words, at);
        let same = tables.same(&blocks);
        if form.sparse.is_some() {
            let scales = Some((scaling, &tables));
            self.sparse(operands, rows, &blocks, (words, at), scales);
            return same;
        }
        let exact = self.mode == Numerics::Exact || !tables.ordinary(scaling);
        match (form.kind.fours(), exact) {
            (true, false) => self.fours(operands, rows, &blocks, (words, at), (scaling, &tables)),
            (true, true) => exact_fours(
                self,
                operands,
                rows,
                &blocks,
                (words, at),
                (scaling, &tables),
            ),
            (false, false) if same => {
                self.fast(
                    operands,
                    rows,
                    &blocks,
                    (words, at),
                    Some((scaling, &tables)),
                );
            }
            (false, _) => {
                exact_eights(
                    self,
                    operands,
                    rows,
                    &blocks,
                    (words, at),
                    (scaling, &tables),
                );
            }
        }
        same
    }

    /// `scale-input-d`
    fn lower(&self, blocks: &[Block], words: &mut [u32], at: TensorColumns) {
        let factor = 2f32.powi(-i32::from(self.scale_d));
        for block in blocks {
            for n in 0..block.width {
                for word in &mut words[place(block, at, n)..][..BLOCK] {
                    *word = match self.form.d {
                        Sum::F16 => {
                            let half = half::f16::from_bits(*word as u16);
                            half::f16::from_f32(half.to_f32() * factor).to_bits().into()
                        }
                        _ => (f32::from_bits(*word) * factor).to_bits(),
                    };
                }
            }
        }
    }

    fn plain(
        &self,
        operands: &Operands,
        rows: &[Row],
        blocks: &[Block],
        words: &mut [u32],
        at: TensorColumns,
    ) {
        let form = &self.form;
        match (self.mode, form.d) {
            (Numerics::Exact, Sum::F16 | Sum::F32) => {
                exact_plain(self, operands, rows, blocks, words, at);
            }
            _ => self.fast(operands, rows, blocks, (words, at), None),
        }
    }

    /// f32 sums of everything but packed 4-bit floats; scales, powers of two, go with the values.
    fn fast(
        &self,
        operands: &Operands,
        rows: &[Row],
        blocks: &[Block],
        (words, at): (&mut [u32], TensorColumns),
        scales: Option<(Scaling, &Tables)>,
    ) {
        let form = &self.form;
        let depth = form.kind.depth() as usize;
        SCRATCH.with_borrow_mut(|scratch| {
            let (columns, sums) = (&mut scratch.floats, &mut scratch.sums);
            columns.clear();
            for row in &operands.b {
                codes(row, form.b, operands.packing[1], |code| {
                    columns.push(form.b.value(code));
                });
            }
            if let Some((scaling, tables)) = scales {
                let mut done: Vec<u32> = Vec::new();
                for (block, (_, of_b)) in blocks.iter().zip(tables.of_blocks()) {
                    if done.contains(&block.n) {
                        continue;
                    }
                    done.push(block.n);
                    let columns = columns.chunks_exact_mut(depth).skip(block.n as usize);
                    for (column, &word) in columns.zip(of_b) {
                        let scale = scaling.value(1, word);
                        column.iter_mut().for_each(|value| *value *= scale);
                    }
                }
            }
            let mut panel = vec![[0f32; BLOCK]; depth];
            for (number, block) in blocks.iter().enumerate() {
                let rows = &rows[block.row as usize..][..BLOCK];
                expand(form, operands, rows, &mut panel);
                if let Some((scaling, tables)) = scales {
                    let of_a = tables.a[number].map(|word| scaling.value(0, word));
                    for row in &mut panel {
                        for (value, scale) in row.iter_mut().zip(of_a) {
                            *value *= scale;
                        }
                    }
                }
                sums.clear();
                for n in 0..block.width {
                    let d = &words[place(block, at, n)..][..BLOCK];
                    sums.push(match (self.accumulate, form.d) {
                        (true, Sum::F32) => std::array::from_fn(|i| f32::from_bits(d[i])),
                        (true, Sum::F16) => {
                            std::array::from_fn(|i| half::f16::from_bits(d[i] as u16).to_f32())
                        }
                        _ => [0.0; BLOCK],
                    });
                }
                let of_block = block.n as usize * depth..(block.n + block.width) as usize * depth;
                floats::multiply(self.level, &panel, &columns[of_block], sums);
                for (n, sum) in (0..).zip(sums.iter()) {
                    let d = &mut words[place(block, at, n)..][..BLOCK];
                    for (word, &sum) in d.iter_mut().zip(sum) {
                        *word = self.rounded(sum, *word);
                    }
                }
            }
        });
    }

    /// A sum as D keeps it.
    fn rounded(&self, sum: f32, old: u32) -> u32 {
        match self.form.d {
            Sum::F32 => canonical_f32(sum),
            Sum::F16 if sum.is_nan() => crate::numeric::NAN_F16.into(),
            Sum::F16 => half::f16::from_f32(sum).to_bits().into(),
            Sum::S32 => {
                // 32 products of 16 bits are exact in f32.
                let old = if self.accumulate { old as i32 } else { 0 };
                match self.form.saturate {
                    true => old.saturating_add(sum as i32) as u32,
                    false => old.wrapping_add(sum as i32) as u32,
                }
            }
        }
    }

    fn fours(
        &self,
        operands: &Operands,
        rows: &[Row],
        blocks: &[Block],
        (words, at): (&mut [u32], TensorColumns),
        (scaling, tables): (Scaling, &Tables),
    ) {
        SCRATCH.with_borrow_mut(|scratch| {
            let Scratch {
                columns,
                words: known,
                right,
                ..
            } = scratch;
            columns.expand(self.level, &operands.b);
            let values = scaling.scale.values();
            let mut panel = Rows::EMPTY;
            let mut panel_row = None;
            known.clear();
            for (block, (a, b)) in blocks.iter().zip(tables.of_blocks()) {
                if panel_row != Some(block.row)
                    && let Some(rows) = rows[block.row as usize..].first_chunk()
                {
                    panel_row = Some(block.row);
                    panel.expand(self.level, rows, self.form.negate);
                }
                let left: [[f32; BLOCK]; GROUPS] = std::array::from_fn(|g| {
                    let byte = 8 * scaling.byte(0, g);
                    std::array::from_fn(|i| values[(a[i] >> byte & 0xff) as usize] / 4.0)
                });
                if known != b {
                    known.clear();
                    known.extend_from_slice(b);
                    right.clear();
                    right.extend(b.iter().map(|word| {
                        std::array::from_fn(|g| {
                            values[(word >> (8 * scaling.byte(1, g)) & 0xff) as usize]
                        })
                    }));
                }
                Tile {
                    rows: &panel,
                    left: &left,
                    columns,
                    first: block.n as usize,
                    right,
                    d: &mut words[place(block, at, 0)..],
                    accumulate: self.accumulate,
                }
                .multiply(self.level);
            }
        });
    }
}

impl Scaling {
    /// The one scale of a row or column of A (0) or B (1).
    fn value(&self, operand: usize, word: u32) -> f32 {
        self.scale.values()[(word >> (8 * self.byte(operand, 0)) & 0xff) as usize]
    }

    /// The byte of a scale word that group `g` of sixteen codes of A (0) or B (1) has.
    pub(super) fn byte(&self, operand: usize, g: usize) -> u32 {
        self.ids[operand] + (g * self.vector.scales() / GROUPS) as u32
    }
}

/// Index of a block's first lane in column `n` of it.
pub(super) fn place(block: &Block, at: TensorColumns, n: u32) -> usize {
    (at.d + block.column + n) as usize * LANES + block.lane as usize
}

/// Scale words. Each quarter of the lanes reads its own copy.
pub(super) struct Tables {
    /// Of the rows of each block.
    pub(super) a: Vec<[u32; BLOCK]>,
    /// Of the columns of blocks in one quarter that have the same.
    b: Vec<Vec<u32>>,
    /// Which of these each block has.
    index: Vec<usize>,
}

impl Tables {
    fn read(blocks: &[Block], words: &[u32], at: TensorColumns) -> Self {
        let mut tables = Self {
            a: Vec::with_capacity(blocks.len()),
            b: Vec::new(),
            index: Vec::new(),
        };
        let mut known: Vec<(u32, u32)> = Vec::new();
        for block in blocks {
            let quarter = block.lane / 32;
            let word = |base: u32, index: u32| {
                let column = (base + index / 32) as usize;
                words[column * LANES + (32 * quarter + index % 32) as usize]
            };
            let a = std::array::from_fn(|i| word(at.scales[0], block.row + i as u32));
            tables.a.push(a);
            let key = (quarter, block.n);
            let place = known.iter().position(|other| *other == key);
            tables.index.push(place.unwrap_or(known.len()));
            if place.is_none() {
                known.push(key);
                let columns = (0..block.width).map(|n| word(at.scales[1], block.column + n));
                tables.b.push(columns.collect());
            }
        }
        tables
    }

    /// The words of a block's columns.
    pub(super) fn of_b(&self, block: usize) -> &[u32] {
        &self.b[self.index[block]]
    }

    /// The words of each block's rows and columns.
    fn of_blocks(&self) -> impl Iterator<Item = (&[u32; BLOCK], &[u32])> {
        let b = self.index.iter().map(|&index| &self.b[index][..]);
        self.a.iter().zip(b)
    }

    /// Whether all quarters have the same scales of B.
    fn same(&self, blocks: &[Block]) -> bool {
        let both = || blocks.iter().zip(&self.index);
        both().all(|(block, &index)| {
            let first = both().find(|(other, _)| other.n == block.n);
            first.is_none_or(|(_, &other)| other == index || self.b[other] == self.b[index])
        })
    }

    /// Whether no scale is so large or small that a product in f32 could leave its range.
    fn ordinary(&self, scaling: Scaling) -> bool {
        const NEAR: std::ops::RangeInclusive<u8> = 127 - 50..=127 + 50;
        let near = |word: &u32| word.to_le_bytes().iter().all(|code| NEAR.contains(code));
        scaling.scale == Scale::Ue4m3
            || (self.a.as_flattened().iter().all(near) && self.b.iter().flatten().all(near))
    }
}

/// Values of sixteen rows, k by k.
fn expand(form: &Form, operands: &Operands, rows: &[Row], panel: &mut [[f32; BLOCK]]) {
    let sign = if form.negate { -1.0 } else { 1.0 };
    for (i, row) in rows.iter().enumerate() {
        let mut k = 0;
        codes(row, form.a, operands.packing[0], |code| {
            panel[k][i] = sign * form.a.value(code);
            k += 1;
        });
    }
}

/// Terms of each row.
fn terms(
    fused: &Fused,
    element: Element,
    operands: &Operands,
    operand: usize,
    rows: &[Row],
    negate: bool,
) -> Vec<Vec<Term>> {
    let of = |row: &Row| {
        let mut terms = Vec::new();
        codes(row, element, operands.packing[operand], |code| {
            terms.push(fused.term(code, negate));
        });
        terms
    };
    rows.iter().map(of).collect()
}

fn exact_plain(
    product: &Product,
    operands: &Operands,
    rows: &[Row],
    blocks: &[Block],
    words: &mut [u32],
    at: TensorColumns,
) {
    let form = &product.form;
    let (Some(left), Some(right)) = (Fused::blackwell(form.a), Fused::blackwell(form.b)) else {
        return;
    };
    let a = terms(&left, form.a, operands, 0, rows, form.negate);
    let b = terms(&right, form.b, operands, 1, &operands.b, false);
    for block in blocks {
        for n in 0..block.width {
            let y = &b[(block.n + n) as usize];
            for i in 0..BLOCK {
                let x = &a[block.row as usize + i];
                let word = &mut words[place(block, at, n) + i];
                let old = match form.d {
                    _ if !product.accumulate => 0.0,
                    Sum::F16 => half::f16::from_bits(*word as u16).to_f32(),
                    _ => f32::from_bits(*word),
                };
                *word = match form.d {
                    Sum::F16 => dot_f16((&left, &right), x, y, old).into(),
                    _ => dot_f32((&left, &right), x, y, old),
                };
            }
        }
    }
}

/// Four groups of a row of 4-bit codes: halves in order of k, a bit for each that is not zero.
struct Groups {
    halves: [[i8; GROUP]; GROUPS],
    any: [u16; GROUPS],
}

impl Groups {
    fn of(row: &Row, negate: bool) -> Self {
        let mut groups = Self {
            halves: [[0; GROUP]; GROUPS],
            any: [0; GROUPS],
        };
        for (i, &byte) in row.iter().enumerate() {
            for (k, code) in [(2 * i, byte & 15), (2 * i + 1, byte >> 4)] {
                let half = HALVES[usize::from(code)];
                let half = if negate { -half } else { half };
                groups.halves[k / GROUP][k % GROUP] = half;
                groups.any[k / GROUP] |= u16::from(half != 0) << (k % GROUP);
            }
        }
        groups
    }

    fn times(&self, other: &Self, g: usize) -> GroupSum {
        let products = self.halves[g].iter().zip(&other.halves[g]);
        GroupSum {
            quarters: products
                .map(|(x, y)| i32::from(i16::from(*x) * i16::from(*y)))
                .sum(),
            any: self.any[g] & other.any[g] != 0,
        }
    }
}

fn exact_fours(
    product: &Product,
    operands: &Operands,
    rows: &[Row],
    blocks: &[Block],
    (words, at): (&mut [u32], TensorColumns),
    (scaling, tables): (Scaling, &Tables),
) {
    let negate = product.form.negate;
    let a: Vec<Groups> = rows.iter().map(|row| Groups::of(row, negate)).collect();
    let b: Vec<Groups> = operands
        .b
        .iter()
        .map(|row| Groups::of(row, false))
        .collect();
    let factors: [Option<Factor>; 256] =
        std::array::from_fn(|code| scaling.scale.factor(code as u8));
    let factor = |word: u32, operand: usize, g: usize| {
        factors[(word >> (8 * scaling.byte(operand, g)) & 0xff) as usize]
    };
    for (block, (of_a, of_b)) in blocks.iter().zip(tables.of_blocks()) {
        for n in 0..block.width {
            let y = &b[(block.n + n) as usize];
            for i in 0..BLOCK {
                let x = &a[block.row as usize + i];
                let word = &mut words[place(block, at, n) + i];
                let old = if product.accumulate { *word } else { 0 };
                let terms = (0..GROUPS).map(|g| {
                    let scales = (factor(of_a[i], 0, g), factor(of_b[n as usize], 1, g));
                    (x.times(y, g), scales.0, scales.1)
                });
                *word = sum_of_groups(terms, f32::from_bits(old));
            }
        }
    }
}

fn exact_eights(
    product: &Product,
    operands: &Operands,
    rows: &[Row],
    blocks: &[Block],
    (words, at): (&mut [u32], TensorColumns),
    (scaling, tables): (Scaling, &Tables),
) {
    let form = &product.form;
    let (Some(left), Some(right)) = (Fused::blackwell(form.a), Fused::blackwell(form.b)) else {
        return;
    };
    let a = terms(&left, form.a, operands, 0, rows, form.negate);
    let b = terms(&right, form.b, operands, 1, &operands.b, false);
    let factor = |word: u32, operand: usize| {
        scaling
            .scale
            .factor((word >> (8 * scaling.byte(operand, 0))) as u8)
    };
    for (block, (of_a, of_b)) in blocks.iter().zip(tables.of_blocks()) {
        for n in 0..block.width {
            let y = &b[(block.n + n) as usize];
            let right_scale = factor(of_b[n as usize], 1);
            for i in 0..BLOCK {
                let x = &a[block.row as usize + i];
                let word = &mut words[place(block, at, n) + i];
                let old = if product.accumulate {
                    f32::from_bits(*word)
                } else {
                    0.0
                };
                *word = match (factor(of_a[i], 0), right_scale) {
                    (Some(s), Some(t)) => {
                        let power = s.exponent + t.exponent;
                        dot_f32_scaled((&left, &right), (x, y), power, old)
                    }
                    _ => crate::numeric::NAN_F32,
                };
            }
        }
    }
}
