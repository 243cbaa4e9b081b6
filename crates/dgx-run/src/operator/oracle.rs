//! The right answer, on the CPU: multiply on all cores, summing in f64, and keep
//! both products, because how a wrong output relates to them says what went
//! wrong. An answer from elsewhere is held against the definition before it is
//! used.

use gemm_common::Parallelism;
use rand::{Rng, RngExt};
use rayon::prelude::*;

use super::format::{decode_e2m1, decode_e4m3};
use super::operands::{GroupOperands, Operands, SCALE_BLOCK};
use super::{Arithmetic, Evaluator, Extents, Problem, Tensor, Written, is_gated};
use dgx_core::operator::{Op, Operator};

/// Rows dequantised at a time: what bounds the memory of the oracle.
const N_BLOCK: usize = 512;
const M_BLOCK: usize = 1024;
/// Elements of each product, or output, of a group that a spot check computes.
const SPOTS: usize = 64;

/// x / (1 + e⁻ˣ)
pub(crate) fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

/// The answer for a whole shape.
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
    /// The output itself, where the operator is no gated product; then both
    /// products are empty.
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

    /// Whether both products are there.
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

    /// Compares an answer computed elsewhere with the definition: at the corners
    /// and a few places `rng` chooses. Sums of nvfp4 products fit f64 and have
    /// no order, so their bits must agree; others may differ by 2^-40 of what
    /// their terms are.
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
                let problem = Problem {
                    outputs: kept.iter().map(Tensor::packed).collect(),
                    ..given.problem(operator)
                };
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

/// Every output of a group by the definition. One that is named by a later one
/// is taken as rounded to its type.
fn evaluated(operator: &Operator, operands: &GroupOperands) -> Vec<GroupOracle> {
    let mut kept = Vec::new();
    let mut answers = Vec::new();
    for (place, output) in operator.outputs.iter().enumerate() {
        let problem = Problem {
            outputs: kept.iter().map(Tensor::packed).collect(),
            ..operands.problem(operator)
        };
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

/// An output as a kernel would have written these values; without them where no later output
/// names it.
pub(super) fn written_output(
    operator: &Operator,
    place: usize,
    extents: &[u64],
    values: &[f64],
) -> Tensor {
    let later = operator.outputs[place + 1..].iter();
    let mut nodes = later.flat_map(|output| &output.value.nodes);
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

/// An element of an answer that is not what the definition gives.
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

/// As [`Room::solve_in_f64`], by whole numbers.
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
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use dgx_core::domain::Distribution;
    use dgx_core::domain::Shape;
    use dgx_core::operators::usual;
    use dgx_core::record::synthetic::group;

    fn shape(groups: &[(u32, u32, u32)]) -> Shape {
        let groups = groups.iter().map(|&(m, n, k)| group(m, n, k)).collect();
        let name = "t".to_owned();
        Shape { name, groups }
    }

    #[test]
    fn agrees_with_the_definition_on_ragged_groups() {
        let shape = shape(&[(3, 128, 256), (37, 640, 512)]);
        for distribution in Distribution::ALL {
            let operands = Operands::draw(usual(), &shape, distribution, 11);
            let oracle = Oracle::compute(&operands);
            for (group, answer) in operands.groups.iter().zip(&oracle.groups) {
                let Extents {
                    rows: m,
                    columns: n,
                    ..
                } = group.extents();
                for (row, column) in [(0, 0), (m - 1, n - 1), (m / 2, n / 3), (1, n - 2)] {
                    let gate = dot(group.left(), group.gate(), row, column);
                    let up = dot(group.left(), group.up(), row, column);
                    let at = row * n + column;
                    let (found, c) = (answer.c(at), silu(gate) * up);
                    if c.is_nan() {
                        assert!(found.is_nan(), "{distribution}");
                        continue;
                    }
                    assert_eq!(answer.gate[at], gate as f32);
                    assert!((found - c).abs() <= 1e-6 * (1.0 + c.abs()));
                }
            }
        }
    }

    /// Where there is a quicker way, it is taken.
    #[test]
    fn the_way_taken_gives_the_bits_of_f64() {
        let shape = shape(&[(3, 128, 256), (37, 640, 512), (5, 48, 7168)]);
        for distribution in Distribution::ALL {
            let mut operands = Operands::draw(usual(), &shape, distribution, 7);
            // The largest of everything in one row, a scale that is no number in another.
            let group = &mut operands.groups[0];
            group.inputs[0].elements[..128].fill(0xf7);
            group.inputs[0].scales[..16].fill(0x7e);
            group.inputs[1].elements[..128].fill(0x7f);
            group.inputs[2].scales[17] = 0x7f;
            for (index, group) in operands.groups.iter().enumerate() {
                let mut room = Room::default();
                let (plain, taken) = (room.solve_in_f64(group), room.solve(group));
                let same = |a: &[f32], b: &[f32]| {
                    let mut pairs = a.iter().zip(b);
                    pairs.all(|(a, b)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan())
                };
                assert!(index > 0 || taken.up[1].is_nan());
                assert!(same(&plain.gate, &taken.gate), "gate, {distribution}");
                assert!(same(&plain.up, &taken.up), "up, {distribution}");
            }
        }
    }

    #[test]
    fn an_answer_from_elsewhere_is_held_against_the_definition() {
        let shape = shape(&[(40, 256, 512), (3, 384, 256)]);
        for distribution in Distribution::ALL {
            let operands = Operands::draw(usual(), &shape, distribution, 3);
            let right = Oracle::compute(&operands);
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            right.spot_check(&operands, &mut rng).unwrap();
            // One bit in a corner, a product that belongs to the other weights, NaN.
            let mut wrong = right.clone();
            let last = wrong.groups[1].up.last_mut().unwrap();
            *last = match last.is_nan() {
                true => 1.0,
                false => f32::from_bits(last.to_bits() ^ 1),
            };
            assert_eq!(wrong.spot_check(&operands, &mut rng).unwrap_err().group, 1);
            let mut wrong = right.clone();
            let group = &mut wrong.groups[0];
            std::mem::swap(&mut group.gate, &mut group.up);
            assert!(wrong.spot_check(&operands, &mut rng).is_err());
            let mut wrong = right.clone();
            wrong.groups[0].gate.fill(f32::NAN);
            assert!(wrong.spot_check(&operands, &mut rng).is_err());
        }
    }

    #[test]
    fn outputs_stay_inside_fp16_and_are_not_all_tiny() {
        for k in [256, 7168] {
            let shape = shape(&[(64, 256, k)]);
            for distribution in [Distribution::Benchmark, Distribution::Full] {
                let oracle = Oracle::compute(&Operands::draw(usual(), &shape, distribution, 5));
                let group = &oracle.groups[0];
                let outputs: Vec<f64> = (0..group.gate.len()).map(|i| group.c(i)).collect();
                let largest = outputs.iter().fold(0.0, |a: f64, c| a.max(c.abs()));
                let telling = outputs.iter().filter(|c| c.abs() > 0.05).count();
                assert!(largest < 65504.0, "{distribution} k {k}: {largest}");
                assert!(
                    telling * 3 > outputs.len(),
                    "{distribution} k {k}: {telling}"
                );
            }
        }
    }

    /// Every way out of fp16 occurs, and most of C is comparable all the same.
    #[test]
    fn corners_have_every_class_of_value() {
        type Class<'c> = &'c dyn Fn(f64, f64, f64) -> bool;
        for distribution in [Distribution::Corner, Distribution::CornerUnsigned] {
            for seed in 0..8 {
                let shape = shape(&[(100, 128, 256)]);
                let operands = Operands::draw(usual(), &shape, distribution, seed);
                let group = &Oracle::compute(&operands).groups[0];
                let count = |of: Class<'_>| {
                    let places = 0..group.gate.len();
                    let values =
                        |i: usize| (f64::from(group.gate[i]), f64::from(group.up[i]), group.c(i));
                    let all = places.map(values);
                    all.filter(|&(gate, up, c)| of(gate, up, c)).count()
                };
                let finite = count(&|_, _, c| c.abs() < 65000.0);
                assert!(finite > 100 * 128 / 2, "{distribution} {seed}: {finite}");
                let tiny = 2f64.powi(-23)..2f64.powi(-14);
                let classes: [(&str, Class<'_>); 6] = [
                    ("NaN", &|_, _, c| c.is_nan()),
                    ("infinity", &|_, _, c| c > 65520.0),
                    ("minus infinity", &|_, _, c| c < -65520.0),
                    ("denormal", &|_, _, c| tiny.contains(&c.abs())),
                    ("gate beyond fp16", &|gate, _, c| {
                        gate > 70000.0 && c != 0.0 && c.abs() < 65000.0
                    }),
                    ("up beyond fp16", &|_, up, c| {
                        up.abs() > 70000.0 && c != 0.0 && c.abs() < 65000.0
                    }),
                ];
                for (class, of) in classes {
                    assert!(count(of) > 0, "{distribution} {seed}: no {class}");
                }
                let scales = &operands.groups[0].left().scales;
                let negative = scales.iter().any(|scale| *scale > 0x80);
                assert_eq!(negative, distribution == Distribution::Corner);
            }
        }
    }

    /// Whatever order the blocks along K are put in, each of them is the only
    /// one with a NaN in some row of B1, and of B2; and where A has a NaN, some
    /// column has one in both.
    #[test]
    fn corners_have_a_nan_in_every_block_and_in_both_scales_of_one() {
        for distribution in [Distribution::Corner, Distribution::CornerUnsigned] {
            for m in [3, 8, 40, 100] {
                let group = group(m, 128, 256);
                let operands = GroupOperands::draw(usual(), &group, 0, distribution, u64::from(m));
                // The block of the only NaN of each row.
                let alone = |scales: &[u8]| -> Vec<Option<usize>> {
                    let nan = |scale: &u8| scale & 0x7f == 0x7f;
                    let one = |row: &[u8]| row.iter().filter(|scale| nan(scale)).count() == 1;
                    let rows = scales.chunks(16);
                    rows.map(|row| row.iter().position(nan).filter(|_| one(row)))
                        .collect()
                };
                let [a, b1, b2] =
                    [0, 1, 2].map(|tensor: usize| alone(&operands.inputs[tensor].scales));
                for block in 0..16 {
                    assert!(b1.contains(&Some(block)), "{distribution}, B1, {block}");
                    assert!(b2.contains(&Some(block)), "{distribution}, B2, {block}");
                }
                let found = a.iter().flatten().count();
                assert_eq!(found, (m as usize / 8).min(16), "{distribution}, A");
                let twice = |scales: &[u8]| {
                    let nan = |scale: &&u8| **scale & 0x7f == 0x7f;
                    let rows = scales.chunks(16);
                    rows.filter(|row| row.iter().filter(nan).count() == 2)
                        .count()
                };
                let [a2, b1_2, b2_2] =
                    [0, 1, 2].map(|tensor: usize| twice(&operands.inputs[tensor].scales));
                assert_eq!(a2 > 0, m >= 8, "{distribution}, A");
                assert!(b1_2 > 0 && b2_2 > 0, "{distribution}, B");
                let pairs = || b1.iter().zip(&b2).filter(|(one, two)| one == two);
                let both = |at: &usize| pairs().any(|(one, _)| *one == Some(*at));
                assert!(m < 8 || a.iter().flatten().any(both), "{distribution} {m}");
            }
        }
    }

    /// Every tensor of enough rows has the largest scale and the most negative,
    /// and sums of many blocks leave fp16 where C does not.
    #[test]
    fn corners_have_both_ends_of_the_scales_and_large_sums_of_many_blocks() {
        for seed in 0..16 {
            let shape = shape(&[(64, 128, 256)]);
            let operands = Operands::draw(usual(), &shape, Distribution::Corner, seed);
            let [a, b1, b2] = [0, 1, 2].map(|tensor: usize| &operands.groups[0].inputs[tensor]);
            for tensor in [a, b1, b2] {
                let ends = [0x7e, 0xfe].map(|end: u8| tensor.scales.contains(&end));
                assert_eq!(ends, [true; 2], "{seed}");
            }
            let answer = &Oracle::compute(&operands).groups[0];
            let blocks = |elements: &[u8], row: usize| {
                let blocks = elements[row * 128..][..128].chunks(8);
                blocks
                    .filter(|block| block.iter().any(|byte| byte & 0x77 != 0))
                    .count()
            };
            for (product, b) in [(&answer.gate, b1), (&answer.up, b2)] {
                for least in [512.0, 66000.0] {
                    let large = (0..64 * 128).filter(|&at| {
                        let many =
                            blocks(&a.elements, at / 128).min(blocks(&b.elements, at % 128)) > 1;
                        let c = answer.c(at).abs();
                        many && product[at].abs() > least && (1e-3..6e4).contains(&c)
                    });
                    let found = large.count();
                    assert!(found > 0, "{seed}: none above {least}");
                }
            }
        }
    }

    /// Small numbers of every size: two or three units of fp16, and what an
    /// absolute tolerance of 10⁻³ could hide.
    #[test]
    fn corners_have_small_values_of_every_size() {
        for seed in 0..16 {
            let shape = shape(&[(40, 128, 256)]);
            let operands = Operands::draw(usual(), &shape, Distribution::Corner, seed);
            let group = &Oracle::compute(&operands).groups[0];
            let count = |from: i32, to: f64| {
                let range = 2f64.powi(from)..to;
                let all = (0..group.gate.len()).map(|i| group.c(i).abs());
                all.filter(|c| range.contains(c)).count()
            };
            let deep = count(-22, 2f64.powi(-21));
            assert!(deep > 2, "{seed}: {deep} of four to eight units");
            let normal = count(-14, 9e-4);
            assert!(normal > 20, "{seed}: {normal} small normal numbers");
        }
    }

    #[test]
    fn silu_at_its_ends() {
        assert_eq!(silu(0.0), 0.0);
        assert_eq!(silu(-1000.0), 0.0);
        assert_eq!(silu(1000.0), 1000.0);
        assert!((silu(1.0) - 0.731_058_578_630_005).abs() < 1e-12);
    }
}
