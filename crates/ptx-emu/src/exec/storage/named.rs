//! Barriers of a CTA and of a cluster.

/// One of a CTA's sixteen `bar` barriers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NamedBarrier {
    pub(crate) generation: u64,
    /// Threads that have arrived in this generation.
    pub(crate) arrived: u32,
    /// Threads expected; 0 means all of the CTA.
    pub(crate) expected: u32,
    /// Reduction in progress: threads with the predicate, threads in all.
    pub(crate) counted: u32,
    pub(crate) voters: u32,
    /// Results of the last completed generation.
    pub(crate) last_counted: u32,
    pub(crate) last_voters: u32,
}

/// State of `barrier.cluster`.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ClusterBarrier {
    pub(crate) generation: u64,
    pub(crate) arrived: u32,
}
