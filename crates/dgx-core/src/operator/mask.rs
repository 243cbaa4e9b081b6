//! Counts the elements that a `where` on indices alone leaves out.

use std::collections::BTreeSet;

use super::work::Steps;
use super::{BinaryOp, NodeId, Op, UnaryOp};

/// Elements of a row that are evaluated if all would have to be.
const MAX_POINTS: u64 = 4096;
/// Steps that counting may take for one problem; a mask takes a quarter at most.
pub(super) const BUDGET: u64 = 1 << 24;

/// A condition on indices, and whether the elements that meet it are kept.
pub(super) struct Mask {
    condition: NodeId,
    keeps: bool,
    /// The `where` itself: its extents are counted over.
    at: NodeId,
}

impl Mask {
    /// The condition that selects the used elements of a product.
    pub(super) fn on(steps: &Steps<'_>, product: NodeId) -> Option<Self> {
        let mut id = product;
        loop {
            let [(user, place)] = steps.users[id][..] else {
                return None;
            };
            if steps.roots.contains(&id) || steps.extents[user] != steps.extents[product] {
                return None;
            }
            let (node, inputs) = &steps.nodes[user];
            match (&node.op, place) {
                (Op::Where, 1 | 2) if is_index(steps, inputs[0]) => {
                    return Some(Self {
                        condition: inputs[0],
                        keeps: place == 1,
                        at: user,
                    });
                }
                (Op::Unary(_) | Op::Binary(_) | Op::Cast(_), _) => id = user,
                _ => return None,
            }
        }
    }

    /// The condition that selects the non-zero elements of an operand.
    pub(super) fn of(steps: &Steps<'_>, operand: NodeId) -> Option<Self> {
        let (mut id, mut nothing) = (operand, 0.0);
        loop {
            let (node, inputs) = &steps.nodes[id];
            id = match node.op {
                Op::Where => {
                    let is_nothing = |id: NodeId| matches!(steps.nodes[id].0.op, Op::Constant(v) if v == nothing);
                    let keeps = is_nothing(inputs[2]);
                    let masks = keeps || is_nothing(inputs[1]);
                    return (masks && is_index(steps, inputs[0])).then_some(Self {
                        condition: inputs[0],
                        keeps,
                        at: id,
                    });
                }
                Op::Softmax(_) | Op::Unary(UnaryOp::Exp | UnaryOp::Exp2) if nothing == 0.0 => {
                    nothing = f64::NEG_INFINITY;
                    inputs[0]
                }
                Op::Cast(_) | Op::Transpose => inputs[0],
                Op::Binary(BinaryOp::Divide) if nothing == 0.0 => inputs[0],
                _ => return None,
            };
        }
    }

    /// The share of elements that are kept.
    pub(super) fn share(&self, steps: &Steps<'_>) -> f64 {
        let program = needed(steps, self.condition);
        let axes: BTreeSet<usize> = program.iter().filter_map(|id| axis(steps, *id)).collect();
        let axes: Vec<usize> = axes.into_iter().collect();
        let shape = &steps.extents[self.at];
        let extent = |axis: &usize| shape.len().checked_sub(axis + 1).map_or(1, |at| shape[at]);
        let Some((inner, outer)) = axes.split_first() else {
            return 1.0;
        };
        let mut row = Row {
            steps,
            index: vec![0; shape.len().max(inner + 1)],
            values: vec![0.0; self.condition + 1],
            length: extent(inner),
            axis: *inner,
            linear: is_linear(steps, &program, *inner),
            program,
            condition: self.condition,
        };
        let rows: u64 = outer.iter().map(extent).fold(1, u64::saturating_mul);
        let (left, cost) = (steps.budget.get(), row.cost());
        let taken = rows.min(left.min(BUDGET / 4) / cost);
        steps.budget.set(left - taken * cost);
        if taken == 0 {
            return 1.0;
        }
        let mut held = 0.0;
        for sample in 0..taken {
            // The middle of each of `taken` equal parts; every row, if all are taken.
            let middle = (2 * u128::from(sample) + 1) * u128::from(rows) / (2 * u128::from(taken));
            let mut rest = middle as u64;
            for axis in outer {
                row.index[*axis] = rest % extent(axis);
                rest /= extent(axis);
            }
            held += row.held() as f64;
        }
        let share = held / (taken as f64 * row.length as f64);
        if self.keeps { share } else { 1.0 - share }
    }
}

/// Steps that `root` needs, itself included, in order.
fn needed(steps: &Steps<'_>, root: NodeId) -> Vec<NodeId> {
    let mut needed = BTreeSet::from([root]);
    let mut next = Some(root);
    while let Some(id) = next {
        needed.extend(&steps.nodes[id].1);
        next = needed.range(..id).next_back().copied();
    }
    needed.into_iter().collect()
}

fn axis(steps: &Steps<'_>, id: NodeId) -> Option<usize> {
    match steps.nodes[id].0.op {
        Op::Index(axis) => Some(axis),
        _ => None,
    }
}

/// Whether a condition depends only on indices, sizes and constants.
fn is_index(steps: &Steps<'_>, condition: NodeId) -> bool {
    needed(steps, condition)
        .iter()
        .all(|id| match steps.nodes[*id].0.op {
            Op::Index(_) | Op::Size(_) | Op::Constant(_) | Op::Where => true,
            Op::Unary(op) => matches!(op, UnaryOp::Negate | UnaryOp::Abs),
            Op::Binary(op) => op != BinaryOp::Power,
            _ => false,
        })
}

/// Whether the compared values are linear along `axis`, so that each comparison changes in few
/// places.
fn is_linear(steps: &Steps<'_>, program: &[NodeId], along: usize) -> bool {
    let mut depends = vec![false; steps.nodes.len()];
    for id in program {
        let (node, inputs) = &steps.nodes[*id];
        let on = |place: usize| depends[inputs[place]];
        let any = (0..inputs.len()).any(on);
        let fits = match node.op {
            Op::Binary(BinaryOp::Multiply) => !(on(0) && on(1)),
            Op::Binary(BinaryOp::Add | BinaryOp::Subtract | BinaryOp::And | BinaryOp::Or)
            | Op::Unary(UnaryOp::Negate) => true,
            Op::Binary(op) => !any || op.compares(),
            _ => !any,
        };
        if !fits {
            return false;
        }
        depends[*id] = any || axis(steps, *id) == Some(along);
    }
    true
}

/// All elements along one axis, the other indices fixed.
struct Row<'a> {
    steps: &'a Steps<'a>,
    program: Vec<NodeId>,
    condition: NodeId,
    axis: usize,
    length: u64,
    linear: bool,
    /// By axis, counted from the end.
    index: Vec<u64>,
    values: Vec<f64>,
}

impl Row<'_> {
    /// Steps that counting it takes.
    fn cost(&self) -> u64 {
        let points = match self.linear {
            true => 4 * self.program.len() as u64,
            false => self.length.min(MAX_POINTS),
        };
        points.max(1) * self.program.len() as u64
    }

    /// Elements of the row that meet the condition.
    fn held(&mut self) -> u64 {
        let ends = match self.linear {
            true => self.changes(),
            false => {
                let points = self.length.min(MAX_POINTS);
                (1..=points).map(|end| end * self.length / points).collect()
            }
        };
        let (mut held, mut begin) = (0, 0);
        for end in ends {
            if self.at(begin) {
                held += end - begin;
            }
            begin = end;
        }
        held
    }

    fn at(&mut self, place: u64) -> bool {
        self.run(place);
        self.values[self.condition] != 0.0
    }

    /// The ends of the stretches on which no comparison changes.
    fn changes(&mut self) -> BTreeSet<u64> {
        let mut ends = BTreeSet::from([self.length]);
        let differences = |row: &Self| -> Vec<f64> {
            let compared = row
                .program
                .iter()
                .filter_map(|id| match &row.steps.nodes[*id] {
                    (node, inputs) if matches!(node.op, Op::Binary(op) if op.compares()) => {
                        Some(inputs)
                    }
                    _ => None,
                });
            compared
                .map(|i| row.values[i[0]] - row.values[i[1]])
                .collect()
        };
        self.run(0);
        let first = differences(self);
        self.run(1);
        let second = differences(self);
        for (first, second) in first.into_iter().zip(second) {
            let zero = (first / (first - second)).floor();
            for end in [zero, zero + 1.0] {
                if end > 0.0 && end < self.length as f64 {
                    ends.insert(end as u64);
                }
            }
        }
        ends
    }

    fn run(&mut self, place: u64) {
        self.index[self.axis] = place;
        for id in &self.program {
            let (node, inputs) = &self.steps.nodes[*id];
            let input = |at: usize| self.values[inputs[at]];
            self.values[*id] = match node.op {
                Op::Index(axis) => self.index[axis] as f64,
                Op::Size(size) => self.steps.sizes[size] as f64,
                Op::Constant(value) => value,
                Op::Unary(UnaryOp::Abs) => input(0).abs(),
                Op::Unary(_) => -input(0),
                Op::Binary(op) => binary(op, input(0), input(1)),
                _ => input(if input(0) != 0.0 { 1 } else { 2 }),
            };
        }
    }
}

fn binary(op: BinaryOp, a: f64, b: f64) -> f64 {
    let truth = |holds: bool| if holds { 1.0 } else { 0.0 };
    match op {
        BinaryOp::Add => a + b,
        BinaryOp::Subtract => a - b,
        BinaryOp::Multiply => a * b,
        BinaryOp::Divide => a / b,
        BinaryOp::FloorDivide => (a / b).floor(),
        BinaryOp::Remainder => a - b * (a / b).floor(),
        BinaryOp::Power => a.powf(b),
        BinaryOp::Maximum => a.max(b),
        BinaryOp::Minimum => a.min(b),
        BinaryOp::Less => truth(a < b),
        BinaryOp::LessEqual => truth(a <= b),
        BinaryOp::Greater => truth(a > b),
        BinaryOp::GreaterEqual => truth(a >= b),
        BinaryOp::Equal => truth(a == b),
        BinaryOp::NotEqual => truth(a != b),
        BinaryOp::And => truth(a != 0.0 && b != 0.0),
        BinaryOp::Or => truth(a != 0.0 || b != 0.0),
    }
}
