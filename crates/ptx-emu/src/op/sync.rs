//! What the lanes of a warp, the warps of a CTA and the CTAs of a cluster do together.

use super::{Addr, Order, P, R32, R64, Scope, Space};

/// `shfl.sync` modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum ShflMode {
    Up,
    Down,
    Bfly,
    Idx,
}

impl ShflMode {
    /// Lane a shuffle reads from and whether it is within bounds.
    #[inline(always)]
    pub(crate) fn source(self, lane: u32, b: u32, c: u32) -> (u32, bool) {
        let segment = c >> 8 & 0x1f;
        let clamp = c & 0x1f;
        let b = b & 0x1f;
        let max = (lane & segment) | (clamp & !segment);
        let min = lane & segment;
        match self {
            Self::Up => (lane.wrapping_sub(b), lane as i32 - b as i32 >= max as i32),
            Self::Down => (lane + b, lane + b <= max),
            Self::Bfly => (lane ^ b, lane ^ b <= max),
            Self::Idx => {
                let j = min | (b & !segment);
                (j, j <= max)
            }
        }
    }

    /// The lane that one of a shuffle among all gets its value from, and whether it is within bounds.
    #[inline(always)]
    pub(crate) fn source_among_all(self, lane: u32, b: u32, c: u32) -> (u32, bool) {
        match self.source(lane, b, c) {
            (source, true) => (source & 31, true),
            (_, false) => (lane, false),
        }
    }
}

/// `vote.sync` and `match.sync` modes and `redux.sync` operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum Vote {
    All,
    Any,
    Uni,
    Ballot,
}

/// `redux.sync` operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum Redux {
    Add,
    MinS,
    MinU,
    MaxS,
    MaxU,
    And,
    Or,
    Xor,
    /// `.f32`, with `.abs` and `.NaN` (sm_100)
    MinF {
        abs: bool,
        nan: bool,
    },
    MaxF {
        abs: bool,
        nan: bool,
    },
}

/// `bar` / `barrier.cta` flavours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BarKind {
    /// Arrive and wait.
    Sync,
    /// Arrive only.
    Arrive,
    /// Arrive, wait, `d` = number of threads with the predicate.
    RedPopc {
        /// Result.
        d: R32,
        /// Counted predicate.
        p: P,
        /// Count lanes where `p` is false.
        negate: bool,
    },
    /// Arrive, wait, `d` = all (`and`) or any (`or`) of the predicate.
    RedPred {
        /// Result.
        d: P,
        /// Reduced predicate.
        p: P,
        /// Reduce `!p`.
        negate: bool,
        /// `.and` rather than `.or`
        and: bool,
    },
}

/// mbarrier operations; `addr` is shared::cta or shared::cluster (remote arrives).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mbar {
    /// Which.
    pub op: MbarOp,
    /// The barrier's address.
    pub addr: Addr,
    /// Space of `addr`: Shared, SharedCluster or Generic.
    pub space: Space,
    /// What it orders: an arrive releases and a wait acquires unless they say otherwise.
    pub order: Order,
}

/// What an [`Mbar`] does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum MbarOp {
    /// `init` with an expected arrival count.
    Init {
        /// Expected arrivals per phase.
        count: R32,
    },
    /// `inval`
    Inval,
    /// `expect_tx`
    ExpectTx {
        /// Bytes.
        bytes: R32,
    },
    /// `complete_tx`
    CompleteTx {
        /// Bytes.
        bytes: R32,
    },
    /// `arrive` / `arrive_drop`; an `expect_tx` is done before the arrival.
    Arrive {
        /// Phase token out (state before the arrival), if wanted.
        state: Option<R64>,
        /// `arrive_drop`: also lowers the expected count of later phases.
        drop: bool,
        /// `.noComplete`: the phase may not complete by this arrival.
        no_complete: bool,
        /// `.expect_tx` byte count.
        expect_tx: Option<R32>,
        /// Arrival count, 1 if absent.
        count: Option<R32>,
    },
    /// `test_wait`: `d` = the phase of `state` has completed.
    TestWait {
        /// Result.
        d: P,
        /// Token.
        phase: Phase,
    },
    /// `try_wait`: as `test_wait`, but may suspend the warp.
    TryWait {
        /// Result.
        d: P,
        /// Token.
        phase: Phase,
    },
    /// `pending_count d, state` (no memory access; `addr` unused).
    PendingCount {
        /// Result.
        d: R32,
        /// Token.
        state: R64,
    },
}

/// What an mbarrier wait waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Token returned by an arrive.
    State(R64),
    /// Parity of the phase.
    Parity(R32),
}

/// A fence as it was written. Warps in lockstep on coherent memory need none of it; whoever
/// listens to memory accesses does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fence {
    /// What it does to the accesses around it.
    pub order: FenceOrder,
    /// With whom; proxy fences may leave it open.
    pub scope: Option<Scope>,
    /// Between which ways of reaching memory.
    pub between: Proxies,
    /// For which bytes.
    pub over: FencedBytes,
}

/// What a fence does to the accesses around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum FenceOrder {
    Acquire,
    Release,
    AcqRel,
    Sc,
}

/// The ways of reaching memory that a fence orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proxies {
    /// Ordinary accesses among themselves.
    Generic,
    /// Ordinary accesses by different addresses of one location.
    Alias,
    /// Ordinary accesses and those of bulk copies and tensor cores.
    GenericAsync,
    /// Ordinary accesses and the reading of tensor maps.
    GenericTensormap,
}

/// The bytes a fence is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum FencedBytes {
    All,
    Global,
    /// Shared memory of the executing CTA.
    SharedCta,
    SharedCluster,
    /// mbarriers the thread has initialised.
    InitialisedBarriers,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffles_clamp_as_the_isa_says() {
        assert_eq!(ShflMode::Up.source(3, 1, 0), (2, true));
        assert!(!ShflMode::Up.source(0, 1, 0).1);
        assert_eq!(ShflMode::Down.source(30, 1, 31), (31, true));
        assert!(!ShflMode::Down.source(31, 1, 31).1);
        assert_eq!(ShflMode::Bfly.source(5, 4, 31), (1, true));
        // Width 8: segment mask 0x18 in bits 8-12, clamp 7.
        let c = 0x18 << 8 | 7;
        assert_eq!(ShflMode::Idx.source(13, 2, c), (10, true));
        assert!(!ShflMode::Down.source(15, 1, 0x18 << 8 | 0x1f).1);
    }
}
