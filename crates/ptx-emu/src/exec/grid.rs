//! All clusters of a launch, on all cores, with one result.
//!
//! Clusters that cannot see each other run independently, in any order. If the kernel has
//! accesses other CTAs may see (atomics, volatile, relaxed, acquire and release accesses to global
//! memory, bulk reductions), the launch proceeds in epochs: every resident cluster runs until all
//! its warps have ended or stand before such an access; then those are performed, cluster by
//! cluster in grid order, and the next epoch begins. As many clusters are resident as the device
//! profile holds, and finished ones make room for the next in order: tickets, grid barriers and
//! persistent kernels work, and the outcome does not depend on the number of host threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rayon::prelude::*;

use super::cluster::{Cluster, Outcome};
use super::env::Env;
use crate::counters::Counters;
use crate::fault::{EarlyRead, Fault, FaultKind};

/// Epochs in which nothing but waiting happened before the launch counts as hung.
const IDLE_EPOCHS: u64 = 100_000;

/// What all clusters did together.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) counters: Counters,
    /// The early read of the lowest cluster that made one.
    early: Option<(u64, Box<EarlyRead>)>,
}

impl Tally {
    fn of(index: u64, mut cluster: Cluster<'_>) -> Self {
        cluster.settle();
        Self {
            counters: cluster.counters,
            early: cluster.early.map(|early| (index, early)),
        }
    }

    fn add(mut self, other: Self) -> Self {
        self.counters += &other.counters;
        let both = self.early.into_iter().chain(other.early);
        self.early = both.min_by_key(|(index, _)| *index);
        self
    }

    pub(crate) fn early(self) -> Option<EarlyRead> {
        self.early.map(|(_, early)| *early)
    }
}

/// Runs the whole grid.
pub(crate) fn run(env: &Env<'_>) -> Result<Tally, Box<Fault>> {
    let clusters = env.clusters().iter().map(|&n| u64::from(n)).product();
    let mut tally = match env.shared_grid {
        true => run_epochs(env, clusters)?,
        false => run_apart(env, clusters)?,
    };
    tally.counters.launches = 1;
    tally.counters.global_unique_read = env.read.bytes();
    tally.counters.global_unique_written = env.written.bytes();
    Ok(tally)
}

/// Clusters that share nothing: the fault of the lowest one wins, as if they ran in order.
fn run_apart(env: &Env<'_>, clusters: u64) -> Result<Tally, Box<Fault>> {
    let first_fault = AtomicU64::new(u64::MAX);
    let fault: Mutex<Option<(u64, Box<Fault>)>> = Mutex::new(None);
    let total = (0..clusters as usize)
        .into_par_iter()
        .with_max_len(1)
        .map(|index| {
            let index = index as u64;
            if index > first_fault.load(Relaxed) {
                return Tally::default();
            }
            let mut cluster = Cluster::new(env, index);
            if let Err(found) = cluster.run() {
                first_fault.fetch_min(index, Relaxed);
                let mut slot = fault.lock().unwrap_or_else(|e| e.into_inner());
                if slot.as_ref().is_none_or(|(at, _)| index < *at) {
                    *slot = Some((index, found));
                }
            }
            Tally::of(index, cluster)
        })
        .reduce(Tally::default, Tally::add);
    match fault.into_inner().unwrap_or_else(|e| e.into_inner()) {
        Some((_, fault)) => Err(fault),
        None => Ok(total),
    }
}

fn run_epochs(env: &Env<'_>, clusters: u64) -> Result<Tally, Box<Fault>> {
    let per_wave = env.resident_clusters();
    let mut total = Tally::default();
    let mut resident: Vec<Cluster<'_>> = Vec::new();
    let mut next = 0;
    let mut idle = 0;
    while next < clusters || !resident.is_empty() {
        while next < clusters && (resident.len() as u64) < per_wave {
            resident.push(Cluster::new(env, next));
            next += 1;
        }
        let outcomes: Vec<Result<Outcome, Box<Fault>>> = resident
            .par_iter_mut()
            .with_max_len(1)
            .map(Cluster::run)
            .collect();
        let mut running = Vec::with_capacity(resident.len());
        for (cluster, outcome) in resident.drain(..).zip(outcomes) {
            match outcome? {
                Outcome::Done => total = total.add(Tally::of(cluster.index, cluster)),
                Outcome::Parked => running.push(cluster),
            }
        }
        resident = running;
        let mut writes = 0;
        for cluster in &mut resident {
            let written = cluster.counters.global_written + cluster.counters.async_written;
            cluster.communicate()?;
            writes += cluster.counters.global_written + cluster.counters.async_written - written;
        }
        idle = if writes == 0 { idle + 1 } else { 0 };
        if idle > IDLE_EPOCHS {
            return Err(hung(&resident, env));
        }
    }
    Ok(total)
}

/// Every resident cluster polls for something that no one will write.
fn hung(resident: &[Cluster<'_>], env: &Env<'_>) -> Box<Fault> {
    let kind = FaultKind::StepLimit {
        limit: env.step_limit,
    };
    match resident.first() {
        Some(cluster) => cluster.polling_fault(kind),
        None => Box::new(Fault {
            kind,
            place: crate::fault::Place::default(),
            seed: env.seed,
        }),
    }
}
