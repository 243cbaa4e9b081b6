//! Plans an evaluation: the boxes of all nodes that a box of one node needs, which of them are
//! computed once as a whole, and the size of the tiles for the rest.

use std::collections::BTreeMap;

use dgx_core::operator::{NodeId, Op};

use super::Evaluator;
use super::region::{Region, demands};

/// Numbers of the largest box of a tile: a few of them fit in a core's cache.
const TILE: usize = 1 << 14;
/// A row is cut only if it is longer than this, because a reduction along it must then be computed
/// separately.
const LONG_ROW: usize = 1 << 20;

/// Boxes by node.
pub(super) type Demand = BTreeMap<NodeId, Region>;

impl Evaluator<'_> {
    /// The boxes needed for `region` of `root`. Stops at `ends`, which are needed but not computed
    /// here.
    pub(super) fn demand(
        &self,
        root: NodeId,
        region: &Region,
        ends: &dyn Fn(NodeId, &Region) -> bool,
    ) -> Demand {
        let mut demand = Demand::from([(root, region.clone())]);
        // Inputs come before their users: once a node is reached, its box is complete.
        for id in (0..=root).rev() {
            let Some(region) = demand.get(&id).cloned() else {
                continue;
            };
            if id != root && ends(id, &region) {
                continue;
            }
            let boxes = demands(self.value, id, &region, &self.extents, &self.begins);
            let inputs = self.value.node(id).inputs.iter().zip(boxes);
            for (input, needed) in inputs {
                if self.is_gathered(id, *input) {
                    continue;
                }
                demand
                    .entry(*input)
                    .and_modify(|own| *own = own.around(&needed))
                    .or_insert(needed);
            }
        }
        demand
    }

    /// Whether `input` is a table that `id` gathers from: only the named elements are read.
    pub(super) fn is_gathered(&self, id: NodeId, input: NodeId) -> bool {
        let node = self.value.node(id);
        matches!(node.op, Op::Take(_))
            && node.inputs[0] == input
            && node.inputs[1] != input
            && self.tensor(input).is_some()
    }

    /// Nodes to be computed once for the whole of `region`: products, and steps that read a whole
    /// axis if each row would need as much of it as all rows do.
    pub(super) fn anchors(
        &self,
        root: NodeId,
        region: &Region,
        known: &dyn Fn(NodeId, &Region) -> bool,
    ) -> Demand {
        let ends = |id: NodeId, region: &Region| known(id, region) || self.is_product(id);
        let whole = self.demand(root, region, &ends);
        let part = first_part(region);
        let parts = region.volume() / part.volume().max(1);
        let of_part = self.demand(root, &part, &ends);
        let apart = |id: NodeId, own: &Region| {
            let repeated = of_part.get(&id).map_or(0, |r| r.volume() * parts);
            self.reads_an_axis(id) && 2 * repeated > 3 * own.volume()
        };
        whole
            .into_iter()
            .filter(|(id, own)| {
                *id != root && !known(*id, own) && (self.is_product(*id) || apart(*id, own))
            })
            .collect()
    }

    pub(super) fn is_product(&self, id: NodeId) -> bool {
        matches!(self.value.node(id).op, Op::MatMul)
    }

    fn reads_an_axis(&self, id: NodeId) -> bool {
        matches!(
            self.value.node(id).op,
            Op::Reduce(..) | Op::Softmax(_) | Op::Cumsum(_) | Op::Argsort(_)
        )
    }

    /// Extents of the tiles that `region` of `root` is cut into. Leading axes are cut first, and
    /// only if that makes the boxes smaller.
    pub(super) fn tile(
        &self,
        root: NodeId,
        region: &Region,
        ends: &dyn Fn(NodeId, &Region) -> bool,
    ) -> Vec<usize> {
        let peak = |extents: &[usize]| {
            let starts = region.0.iter().zip(extents);
            let tile = Region(starts.map(|(r, e)| r.start..r.start + e).collect());
            let demand = self.demand(root, &tile, ends);
            let volumes = demand.values().map(Region::volume);
            volumes.max().unwrap_or(0)
        };
        let mut tile = region.extents();
        let mut most = peak(&tile);
        while most > TILE {
            let last = tile.len().saturating_sub(1);
            let cut = (0..tile.len()).find_map(|axis| {
                let long = axis < last || most > LONG_ROW;
                let mut smaller = tile.clone();
                smaller[axis] = tile[axis].div_ceil(2);
                let peak = (tile[axis] > 1 && long).then(|| peak(&smaller))?;
                (4 * peak <= 3 * most).then_some((smaller, peak))
            });
            let Some((smaller, peak)) = cut else { break };
            (tile, most) = (smaller, peak);
        }
        tile
    }
}

/// The first row of a box; of a single long row, the first part.
fn first_part(region: &Region) -> Region {
    let mut part = region.clone();
    let Some((last, leading)) = part.0.split_last_mut() else {
        return part;
    };
    let rows: usize = leading.iter().map(|range| range.len()).product();
    if rows == 1 && last.len() > LONG_ROW {
        last.end = last.start + TILE;
    }
    for range in leading {
        range.end = range.start + 1;
    }
    part
}

/// A box cut into tiles, in row-major order of the tiles.
pub(super) fn tiles(region: &Region, extents: &[usize]) -> Vec<Region> {
    let mut tiles = vec![Region(Vec::new())];
    for (range, extent) in region.0.iter().zip(extents) {
        let starts: Vec<usize> = range.clone().step_by((*extent).max(1)).collect();
        tiles = tiles
            .into_iter()
            .flat_map(|tile| {
                starts.iter().map(move |start| {
                    let mut tile = tile.clone();
                    tile.0.push(*start..(start + extent).min(range.end));
                    tile
                })
            })
            .collect();
    }
    tiles
}
