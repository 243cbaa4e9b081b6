//! Fills a box: first the products and columns it needs, then the rest tile by tile on all cores.

use std::collections::BTreeMap;
use std::sync::Arc;

use dgx_core::operator::{NodeId, Op};
use rayon::prelude::*;

use super::Evaluator;
use super::plan::tiles;
use super::region::Region;
use super::step::{place, step};
use super::view::{View, each_run};
use crate::operator::format::Packed;

/// Elements that one core reads at a time.
const READ: usize = 1 << 14;

/// Finished boxes, in this scope or an outer one.
#[derive(Default)]
pub(super) struct Scope<'s> {
    outer: Option<&'s Scope<'s>>,
    made: BTreeMap<NodeId, View>,
}

impl<'s> Scope<'s> {
    fn within(outer: &'s Scope<'s>) -> Self {
        Self {
            outer: Some(outer),
            made: BTreeMap::new(),
        }
    }

    /// A finished box around `region`, if there is one.
    fn find(&self, id: NodeId, region: &Region) -> Option<&View> {
        let own = self.made.get(&id);
        let own = own.filter(|view| view.region.contains(region));
        own.or_else(|| self.outer?.find(id, region))
    }
}

impl Evaluator<'_> {
    /// `region` of node `id`, row-major.
    pub(super) fn make(&self, scope: &Scope<'_>, id: NodeId, region: &Region) -> Vec<f64> {
        let mut out = vec![0.0; region.volume()];
        self.fill(scope, id, region, &mut out);
        out
    }

    /// Like [`Self::make`], into the caller's memory.
    pub(super) fn fill(&self, scope: &Scope<'_>, id: NodeId, region: &Region, out: &mut [f64]) {
        if let Some(view) = scope.find(id, region) {
            return view.part(region).copy_to(out);
        }
        if self.is_product(id) {
            return self.product(scope, id, region, out);
        }
        if let Some(packed) = self.tensor(id) {
            return read_on_all_cores(packed, region, out);
        }
        let known = |id: NodeId, region: &Region| scope.find(id, region).is_some();
        let mut inner = Scope::within(scope);
        for (anchor, needed) in self.anchors(id, region, &known) {
            let numbers = self.make(&inner, anchor, &needed);
            let view = View::shared(needed, Arc::new(numbers));
            inner.made.insert(anchor, view);
        }
        self.fill_by_tiles(&inner, id, region, out);
    }

    /// Everything except products, which are already in the scope.
    fn fill_by_tiles(&self, scope: &Scope<'_>, id: NodeId, region: &Region, out: &mut [f64]) {
        let known = |id: NodeId, region: &Region| scope.find(id, region).is_some();
        let extents = self.tile(id, region, &known);
        let tiles = tiles(region, &extents);
        if tiles.len() == 1 {
            return self.fill_tile(scope, id, region, out);
        }
        if in_order(&region.extents(), &extents) {
            let mut rest = out;
            let mut places = Vec::with_capacity(tiles.len());
            for tile in &tiles {
                let (own, after) = rest.split_at_mut(tile.volume());
                places.push((tile, own));
                rest = after;
            }
            places
                .into_par_iter()
                .for_each(|(tile, out)| self.fill_tile(scope, id, tile, out));
            return;
        }
        // A group of tiles at a time, to limit the memory.
        for group in tiles.chunks(4 * rayon::current_num_threads()) {
            let views: Vec<View> = group
                .par_iter()
                .map(|tile| self.tile_view(scope, id, tile))
                .collect();
            for view in views {
                scatter(&view, region, out);
            }
        }
    }

    fn fill_tile(&self, scope: &Scope<'_>, id: NodeId, tile: &Region, out: &mut [f64]) {
        self.tile_view(scope, id, tile).copy_to(out);
    }

    /// One tile, step after step.
    fn tile_view(&self, scope: &Scope<'_>, id: NodeId, tile: &Region) -> View {
        let known = |id: NodeId, region: &Region| scope.find(id, region).is_some();
        let mut views: BTreeMap<NodeId, View> = BTreeMap::new();
        for (node, region) in self.demand(id, tile, &known) {
            let view = match scope.find(node, &region) {
                Some(view) => view.part(&region),
                None => self.step(node, &region, &views),
            };
            views.insert(node, view);
        }
        views.remove(&id).expect("the root is demanded")
    }

    /// One step on a box, with its inputs computed.
    pub(super) fn step(&self, id: NodeId, region: &Region, views: &BTreeMap<NodeId, View>) -> View {
        if let Some(packed) = self.tensor(id) {
            let mut numbers = vec![0.0; region.volume()];
            read(packed, region, &mut numbers);
            return View::new(region.clone(), numbers);
        }
        let node = self.value.node(id);
        if let Op::Take(axis) = node.op
            && self.is_gathered(id, node.inputs[0])
        {
            let packed = self.tensor(node.inputs[0]).expect("it is gathered");
            return gather(axis, region, packed, &self.input(id, 1, region, views));
        }
        let inputs: Vec<View> = (0..node.inputs.len())
            .map(|input| self.input(id, input, region, views))
            .collect();
        step(&node.op, region, &inputs, self.problem)
    }

    /// The part of an input that a step needs.
    pub(super) fn input(
        &self,
        id: NodeId,
        input: usize,
        region: &Region,
        views: &BTreeMap<NodeId, View>,
    ) -> View {
        let boxes = super::region::demands(self.value, id, region, &self.extents, &self.begins);
        views[&self.value.node(id).inputs[input]].part(&boxes[input])
    }
}

/// Whether tiles of these extents are contiguous in their box: only the last axis that is cut has
/// tiles of more than one index.
fn in_order(whole: &[usize], tile: &[usize]) -> bool {
    let cut = whole.iter().zip(tile).rposition(|(w, t)| t < w);
    cut.is_none_or(|cut| tile[..cut].iter().all(|t| *t == 1))
}

/// Copies a tile to its place in its box.
fn scatter(tile: &View, region: &Region, out: &mut [f64]) {
    let extents = region.extents();
    let numbers = tile.to_vec();
    each_run(&tile.region.extents(), |outer, at, width| {
        let mut to = 0;
        for (axis, extent) in extents.iter().enumerate() {
            let inner = outer.get(axis).copied().unwrap_or(0);
            to = to * extent + tile.region.0[axis].start - region.0[axis].start + inner;
        }
        out[to..to + width].copy_from_slice(&numbers[at..at + width]);
    });
}

fn read_on_all_cores(packed: &Packed<'_>, region: &Region, out: &mut [f64]) {
    let width = region.0.last().map_or(1, |columns| columns.len()).max(1);
    let at_once = READ.div_ceil(width);
    let leading = &region.0[..region.0.len().saturating_sub(1)];
    let chunks = out.par_chunks_mut(at_once * width).enumerate();
    chunks.for_each(|(chunk, out)| {
        for (run, out) in out.chunks_mut(width).enumerate() {
            let mut rest = chunk * at_once + run;
            let mut outer = vec![0; leading.len()];
            for (index, range) in outer.iter_mut().zip(leading).rev() {
                *index = rest % range.len();
                rest /= range.len();
            }
            let columns = region.0.last().cloned().unwrap_or(0..1);
            packed.read(row_of(packed, region, &outer), columns, out);
        }
    });
}

/// A box of a packed tensor.
pub(super) fn read(packed: &Packed<'_>, region: &Region, out: &mut [f64]) {
    let columns = region.0.last().cloned().unwrap_or(0..1);
    each_run(&region.extents(), |outer, at, width| {
        let row = row_of(packed, region, outer);
        packed.read(row, columns.clone(), &mut out[at..at + width]);
    });
}

/// The row at indices counted from the region's start.
fn row_of(packed: &Packed<'_>, region: &Region, outer: &[usize]) -> usize {
    let axes = outer.iter().zip(&region.0).zip(&packed.extents);
    axes.fold(0, |row, ((index, range), extent)| {
        row * extent + range.start + index
    })
}

/// Elements of a tensor at the indices, NaN if one lies outside the axis. Only those are read: a
/// table may be large.
fn gather(axis: usize, region: &Region, packed: &Packed<'_>, index: &View) -> View {
    let rank = packed.extents.len();
    let skipped = region.0.len() - rank;
    let extent = packed.extents[rank - 1 - axis];
    let index = index.stretched(region);
    let step = index.step();
    let mut out = vec![0.0; region.volume()];
    each_run(&region.extents(), |outer, at, width| {
        let indices = index.run(outer);
        let out = &mut out[at..at + width];
        // One index for the run: one run of the table.
        let at_once = if step == 0 && axis > 0 && packed.width() > 1 {
            width
        } else {
            1
        };
        for first in (0..width).step_by(at_once) {
            let own = &mut out[first..first + at_once];
            let Some(chosen) = place(indices[first * step], extent) else {
                own.fill(f64::NAN);
                continue;
            };
            let coordinate = |a: usize| {
                let place = outer.get(skipped + a).copied().unwrap_or(first);
                match packed.extents[a] {
                    _ if a == rank - 1 - axis => chosen,
                    1 => 0,
                    _ => region.0[skipped + a].start + place,
                }
            };
            let row = (0..rank - 1).fold(0, |row, a| row * packed.extents[a] + coordinate(a));
            let column = coordinate(rank - 1);
            packed.read(row, column..column + at_once, own);
        }
    });
    View::new(region.clone(), out)
}
