//! Accesses, as a [`Listener`] hears of them: who reaches memory, on behalf of which instruction, in
//! which order, and which bytes it means.

use super::agent::Agent;
use super::signal::Signal;
use crate::exec::origin::Origin;
use crate::op::Order;
use crate::tensor::descriptor::Matrix;

/// What is done to the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Read,
    Write,
    /// Read and written in one step.
    Update,
    /// Given back: nobody may use it any more.
    Free,
    /// The first and the last moment of a CTA, between which its shared memory may be used.
    Begin,
    End,
}

impl Act {
    /// Whether the bytes change.
    #[inline(always)]
    pub(crate) fn writes(self) -> bool {
        self != Act::Read
    }

    /// Whether it matters what they were.
    #[inline(always)]
    pub(crate) fn reads(self) -> bool {
        matches!(self, Act::Read | Act::Update)
    }
}

/// The memory that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Room {
    /// An allocation, by its number; offsets are from its first byte.
    Global { region: usize },
    /// Shared memory of a CTA of the cluster.
    Shared { cta: u32 },
    /// Tensor memory of a CTA of the cluster.
    Tensor { cta: u32 },
}

/// Bytes of a room.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bytes<'v> {
    /// One piece.
    Piece { first: u64, len: u64 },
    /// `each` bytes for every lane; those that do not take part repeat one that does. All lie in
    /// `low..end`, and fill it if they are `dense` (or are all the same).
    Lanes {
        at: &'v [u32; 32],
        each: u32,
        low: u32,
        end: u32,
        dense: bool,
    },
    /// An operand tile of `rows` rows (or columns).
    Tile { matrix: &'v Matrix, rows: u32 },
    /// Lanes of columns of tensor memory.
    Columns { first: u32, count: u32, lanes: u128 },
}

/// One access.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visit<'v> {
    pub(crate) agent: Agent,
    /// On whose behalf.
    pub(crate) from: Origin,
    pub(crate) act: Act,
    pub(crate) order: Order,
    pub(crate) room: Room,
    pub(crate) bytes: Bytes<'v>,
}

/// Hears what goes on in a launch.
pub(crate) trait Listener: Sync {
    /// Somebody to listen to one cluster, from its beginning to its end, if it is of interest.
    fn attend(&self, cluster: u64) -> Option<Box<dyn ClusterListener + '_>>;
}

/// Hears every access of a cluster and what orders them, as they happen.
pub(crate) trait ClusterListener: Send {
    fn hear(&mut self, visit: &Visit<'_>);
    fn order(&mut self, from: Origin, signal: Signal);

    /// Whether it matters that the last access changed something.
    fn wants_changes(&self) -> bool {
        false
    }

    /// The last access wrote what was there before.
    fn unchanged(&mut self) {}
}

impl Visit<'_> {
    /// Bytes moved.
    #[inline(always)]
    pub(crate) fn total(&self) -> u64 {
        match self.bytes {
            Bytes::Piece { len, .. } => len,
            Bytes::Lanes { each, .. } => u64::from(each) * u64::from(self.from.lanes.count_ones()),
            Bytes::Tile { matrix, rows } => matrix.bytes(rows),
            Bytes::Columns { count, lanes, .. } => 4 * u64::from(count * lanes.count_ones()),
        }
    }
}
