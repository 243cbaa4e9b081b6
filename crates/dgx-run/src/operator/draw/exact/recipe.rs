//! Chooses the data that suit an operator's value.

use dgx_core::operator::{BinaryOp, Node, NodeId, Number, Op, Operator, ReduceOp, Value};

use super::product::{OperandRole, ProductOperand};
use super::{ExactData, attention, ordinary, product, rows};

/// Sums of more terms may not be exact.
pub(super) const LONGEST: u64 = 1 << 16;

/// How exact data are made for an operator. Inputs are given by index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipe {
    /// Products of inputs: the axis of each that is summed over, counted from
    /// the end, and its side.
    Products(Vec<ProductOperand>),
    /// Sums of squares along the last axis of an input.
    Squares { input: usize },
    /// Softmax along the last axis of an input.
    Softmax { input: usize },
    /// `softmax(… q @ k.T …) @ v`
    Attention { q: usize, k: usize, v: usize },
}

impl Recipe {
    /// The recipe for an operator, if there is one for all of its sums.
    pub fn of(operator: &Operator) -> Option<Self> {
        let [output] = operator.outputs.as_slice() else {
            return None;
        };
        let value = &output.value;
        let plain = |input: usize| {
            let tensor = &operator.inputs[input];
            tensor.element.scale().is_none() && tensor.range.is_none()
        };
        if let Some([q, k, v]) = attention_of(value) {
            let all = [q, k, v].into_iter().all(plain);
            return all.then_some(Self::Attention { q, k, v });
        }
        let products = products_of(value)?;
        let axes: Vec<&Op> = value
            .nodes
            .iter()
            .map(|node| &node.op)
            .filter(|op| reads_an_axis(op))
            .collect();
        match (products.as_slice(), axes.as_slice()) {
            ([_, ..], []) => {
                let scaled =
                    |side: &&ProductOperand| operator.inputs[side.input].element.scale().is_some();
                let along = products.iter().filter(scaled).all(|side| side.axis == 0);
                // Integers have such data for ranges without their minimum.
                let free = |side: &ProductOperand| {
                    let tensor = &operator.inputs[side.input];
                    tensor.range.is_none() || tensor.element.number() != Number::Real
                };
                (along && products.iter().all(free)).then_some(Self::Products(products))
            }
            ([], [Op::Reduce(ReduceOp::Sum | ReduceOp::Mean, 0)]) => {
                let input = squared(value)?;
                plain(input).then_some(Self::Squares { input })
            }
            ([], [Op::Softmax(0)]) => {
                let input = softened(value)?;
                plain(input).then_some(Self::Softmax { input })
            }
            _ => None,
        }
    }

    /// Whether problems of these sizes have such data: sums that are neither too short for them nor
    /// too long to stay exact.
    pub fn fits(&self, operator: &Operator, sizes: &[u64]) -> bool {
        let extents = |input: usize| -> Option<Vec<u64>> { operator.inputs[input].extents(sizes) };
        let along = |input: usize, axis: usize| {
            let extents = extents(input)?;
            extents.get(extents.len().checked_sub(axis + 1)?).copied()
        };
        let fits = match self {
            Self::Products(sides) => sides
                .iter()
                .map(|side| {
                    let element = operator.inputs[side.input].element;
                    along(side.input, side.axis).map(|length| product::has_data(element, length))
                })
                .collect::<Option<Vec<bool>>>()
                .map(|all| all.into_iter().all(|fits| fits)),
            Self::Squares { input } => along(*input, 0).map(|width| width <= LONGEST),
            Self::Softmax { input } => along(*input, 0).map(|width| {
                let small = rows::softmax(operator.inputs[*input].element, &[1], 0);
                width <= LONGEST && small.is_some()
            }),
            Self::Attention { q, k, .. } => along(*q, 0).zip(along(*k, 1)).map(|(width, keys)| {
                let element = operator.inputs[*q].element;
                attention::has_data(element, width as usize, keys as usize)
            }),
        };
        fits == Some(true)
    }

    /// Whether the result is itself a sum, so that it can be compared without a tolerance.
    pub fn is_sum(&self, operator: &Operator) -> bool {
        let value = &operator.outputs[0].value;
        matches!(self, Self::Products(_)) && value.node(value.root).op == Op::MatMul
    }

    /// All inputs of one problem; `None` if its sizes are too small for the recipe, or do not fit
    /// in memory.
    pub fn draw(
        &self,
        operator: &Operator,
        sizes: &[u64],
        group: usize,
        seed: u64,
    ) -> Option<Vec<ExactData>> {
        let extents: Vec<Vec<usize>> = operator
            .inputs
            .iter()
            .map(|tensor| {
                tensor.bytes(sizes)?;
                let extents = tensor.extents(sizes)?;
                Some(extents.into_iter().map(|e| e as usize).collect())
            })
            .collect::<Option<_>>()?;
        let seed = super::bits(seed, [group, 0, 0]);
        let keys = |k: usize| extents[k].iter().rev().nth(1).copied();
        let draw = |input: usize| {
            let (tensor, extents) = (&operator.inputs[input], &extents[input]);
            let element = tensor.element;
            let own = super::bits(seed, [1 + input, 0, 0]);
            match self {
                Self::Products(sides) => match sides.iter().find(|s| s.input == input) {
                    Some(side) => {
                        let least = tensor
                            .range(sizes)
                            .is_none_or(|(low, _)| low <= product::LEAST);
                        product::draw(element, extents, side, [seed, own], least)
                    }
                    None => Some(ordinary(tensor, sizes, extents, own)),
                },
                Self::Squares { input: x } if *x == input => {
                    Some(rows::squares(element, extents, own))
                }
                Self::Softmax { input: x } if *x == input => rows::softmax(element, extents, own),
                Self::Attention { q, k, v } if [q, k, v].contains(&&input) => {
                    let which = [q, k, v].map(|tensor| *tensor == input);
                    attention::draw(element, extents, keys(*k)?, which, [seed, own])
                }
                _ => Some(ordinary(tensor, sizes, extents, own)),
            }
        };
        (0..operator.inputs.len()).map(draw).collect()
    }
}

fn reads_an_axis(op: &Op) -> bool {
    matches!(
        op,
        Op::Reduce(..) | Op::Softmax(_) | Op::Cumsum(_) | Op::Argsort(_)
    )
}

/// The input that a node is, and whether its last two axes are swapped.
fn input_of(value: &Value, id: NodeId) -> Option<(usize, bool)> {
    let node = value.node(id);
    match node.op {
        Op::Input(input) => Some((input, false)),
        Op::Transpose => input_of(value, node.inputs[0]).map(|(input, swapped)| (input, !swapped)),
        _ => None,
    }
}

/// The sides of all products; `None` if one is not of two inputs, or an input is on both sides or
/// summed over along both axes.
fn products_of(value: &Value) -> Option<Vec<ProductOperand>> {
    let mut sides: Vec<ProductOperand> = Vec::new();
    for node in value.nodes.iter().filter(|node| node.op == Op::MatMul) {
        let (left, left_swapped) = input_of(value, node.inputs[0])?;
        let (right, right_swapped) = input_of(value, node.inputs[1])?;
        let both = [
            (left, usize::from(left_swapped), OperandRole::Repeated),
            (right, usize::from(!right_swapped), OperandRole::Cancelling),
        ];
        for (input, axis, role) in both {
            let side = ProductOperand { input, axis, role };
            match sides.iter().find(|other| other.input == input) {
                Some(other) if *other != side => return None,
                Some(_) => {}
                None => sides.push(side),
            }
        }
    }
    Some(sides)
}

/// x of the one reduction of `x * x`.
fn squared(value: &Value) -> Option<usize> {
    let reduce = value
        .nodes
        .iter()
        .find(|node| matches!(node.op, Op::Reduce(..)))?;
    let times = value.node(reduce.inputs[0]);
    let multiply = Op::Binary(BinaryOp::Multiply);
    if times.op != multiply || times.inputs[0] != times.inputs[1] {
        return None;
    }
    let (input, swapped) = input_of(value, times.inputs[0])?;
    (!swapped).then_some(input)
}

fn softened(value: &Value) -> Option<usize> {
    let softmax = value
        .nodes
        .iter()
        .find(|node| matches!(node.op, Op::Softmax(_)))?;
    let (input, swapped) = input_of(value, softmax.inputs[0])?;
    (!swapped).then_some(input)
}

/// q, k and v of two products with a softmax between.
fn attention_of(value: &Value) -> Option<[usize; 3]> {
    let products: Vec<&Node> = value
        .nodes
        .iter()
        .filter(|node| node.op == Op::MatMul)
        .collect();
    let [scores, sum] = products.as_slice() else {
        return None;
    };
    let soft = |node: &&Node| matches!(node.op, Op::Softmax(0));
    (value.nodes.iter().filter(soft).count() == 1).then_some(())?;
    let (q, q_swapped) = input_of(value, scores.inputs[0])?;
    let (k, k_swapped) = input_of(value, scores.inputs[1])?;
    let (v, v_swapped) = input_of(value, sum.inputs[1])?;
    let straight = !q_swapped && k_swapped && !v_swapped && q != k && k != v && q != v;
    straight.then_some([q, k, v])
}
