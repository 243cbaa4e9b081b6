//! Chooses the steps of a value that get their own kernels and run first: those with a loop that
//! more than one element reads.

use std::collections::{BTreeMap, BTreeSet};

use dgx_core::operator::{Extent, NodeId, Number, Op, Operator, Output, ReduceOp, Value};

use super::loops;

/// The parts of a step that are kept in scratch, each after those it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ScratchKind {
    /// Of a softmax: the maximum along its axis.
    Top,
    /// Of a softmax: the sum of the exponentials.
    Total,
    /// Of an argsort: the final position of each element.
    Rank,
    /// Its value.
    Value,
}

#[derive(Clone, Debug)]
pub(super) struct ScratchPart {
    pub node: NodeId,
    pub kept: ScratchKind,
    pub name: String,
    pub extents: Vec<Extent>,
    pub number: Number,
}

impl ScratchPart {
    /// The words before the step's text that name the part.
    pub(super) fn before(&self) -> &'static str {
        match self.kept {
            ScratchKind::Value => "",
            ScratchKind::Top => "the maximum in ",
            ScratchKind::Total => "the sum of exponentials in ",
            ScratchKind::Rank => "the place of each element in ",
        }
    }
}

/// The goal of some kernels: a step of a value, broadcast to some extents.
#[derive(Clone, Copy)]
pub(super) struct Goal<'a> {
    pub value: &'a Value,
    pub root: NodeId,
    pub extents: &'a [Extent],
    /// Prefix of its parts' names, if there are several goals.
    pub name: Option<&'a str>,
    /// Whether every product below the root gets its own kernel.
    pub products_apart: bool,
}

impl<'a> Goal<'a> {
    pub(super) fn output(operator: &'a Operator, output: usize) -> Self {
        let Output { value, tensor, .. } = &operator.outputs[output];
        Self {
            value,
            root: value.root,
            extents: &tensor.extents,
            name: (operator.outputs.len() > 1).then_some(&tensor.name),
            products_apart: false,
        }
    }

    /// The parts of its value, each after those it reads.
    pub(super) fn parts(&self) -> Vec<ScratchPart> {
        let Self { value, root, .. } = *self;
        let mut search = Search {
            value,
            apart: self.products_apart.then_some(root),
            seen: BTreeSet::new(),
            kept: BTreeSet::new(),
        };
        search.visit(root, value.node(root).extents == self.extents);
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let named = |(node, kept): (NodeId, ScratchKind)| {
            let word = word(&value.node(node).op, kept);
            let count = counts.entry(word).or_default();
            *count += 1;
            let name = match self.name {
                Some(name) => format!("{name}_{word}_{count}"),
                None => format!("{word}_{count}"),
            };
            part(value, node, kept, name)
        };
        search.kept.into_iter().map(named).collect()
    }
}

fn part(value: &Value, node: NodeId, kept: ScratchKind, name: String) -> ScratchPart {
    let step = value.node(node);
    let mut extents = step.extents.clone();
    if let (Op::Softmax(axis), ScratchKind::Top | ScratchKind::Total) = (&step.op, kept) {
        let at = extents.len() - 1 - axis;
        extents[at] = Extent::Number(1);
    }
    ScratchPart {
        node,
        kept,
        name,
        extents,
        number: step.number,
    }
}

fn word(op: &Op, kept: ScratchKind) -> &'static str {
    match (op, kept) {
        (_, ScratchKind::Top) => "top",
        (_, ScratchKind::Total) => "total",
        (_, ScratchKind::Rank) => "rank",
        (Op::MatMul, _) => "product",
        (Op::Reduce(ReduceOp::Sum, _), _) => "sum",
        (Op::Reduce(ReduceOp::Mean, _), _) => "mean",
        (Op::Reduce(ReduceOp::Max, _), _) => "most",
        (Op::Reduce(ReduceOp::Min, _), _) => "least",
        (Op::Cumsum(_), _) => "running",
        _ => "order",
    }
}

struct Search<'a> {
    value: &'a Value,
    /// The root, if every other product is a part.
    apart: Option<NodeId>,
    seen: BTreeSet<(NodeId, bool)>,
    kept: BTreeSet<(NodeId, ScratchKind)>,
}

impl Search<'_> {
    /// `once`: each element of the output reads one element of this step.
    fn visit(&mut self, id: NodeId, once: bool) {
        if !self.seen.insert((id, once)) {
            return;
        }
        let node = self.value.node(id);
        let apart = node.op == Op::MatMul && self.apart.is_some_and(|root| root != id);
        if loops(&node.op) && (!once || apart) {
            self.kept.insert((id, ScratchKind::Value));
        }
        match node.op {
            Op::Softmax(_) => self
                .kept
                .extend([(id, ScratchKind::Top), (id, ScratchKind::Total)]),
            Op::Argsort(_) => _ = self.kept.insert((id, ScratchKind::Rank)),
            _ => {}
        }
        for input in &node.inputs {
            let below = match node.op {
                Op::Unary(_) | Op::Binary(_) | Op::Where | Op::Cast(_) => {
                    once && self.value.node(*input).extents == node.extents
                }
                Op::Transpose | Op::Permute(_) | Op::Slice { .. } => once,
                _ => false,
            };
            self.visit(*input, below);
        }
    }
}
