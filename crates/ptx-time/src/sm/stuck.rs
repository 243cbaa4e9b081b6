//! A replay that does not end: who waits for what.

use std::collections::BTreeMap;
use std::fmt;

use ptx_emu::trace::BarrierAt;

use super::{CYCLE, Sim};

/// Barriers that are named; more would not be read.
const NAMED: usize = 4;

/// A trace that does not end, in the time it is given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Stuck {
    /// When.
    pub cycles: u64,
    /// How many warps have not ended.
    pub waiting: usize,
    /// What they wait for.
    pub at: Vec<Waiting>,
}

/// Warps that wait for the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Number of their CTA in the grid.
    pub cta: u64,
    /// Which of its warps.
    pub warps: Vec<usize>,
    /// What for.
    pub barrier: Awaited,
}

/// What a warp waits for that nobody opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaited {
    /// A barrier of the CTA, by number, at which so many threads have arrived.
    Barrier {
        /// Which of sixteen.
        id: u32,
        /// Threads that have arrived.
        arrived: u32,
    },
    /// The barrier of the cluster, at which so many warps have arrived.
    Cluster {
        /// Warps that have arrived.
        arrived: u32,
    },
    /// Columns of tensor memory, of which so many are free.
    Columns {
        /// How many it asks for.
        columns: u32,
        /// How many there are.
        free: u32,
    },
    /// An mbarrier.
    Phase {
        /// Where it lies.
        barrier: BarrierAt,
        /// Phases that have ended.
        phase: u32,
        /// Arrivals that are missing.
        arrivals: i64,
        /// Bytes that are missing.
        bytes: i64,
    },
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Barrier { id, arrived } => {
                write!(f, "barrier {id}, where {arrived} threads have arrived")
            }
            Self::Cluster { arrived } => {
                write!(
                    f,
                    "the cluster's barrier, where {arrived} warps have arrived"
                )
            }
            Self::Columns { columns, free } => {
                write!(
                    f,
                    "{columns} columns of tensor memory, of which {free} are free"
                )
            }
            Self::Phase {
                barrier,
                phase,
                arrivals,
                bytes,
            } => write!(
                f,
                "the mbarrier at {:#x} of rank {}, whose phase {phase} lacks {arrivals} arrivals \
                 and {bytes} bytes",
                barrier.address, barrier.rank
            ),
        }
    }
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cycles, waiting, ..
        } = self;
        write!(
            f,
            "the replay stands still after {cycles} cycles: {waiting} warps wait for what never \
             comes"
        )?;
        for (index, group) in self.at.iter().take(NAMED).enumerate() {
            let warps: Vec<String> = group.warps.iter().map(ToString::to_string).collect();
            let (cta, barrier) = (group.cta, group.barrier);
            let mark = if index == 0 { ':' } else { ';' };
            let warps = warps.join(", ");
            write!(f, "{mark} warps {warps} of CTA {cta} for {barrier}")?;
        }
        match self.at.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, "; and others for {more} barriers more"),
        }
    }
}

impl Sim<'_> {
    /// Who stands where, once nothing happens any more.
    pub(super) fn stuck(&self) -> Stuck {
        let mut found: BTreeMap<(u64, Awaited), Vec<usize>> = BTreeMap::new();
        let mut stands = |index: usize, barrier: Awaited| {
            let warp = &self.warps[index];
            let cta = self.ctas[warp.cta].times.cta;
            found.entry((cta, barrier)).or_default().push(warp.number);
        };
        for cta in &self.ctas {
            for (&id, gate) in &cta.barriers {
                let arrived = gate.arrived;
                for &warp in &gate.waiting {
                    stands(warp, Awaited::Barrier { id, arrived });
                }
            }
        }
        for ask in &self.asks {
            let (columns, free) = (ask.columns, self.sms[ask.sm].tmem.free);
            stands(ask.warp, Awaited::Columns { columns, free });
        }
        for cluster in &self.clusters {
            let arrived = cluster.gate.arrived;
            for &warp in &cluster.gate.waiting {
                stands(warp, Awaited::Cluster { arrived });
            }
            for (&barrier, state) in &cluster.mbarriers {
                for question in &state.waiting {
                    stands(
                        question.warp,
                        Awaited::Phase {
                            barrier,
                            phase: state.phase,
                            arrivals: state.pending,
                            bytes: state.bytes,
                        },
                    );
                }
            }
        }
        let group = |((cta, barrier), mut warps): ((u64, Awaited), Vec<usize>)| {
            warps.sort_unstable();
            warps.dedup();
            Waiting {
                cta,
                warps,
                barrier,
            }
        };
        let left = self.warps.iter().filter(|w| w.part < w.parts.len());
        Stuck {
            cycles: self.end / CYCLE as u64,
            waiting: left.count(),
            at: found.into_iter().map(group).collect(),
        }
    }
}
