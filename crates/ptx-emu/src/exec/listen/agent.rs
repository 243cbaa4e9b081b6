//! Who reaches memory, and by which way.

/// Who reaches memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agent {
    /// Loads, stores, atomics and matrix moves of threads.
    Thread,
    /// What single lanes leave behind: `cp.async`, `st.async`, `red.async`.
    LaneCopy,
    /// Bulk and tensor copies.
    BulkCopy,
    /// Operands of wgmma and tcgen05.
    TensorCore,
    /// The reading of a tensor map by the copy that uses it.
    MapFetch,
    /// The editing of a tensor map by a thread.
    MapEdit,
    /// Strings the host reads: formats and messages.
    Host,
}

/// The way an agent reaches memory; what comes by another way is ordered by proxy fences only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proxy {
    Generic,
    Async,
    Tensormap,
}

impl Agent {
    pub(crate) fn proxy(self) -> Proxy {
        match self {
            Agent::Thread | Agent::LaneCopy | Agent::MapEdit | Agent::Host => Proxy::Generic,
            Agent::BulkCopy | Agent::TensorCore => Proxy::Async,
            Agent::MapFetch => Proxy::Tensormap,
        }
    }
}
