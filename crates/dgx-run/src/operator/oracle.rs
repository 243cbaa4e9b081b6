//! The expected result, on the CPU: multiplies on all cores, sums in f64, and keeps both products,
//! because the relation of a wrong output to them shows the mistake. A result from another source
//! is checked against the definition before it is used.

use gemm_common::Parallelism;
use rand::{Rng, RngExt};
use rayon::prelude::*;

use super::format::{decode_e2m1, decode_e4m3};
use super::operands::{GroupOperands, Operands, SCALE_BLOCK};
use super::{Arithmetic, Evaluator, Extents, Tensor, Written, is_gated};
use dgx_core::operator::{Op, Operator};

/// Rows dequantised at a time: limits the memory of the oracle.
const N_BLOCK: usize = 512;
const M_BLOCK: usize = 1024;
/// Elements of each product, or output, of a group that a spot check computes.
const SPOTS: usize = 64;

/// x / (1 + e⁻ˣ)
pub(crate) fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

/// The expected result of a whole shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Oracle {
    pub groups: Vec<GroupOracle>,
}

/// Both products of a group, row-major M × N: summed in f64 and rounded once
/// to f32, an error four orders of magnitude below the tolerance.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupOracle {
    pub rows: usize,
    pub columns: usize,
    /// A·B1ᵀ
    pub gate: Vec<f32>,
    /// A·B2ᵀ
    pub up: Vec<f32>,
    /// The output itself, if the operator is not a gated product; then both products are empty.
    pub values: Vec<f64>,
}

impl GroupOracle {
    fn empty(Extents { rows, columns, .. }: Extents) -> Self {
        let size = rows * columns;
        Self {
            rows,
            columns,
            gate: vec![0.0; size],
            up: vec![0.0; size],
            values: Vec::new(),
        }
    }

    /// Whether it has both products.
    pub fn is_gated(&self) -> bool {
        self.values.is_empty()
    }

    /// Elements of the output.
    pub fn len(&self) -> usize {
        self.rows * self.columns
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Element `index` of the output.
    pub fn c(&self, index: usize) -> f64 {
        if !self.is_gated() {
            return self.values[index];
        }
        silu(f64::from(self.gate[index])) * f64::from(self.up[index])
    }
}

impl Oracle {
    pub(crate) fn compute(operands: &Operands) -> Self {
        let mut room = Room::default();
        let operator = &operands.operator;
        let groups = operands.groups.iter();
        Self {
            groups: match is_gated(operator) {
                true => groups.map(|g| room.solve(g)).collect(),
                false => groups.flat_map(|g| evaluated(operator, g)).collect(),
            },
        }
    }

    /// Compares a result computed elsewhere with the definition: at the corners and a few places
    /// that `rng` chooses. Sums of nvfp4 products are exact in f64 in any order, so their bits must
    /// agree; others may differ by 2^-40 of the size of their terms.
    pub(crate) fn spot_check(
        &self,
        operands: &Operands,
        rng: &mut impl Rng,
    ) -> Result<(), Departure> {
        if !is_gated(&operands.operator) {
            return self.spot_check_values(operands, rng);
        }
        for (index, (answer, given)) in self.groups.iter().zip(&operands.groups).enumerate() {
            for (row, column) in spots(answer.rows, answer.columns, rng) {
                let columns = answer.columns;
                let products = [
                    ("gate", &answer.gate, given.gate()),
                    ("up", &answer.up, given.up()),
                ];
                for (product, found, right) in products {
                    let wanted = dot(given.left(), right, row, column) as f32;
                    let found = found[row * columns + column];
                    let nan = found.is_nan() && wanted.is_nan();
                    if found.to_bits() != wanted.to_bits() && !nan {
                        return Err(Departure {
                            of: product.to_owned(),
                            group: index,
                            row,
                            column,
                            found: found.into(),
                            wanted: wanted.into(),
                        });
                    }
                }
            }
        }
        Ok(())
    }

    fn spot_check_values(&self, operands: &Operands, rng: &mut impl Rng) -> Result<(), Departure> {
        let operator = &operands.operator;
        let answers = self.groups.chunks(operator.outputs.len());
        for (group, (answers, given)) in answers.zip(&operands.groups).enumerate() {
            let mut kept = Vec::new();
            for (place, (answer, output)) in answers.iter().zip(&operator.outputs).enumerate() {
                let problem = given.problem_with(operator, &kept);
                let extents = output.tensor.extents(&problem.sizes).unwrap_or_default();
                let evaluator = Evaluator::new(&output.value, &extents, &problem)
                    .expect("operands drawn for the operator");
                let departure = |(row, column): (usize, usize)| {
                    let found = answer.c(row * answer.columns + column);
                    let moved = evaluator.moved(row, column, Arithmetic::F64);
                    (!moved.is_near(found)).then(|| Departure {
                        of: output.tensor.name.clone(),
                        group,
                        row,
                        column,
                        found,
                        wanted: moved.value,
                    })
                };
                let spots = spots(answer.rows, answer.columns, rng);
                if let Some(departure) = spots.into_par_iter().find_map_first(departure) {
                    return Err(departure);
                }
                kept.push(written_output(operator, place, &extents, &answer.values));
            }
        }
        Ok(())
    }
}

/// The corners of an output and a few places that `rng` chooses.
fn spots(rows: usize, columns: usize, rng: &mut impl Rng) -> Vec<(usize, usize)> {
    let (bottom, right) = (rows - 1, columns - 1);
    let corners = [(0, 0), (0, right), (bottom, 0), (bottom, right)];
    let drawn = (0..SPOTS).map(|_| (rng.random_range(0..rows), rng.random_range(0..columns)));
    corners.into_iter().chain(drawn).collect()
}

/// Every output of a group by the definition. An output that a later one names is rounded to its
/// type there.
fn evaluated(operator: &Operator, operands: &GroupOperands) -> Vec<GroupOracle> {
    let mut kept = Vec::new();
    let mut answers = Vec::new();
    for (place, output) in operator.outputs.iter().enumerate() {
        let problem = operands.problem_with(operator, &kept);
        let extents = output.tensor.extents(&problem.sizes).unwrap_or_default();
        let evaluator = Evaluator::new(&output.value, &extents, &problem)
            .expect("operands drawn for the operator");
        let (rows, columns) = (evaluator.row_count(), evaluator.width());
        let values = evaluator.rows(0..rows);
        kept.push(written_output(operator, place, &extents, &values));
        answers.push(GroupOracle {
            rows,
            columns,
            gate: Vec::new(),
            up: Vec::new(),
            values,
        });
    }
    answers
}

/// The first outputs of a problem as a kernel writes them, for the value of the next to read.
pub(crate) fn written_outputs(
    operator: &Operator,
    sizes: &[u64],
    answers: &[GroupOracle],
) -> Vec<Tensor> {
    let outputs = operator.outputs.iter().zip(answers).enumerate();
    let written = outputs.map(|(place, (output, answer))| {
        let extents = output.tensor.extents(sizes).unwrap_or_default();
        written_output(operator, place, &extents, &answer.values)
    });
    written.collect()
}

/// An output as a kernel would have written these values; empty if no later output names it.
pub(super) fn written_output(
    operator: &Operator,
    place: usize,
    extents: &[u64],
    values: &[f64],
) -> Tensor {
    let later = operator.outputs[place + 1..].iter().map(|o| &o.value);
    let mistakes = operator.mistakes.iter().map(|mistake| &mistake.value);
    let mut nodes = later.chain(mistakes).flat_map(|value| &value.nodes);
    let values = match nodes.any(|node| node.op == Op::Output(place)) {
        true => values,
        false => &[],
    };
    let tensor = &operator.outputs[place].tensor;
    let written = Written::rounded(tensor.element, values.iter().copied());
    Tensor {
        name: tensor.name.clone(),
        element: tensor.element,
        extents: extents.iter().map(|extent| *extent as usize).collect(),
        elements: written.bytes().to_vec(),
        scales: Vec::new(),
    }
}

/// An element of a result that differs from the definition.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "{of} of group {group} at row {row}, column {column} is {found:e}, by the definition {wanted:e}"
)]
pub(crate) struct Departure {
    /// A product, or an output.
    pub of: String,
    pub group: usize,
    pub row: usize,
    pub column: usize,
    pub found: f64,
    pub wanted: f64,
}

/// The definition of one element of A·Bᵀ.
fn dot(left: &Tensor, right: &Tensor, row: usize, column: usize) -> f64 {
    let depth = left.columns();
    let value = |tensor: &Tensor, row: usize, i: usize| {
        let byte = tensor.elements[row * depth / 2 + i / 2];
        let code = if i.is_multiple_of(2) {
            byte & 15
        } else {
            byte >> 4
        };
        let scale = tensor.scales[row * depth / SCALE_BLOCK + i / SCALE_BLOCK];
        decode_e2m1(code) * decode_e4m3(scale)
    };
    (0..depth)
        .map(|i| value(left, row, i) * value(right, column, i))
        .sum()
}

/// Buffers reused over blocks and groups.
#[derive(Default)]
struct Room {
    a: Vec<f64>,
    b: Vec<f64>,
    product: Vec<f64>,
}

impl Room {
    fn solve(&mut self, operands: &GroupOperands) -> GroupOracle {
        #[cfg(target_arch = "x86_64")]
        if super::blocks::available() {
            return solve_by_blocks(operands);
        }
        self.solve_in_f64(operands)
    }

    /// Dequantises to f64 and multiplies.
    fn solve_in_f64(&mut self, operands: &GroupOperands) -> GroupOracle {
        let extents = operands.extents();
        let mut oracle = GroupOracle::empty(extents);
        for first_row in (0..extents.rows).step_by(M_BLOCK) {
            let rows = first_row..(first_row + M_BLOCK).min(extents.rows);
            dequantise(operands.left(), rows.clone(), &mut self.a);
            let out = first_row * extents.columns..rows.end * extents.columns;
            self.multiply(operands.gate(), &mut oracle.gate[out.clone()]);
            self.multiply(operands.up(), &mut oracle.up[out]);
        }
        oracle
    }

    /// `out` = A · Bᵀ for the rows of A that are in the room.
    fn multiply(&mut self, right: &Tensor, out: &mut [f32]) {
        let (all, depth) = (right.rows(), right.columns());
        let rows = self.a.len() / depth;
        for first in (0..all).step_by(N_BLOCK) {
            let columns = first..(first + N_BLOCK).min(all);
            let width = columns.len();
            dequantise(right, columns.clone(), &mut self.b);
            self.product.resize(rows * width, 0.0);
            multiply_transposed(&self.a, &self.b, depth, &mut self.product);
            out.par_chunks_mut(all)
                .zip(self.product.par_chunks(width))
                .for_each(|(row, product)| {
                    for (c, p) in row[columns.clone()].iter_mut().zip(product) {
                        *c = *p as f32;
                    }
                });
        }
    }
}

/// Like [`Room::solve_in_f64`], by whole numbers.
#[cfg(target_arch = "x86_64")]
fn solve_by_blocks(operands: &GroupOperands) -> GroupOracle {
    let extents = operands.extents();
    let Extents { columns, depth, .. } = extents;
    let mut oracle = GroupOracle::empty(extents);
    let (left, gate, up) = (operands.left(), operands.gate(), operands.up());
    let rows = left.elements.chunks(M_BLOCK * depth / 2);
    let scales = left.scales.chunks(M_BLOCK * depth / SCALE_BLOCK);
    let gates = oracle.gate.chunks_mut(M_BLOCK * columns);
    let ups = oracle.up.chunks_mut(M_BLOCK * columns);
    for (((rows, scales), gates), ups) in rows.zip(scales).zip(gates).zip(ups) {
        let left = super::blocks::Left::new(rows, scales, depth);
        left.multiply(&gate.elements, &gate.scales, gates);
        left.multiply(&up.elements, &up.scales, ups);
    }
    oracle
}

/// `out` (a's rows × b's rows, row-major) = a · bᵀ, both of `depth` columns.
fn multiply_transposed(a: &[f64], b: &[f64], depth: usize, out: &mut [f64]) {
    let (rows, columns) = (a.len() / depth, b.len() / depth);
    assert_eq!(out.len(), rows * columns);
    let multiply = gemm_f64::gemm::f64::get_gemm_fn();
    // The kernel writes columns fastest, so it is given the transpose: outᵀ = b · aᵀ.
    // SAFETY: the strides describe exactly the three slices, whose lengths are
    // theirs, and `out` does not overlap the inputs.
    unsafe {
        multiply(
            columns,
            rows,
            depth,
            out.as_mut_ptr(),
            columns as isize,
            1,
            false,
            b.as_ptr(),
            1,
            depth as isize,
            a.as_ptr(),
            depth as isize,
            1,
            0.0,
            1.0,
            false,
            false,
            false,
            Parallelism::Rayon(0),
        );
    }
}

/// Rows `rows` of a packed tensor as f64, exactly.
fn dequantise(tensor: &Tensor, rows: std::ops::Range<usize>, out: &mut Vec<f64>) {
    let depth = tensor.columns();
    let codes: [f64; 16] = std::array::from_fn(|code| decode_e2m1(code as u8));
    let scale_values: [f64; 256] = std::array::from_fn(|code| decode_e4m3(code as u8));
    let (width, scale_width) = (depth / 2, depth / SCALE_BLOCK);
    out.resize(rows.len() * depth, 0.0);
    out.par_chunks_mut(depth)
        .zip(tensor.elements[rows.start * width..].par_chunks(width))
        .zip(tensor.scales[rows.start * scale_width..].par_chunks(scale_width))
        .for_each(|((out, elements), scales)| {
            let blocks = out
                .chunks_exact_mut(SCALE_BLOCK)
                .zip(elements.chunks_exact(SCALE_BLOCK / 2));
            for ((out, packed), scale) in blocks.zip(scales) {
                let scale = scale_values[usize::from(*scale)];
                for (pair, byte) in out.chunks_exact_mut(2).zip(packed) {
                    pair[0] = codes[usize::from(byte & 15)] * scale;
                    pair[1] = codes[usize::from(byte >> 4)] * scale;
                }
            }
        });
}

#[cfg(test)]
mod tests;
