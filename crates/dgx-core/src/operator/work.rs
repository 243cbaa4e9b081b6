//! The minimum work of a problem: operations by the unit that executes them, and bytes. The
//! roofline and the lower bound of measured times are computed from these.

use std::cell::Cell;
use std::collections::BTreeMap;

use super::mask::{self, Mask};
use super::{ElementType, Node, NodeId, Op, Operator};
use crate::domain::roofline::Rate;

impl Rate {
    /// The fastest unit that multiplies elements of a type; `None` for i32 and bool.
    pub fn of(element: ElementType) -> Option<Self> {
        match element.element() {
            ElementType::E2m1 => Some(Self::E2m1),
            ElementType::E4m3 | ElementType::E5m2 => Some(Self::E4m3),
            ElementType::I8 | ElementType::U8 => Some(Self::I8),
            ElementType::F16 | ElementType::Bf16 => Some(Self::F16),
            ElementType::F32 => Some(Self::Tf32),
            ElementType::F64 => Some(Self::F64),
            _ => None,
        }
    }
}

/// The work of one problem.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Work {
    /// Operations of matrix products, a multiply-add counted as two.
    pub products: BTreeMap<Rate, f64>,
    /// All other operations, one for each element and step. Not a bound: a kernel may avoid some.
    pub other: f64,
    /// Inputs and their scales read once, outputs written once.
    pub bytes: u64,
}

impl Work {
    /// The operations that rates are stated in: those of products, if there are any.
    pub fn flops(&self) -> f64 {
        match self.products.is_empty() {
            true => self.other,
            false => self.products.values().sum(),
        }
    }

    /// Scales all work to `flops` operations.
    fn scaled_to(&mut self, flops: f64) {
        let before = self.flops();
        match self.products.is_empty() || before == 0.0 {
            true => (self.products, self.other) = (BTreeMap::new(), flops),
            false => self
                .products
                .values_mut()
                .for_each(|f| *f *= flops / before),
        }
    }
}

impl Operator {
    /// The work of one problem; `sizes` meet the requirements.
    pub fn work(&self, sizes: &[u64]) -> Work {
        let steps = Steps::of(self, sizes);
        let mut work = steps.operations();
        let inputs = (0..self.inputs.len()).map(|input| steps.bytes_read(input));
        let outputs = self
            .outputs
            .iter()
            .map(|output| output.tensor.bytes(sizes).unwrap_or(0));
        work.bytes = inputs.chain(outputs).fold(0, u64::saturating_add);
        if let Some(flops) = self.flops.as_ref().and_then(|flops| flops.eval(sizes)) {
            work.scaled_to(flops as f64);
        }
        work
    }
}

/// The steps of all outputs; common ones occur once.
pub(super) struct Steps<'a> {
    operator: &'a Operator,
    pub(super) sizes: &'a [u64],
    pub(super) nodes: Vec<(&'a Node, Vec<NodeId>)>,
    /// Extents as numbers, first axis first.
    pub(super) extents: Vec<Vec<u64>>,
    /// The users of each step, with the index of the input there.
    pub(super) users: Vec<Vec<(NodeId, usize)>>,
    pub(super) roots: Vec<NodeId>,
    /// Steps left for counting masks.
    pub(super) budget: Cell<u64>,
}

impl<'a> Steps<'a> {
    fn of(operator: &'a Operator, sizes: &'a [u64]) -> Self {
        let (mut nodes, mut roots): (Vec<(&Node, Vec<NodeId>)>, _) = (Vec::new(), Vec::new());
        for output in &operator.outputs {
            let mut places: Vec<NodeId> = Vec::new();
            for node in &output.value.nodes {
                let inputs: Vec<NodeId> = node.inputs.iter().map(|input| places[*input]).collect();
                let same = |(known, from): &(&Node, Vec<NodeId>)| {
                    *from == inputs && known.op == node.op && known.extents == node.extents
                };
                places.push(nodes.iter().position(same).unwrap_or_else(|| {
                    nodes.push((node, inputs.clone()));
                    nodes.len() - 1
                }));
            }
            roots.push(places[output.value.root]);
        }
        let mut users = vec![Vec::new(); nodes.len()];
        for (id, (_, inputs)) in nodes.iter().enumerate() {
            for (place, input) in inputs.iter().enumerate() {
                users[*input].push((id, place));
            }
        }
        let extents = nodes
            .iter()
            .map(|(node, _)| node.extents(sizes).unwrap_or_default());
        Self {
            operator,
            sizes,
            extents: extents.collect(),
            nodes,
            users,
            roots,
            budget: Cell::new(mask::BUDGET),
        }
    }

    fn count(&self, id: NodeId) -> f64 {
        self.extents[id]
            .iter()
            .map(|extent| *extent as f64)
            .product()
    }

    fn operations(&self) -> Work {
        let mut work = Work::default();
        let elements = self.elements();
        for (id, (node, inputs)) in self.nodes.iter().enumerate() {
            let steps = match node.op {
                // An index alone is known before anything runs.
                _ if elements[id].is_empty() => 0.0,
                Op::Unary(_) | Op::Binary(_) | Op::Where => self.count(id),
                Op::Reduce(..) | Op::Cumsum(_) | Op::Argsort(_) => self.count(inputs[0]),
                // Largest, difference, exponential, sum, quotient.
                Op::Softmax(_) => 5.0 * self.count(id),
                Op::MatMul => {
                    let depth = self.extents[inputs[0]].last().copied().unwrap_or(1);
                    let flops = 2.0 * self.count(id) * depth as f64 * self.share(id);
                    match self.rate(inputs, &elements) {
                        Some(rate) => *work.products.entry(rate).or_default() += flops,
                        None => work.other += flops,
                    }
                    0.0
                }
                _ => 0.0,
            };
            work.other += steps;
        }
        work
    }

    /// The types of the tensors that each step depends on.
    fn elements(&self) -> Vec<Vec<ElementType>> {
        let mut elements: Vec<Vec<ElementType>> = Vec::new();
        for (node, inputs) in &self.nodes {
            let mut own: Vec<ElementType> = match node.op {
                Op::Input(input) => vec![self.operator.inputs[input].element],
                Op::Output(output) => vec![self.operator.outputs[output].tensor.element],
                Op::Cast(element) => vec![element],
                _ => inputs
                    .iter()
                    .flat_map(|input| elements[*input].clone())
                    .collect(),
            };
            own.sort_unstable();
            own.dedup();
            elements.push(own);
        }
        elements
    }

    /// The rate of a product. A computed operand can be rounded to the type of the tensor it is
    /// multiplied with; without a tensor, to the narrowest type it was computed from.
    fn rate(&self, inputs: &[NodeId], elements: &[Vec<ElementType>]) -> Option<Rate> {
        let stored = |id: &NodeId| -> Option<ElementType> {
            let (node, from) = &self.nodes[*id];
            match node.op {
                Op::Transpose | Op::Permute(_) | Op::Slice { .. } => match self.nodes[from[0]].0.op
                {
                    Op::Input(_) | Op::Output(_) => Some(elements[*id][0]),
                    _ => None,
                },
                Op::Input(_) | Op::Output(_) | Op::Cast(_) => Some(elements[*id][0]),
                _ => None,
            }
        };
        let tensors: Vec<ElementType> = inputs.iter().filter_map(stored).collect();
        match tensors.is_empty() {
            // Slower units come later.
            false => tensors
                .into_iter()
                .map(Rate::of)
                .max_by_key(|rate| (rate.is_none(), *rate))?,
            true => {
                let all = inputs.iter().flat_map(|input| &elements[*input]);
                all.filter_map(|element| Rate::of(*element)).min()
            }
        }
    }

    /// The share of a product that is used.
    fn share(&self, id: NodeId) -> f64 {
        let (_, inputs) = &self.nodes[id];
        let masks = [Mask::on(self, id)].into_iter().flatten();
        let mut masks = masks.chain(inputs.iter().filter_map(|input| Mask::of(self, *input)));
        masks.next().map_or(1.0, |mask| mask.share(self))
    }

    /// Bytes of an input that must be read: all, unless it is only gathered from or sliced.
    fn bytes_read(&self, input: usize) -> u64 {
        let tensor = &self.operator.inputs[input];
        let whole = tensor.bytes(self.sizes).unwrap_or(0);
        let reads = |(node, _): &(&Node, Vec<NodeId>)| node.op == Op::Input(input);
        let Some(id) = self.nodes.iter().position(reads) else {
            return 0;
        };
        let all = self.count(id);
        let used = |(user, place): &(NodeId, usize)| match (&self.nodes[*user].0.op, place) {
            (Op::Take(_), 0) | (Op::Slice { .. }, _) => self.count(*user),
            _ => all,
        };
        let used: f64 = self.users[id].iter().map(used).sum();
        match used < all && !self.roots.contains(&id) {
            true => (whole as f64 * (used / all)).ceil() as u64,
            false => whole,
        }
    }
}
