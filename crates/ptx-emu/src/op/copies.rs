//! Copies that go on by themselves.

use super::{Addr, AtomOp, Num, R32, SlotList};

/// `cp.async.bulk` (non-tensor); bytes are moved asynchronously.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct BulkCopy {
    /// Direction.
    pub dir: BulkDir,
    /// Destination.
    pub dst: Addr,
    /// Source (for a prefetch: the global address; `dst` unused).
    pub src: Addr,
    /// Size in bytes, multiple of 16.
    pub bytes: R32,
    /// `mbarrier` operand (`complete_tx`); absent for `.bulk_group`.
    pub mbar: Option<Addr>,
    /// Multicast CTA mask (16-bit value).
    pub multicast: Option<R32>,
    /// `cp.reduce.async.bulk`: operation and type.
    pub reduce: Option<(AtomOp, Num)>,
    /// `.cp_mask` byte mask.
    pub byte_mask: Option<R32>,
}

/// Directions of bulk copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BulkDir {
    /// global → shared::cta or shared::cluster
    GlobalToShared,
    /// shared::cta → global
    SharedToGlobal,
    /// shared::cta → shared::cluster
    SharedToCluster,
    /// `cp.async.bulk.prefetch.L2`
    Prefetch,
}

/// `cp.async.bulk.tensor`
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TensorCopy {
    /// Direction (`SharedToCluster` does not occur).
    pub dir: BulkDir,
    /// Dimensions, 1–5.
    pub dims: u8,
    /// Load/store mode.
    pub mode: TensorMode,
    /// Shared-memory side (unused for a prefetch).
    pub shared: Addr,
    /// Generic address of the tensor map.
    pub map: Addr,
    /// Coordinates, innermost first, 32-bit slots.
    pub coords: SlotList,
    /// im2col offsets (16-bit slots); usually empty.
    pub extra: SlotList,
    /// `mbarrier` operand for loads.
    pub mbar: Option<Addr>,
    /// Multicast CTA mask.
    pub multicast: Option<R32>,
    /// `.cta_group::2`: the barrier may be that of the other CTA of the pair.
    pub pair: bool,
    /// `cp.reduce.async.bulk.tensor`
    pub reduce: Option<AtomOp>,
}

/// The last word of an answer to `clusterlaunchcontrol.try_cancel` that grants a cluster.
pub(crate) const CANCELED: u32 = 0x00c1_c001;

/// Modes of tensor copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum TensorMode {
    Tile,
    Im2col,
    /// `tile::gather4`, `tile::scatter4`: one column and four rows
    Rows4,
}
