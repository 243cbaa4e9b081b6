//! A cluster of CTAs: its memory and its warps.
//!
//! This is the state that instructions change. What they do, and who runs, is up to the modules
//! behind this one.

pub(crate) mod adversary;
pub(crate) mod cta;
pub(crate) mod env;
pub(crate) mod jobs;
pub(crate) mod printed;
pub(crate) mod residency;
pub(crate) mod sources;
pub(crate) mod spares;
pub(crate) mod template;

#[cfg(target_arch = "x86_64")]
use std::any::Any;
use std::collections::{BTreeMap, HashMap};

use super::clock::{Clocks, EventTime};
use super::origin::Origin;
use super::warp::{Wait, Warp};
#[cfg(target_arch = "x86_64")]
use crate::code::Code;
use crate::counters::Counters;
use crate::exec::listen::visit::ClusterListener;
use crate::exec::storage::draft::Drafts;
use crate::exec::storage::mbarrier::helper;
use crate::exec::storage::named::ClusterBarrier;
#[cfg(target_arch = "x86_64")]
use crate::exec::storage::region::Sites;
use crate::exec::storage::region::{CachedRegion, REMEMBERED};
use crate::exec::storage::span::Layout;
use crate::exec::trace::recorder::Recorder;
use crate::fault::{EarlyRead, Fault, FaultKind, Place};
use crate::name::source_name;
use crate::op::Pc;
use adversary::Adversary;
use cta::Cta;
use env::Env;
use jobs::{Due, Pending};
use printed::Printed;
#[cfg(target_arch = "x86_64")]
use spares::sites;
use spares::{layouts, warp};

/// What an instruction did to its warp.
pub(crate) enum Flow {
    /// Go on with the next instruction.
    Next,
    /// The program counter is set.
    Jumped,
    /// Wait, then execute the same instruction again.
    Again(Wait),
    /// Done; wait before the next instruction.
    After(Wait),
}

pub(crate) struct Cluster<'a> {
    pub(crate) env: &'a Env<'a>,
    /// Place in grid order.
    pub(crate) index: u64,
    /// Place on the device, of those that are there at once.
    pub(super) place: u64,
    pub(crate) ctas: Vec<Cta>,
    pub(crate) barrier: ClusterBarrier,
    pub(crate) counters: Counters,
    pub(crate) last_region: CachedRegion<'a>,
    /// The allocations recent loads and stores were in, by program counter.
    pub(super) regions: [CachedRegion<'a>; REMEMBERED],
    #[cfg(target_arch = "x86_64")]
    pub(super) sites: Sites,
    /// How their lanes lay.
    pub(super) layouts: Vec<Layout>,
    pub(crate) drafts: Drafts,
    pub(crate) printed: Printed,
    pub(crate) clocks: Clocks,
    pub(crate) events: BTreeMap<Due, Pending>,
    pub(crate) event_seq: u64,
    /// Grows with everything another warp could be waiting for.
    pub(crate) progress: u64,
    pub(crate) adversary: Adversary,
    /// Who was last let do what other CTAs may see, and where.
    pub(super) polled: Option<Origin>,
    /// What the warps were like that were let do so, if anybody asks.
    pub(super) states: Option<Vec<u64>>,
    /// Reductions into global memory, to be made in CTA order.
    pub(crate) ordered: Vec<Pending>,
    /// The first read of something still on its way.
    pub(crate) early: Option<Box<EarlyRead>>,
    /// Bank conflicts are counted, and are part of what is written down.
    pub(super) counts_conflicts: bool,
    /// Writes down what the warps do, if the cluster is watched.
    pub(super) recorder: Option<Box<Recorder>>,
    /// Whether lanes at the second place went past what others do at the first, once asked.
    pub(super) passes: HashMap<(Pc, Pc), bool>,
    /// Whoever listens to it.
    pub(super) ear: Option<Box<dyn ClusterListener + 'a>>,
    pub(crate) turns: Turns,
    /// The kernel's machine code, if it has any yet.
    #[cfg(target_arch = "x86_64")]
    pub(super) code: Option<&'a Code>,
    /// The last instruction of machine code did not just go on, and its fault, if it was one.
    #[cfg(target_arch = "x86_64")]
    pub(super) stopped: bool,
    #[cfg(target_arch = "x86_64")]
    pub(super) failed: Option<Box<FaultKind>>,
    /// What a function panicked with that machine code had called.
    #[cfg(target_arch = "x86_64")]
    pub(super) panicked: Option<Box<dyn Any + Send>>,
}

/// What the scheduler of a cluster goes by.
#[derive(Default)]
pub(crate) struct Turns {
    /// Warps, as (CTA, warp), in the order of their turns.
    pub(crate) order: Vec<(u32, u32)>,
    /// Warps that stand before an access that other CTAs may see, and since when some have.
    pub(crate) talking: usize,
    pub(crate) parked_since: Option<EventTime>,
    /// Epochs it has seen, and the last one of its pause.
    pub(crate) epochs: u64,
    pub(crate) resumes: u64,
    pub(crate) stalls: Stalls,
    /// Instructions of its longest warp, and nanoseconds that it slept.
    pub(crate) longest_warp: u64,
    /// Stands in the place of the warp whose turn it is; none during one.
    pub(crate) spare: Option<Box<Warp>>,
    /// When the wall clock is looked at again.
    pub(crate) next_look: EventTime,
}

/// How often nothing could run since something last happened.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stalls {
    pub(crate) seen: u64,
    pub(crate) count: u32,
}

impl<'a> Cluster<'a> {
    pub(crate) fn new(env: &'a Env<'a>, index: u64) -> Self {
        let ranks = env.cluster.iter().product::<u32>();
        let ctas = (0..ranks).map(|rank| env.cta(index, rank)).collect();
        #[cfg(target_arch = "x86_64")]
        let (generation, sites) = sites(env.launch_id);
        #[cfg(not(target_arch = "x86_64"))]
        let generation = 1;
        let mut cluster = Self {
            env,
            index,
            place: 0,
            ctas,
            barrier: ClusterBarrier::default(),
            counters: Counters::default(),
            last_region: CachedRegion::default(),
            regions: Default::default(),
            #[cfg(target_arch = "x86_64")]
            sites,
            layouts: layouts(),
            drafts: Drafts::new(env.all_clusters() > 1, generation),
            printed: Printed::default(),
            clocks: Clocks::since(env.began(index)),
            events: BTreeMap::new(),
            event_seq: 0,
            progress: 1,
            adversary: Adversary::new(env.seed, index, env.all_clusters()),
            polled: None,
            states: None,
            ordered: Vec::new(),
            early: None,
            counts_conflicts: env.detailed_counters || env.watches(index),
            recorder: None,
            ear: env.listener.and_then(|listener| listener.attend(index)),
            passes: HashMap::new(),
            turns: Turns {
                spare: Some(warp()),
                ..Turns::default()
            },
            #[cfg(target_arch = "x86_64")]
            code: None,
            #[cfg(target_arch = "x86_64")]
            stopped: false,
            #[cfg(target_arch = "x86_64")]
            failed: None,
            #[cfg(target_arch = "x86_64")]
            panicked: None,
        };
        cluster.counters.ctas = u64::from(ranks);
        for (cta, rank) in cluster.ctas.iter_mut().zip(0..) {
            for w in &mut cta.warps {
                w.pace = cluster.adversary.pace(0);
                cluster.turns.order.push((rank, w.index));
            }
        }
        cluster.adversary.reorder(&mut cluster.turns.order);
        if env.watches(index) {
            let warps = cluster.ctas.iter().map(|cta| cta.warps.len());
            cluster.recorder = Some(Box::new(Recorder::new(warps)));
        }
        cluster
    }

    pub(super) fn warps(&self) -> impl Iterator<Item = &Warp> {
        self.ctas.iter().flat_map(|cta| &cta.warps).map(|w| &**w)
    }

    /// A fault of a warp at an instruction.
    pub(crate) fn fault(
        &self,
        kind: FaultKind,
        cta: usize,
        warp: usize,
        pc: u32,
        lanes: u32,
    ) -> Box<Fault> {
        let id = self.ctas[cta].id;
        Box::new(Fault {
            kind,
            place: Place::of(self.env.program, pc, id, warp as u32, lanes),
            seed: self.env.seed,
            early: self.early.as_deref().cloned(),
            printed: Vec::new(),
        })
    }

    /// The bit of the warp something comes from.
    pub(crate) fn helper(&self, from: Origin) -> u64 {
        let warps = self.ctas[from.cta as usize].warps.len() as u32;
        helper(from.cta * warps + from.warp)
    }

    /// ` (name+offset)` of the shared variable an address lies in, or nothing.
    pub(crate) fn symbol_near(&self, address: u32) -> String {
        let after = |v: &&crate::op::SharedVar| v.address <= address;
        let found = self
            .env
            .program
            .shared
            .iter()
            .filter(after)
            .max_by_key(|v| v.address);
        match found {
            Some(v) if v.size == 0 || address < v.address + v.size => {
                format!(" ({}+{})", source_name(&v.name), address - v.address)
            }
            _ => String::new(),
        }
    }
}
