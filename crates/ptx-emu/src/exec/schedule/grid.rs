//! All clusters of a launch, on all cores, with one result.
//!
//! Clusters that do not talk to each other run in waves. Within a wave none sees what another
//! writes; afterwards their writes are published in a drawn order. Which clusters share a wave is
//! drawn too, and never depends on the number of host threads.
//!
//! If the kernel has accesses other CTAs may see (atomics, volatile, relaxed, acquire and release
//! accesses to global memory, bulk reductions), the launch proceeds in epochs: every resident
//! cluster runs until its warps have ended or stand before such an access (one may be enough, where
//! the others are slow), or lets the epoch pass; then plain writes are published, those accesses
//! are performed, cluster by cluster in a drawn order, and the next epoch begins. As many clusters
//! are resident as the device holds, and finished ones make room for the next in order:
//! tickets, grid barriers and persistent kernels work. A cluster that asks for one not yet launched
//! (`clusterlaunchcontrol`) takes it from the same queue; in such a launch fewer clusters than fit
//! may be resident, as on a device that others use too.
//!
//! Epochs are also for kernels of which several CTAs share the tensor memory of a multiprocessor:
//! who has which columns is what they see of each other.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rayon::prelude::*;

use super::turns::{Outcome, Remains};
use crate::counters::Counters;
use crate::exec::cluster::Cluster;
use crate::exec::cluster::adversary::Adversary;
use crate::exec::cluster::env::Env;
use crate::exec::cluster::printed::Printed;
use crate::exec::storage::draft;
use crate::exec::storage::draft::Drafts;
use crate::exec::storage::overlap::{Overlap, Overlaps};
use crate::fault::{EarlyRead, Fault, FaultKind, Place};
use crate::report::{Busiest, Most, Print};
use crate::trace::CtaTrace;

/// Epochs in which nothing but waiting happened before the launch counts as hung. In the second half of
/// them warps that poll are looked at.
const IDLE_EPOCHS: u64 = 2_000;

/// Clusters whose order is drawn together, at most; they run in one wave or two.
const WINDOW: u64 = 256;

/// What all clusters did together.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) counters: Counters,
    pub(crate) most: Most,
    /// The early read of the lowest cluster that made one.
    early: Option<(u64, Box<EarlyRead>)>,
    printed: Printed,
    traces: Vec<CtaTrace>,
    /// Clusters that wrote different values to the same bytes, where anybody listens.
    pub(crate) overlap: Option<Overlap>,
}

impl Tally {
    fn add(&mut self, cluster: &mut Remains) {
        let busiest = Busiest {
            cluster: cluster.counters.total_instructions(),
            warp: cluster.longest_warp,
        };
        self.most.of_all = self.most.of_all.or(busiest);
        if !cluster.traces.is_empty() {
            self.most.of_traced = self.most.of_traced.or(busiest);
        }
        self.traces.append(&mut cluster.traces);
        self.counters += &cluster.counters;
        let early = cluster.early.take().map(|early| (cluster.index, early));
        let both = self.early.take().into_iter().chain(early);
        self.early = both.min_by_key(|(index, _)| *index);
        self.printed.append(std::mem::take(&mut cluster.printed));
    }

    /// Keeps what clusters said that will not end, because of a fault.
    fn overhear(&mut self, clusters: &mut [Box<Cluster<'_>>], fault: Box<Fault>) -> Box<Fault> {
        for cluster in clusters {
            self.printed.append(std::mem::take(&mut cluster.printed));
        }
        fault
    }

    /// What the watched CTAs did, by their number.
    pub(crate) fn traces(&mut self) -> Vec<CtaTrace> {
        self.traces.sort_unstable_by_key(|trace| trace.cta);
        std::mem::take(&mut self.traces)
    }

    /// The first early read, and everything printed.
    pub(crate) fn words(self) -> (Option<EarlyRead>, Vec<Print>) {
        let early = self.early.map(|(_, early)| *early);
        (early, self.printed.in_order())
    }
}

/// Runs the whole grid.
pub(crate) fn run(env: &Env<'_>) -> Result<Tally, Box<Fault>> {
    let clusters = env.running();
    let mut tally = Tally::default();
    let ran = match env.shared_grid {
        true => run_epochs(env, clusters, &mut tally),
        false => run_apart(env, clusters, &mut tally),
    };
    if let Err(mut fault) = ran {
        fault.printed = tally.printed.in_order();
        return Err(fault);
    }
    tally.counters.launches = 1;
    tally.counters.global_unique_read = env.read.bytes();
    tally.counters.global_unique_written = env.written.bytes();
    Ok(tally)
}

/// Clusters that do not talk to each other.
fn run_apart(env: &Env<'_>, clusters: u64, total: &mut Tally) -> Result<(), Box<Fault>> {
    env.begun.store(clusters, Relaxed);
    let mut adversary = Adversary::of_grid(env.seed);
    let mut overlaps = env.listener.map(|_| Overlaps::default());
    let mut next = 0;
    while next < clusters {
        let end = clusters.min(next + WINDOW);
        let mut window: Vec<u64> = (next..end).map(|nth| env.nth_running(nth)).collect();
        adversary.shuffle(&mut window);
        let half = window.len() as u64 / 2;
        let (first, second) = window.split_at((half + adversary.draw(half + 1)) as usize);
        for wave in [first, second] {
            run_wave(env, wave, total, overlaps.as_mut())?;
        }
        next = end;
    }
    total.overlap = overlaps.and_then(|overlaps| overlaps.found);
    Ok(())
}

/// Runs clusters beside each other and publishes what they wrote; the fault of the lowest one
/// wins, and then nothing is published.
fn run_wave(
    env: &Env<'_>,
    wave: &[u64],
    total: &mut Tally,
    overlaps: Option<&mut Overlaps>,
) -> Result<(), Box<Fault>> {
    let lowest = AtomicU64::new(u64::MAX);
    let run = |&index: &u64| {
        if index > lowest.load(Relaxed) {
            return (index, None);
        }
        let mut cluster = Cluster::new(env, index);
        let outcome = cluster.run();
        if outcome.is_err() {
            lowest.fetch_min(index, Relaxed);
        }
        let ended = match outcome {
            Ok(_) => Ok(cluster.end()),
            Err(fault) => Err((fault, std::mem::take(&mut cluster.printed))),
        };
        (index, Some(ended))
    };
    let outcomes: Vec<_> = match wave {
        // To wake another thread takes longer than a small kernel.
        [only] => vec![run(only)],
        _ if env.one_thread => wave.iter().map(run).collect(),
        _ => wave.par_iter().with_max_len(1).map(run).collect(),
    };
    let lowest = lowest.into_inner();
    let mut drafts = Vec::with_capacity(wave.len());
    let mut first = None;
    for (index, outcome) in outcomes {
        match outcome {
            Some(Err((fault, printed))) if index == lowest => {
                total.printed.append(printed);
                first = Some(fault);
            }
            // Which of those above the fault have run is a matter of the host.
            Some(Ok(mut cluster)) if index < lowest => {
                drafts.push(std::mem::take(&mut cluster.drafts));
                total.add(&mut cluster);
            }
            _ => {}
        }
    }
    match first {
        Some(fault) => Err(fault),
        None => {
            // Without a fault all of them have run.
            match overlaps {
                Some(overlaps) => draft::publish_beside(env.memory, drafts, wave, overlaps),
                None => _ = draft::publish(env.memory, drafts),
            }
            Ok(())
        }
    }
}

/// Those behind a fault run too, whichever thread they are run by.
fn run_all(env: &Env<'_>, resident: &mut [Box<Cluster<'_>>]) -> Result<Vec<Outcome>, Box<Fault>> {
    let outcomes: Vec<Result<Outcome, Box<Fault>>> = match env.one_thread {
        true => resident.iter_mut().map(|cluster| cluster.run()).collect(),
        false => {
            let all = resident.par_iter_mut().with_max_len(1);
            all.map(|cluster| cluster.run()).collect()
        }
    };
    outcomes.into_iter().collect()
}

fn run_epochs(env: &Env<'_>, clusters: u64, total: &mut Tally) -> Result<(), Box<Fault>> {
    let mut adversary = Adversary::of_grid(env.seed);
    let mut per_wave = env.residency().clusters;
    if env.program.cancels() && adversary.draw(4) > 0 {
        per_wave = 1 + adversary.draw(per_wave.min(clusters));
    }
    // Boxed, because those that stay move up in every epoch.
    let mut resident: Vec<Box<Cluster<'_>>> = Vec::new();
    // Places of the device, the first on top.
    let mut places: Vec<u64> = (0..per_wave.min(clusters)).rev().collect();
    let mut idle = Idle::default();
    loop {
        while let Some(&place) = places.last()
            && let Some(index) = env.take_waiting()
        {
            places.pop();
            let mut cluster = Cluster::new(env, index);
            cluster.settle_in(place);
            resident.push(Box::new(cluster));
        }
        if resident.is_empty() {
            return Ok(());
        }
        let outcomes = run_all(env, &mut resident);
        let outcomes = match outcomes {
            Ok(outcomes) => outcomes,
            Err(fault) => return Err(total.overhear(&mut resident, fault)),
        };
        let mut order: Vec<usize> = (0..resident.len()).collect();
        adversary.shuffle(&mut order);
        let take = |&i: &usize| Drafts::take(&mut resident[i].drafts);
        let drafts = order.iter().map(take).collect();
        let mut changed = draft::publish(env.memory, drafts);
        for &i in &order {
            match resident[i].communicate() {
                Ok(moved) => changed |= moved,
                Err(fault) => return Err(total.overhear(&mut resident, fault)),
            }
        }
        let mut running = Vec::with_capacity(resident.len());
        for (mut cluster, outcome) in resident.into_iter().zip(outcomes) {
            match outcome {
                Outcome::Done => {
                    changed = true;
                    places.push(cluster.place);
                    total.add(&mut cluster.end());
                }
                Outcome::Parked => running.push(cluster),
            }
        }
        resident = running;
        if idle.pass(changed, &mut resident) {
            let fault = hung(&mut resident, env, env.begun.load(Relaxed) < clusters);
            return Err(total.overhear(&mut resident, fault));
        }
    }
}

/// Epochs in which nothing changed that another CTA could see.
#[derive(Default)]
struct Idle {
    epochs: u64,
    /// What the warps were like that polled then.
    states: HashSet<u64>,
}

impl Idle {
    /// Another epoch has passed. True if nobody will ever go on: warps poll, and come to it with the
    /// same registers each time. One that counts its turns may yet end.
    fn pass(&mut self, changed: bool, resident: &mut [Box<Cluster<'_>>]) -> bool {
        self.epochs += 1;
        let polled: Vec<u64> = (resident.iter_mut())
            .flat_map(|cluster| cluster.states.iter_mut().flat_map(std::mem::take))
            .collect();
        let known = self.epochs > IDLE_EPOCHS * 3 / 4;
        let counts = known && polled.iter().any(|state| !self.states.contains(state));
        self.states.extend(polled);
        if changed || counts {
            *self = Self::default();
        }
        let looks = self.epochs >= IDLE_EPOCHS / 2;
        for cluster in resident {
            if looks != cluster.states.is_some() {
                cluster.states = looks.then(Vec::new);
            }
        }
        self.epochs > IDLE_EPOCHS
    }
}

/// Every resident cluster polls for something that no one will write.
fn hung(resident: &mut [Box<Cluster<'_>>], env: &Env<'_>, more: bool) -> Box<Fault> {
    if let Some(cluster) = resident.iter_mut().find(|cluster| cluster.lacks_columns()) {
        return cluster.deadlock();
    }
    let residency = env.residency();
    let kind = match more {
        true => FaultKind::NotResident {
            ctas: env.grid.iter().map(|&n| u64::from(n)).product(),
            resident: residency.ctas,
            per_sm: residency.per_sm,
            limit: residency.limit.to_owned(),
        },
        false => FaultKind::Polling,
    };
    let polling = resident.iter().position(|cluster| cluster.polled.is_some());
    match resident.get(polling.unwrap_or(0)) {
        Some(cluster) => cluster.polling_fault(kind),
        None => Box::new(Fault {
            kind,
            place: Place::default(),
            seed: env.seed,
            early: None,
            printed: Vec::new(),
        }),
    }
}
