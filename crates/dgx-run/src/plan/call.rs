//! The host's part of one operator call, as numbers: every expression of the front matter evaluated
//! for one shape on one device. Plain data: it is sent to worker processes as JSON, and all
//! backends execute it alike.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::deal::TileAssignment;
use crate::catalog::{Arguments, Fill, MapType, OperandRef, Swizzle};

/// One call of a contender on a shape. Every per-group list is in the order
/// the kernel sees its groups (`group_order`), not in the shape's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatorCall {
    /// `group_order[i]` is the index in the shape of the kernel's group i.
    pub group_order: Vec<usize>,
    /// Tiles of all groups before this one.
    pub tile_begin: Vec<u32>,
    pub tile_count: u32,
    /// Set if the host deals the tiles.
    pub deal: Option<TileLists>,
    pub scratch: Vec<ScratchLayout>,
    pub maps: Vec<MapLayout>,
    pub launches: Vec<LaunchGeometry>,
}

/// Tiles dealt to CTAs: worker w's tiles after its first, which is tile w, are `tiles[w]`,
/// `tiles[workers + w]`, … up to one that is no tile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TileLists {
    pub workers: u32,
    pub tiles: Vec<u32>,
    /// Cost of all tiles together, and of the worker with the most.
    pub cost: u64,
    pub makespan: u64,
}

impl TileLists {
    /// Lays out the workers' lists, ended by `end`.
    pub(super) fn new(assignment: &TileAssignment, end: u32) -> Self {
        let rows = assignment.tiles.iter().map(Vec::len).max().unwrap_or(1);
        let row = |i: usize| {
            let assignment = assignment.tiles.iter();
            assignment.map(move |worker| worker.get(i).copied().unwrap_or(end))
        };
        Self {
            workers: assignment.tiles.len() as u32,
            tiles: (1..=rows).flat_map(row).collect(),
            cost: assignment.cost,
            makespan: assignment.makespan,
        }
    }

    /// The share of time that workers work, until the last is done.
    pub(crate) fn evenness(&self) -> f64 {
        match self.makespan {
            0 => 1.0,
            makespan => self.cost as f64 / (f64::from(self.workers) * makespan as f64),
        }
    }
}

/// The variant's own device memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScratchLayout {
    pub name: String,
    /// Index into `Group::scratch` or `Args::scratch`.
    pub slot: usize,
    pub size: ScratchSize,
    /// Cleared once at allocation; the kernels must leave it cleared.
    pub zero: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScratchSize {
    /// Bytes for each group.
    PerGroup(Vec<u64>),
    /// Bytes shared by the whole call.
    PerCall(u64),
}

impl ScratchSize {
    pub fn total(&self) -> u64 {
        match self {
            Self::PerGroup(bytes) => bytes.iter().fold(0, |sum, b| sum.saturating_add(*b)),
            Self::PerCall(bytes) => *bytes,
        }
    }
}

/// One tensor map per group; its index in [`OperatorCall::maps`] is `MAP_name`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapLayout {
    pub name: String,
    pub groups: Vec<MapGeometry>,
}

/// The arguments of one tensor map encoding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapGeometry {
    pub operand: OperandRef,
    pub dtype: MapType,
    /// Elements, innermost first.
    pub dims: Vec<u64>,
    /// Bytes, for all dimensions but the innermost.
    pub strides: Vec<u64>,
    /// Elements, innermost first.
    pub box_dims: Vec<u32>,
    pub swizzle: Swizzle,
    pub fill: Fill,
}

/// One kernel launch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchGeometry {
    pub kernel: String,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub cluster: [u32; 3],
    /// Dynamic shared memory, bytes.
    pub smem: u32,
    /// Programmatic dependent launch on the launch before.
    pub pdl: bool,
    /// One `dgx::Args` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Arguments>,
    /// For Triton's compiler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<BTreeMap<String, i64>>,
}

impl LaunchGeometry {
    pub fn threads_per_block(&self) -> u32 {
        self.block.iter().fold(1, |n, d| n.saturating_mul(*d))
    }
}
