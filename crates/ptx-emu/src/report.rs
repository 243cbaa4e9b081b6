//! What comes back from a launch.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::counters::Counters;
use crate::fault::EarlyRead;

/// What a finished launch did.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Counts.
    pub counters: Counters,
    /// How much the busiest did.
    pub most: Most,
    /// Seed it ran with.
    pub seed: u64,
    /// CTAs that fit on one multiprocessor at once.
    pub ctas_per_sm: u32,
    /// The first read of something that was still on its way, which explains wrong results.
    pub early_read: Option<EarlyRead>,
    /// What the kernel printed, CTA after CTA; at most 64 MiB.
    pub printed: Vec<Print>,
}

/// How much the busiest cluster and the busiest warp did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Most {
    /// Of all clusters.
    pub of_all: Busiest,
    /// Of those with a trace.
    pub of_traced: Busiest,
}

/// The most that any cluster did, and any warp.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Busiest {
    /// Warp instructions of a cluster.
    pub cluster: u64,
    /// Instructions of a warp, and nanoseconds that it slept.
    pub warp: u64,
}

impl Busiest {
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            cluster: self.cluster.max(other.cluster),
            warp: self.warp.max(other.warp),
        }
    }
}

/// What one `printf` of one thread said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Print {
    /// `%ctaid`
    pub cta: [u32; 3],
    /// `%tid`
    pub thread: [u32; 3],
    /// As formatted; a line only if the kernel ended it.
    pub text: String,
}

static ENDED: AtomicU64 = AtomicU64::new(0);

/// CTAs that have ended in this process, of all launches: how far a long one has come.
pub fn ended_ctas() -> u64 {
    ENDED.load(Relaxed)
}

pub(crate) fn count_ended(ctas: u64) {
    ENDED.fetch_add(ctas, Relaxed);
}
