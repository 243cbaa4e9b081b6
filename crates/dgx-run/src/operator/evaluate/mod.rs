//! The value of an operator in f64, box by box. For some rows of an output, it computes only what
//! those rows need:
//!
//! ```text
//! region   boxes, and what a step needs of its inputs to fill one
//! plan     the boxes of all steps; which are made once, which in tiles
//! fill     makes them: products first, the rest tile by tile on all cores
//! step, lanes, product   one step on a box
//! movement   how far the rounding of its sums may move an element
//! ```
//!
//! Infinity and NaN are IEEE's; the larger and the smaller of two propagate
//! NaN; an index outside its axis takes NaN. A product of two nvfp4 tensors is
//! rounded once to f32, as [`super::Oracle`] keeps it.

#[cfg(target_arch = "x86_64")]
mod blocks;
mod fill;
mod functions;
mod lanes;
mod movement;
mod plan;
mod product;
mod region;
mod step;
mod view;

use std::ops::Range;

use dgx_core::operator::{NodeId, Op, Tensor, Value};

pub use self::movement::{Arithmetic, Moved};

use self::fill::Scope;
use self::region::{Region, boxes_of_rows};
use self::view::View;
use super::format::Packed;

/// Approximate limit of the numbers in all boxes that are computed once.
const AT_ONCE: usize = 1 << 25;

/// The sizes of one problem and its tensors.
#[derive(Clone, Debug)]
pub struct Problem<'a> {
    /// In the operator's order.
    pub sizes: Vec<u64>,
    /// In the operator's order. Their types need not be those of the file.
    pub inputs: Vec<Packed<'a>>,
    /// The kernel's outputs; needed only if a value names an output.
    pub outputs: Vec<Packed<'a>>,
}

impl<'a> Problem<'a> {
    /// A value for a tensor of these sizes.
    pub(crate) fn evaluator(
        &'a self,
        value: &'a Value,
        tensor: &Tensor,
    ) -> Result<Evaluator<'a>, Unfit> {
        let extents = tensor.extents(&self.sizes).ok_or(Unfit::Extents)?;
        Evaluator::new(value, &extents, self)
    }
}

/// Why a value cannot be evaluated on a problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("an extent of the value is not a size of memory for these sizes")]
    Extents,
    #[error("tensor {0} has not as many bytes as its extents ask for")]
    Bytes(usize),
    #[error("output {0} is named by the value and not given")]
    Output(usize),
}

/// A value on a problem.
pub struct Evaluator<'a> {
    value: &'a Value,
    /// The step that is evaluated.
    root: NodeId,
    problem: &'a Problem<'a>,
    /// Of every node.
    extents: Vec<Vec<usize>>,
    /// The first index of each slice; 0 for all other nodes.
    begins: Vec<usize>,
    /// Whether a node has a product or a whole axis below it.
    costly: Vec<bool>,
    /// Extents of the requested tensor: the root is broadcast to them.
    output: Vec<usize>,
}

impl<'a> Evaluator<'a> {
    /// `output` are the extents of the tensor that the value is for.
    pub fn new(value: &'a Value, output: &[u64], problem: &'a Problem<'a>) -> Result<Self, Unfit> {
        let mut extents = Vec::with_capacity(value.nodes.len());
        let mut begins = Vec::with_capacity(value.nodes.len());
        let mut costly: Vec<bool> = Vec::with_capacity(value.nodes.len());
        for node in &value.nodes {
            let own = node.extents(&problem.sizes).ok_or(Unfit::Extents)?;
            extents.push(own.into_iter().map(|e| e as usize).collect());
            begins.push(match &node.op {
                Op::Slice { begin, .. } => {
                    let begin = begin.eval(&problem.sizes);
                    begin
                        .and_then(|b| usize::try_from(b).ok())
                        .ok_or(Unfit::Extents)?
                }
                _ => 0,
            });
            let below = node.inputs.iter().any(|input| costly[*input]);
            let own = matches!(
                node.op,
                Op::MatMul | Op::Reduce(..) | Op::Softmax(_) | Op::Cumsum(_) | Op::Argsort(_)
            );
            costly.push(own || below);
        }
        let evaluator = Self {
            value,
            root: value.root,
            problem,
            extents,
            begins,
            costly,
            output: output.iter().map(|e| *e as usize).collect(),
        };
        evaluator.check_tensors()?;
        Ok(evaluator)
    }

    /// Evaluates a step of the value in place of the value.
    pub(crate) fn at(self, root: NodeId) -> Self {
        Self { root, ..self }
    }

    fn check_tensors(&self) -> Result<(), Unfit> {
        for (id, node) in self.value.nodes.iter().enumerate() {
            let place = match node.op {
                Op::Input(place) => place,
                Op::Output(place) if place < self.problem.outputs.len() => place,
                Op::Output(place) => return Err(Unfit::Output(place)),
                _ => continue,
            };
            let packed = self.tensor(id).ok_or(Unfit::Bytes(place))?;
            if !packed.is_whole() || packed.extents != self.extents[id] {
                return Err(Unfit::Bytes(place));
            }
        }
        Ok(())
    }

    /// The tensor of a node.
    fn tensor(&self, id: NodeId) -> Option<&Packed<'a>> {
        match self.value.node(id).op {
            Op::Input(input) => self.problem.inputs.get(input),
            Op::Output(output) => self.problem.outputs.get(output),
            _ => None,
        }
    }

    /// Rows of the output: all axes but the last, counted as one.
    pub fn row_count(&self) -> usize {
        let leading = self.output.len().saturating_sub(1);
        self.output[..leading].iter().product()
    }

    pub fn width(&self) -> usize {
        self.output.last().copied().unwrap_or(1)
    }

    /// Some rows of the output, row-major. Computed in blocks, so that their inputs are never in
    /// memory for many rows together.
    pub fn rows(&self, rows: Range<usize>) -> Vec<f64> {
        let mut out = vec![0.0; rows.len() * self.width()];
        let at_once = self.rows_at_once(rows.clone());
        let blocks = out.chunks_mut((at_once * self.width()).max(1));
        for (block, out) in blocks.enumerate() {
            let first = rows.start + block * at_once;
            let count = out.len() / self.width();
            let mut rest = out;
            for region in boxes_of_rows(&self.output, first..first + count) {
                let (own, after) = rest.split_at_mut(region.volume());
                self.root(&region, own);
                rest = after;
            }
        }
        out
    }

    /// How many rows to request at a time, so that neither they nor their inputs fill the memory:
    /// the same for the whole output.
    #[cfg(test)]
    pub fn rows_per_block(&self) -> usize {
        let most = (AT_ONCE / self.width().max(1)).max(1);
        let rows = self.row_count().min(most);
        self.rows_at_once(0..rows).min(rows).max(1)
    }

    /// One element of the output; computes only what it needs.
    pub fn element(&self, row: usize, column: usize) -> f64 {
        let mut out = [0.0];
        self.root(&self.one(row, column), &mut out);
        out[0]
    }

    /// The box of one element.
    fn one(&self, row: usize, column: usize) -> Region {
        let mut regions = boxes_of_rows(&self.output, row..row + 1);
        let region = regions.swap_remove(0);
        match region.0.is_empty() {
            true => region,
            false => region.with(0, column..column + 1),
        }
    }

    /// A box of the output, with the root broadcast to it.
    fn root(&self, region: &Region, out: &mut [f64]) {
        let root = self.root;
        let own = region.broadcast_to(&self.extents[root]);
        if own.volume() == region.volume() {
            return self.fill(&Scope::default(), root, &own, out);
        }
        let numbers = self.make(&Scope::default(), root, &own);
        View::new(own, numbers).stretched(region).copy_to(out);
    }

    /// How many rows to compute together: as many as keep the boxes that are computed once below
    /// [`AT_ONCE`], if fewer rows need less.
    fn rows_at_once(&self, rows: Range<usize>) -> usize {
        let root = self.root;
        let needed = |count: usize| {
            let regions = boxes_of_rows(&self.output, rows.start..rows.start + count);
            let boxes = regions.iter().map(|region| {
                let own = region.broadcast_to(&self.extents[root]);
                let anchors = self.anchors(root, &own, &|_, _| false);
                anchors.values().map(Region::volume).sum::<usize>()
            });
            boxes.max().unwrap_or(0)
        };
        let mut count = rows.len().max(1);
        let mut most = needed(count);
        while most > AT_ONCE && count > 1 {
            let fewer = count.div_ceil(2);
            let less = needed(fewer);
            if 4 * less > 3 * most {
                break;
            }
            (count, most) = (fewer, less);
        }
        count
    }
}

#[cfg(test)]
pub(crate) mod tests;
