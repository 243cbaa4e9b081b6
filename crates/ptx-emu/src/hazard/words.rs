//! The text of a finding: the name of the hazard, what is missing, and the usual remedy.

use super::finding::Hazard;
use crate::exec::listen::agent::Agent;
use crate::exec::listen::visit::Act;
use crate::exec::origin::Origin;

/// One side of a hazard.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Side {
    pub(super) agent: Agent,
    pub(crate) act: Act,
    pub(crate) from: Origin,
    /// Its cluster, if that is another one.
    pub(super) cluster: Option<u64>,
}

impl Side {
    pub(crate) fn new(agent: Agent, act: Act, from: Origin) -> Self {
        Self {
            agent,
            act,
            from,
            cluster: None,
        }
    }

    pub(crate) fn deed(&self) -> String {
        let does = match self.act {
            Act::Begin => return "the CTA begins".to_owned(),
            Act::End => return "the CTA ends".to_owned(),
            Act::Read => "reads",
            Act::Write => "writes",
            Act::Update => "updates",
            Act::Free => "frees",
        };
        let who = match self.agent {
            Agent::Thread => "a thread",
            Agent::LaneCopy => "an asynchronous copy of a thread",
            Agent::BulkCopy => "a bulk copy",
            Agent::TensorCore => "the tensor core",
            Agent::MapFetch | Agent::MapEdit => "a tensor map's access",
            Agent::Host => "the host",
        };
        format!("{who} {does}")
    }
}

/// Which warp waited for a copy into shared memory that was not complete for the accessing one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Waiting {
    /// None that is known.
    #[default]
    Nobody,
    /// Another warp of the CTA.
    Another,
    /// The accessing warp had waited for all copies before it.
    Before,
}

/// The facts that the text depends on: the later access first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case<'s> {
    pub(super) here: &'s Side,
    pub(super) there: Option<&'s Side>,
    /// The later access knew that the other had begun.
    pub(super) begun: bool,
    pub(super) waiting: Waiting,
    pub(super) space: &'static str,
    /// One of them is a wgmma.
    pub(super) wgmma: bool,
}

/// What is missing between two accesses, and the usual remedy.
pub(super) fn advice(hazard: Hazard, case: &Case<'_>) -> (&'static str, &'static str) {
    let space = case.space;
    match hazard {
        Hazard::Race if space == "tensor" => tensor_race(case),
        Hazard::Race => race(case),
        Hazard::ProxyFence if case.here.agent == Agent::MapFetch => (
            "threads are ordered, but no pair of proxy fences lies between the write of the tensor map and the copy that uses it",
            "behind the write fence.proxy.tensormap::generic.release.gpu (or tensormap.cp_fenceproxy), and before the copy fence.proxy.tensormap::generic.acquire.gpu [map], 128",
        ),
        Hazard::ProxyFence => (
            "threads are ordered, but no proxy fence lies between the write and the copy or product",
            "the writers execute fence.proxy.async before the barrier that the issuer waits at",
        ),
        Hazard::Scope => (
            "the scope of an atomic access or fence does not reach the other CTA",
            "widen it to .cluster or .gpu (__threadfence() for __threadfence_block())",
        ),
        Hazard::UninitialisedShared => (
            "these bytes were never written",
            "fill them, wait for the copy that does, or do not read what lies beyond the tile",
        ),
        Hazard::UninitialisedTensor => (
            "these columns and lanes were not written since they were allocated",
            "enable-input-d must be false the first time; write all lanes before they are read",
        ),
        Hazard::UninitialisedRegister if case.here.agent == Agent::TensorCore => (
            "the product adds to registers that nothing gave a value",
            "set the accumulators to zero first, or give the first product scale-d 0",
        ),
        Hazard::UninitialisedRegister => ("no path gives it a value", "initialise the variable"),
        Hazard::HeldRegister if case.wgmma => (
            "the product is still in flight",
            "wgmma.commit_group and wgmma.wait_group before its registers are touched",
        ),
        Hazard::HeldRegister => (
            "the load of tensor memory is still in flight",
            "tcgen05.wait::ld before its registers are touched",
        ),
        Hazard::WgmmaFence => (
            "no wgmma.fence between the change of the register and the product that uses it",
            "wgmma.fence before the first wgmma that follows",
        ),
        Hazard::TensorFence => (
            "no tcgen05.fence::after_thread_sync between the barrier and the use of tensor memory",
            "tcgen05.fence::before_thread_sync before the barrier and ::after_thread_sync behind it",
        ),
        Hazard::RegisterBudget => (
            "the registers of the CTA do not suffice for it",
            "setmaxnreg.dec in other warps first; all together no more than the kernel is launched with",
        ),
        Hazard::BarrierCount if space == "barrier" => (
            "not all threads that it counts have come",
            "as many threads as bar.sync names (or all of the CTA) must come to it; see what holds the others",
        ),
        Hazard::BarrierCount => (
            "the arrivals of a phase are not those it was initialised for",
            "wait until the phase before is over (a producer: for `empty`) before arriving again; mbarrier.init with the arrivals of a phase",
        ),
        Hazard::BarrierInit => (
            "its initialisation is not ordered before this use",
            "fence.mbarrier_init and __syncthreads() (cluster-wide: barrier.cluster) after mbarrier.init",
        ),
        Hazard::BarrierInUse if case.there.is_some_and(|there| there.act == Act::Write) => (
            "it is still a barrier",
            "mbarrier.inval by one thread, and a barrier of all, before its bytes are used again",
        ),
        Hazard::BarrierInUse => (
            "others may still be using it",
            "a barrier of all users before it is initialised again or invalidated",
        ),
        Hazard::ExpectTx => (
            "the barrier's phase was over before all its bytes had come",
            "expect_tx must name the bytes of all copies of the phase",
        ),
        Hazard::ParityLap => (
            "the barrier advanced two phases while this warp did not look: a parity does not distinguish them",
            "let the producer wait until every consumer has seen a phase",
        ),
        Hazard::Overwritten => (
            "the copy before it was never read",
            "check the slot's phase, and the empty barrier the producer waits at",
        ),
        Hazard::PartialWarp if space == "warp" => (
            "lanes that a warp-wide instruction counts on take no part in it",
            "move it to where all lanes of its mask come, or name those that do; read from those alone",
        ),
        Hazard::PartialWarp => (
            "a barrier for whole warps is reached by a part of one",
            "move it out of the branch, or use barrier.sync with the threads that come",
        ),
        Hazard::MisalignedAtom => (
            "the tile does not begin where its swizzle pattern does",
            "align the tile to the swizzle's period, or give the descriptor a base offset",
        ),
        Hazard::OutsideTensor => (
            "it lies outside the tensor, in the padding around it where nothing faults",
            "check the loop's bounds and the last tile",
        ),
        Hazard::Lifetime => lifetime(case),
        Hazard::DependentLaunch => (
            "the launch before may still be writing",
            "griddepcontrol.wait before the first use of what it makes",
        ),
    }
}

fn lifetime(case: &Case<'_>) -> (&'static str, &'static str) {
    let (here, there) = (case.here, case.there);
    let own = there.is_some_and(|there| there.from.cta == here.from.cta);
    match (there.map(|there| there.act), here.agent) {
        (Some(Act::Begin), _) => (
            "nothing ensures that the CTA whose shared memory it is has started",
            "barrier.cluster.arrive and .wait in every CTA (cluster.sync()) before the first use of another's shared memory",
        ),
        (_, Agent::BulkCopy) if own && !here.act.writes() => (
            "the copy may still be reading shared memory when its CTA ends",
            "cp.async.bulk.commit_group and wait_group.read 0 by the thread that issued it, before it ends",
        ),
        (_, Agent::BulkCopy) => (
            "the copy may come when the CTA whose shared memory it uses has ended",
            "wait for the mbarrier of every copy before the CTA ends, or do not issue it",
        ),
        (_, Agent::TensorCore) => (
            "the product may still be at work when the CTA whose shared memory it uses has ended",
            "wait for the last product (or for the barrier its commit arrives at) before the CTA ends",
        ),
        _ => (
            "the CTA whose shared memory it is may have ended by then",
            "barrier.cluster.arrive and .wait in every CTA (cluster.sync()) behind the last use, before any ends",
        ),
    }
}

fn tensor_race(case: &Case<'_>) -> (&'static str, &'static str) {
    let Some(there) = case.there else {
        return ("nothing orders them", "put a barrier between them");
    };
    let (first, second) = ((there.agent, there.act), (case.here.agent, case.here.act));
    match (first, second, case.begun) {
        (_, (_, Act::Free), _) => (
            "others may still be using what is freed",
            "wait for tcgen05.commit, tcgen05.wait::ld, then a barrier of all users before dealloc",
        ),
        ((Agent::TensorCore, _), (Agent::TensorCore, _), _) => (
            "two warps gave the tensor core work on these columns, and nothing orders the two",
            "let one thread issue both, or a barrier between them (tcgen05.fence::before_thread_sync before it, ::after_thread_sync behind it)",
        ),
        ((Agent::TensorCore, _), (_, Act::Write), false)
        | ((_, Act::Write), (Agent::TensorCore, _), false) => (
            "nothing orders the store and the tensor core",
            "before the product: tcgen05.wait::st, then a barrier with its issuer; behind it: tcgen05.commit to an mbarrier, and a wait for its phase",
        ),
        ((Agent::TensorCore, _), _, _) => (
            "no wait for the tensor core",
            "tcgen05.commit to an mbarrier, and a wait for its phase, before tensor memory is used",
        ),
        ((_, Act::Read), _, _) => (
            "a load may still be reading these columns",
            "tcgen05.wait::ld, then a barrier with the issuer, before they are written again",
        ),
        _ => (
            "a store may still be on its way to these columns",
            "tcgen05.wait::st, then a barrier with the threads that use them",
        ),
    }
}

fn race(case: &Case<'_>) -> (&'static str, &'static str) {
    use Agent::{BulkCopy, LaneCopy, TensorCore, Thread};
    let Some(there) = case.there else {
        return ("nothing orders them", "put a barrier between them");
    };
    let (here, shared) = (case.here, case.space == "shared");
    let wrote = there.act != Act::Read;
    let same_warp = (there.from.cta, there.from.warp) == (here.from.cta, here.from.warp);
    match (there.agent, wrote, here.agent) {
        (Thread, _, Thread) if shared && same_warp => (
            "the lanes of the warp are on different paths, and nothing orders these",
            "__syncwarp() on both paths between the two, or behind the branch",
        ),
        (BulkCopy, true, _) if shared && case.waiting == Waiting::Before => (
            "the copy may come while what lay there before is still read",
            "a barrier (or the slot's empty mbarrier) behind the last read, before the next copy is issued; if the new bytes are meant, wait for their mbarrier",
        ),
        (BulkCopy, true, _) if shared && case.waiting == Waiting::Another => (
            "another warp waited for the copy, and no barrier orders this one after it",
            "__syncthreads() behind that wait, or wait for the mbarrier here too",
        ),
        (BulkCopy, true, _) if shared => (
            "no wait for the copy",
            "wait for its mbarrier (try_wait in a loop, the right parity) before the bytes are used",
        ),
        (BulkCopy, true, _) => (
            "no wait until the copy had been written",
            "cp.async.bulk.wait_group 0, then a barrier or a release, before others use the bytes",
        ),
        (BulkCopy, false, _) => (
            "the copy may still be reading its source",
            "cp.async.bulk.wait_group.read 0 by the issuer, then a barrier, before the bytes change",
        ),
        (LaneCopy, _, _) => (
            "no wait for the copy",
            "cp.async.wait_group and __syncthreads() before others use the bytes",
        ),
        (TensorCore, _, _) if !case.wgmma => (
            "the tensor core may still be reading its tile",
            "tcgen05.commit behind the product to the tile's empty barrier, and a wait there before it is filled again",
        ),
        (TensorCore, _, _) if !case.begun => (
            "no barrier between those that issue the product and the other warp",
            "__syncthreads() (or a named barrier): behind the writes before the product, and behind wgmma.wait_group before the next writes",
        ),
        (TensorCore, _, _) => (
            "the product may still be reading its tile",
            "wgmma.wait_group before the tile is released (arrive at its empty barrier after it)",
        ),
        (_, _, Thread | LaneCopy) if shared => (
            "no barrier between the two warps",
            "__syncthreads(), or a named barrier or mbarrier that both take part in",
        ),
        (_, _, BulkCopy) if shared => (
            "no barrier between the warp and the issuer of the copy",
            "fence.proxy.async by the warp, then a barrier with the issuer, before the copy is issued",
        ),
        (_, _, TensorCore) if !case.wgmma => (
            "no barrier between the warp and the issuer of the product",
            "fence.proxy.async by the warp, then a barrier with the issuer, before the product",
        ),
        (_, _, TensorCore) => (
            "no barrier between the warp and those that issue the product",
            "fence.proxy.async by the warp, then a barrier with the warpgroup, before the product",
        ),
        (Thread, true, Thread) if case.begun => (
            "the writer has a fence before its atomic, but the reader has none behind the one by which it learnt of it",
            "__threadfence() behind that atomic, then the barrier, before the read; by the letter of the memory model this is a race, also in NVIDIA's threadFenceReduction sample, which leaves this fence out",
        ),
        _ => (
            "nothing orders the two CTAs (or warps)",
            "an atomic with release on one side and acquire on the other, or one kernel after the other",
        ),
    }
}
