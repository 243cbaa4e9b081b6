//! How far rounding may move an element. Sums are rounded on the way, and values computed from them
//! move too. Each box is computed twice: its numbers, and beside each number how far it may move.
//!
//! A sum moves by what its [`Arithmetic`] states for its terms. The movements of terms are
//! independent, so those of a sum add as squares. A function moves as far as its value changes
//! between the ends of its arguments' ranges. Tensors, constants and indices do not move; the order
//! of a sort does not change.

mod rules;

use std::collections::BTreeMap;

use dgx_core::operator::{NodeId, Op};

use super::Evaluator;
use super::functions::cast;
use super::region::Region;
use super::step::{mapped, zipped};
use super::view::{View, each_run};

/// How sums are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// A kernel that adds in fp32 in any order, and rounds computed values to the type of the other
    /// operand before multiplying them.
    Fp32,
    /// Another evaluation in f64: by 2⁻⁴⁰, where f64 itself has 2⁻⁵³.
    F64,
}

impl Arithmetic {
    /// How far a sum of `count` terms may move: `size` is its magnitude,
    /// `root` the root of the sum of the squares of its terms.
    fn sum(self, count: usize, size: f64, root: f64) -> f64 {
        let count = count as f64;
        match self {
            Self::Fp32 => {
                let roundings = count / 16.0 + 6.0 * (count / 3.0).sqrt();
                2f64.powi(-24) * roundings * (size + 3.0 * root)
            }
            Self::F64 => 2f64.powi(-40) * (size + root),
        }
    }

    /// How far a function's result may move by its own rounding, relative to its size.
    fn function(self) -> f64 {
        match self {
            Self::Fp32 => 2f64.powi(-22),
            Self::F64 => 2f64.powi(-48),
        }
    }
}

/// An element and how far it may move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moved {
    pub value: f64,
    /// Not negative; without meaning if the value is not finite.
    pub by: f64,
}

impl Moved {
    /// Whether another evaluation may have given this.
    pub(crate) fn is_near(&self, other: f64) -> bool {
        let near = (self.value - other).abs() <= self.by;
        near || self.value == other || self.value.is_nan() && other.is_nan()
    }
}

/// For a sum of many terms, each moved at random by up to a bound: six standard deviations of a
/// uniform distribution. Few terms may all move the same way.
const DEVIATIONS: f64 = 3.5;

/// A box with its movements.
#[derive(Clone)]
struct MovingBox {
    value: View,
    by: View,
}

impl MovingBox {
    fn part(&self, region: &Region) -> Self {
        Self {
            value: self.value.part(region),
            by: self.by.part(region),
        }
    }
}

impl Evaluator<'_> {
    /// An element of the output, and how far the rounding of all sums in it may move it.
    pub fn moved(&self, row: usize, column: usize, arithmetic: Arithmetic) -> Moved {
        let root = self.root;
        let region = self.one(row, column).broadcast_to(&self.extents[root]);
        let mut pairs: BTreeMap<NodeId, MovingBox> = BTreeMap::new();
        for (id, region) in self.demand(root, &region, &|_, _| false) {
            let pair = self.pair(id, &region, &pairs, arithmetic);
            pairs.insert(id, pair);
        }
        let MovingBox { value, by } = &pairs[&root];
        Moved {
            value: value.to_vec()[0],
            by: by.to_vec()[0],
        }
    }

    fn pair(
        &self,
        id: NodeId,
        region: &Region,
        pairs: &BTreeMap<NodeId, MovingBox>,
        arithmetic: Arithmetic,
    ) -> MovingBox {
        let node = self.value.node(id);
        if matches!(node.op, Op::MatMul) {
            return self.product_pair(id, region, pairs, arithmetic);
        }
        let values: BTreeMap<NodeId, View> = node
            .inputs
            .iter()
            .filter_map(|input| Some((*input, pairs.get(input)?.value.clone())))
            .collect();
        let value = self.step(id, region, &values);
        let gathered = node.inputs.iter().any(|input| !pairs.contains_key(input));
        if node.inputs.is_empty() || gathered {
            let by = mapped(region, &value, |_| 0.0);
            return MovingBox { value, by };
        }
        let boxes = super::region::demands(self.value, id, region, &self.extents, &self.begins);
        let inputs: Vec<MovingBox> = node
            .inputs
            .iter()
            .zip(&boxes)
            .map(|(input, needed)| pairs[input].part(needed))
            .collect();
        let by = match &node.op {
            Op::Unary(op) => rules::unary(*op, region, &inputs[0], arithmetic),
            Op::Cast(element) => rules::ends(region, &inputs[0], |x| cast(*element, x)),
            Op::Binary(op) => rules::binary(*op, region, [&inputs[0], &inputs[1]], arithmetic),
            Op::Where => rules::chosen(region, &inputs),
            Op::Reduce(op, axis) => rules::reduced(*op, *axis, &inputs[0], arithmetic),
            Op::Softmax(axis) => rules::softmax(*axis, &inputs[0], arithmetic).part(region),
            Op::Cumsum(axis) => rules::cumsum(*axis, &inputs[0], arithmetic).part(region),
            Op::Argsort(_) => mapped(region, &value, |_| 0.0),
            _ => self.carried(id, region, &inputs),
        };
        MovingBox { value, by }
    }

    /// A step that only rearranges numbers rearranges their movements too.
    fn carried(&self, id: NodeId, region: &Region, inputs: &[MovingBox]) -> View {
        let takes = matches!(self.value.node(id).op, Op::Take(_));
        let of = |(input, pair): (usize, &MovingBox)| match takes && input == 1 {
            true => pair.value.clone(),
            false => pair.by.clone(),
        };
        let moved: Vec<View> = inputs.iter().enumerate().map(of).collect();
        super::step::step(&self.value.node(id).op, region, &moved, self.problem)
    }

    fn product_pair(
        &self,
        id: NodeId,
        region: &Region,
        pairs: &BTreeMap<NodeId, MovingBox>,
        arithmetic: Arithmetic,
    ) -> MovingBox {
        let boxes = super::region::demands(self.value, id, region, &self.extents, &self.begins);
        let inputs = &self.value.node(id).inputs;
        let [left, right] = [0, 1].map(|side| {
            let pair = pairs[&inputs[side]].part(&boxes[side]);
            self.rounded_operand(pair, inputs[side], inputs[1 - side], arithmetic)
        });
        let count = self.contracted(id);
        let (mut values, mut by) = (Vec::new(), Vec::new());
        each_dot(region, [&left, &right], count, |terms| {
            let (mut sum, mut squares, mut most, mut usual) = (0.0, 0.0, 0.0, 0.0);
            for [a, da, b, db] in terms {
                let term: f64 = a * b;
                sum += term;
                squares += term * term;
                most += (a * db).abs() + (b * da).abs();
                usual += (a * db).powi(2) + (b * da).powi(2);
            }
            values.push(sum);
            let moved = f64::min(most, DEVIATIONS * f64::sqrt(usual));
            by.push(moved + arithmetic.sum(count, f64::abs(sum), f64::sqrt(squares)));
        });
        if self.both_nvfp4(id).is_some() {
            values.iter_mut().for_each(|v| *v = f64::from(*v as f32));
        }
        MovingBox {
            value: View::new(region.clone(), values),
            by: View::new(region.clone(), by),
        }
    }

    /// A computed operand of `@` may have been rounded to its partner's type.
    fn rounded_operand(
        &self,
        pair: MovingBox,
        own: NodeId,
        partner: NodeId,
        arithmetic: Arithmetic,
    ) -> MovingBox {
        let unit = match (arithmetic, self.stored(own), self.stored(partner)) {
            (Arithmetic::Fp32, None, Some(partner)) => partner,
            _ => return pair,
        };
        let region = &pair.value.region;
        let by = zipped(region, &pair.value, &pair.by, |x, by| by + unit * x.abs());
        MovingBox {
            value: pair.value,
            by,
        }
    }

    /// The unit roundoff of the tensor that a node is, through steps that only rearrange elements;
    /// `None` if it is computed.
    fn stored(&self, id: NodeId) -> Option<f64> {
        if let Some(packed) = self.tensor(id) {
            return Some(packed.element.unit_roundoff());
        }
        let node = self.value.node(id);
        match node.op {
            Op::Transpose | Op::Permute(_) | Op::Slice { .. } | Op::Take(_) => {
                self.stored(node.inputs[0])
            }
            _ => None,
        }
    }
}

/// Calls `dot` with the terms of each element of a product: a number of the
/// left, how far it moves, a number of the right, how far it moves.
fn each_dot(
    region: &Region,
    [left, right]: [&MovingBox; 2],
    count: usize,
    mut dot: impl FnMut(&mut dyn Iterator<Item = [f64; 4]>),
) {
    let rows = [&left.value, &left.by].map(View::clone);
    let columns = [&right.value, &right.by].map(|view| {
        let rank = view.region.0.len();
        let mut order: Vec<usize> = (0..rank).collect();
        order.swap(rank - 1, rank - 2);
        view.permuted(&order)
    });
    each_run(&region.extents(), |outer, _, width| {
        let [a, da] = rows.each_ref().map(|view| lane(view, outer));
        let mut place = outer.to_vec();
        for column in 0..width {
            *place.last_mut().expect("a row") = column;
            let [b, db] = columns.each_ref().map(|view| lane(view, &place));
            let term = |(run, step): (&[f64], usize), i: usize| run[i * step];
            dot(&mut (0..count).map(|i| [term(a, i), term(da, i), term(b, i), term(db, i)]));
        }
    });
}

/// The last axis of a view that is broadcast over the axes before it.
fn lane<'v>(view: &'v View, outer: &[usize]) -> (&'v [f64], usize) {
    let extents = view.region.extents();
    let leading = &extents[..extents.len() - 1];
    let own = outer[outer.len() - leading.len()..].iter().zip(leading);
    let place: Vec<usize> = own
        .map(|(index, extent)| if *extent == 1 { 0 } else { *index })
        .collect();
    (view.run(&place), view.step())
}
