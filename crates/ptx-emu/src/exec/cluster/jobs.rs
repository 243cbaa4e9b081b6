//! Asynchronous work that was issued and has yet to complete.

use crate::exec::clock::EventTime;
use crate::exec::listen::agent::Agent;
use crate::exec::origin::{Origin, SharedAt};
use crate::op::{AtomOp, Num, TensorMode};
use crate::tensor::tensormap::TensorMap;

/// When an event lands by itself, and which of several at once comes first.
pub(crate) type Due = (EventTime, u64);

/// An event in flight.
pub(crate) struct Pending {
    pub(crate) from: Origin,
    pub(crate) job: Job,
}

/// How long a kind of copy takes when its time is drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Latency {
    pub(crate) least: u64,
    pub(crate) spread: u64,
}

impl Latency {
    /// `cp.async`
    pub(crate) const LANES: Self = Self::new(100, 400);
    /// Bulk and tensor copies into shared memory.
    pub(crate) const LOAD: Self = Self::new(200, 600);
    /// Bulk and tensor copies out of it.
    pub(crate) const STORE: Self = Self::new(150, 500);
    /// Stores to other CTAs of the cluster.
    pub(crate) const REMOTE: Self = Self::new(50, 200);
    /// Work of tensor cores on tensor memory.
    pub(crate) const TENSOR: Self = Self::new(100, 400);

    const fn new(least: u64, spread: u64) -> Self {
        Self { least, spread }
    }
}

/// What happens when an event is due.
pub(crate) enum Job {
    /// `cp.async` of a warp.
    Lanes { group: u64, items: Vec<LaneCopy> },
    /// Bytes into shared memory, signalled on barriers.
    ToShared {
        from: ByteSource,
        bytes: u32,
        targets: Vec<(SharedAt, SharedAt)>,
        reduce: Option<(AtomOp, Num)>,
    },
    /// Bytes (or a reduction) out of shared memory.
    ToGlobal {
        from: SharedSource,
        to: u64,
        group: u64,
        reduce: Option<(AtomOp, Num)>,
        mask: u16,
    },
    /// `st.async`, `red.async`
    Remote {
        to: SharedAt,
        barrier: SharedAt,
        data: Vec<u8>,
        reduce: Option<(AtomOp, Num)>,
    },
    /// `cp.async.bulk.tensor`
    Tensor(Box<TensorJob>),
    /// What the tensor core of a CTA was given, up to this; a commit arrives on barriers.
    TensorCore { pipe: u32, targets: Vec<SharedAt> },
}

impl Job {
    /// The bulk group of a copy out of shared memory, and whether its source has been read.
    pub(crate) fn bulk_group(&self) -> Option<(u64, bool)> {
        match self {
            Job::ToGlobal { from, group, .. } => Some((*group, from.read)),
            Job::Tensor(job) => job
                .source
                .as_ref()
                .map(|(source, group)| (*group, source.read)),
            Job::Lanes { .. } | Job::ToShared { .. } | Job::Remote { .. } => None,
            Job::TensorCore { .. } => None,
        }
    }

    /// The shared bytes a copy to global memory takes.
    pub(crate) fn shared_source(&mut self) -> Option<&mut SharedSource> {
        match self {
            Job::ToGlobal { from, .. } => Some(from),
            Job::Tensor(job) => job.source.as_mut().map(|(source, _)| source),
            Job::Lanes { .. } | Job::ToShared { .. } | Job::Remote { .. } => None,
            Job::TensorCore { .. } => None,
        }
    }

    /// Who carries it out.
    pub(crate) fn agent(&self) -> Agent {
        match self {
            Job::Lanes { .. } | Job::Remote { .. } => Agent::LaneCopy,
            Job::ToShared { .. } | Job::ToGlobal { .. } | Job::Tensor(_) => Agent::BulkCopy,
            Job::TensorCore { .. } => Agent::TensorCore,
        }
    }

    /// The first barrier it signals.
    pub(crate) fn signalled(&self) -> Option<SharedAt> {
        match self {
            Job::ToShared { targets, .. } => targets.first().map(|(_, barrier)| *barrier),
            Job::Remote { barrier, .. } => Some(*barrier),
            Job::Tensor(job) => job.targets.first().map(|(_, barrier)| *barrier),
            Job::TensorCore { targets, .. } => targets.first().copied(),
            Job::Lanes { .. } | Job::ToGlobal { .. } => None,
        }
    }

    /// Whether the copy signals this barrier when it completes.
    pub(crate) fn signals(&self, at: SharedAt) -> bool {
        match self {
            Job::ToShared { targets, .. } => targets.iter().any(|(_, b)| *b == at),
            Job::Remote { barrier, .. } => *barrier == at,
            Job::Tensor(job) => job.targets.iter().any(|(_, b)| *b == at),
            Job::TensorCore { targets, .. } => targets.contains(&at),
            Job::Lanes { .. } | Job::ToGlobal { .. } => false,
        }
    }
}

/// One lane of a `cp.async`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaneCopy {
    pub(crate) to: SharedAt,
    pub(crate) from: u64,
    pub(crate) bytes: u8,
    /// Bytes really read; the rest is zero.
    pub(crate) valid: u8,
}

/// A tensor copy in flight.
pub(crate) struct TensorJob {
    pub(crate) map: TensorMap,
    pub(crate) mode: TensorMode,
    pub(crate) coords: Vec<i32>,
    pub(crate) offsets: Vec<u16>,
    /// Loads: where to, and the barrier to signal.
    pub(crate) targets: Vec<(SharedAt, SharedAt)>,
    /// Stores: from where, in which bulk group.
    pub(crate) source: Option<(SharedSource, u64)>,
    pub(crate) reduce: Option<(AtomOp, Num)>,
}

/// Where bytes for shared memory come from.
pub(crate) enum ByteSource {
    Global(u64),
    Shared(SharedSource),
    /// An answer that comes from nowhere in memory.
    Given([u8; ANSWER as usize]),
}

/// Bytes of an answer.
pub(crate) const ANSWER: u32 = 16;

/// Shared bytes that a copy reads at an unknown moment between its issue and its completion.
pub(crate) struct SharedSource {
    pub(crate) at: SharedAt,
    /// As they were at issue, and what the copy takes once it has read; in front of them a gap, so
    /// that they lie in their swizzle pattern as they do in shared memory.
    pub(crate) bytes: Vec<u8>,
    pub(crate) gap: u32,
    pub(crate) read: bool,
}

impl SharedSource {
    /// What was read, from the gap's end on.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.gap as usize..]
    }

    /// What was read with the gap before it, and the gap's length.
    pub(crate) fn swizzled(&self) -> (&[u8], u32) {
        (&self.bytes, self.gap)
    }
}
