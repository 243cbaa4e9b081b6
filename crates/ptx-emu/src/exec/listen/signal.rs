//! What orders accesses: who has come how far, and who waited for whom.
//!
//! A [`Listener`](super::visit::Listener) hears of them between the accesses that come before and
//! those after.

use super::agent::Agent;
use crate::exec::origin::SharedAt;
use crate::op::{Fence, Order};

/// Something that orders the accesses before it and those after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// A copy or a product begins; it says its number with all it does. Those that signal no
    /// barrier belong to a group.
    Issue {
        work: u64,
        by: Agent,
        signals: Option<SharedAt>,
    },
    /// What an agent was given since the last commit is its group of this number.
    Commit { agent: Agent, group: u64 },
    /// All of an agent's groups below this number are done, or have at least read their source.
    Groups {
        agent: Agent,
        below: u64,
        read: bool,
    },
    /// `bar.warp.sync`: the lanes have met those it names.
    Warp { named: u32 },
    /// A warp-wide instruction counts on lanes that take no part in it.
    Absent(Absent),
    /// A product adds to so many of its registers that nobody gave a value.
    Unset { registers: u32, of: u32 },
    /// As it was written; `tensormap.cp_fenceproxy` is one, too.
    Fence(Fence),
    /// … of the tensor map at this address, by `fence.proxy.tensormap::generic.acquire`.
    MapAcquire { map: u64 },
    /// `wgmma.fence`
    WgmmaFence,
    /// `tcgen05.alloc`: columns that hold nothing yet.
    TmemAlloc { cta: u32, first: u32, columns: u32 },
    /// `tcgen05.wait::ld` or `wait::st`
    TmemWait { store: bool },
    /// `tcgen05.fence::before_thread_sync` or `after_thread_sync`
    TmemFence { after: bool },
    /// `griddepcontrol.wait`: the launch before is over.
    LaunchBefore,
    /// At a named barrier of the CTA.
    Bar { id: u32, over: u64, step: Step },
    /// At the barrier of the cluster.
    Cluster { over: u64, step: Step },
    /// At an mbarrier.
    Mbarrier { at: SharedAt, over: u64, step: Step },
    /// `setmaxnreg`
    Registers,
    /// The warp ends, when so many phases of the barrier of the cluster are over.
    Exit { over: u64 },
    /// Nobody can go on, and this warp waits here.
    Stuck(Stuck),
}

/// What is amiss with the lanes of a warp-wide instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    /// They execute it, and their mask does not name them.
    Unnamed { lanes: u32 },
    /// The mask names them, and they are elsewhere.
    Away { lanes: u32 },
    /// They read values of others that have ended, are not named or do not exist.
    Read { lanes: u32 },
}

/// What a warp waits for in vain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stuck {
    /// At an mbarrier, for so many arrivals of so many, or for bytes.
    Mbarrier {
        at: SharedAt,
        arrivals: i64,
        expected: u32,
        bytes: i64,
    },
    /// At a named barrier, where so many threads have come.
    Bar {
        id: u32,
        arrived: u32,
        expected: u32,
    },
    /// For registers, of which so many per thread of a warp are free.
    Registers { count: u32, free: u32 },
}

/// What is done at a barrier when so many of its phases are `over`; a wait for a phase goes through
/// when one more is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Init {
        count: u32,
    },
    Inval,
    /// More bytes are to come.
    Expect {
        bytes: u32,
    },
    /// Bytes have come.
    Complete {
        bytes: u32,
    },
    Arrive {
        count: u32,
        order: Order,
    },
    /// One that has more arrivals than were expected.
    Excess {
        expected: u32,
    },
    /// A wait went through; by parity, it cannot tell a phase from the next but one.
    Pass {
        order: Order,
        parity: bool,
    },
}
