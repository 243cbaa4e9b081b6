//! The graph of all values of a file while they are checked. The extent of `i(axis)` is unknown
//! until it is combined with a tensor.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem::{Discriminant, discriminant};
use std::ops::Range;

use crate::domain::Joined;
use crate::operator::{Extent, Node, NodeId, Number, Op, Value};

/// Nodes of one file.
const MAX_NODES: usize = 4000;
/// Words of one extent: slices of slices make long ones.
const MAX_WORDS: usize = 200;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct DraftNode {
    pub(super) op: Op,
    pub(super) inputs: Vec<NodeId>,
    /// First axis first.
    pub(super) extents: Vec<Option<Extent>>,
    pub(super) number: Number,
    /// Bytes of the file.
    pub(super) span: Range<usize>,
}

/// Two extents that should be equal.
pub(super) struct ExtentConflict(pub(super) Extent, pub(super) Extent);

#[derive(Debug)]
pub(crate) struct Graph {
    nodes: Vec<DraftNode>,
    /// Nodes by inputs and operation, to find equal ones.
    places: HashMap<(Vec<NodeId>, Discriminant<Op>), Vec<NodeId>>,
    /// Names of the sizes.
    pub(super) names: Vec<String>,
    /// Sizes on which extents are compared, the smallest first.
    trials: Vec<Vec<u64>>,
}

impl Graph {
    pub(crate) fn new(names: &[String], trials: Vec<Vec<u64>>) -> Self {
        Self {
            nodes: Vec::new(),
            places: HashMap::new(),
            names: names.to_owned(),
            trials,
        }
    }

    pub(super) fn node(&self, id: NodeId) -> &DraftNode {
        &self.nodes[id]
    }

    pub(super) fn rank(&self, id: NodeId) -> usize {
        self.nodes[id].extents.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.nodes.len() >= MAX_NODES
    }

    /// The node of this step; the existing one, if there is an equal one.
    pub(super) fn add(&mut self, draft: DraftNode) -> NodeId {
        let like = (draft.inputs.clone(), discriminant(&draft.op));
        let places = self.places.entry(like).or_default();
        let same = |id: &&NodeId| {
            let node = &self.nodes[**id];
            (&node.op, node.number, &node.extents) == (&draft.op, draft.number, &draft.extents)
        };
        if let Some(id) = places.iter().find(same) {
            return *id;
        }
        places.push(self.nodes.len());
        self.nodes.push(draft);
        self.nodes.len() - 1
    }

    /// The extent along `axis` counted from the end; 1 beyond the first axis.
    pub(super) fn extent(&self, id: NodeId, axis: usize) -> Option<Extent> {
        let extents = &self.nodes[id].extents;
        match extents.len().checked_sub(axis + 1) {
            Some(at) => extents[at].clone(),
            None => Some(Extent::Number(1)),
        }
    }

    /// Whether two extents are equal for all trial sizes.
    pub(super) fn same(&self, one: &Extent, other: &Extent) -> bool {
        one == other || self.trials.iter().all(|s| one.eval(s) == other.eval(s))
    }

    pub(super) fn is_one(&self, extent: &Extent) -> bool {
        self.same(extent, &Extent::Number(1))
    }

    /// The first trial sizes for which `wrong` is true of the values.
    pub(super) fn counterexample<const N: usize>(
        &self,
        extents: [&Extent; N],
        wrong: impl Fn([i64; N]) -> bool,
    ) -> Option<(&[u64], Option<[i64; N]>)> {
        self.trials.iter().find_map(|sizes| {
            let mut values = [0; N];
            for (value, extent) in values.iter_mut().zip(extents) {
                match extent.eval(sizes) {
                    Some(found) => *value = found,
                    None => return Some((sizes.as_slice(), None)),
                }
            }
            wrong(values).then_some((sizes.as_slice(), Some(values)))
        })
    }

    /// The common extent of operands, each along its axis: 1 is stretched, and unknown extents
    /// become known.
    pub(super) fn meet(
        &mut self,
        ids: &mut [NodeId],
        axes: &[usize],
    ) -> Result<Option<Extent>, ExtentConflict> {
        let mut met: Option<Extent> = None;
        for (id, axis) in ids.iter().zip(axes) {
            let known = self.extent(*id, *axis);
            let Some(extent) = known.filter(|extent| !self.is_one(extent)) else {
                continue;
            };
            if let Some(other) = met.as_ref().filter(|other| !self.same(other, &extent)) {
                return Err(ExtentConflict(other.clone(), extent));
            }
            met.get_or_insert(extent);
        }
        let mut all_known = true;
        for (id, axis) in ids.iter_mut().zip(axes) {
            if self.extent(*id, *axis).is_none() {
                match &met {
                    Some(extent) => *id = self.resolve(*id, *axis, extent),
                    None => all_known = false,
                }
            }
        }
        Ok(met.or(all_known.then_some(Extent::Number(1))))
    }

    /// `root` with `extent` along an axis where it was unknown. Without recursion: a graph can be
    /// deeper than the stack.
    pub(super) fn resolve(&mut self, root: NodeId, axis: usize, extent: &Extent) -> NodeId {
        let mut wanted = BTreeSet::from([(root, axis)]);
        // Inputs come before the nodes that use them.
        let mut next = Some((root, axis));
        while let Some(at) = next {
            let sources = self.sources(at.0, at.1);
            wanted.extend(sources.into_iter().map(|(_, id, axis)| (id, axis)));
            next = wanted.range(..at).next_back().copied();
        }
        // A node needed along two axes becomes two: one for each use.
        let mut known: BTreeMap<(NodeId, usize), NodeId> = BTreeMap::new();
        for (id, axis) in wanted {
            let mut draft = self.nodes[id].clone();
            for (place, input, axis) in self.sources(id, axis) {
                draft.inputs[place] = known[&(input, axis)];
            }
            let at = draft.extents.len() - 1 - axis;
            draft.extents[at] = Some(extent.clone());
            let new = self.add(draft);
            known.insert((id, axis), new);
        }
        known[&(root, axis)]
    }

    /// Inputs whose unknown extent, along one of their axes, is that of `id`: the index of the
    /// input, the input and its axis.
    fn sources(&self, id: NodeId, axis: usize) -> Vec<(usize, NodeId, usize)> {
        let DraftNode { op, inputs, .. } = &self.nodes[id];
        let all = 0..inputs.len();
        let (places, axis) = match op {
            Op::MatMul if axis == 0 => (1..2, 0),
            Op::MatMul if axis == 1 => (0..1, 1),
            Op::Transpose if axis < 2 => (all, 1 - axis),
            Op::Permute(from) => (all, from[axis]),
            Op::Take(along) if *along == axis => (1..2, axis),
            _ => (all, axis),
        };
        let unknown = |place: &usize| self.extent(inputs[*place], axis).is_none();
        let found = places.filter(unknown);
        found.map(|place| (place, inputs[place], axis)).collect()
    }

    /// The part of the graph that `root` needs.
    pub(crate) fn value(&self, root: NodeId) -> Value {
        let mut needed = BTreeSet::from([root]);
        let mut next = Some(root);
        while let Some(id) = next {
            needed.extend(&self.nodes[id].inputs);
            next = needed.range(..id).next_back().copied();
        }
        let places: BTreeMap<NodeId, NodeId> = needed
            .iter()
            .enumerate()
            .map(|(new, old)| (*old, new))
            .collect();
        let node = |id: &NodeId| {
            let draft = &self.nodes[*id];
            Node {
                op: draft.op.clone(),
                inputs: draft.inputs.iter().map(|input| places[input]).collect(),
                // The checker refuses unknown extents before this.
                extents: draft.extents.iter().flatten().cloned().collect(),
                number: draft.number,
                span: draft.span.clone(),
            }
        };
        Value {
            nodes: needed.iter().map(node).collect(),
            root: places[&root],
        }
    }

    pub(super) fn is_long(extent: &Extent) -> bool {
        extent.words() > MAX_WORDS
    }

    /// Extents as text: `[m, k // 16]`.
    pub(super) fn shown(&self, id: NodeId) -> String {
        let extents = self.nodes[id].extents.iter().map(|extent| match extent {
            Some(extent) => extent.shown(&self.names),
            None => "?".to_owned(),
        });
        format!("[{}]", extents.joined(", "))
    }

    /// `m = 64, n = 128`
    pub(super) fn sizes_shown(&self, sizes: &[u64]) -> String {
        let pairs = self.names.iter().zip(sizes);
        pairs
            .map(|(name, size)| format!("{name} = {size}"))
            .joined(", ")
    }
}
