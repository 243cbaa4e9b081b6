//! Finds hazards that a run with correct results does not show.
//!
//! A [`Detector`] sees every access of memory. For each cluster a [`watcher::Watcher`] keeps a
//! *ledger* of what each warp knows about the progress of the others: warps, their asynchronous
//! copies and products, groups, barriers and fences ([`ledger`], with the clocks of [`clock`]); and
//! a *shadow* of memory: the last write of each word and the reads since ([`shadow`], [`global`]),
//! by the numbers of accesses ([`numbered`]), so that words which are used together are judged
//! together. Two accesses of the same bytes, one of them a write, that no chain of such knowledge
//! orders are a race, in whatever order they came this time. Copies and tensor cores reach memory
//! through another proxy: a thread's write is visible to them only if a proxy fence lies on the
//! chain.
//!
//! The lanes of a warp go together until a branch separates them: two accesses on two paths of one
//! branch are ordered by `__syncwarp` alone.
//!
//! Registers are checked without running anything, when a kernel is lowered (`lower::registers`).

mod allocations;
mod barriers;
mod clock;
mod columns;
mod filled;
mod finding;
mod global;
mod judge;
mod ledger;
mod lifetime;
mod meeting;
mod numbered;
mod pieces;
mod published;
mod reads;
mod shadow;
mod shared;
mod strands;
mod telling;
mod tensors;
mod wake;
mod warp;
mod watcher;
mod words;
mod works;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use finding::{Finding, Hazard, Site, Spot};
pub use tensors::Region;
pub use wake::Wake;

use crate::exec::cluster::env::cta_id;
use crate::exec::listen::agent::Agent;
use crate::exec::listen::visit::{Act, ClusterListener, Listener};
use crate::exec::origin::Origin;
use crate::fault::Place;
use crate::memory::Memory;
use crate::op::{Op, Program, RegisterHazard, RegisterTrouble};
use global::Global;
use strands::Strands;
use tensors::Tensors;
use wake::Past;
use watcher::Watcher;
pub(crate) use words::Side;
use words::{Case, Waiting};

/// What to check, and how strictly.
///
/// ```
/// let few = ptx_emu::Sanitize { clusters: Some(4), ..Default::default() };
/// assert!(!few.strict);
/// ```
#[derive(Debug, Clone)]
pub struct Sanitize {
    /// Clusters with full checks, evenly spread; `None` for all. Of the others only barriers,
    /// tensors and reads of unwritten memory are checked.
    pub clusters: Option<u64>,
    /// Runs only the clusters that are checked. The contents of memory are then incomplete, and a
    /// kernel whose CTAs wait for each other may wait in vain.
    pub alone: bool,
    /// Also report hazards that hardware tolerates: see [`Hazard`].
    pub strict: bool,
    /// Bytes that the shadow of global memory may use.
    pub memory: u64,
    /// The regions of global memory. An allocation with regions may be accessed only within them;
    /// one without regions is known only by its own name.
    pub regions: Vec<Region>,
    /// The accesses of the launch before, if this one may begin before that ends.
    pub after: Option<Wake>,
}

impl Default for Sanitize {
    fn default() -> Self {
        Self {
            clusters: None,
            alone: false,
            strict: false,
            memory: 1 << 30,
            regions: Vec::new(),
            after: None,
        }
    }
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// One for each kind and pair of places, in the order of the source.
    pub all: Vec<Finding>,
    /// Clusters with full checks.
    pub clusters: u64,
    /// Bytes of global memory that were not watched for lack of memory.
    pub unwatched: u64,
    /// The accesses of the launch to global memory.
    pub wake: Wake,
}

/// A hazard before it is put in words.
struct Sighting {
    hazard: Hazard,
    here: Side,
    there: Option<Side>,
    /// The later one knew that the other had begun.
    begun: bool,
    waiting: Waiting,
    /// The other access, if it was in the launch before: its instruction and its site.
    before: Option<(u32, Site)>,
    at: Spot,
}

impl Sighting {
    fn one(hazard: Hazard, here: Side) -> Self {
        Self {
            hazard,
            here,
            there: None,
            begun: false,
            waiting: Waiting::default(),
            before: None,
            at: Spot::default(),
        }
    }

    fn two(hazard: Hazard, here: Side, there: Side) -> Self {
        Self {
            there: Some(there),
            ..Self::one(hazard, here)
        }
    }

    fn at(self, at: Spot) -> Self {
        Self { at, ..self }
    }
}

/// A finding's kind and its two instructions.
type Key = (Hazard, u32, Option<u32>);

/// A finding and its cluster. Clusters run side by side: of several with the same finding the
/// lowest is reported, so that the report does not depend on timing.
type ClusterFinding = (u64, Finding);

/// Watches a launch.
pub(crate) struct Detector<'l> {
    program: &'l Program,
    /// Allocations by their number: name and first address.
    allocations: Vec<(String, u64)>,
    tensors: Tensors,
    after: Option<Wake>,
    grid: [u32; 3],
    cluster: [u32; 3],
    ctas_per_cluster: u32,
    threads: u32,
    strict: bool,
    /// Hardware makes readers wait for loads from tensor memory.
    scoreboard: bool,
    /// The number of clusters, and of those with full checks.
    clusters: u64,
    wanted: u64,
    /// Clusters without full checks may pass knowledge from one cluster to another.
    gaps: bool,
    heard: AtomicU64,
    global: Mutex<Global>,
    found: Mutex<BTreeMap<Key, ClusterFinding>>,
}

impl<'l> Detector<'l> {
    pub(crate) fn new(
        program: &'l Program,
        memory: &Memory,
        (grid, cluster): ([u32; 3], [u32; 3]),
        (threads, scoreboard): (u32, bool),
        sanitize: &Sanitize,
    ) -> Self {
        let clusters = (0..3).map(|i| u64::from(grid[i] / cluster[i].max(1)));
        let clusters: u64 = clusters.product();
        let wanted = sanitize
            .clusters
            .unwrap_or(clusters)
            .clamp(1, clusters.max(1));
        let allocations = memory.regions().iter();
        Self {
            program,
            allocations: allocations.map(|r| (r.name.clone(), r.base)).collect(),
            tensors: Tensors::new(memory, &sanitize.regions),
            after: sanitize.after.clone(),
            grid,
            cluster,
            ctas_per_cluster: cluster.iter().product(),
            threads,
            strict: sanitize.strict,
            scoreboard,
            clusters,
            wanted,
            gaps: wanted < clusters && program.communicates(),
            heard: AtomicU64::new(0),
            global: Mutex::new(Global::new(sanitize.memory)),
            found: Mutex::new(BTreeMap::new()),
        }
    }

    /// The clusters that are watched, ascending.
    pub(crate) fn attended(&self) -> Vec<u64> {
        (0..self.clusters).filter(|&c| self.attends(c)).collect()
    }

    fn attends(&self, cluster: u64) -> bool {
        let of = |wanted| spread(self.clusters, wanted, cluster);
        of(self.wanted) || of(GLANCES)
    }

    fn strands(&self) -> Strands {
        Strands::new(self.ctas_per_cluster, self.threads)
    }

    fn global(&self) -> MutexGuard<'_, Global> {
        self.global.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What an instruction does.
    fn op(&self, pc: u32) -> Option<&Op> {
        let inst = self.program.insts.get(pc as usize)?;
        Some(&inst.op)
    }

    /// Whether reads of unwritten memory are reported. A copy may read more of shared memory than
    /// will be stored, a product may read rows whose results are not used, and its fragments are
    /// loaded ahead, beyond the last that will be multiplied.
    fn doubts(&self, agent: Agent, pc: u32) -> bool {
        let ahead = matches!(self.op(pc), Some(Op::MatrixMove(_)));
        self.strict || agent == Agent::Thread && !ahead
    }

    /// `%ctaid` of a CTA of a cluster.
    fn cta_id(&self, cluster: u64, rank: u32) -> [u32; 3] {
        cta_id(self.grid, self.cluster, cluster, rank)
    }

    fn shared_spot(&self, cta: u32, address: u32) -> Spot {
        let vars = self.program.shared.iter();
        let before = vars
            .filter(|var| var.address <= address)
            .filter(|var| var.size == 0 || address < var.address + var.size)
            .max_by_key(|var| var.address);
        Spot {
            space: "shared",
            name: before.map_or_else(String::new, |var| var.name.clone()),
            offset: before.map_or(0, |var| u64::from(address - var.address)),
            address: Some(address.into()),
            rank: (self.ctas_per_cluster > 1).then_some(cta),
            detail: String::new(),
        }
    }

    fn tensor_spot(&self, cta: u32, column: u32, lane: u32) -> Spot {
        Spot {
            space: "tensor",
            address: Some(u64::from(lane << 16 | column)),
            rank: (self.ctas_per_cluster > 1).then_some(cta),
            ..Spot::default()
        }
    }

    fn global_address(&self, region: usize, offset: u64) -> u64 {
        self.allocations.get(region).map_or(0, |(_, base)| *base) + offset
    }

    fn global_spot(&self, region: usize, offset: u64) -> Spot {
        let (name, base) = match self.allocations.get(region) {
            Some((name, base)) => (name.as_str(), *base),
            None => ("", 0),
        };
        let address = base + offset;
        let (name, start, detail) = match self.tensors.name(region, offset) {
            Some((tensor, start, detail)) => (tensor, base + start, detail),
            None => (name, base, String::new()),
        };
        Spot {
            space: "global",
            name: name.to_owned(),
            offset: address - start,
            address: Some(address),
            detail,
            ..Spot::default()
        }
    }

    fn site(&self, cluster: u64, side: &Side) -> Site {
        let from = side.from;
        let cta = self.cta_id(side.cluster.unwrap_or(cluster), from.cta);
        Site {
            deed: side.deed(),
            executed: true,
            place: Place::of(self.program, from.pc, cta, from.warp, from.lanes),
        }
    }

    fn report(&self, cluster: u64, sighting: Sighting) {
        let Sighting {
            hazard,
            here,
            there,
            begun,
            waiting,
            before,
            at,
        } = sighting;
        let other = there.map(|there| there.from.pc);
        let other = other.or(before.as_ref().map(|(pc, _)| *pc));
        let key = (hazard, here.from.pc, other);
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let times = match found.get_mut(&key) {
            Some((told, finding)) if *told <= cluster => {
                finding.times += 1;
                return;
            }
            Some((_, later)) => later.times,
            None => 0,
        };
        let sides = (&here, there.as_ref());
        let (missing, remedy) = self.advice(hazard, sides, (begun, waiting), at.space);
        let finding = Finding {
            hazard,
            here: self.site(cluster, &here),
            there: match there {
                Some(there) => Some(self.site(cluster, &there)),
                None => before.map(|(_, site)| site),
            },
            at,
            missing: missing.to_owned(),
            remedy: remedy.to_owned(),
            times: times + 1,
        };
        found.insert(key, (cluster, finding));
    }

    /// What is missing, and the usual remedy; depends on whether the later access knew that the
    /// other had begun, and on which warp waited.
    fn advice(
        &self,
        hazard: Hazard,
        (here, there): (&Side, Option<&Side>),
        (begun, waiting): (bool, Waiting),
        space: &'static str,
    ) -> (&'static str, &'static str) {
        let wgmma = |side: &Side| matches!(self.op(side.from.pc), Some(Op::Wgmma(_)));
        let case = Case {
            here,
            there,
            begun,
            waiting,
            space,
            wgmma: wgmma(here) || there.is_some_and(wgmma),
        };
        words::advice(hazard, &case)
    }

    /// Hazards of the kernel's registers, which the code alone shows.
    fn register_findings(&self) -> Vec<(Key, ClusterFinding)> {
        // ptxas makes readers wait, though PTX does not require it.
        let forgiven = self.scoreboard && !self.strict;
        let hazards = self.program.register_hazards.iter();
        hazards
            .filter(|hazard| hazard.trouble != RegisterTrouble::Loaded || !forgiven)
            .map(|found| {
                let finding = self.register_finding(found);
                ((finding.hazard, found.at, found.other), (0, finding))
            })
            .collect()
    }

    fn register_finding(&self, found: &RegisterHazard) -> Finding {
        let (hazard, here, there) = match found.trouble {
            RegisterTrouble::Held => (Hazard::HeldRegister, Agent::Thread, Agent::TensorCore),
            RegisterTrouble::Loaded => (Hazard::HeldRegister, Agent::Thread, Agent::Thread),
            RegisterTrouble::Unfenced => (Hazard::WgmmaFence, Agent::TensorCore, Agent::Thread),
            RegisterTrouble::Uninitialised => {
                let nobody = Agent::Thread;
                (Hazard::UninitialisedRegister, Agent::Thread, nobody)
            }
        };
        let side = |pc, agent, act| {
            let from = Origin {
                pc,
                ..Origin::default()
            };
            Side::new(agent, act, from)
        };
        let site = |side: &Side| Site {
            deed: side.deed(),
            executed: false,
            place: Place::of(self.program, side.from.pc, [0; 3], 0, 0),
        };
        let here = side(found.at, here, Act::Read);
        let there = found.other.map(|pc| side(pc, there, Act::Write));
        let (missing, remedy) = self.advice(
            hazard,
            (&here, there.as_ref()),
            (true, Waiting::default()),
            "register",
        );
        Finding {
            hazard,
            here: site(&here),
            there: there.as_ref().map(site),
            at: Spot {
                space: "register",
                name: found.register.clone(),
                ..Spot::default()
            },
            missing: missing.to_owned(),
            remedy: remedy.to_owned(),
            times: 1,
        }
    }

    /// All findings, including those of the kernel's registers.
    pub(crate) fn findings(self) -> Findings {
        let of_registers = self.register_findings();
        let found = self.found.into_inner();
        let mut found = found.unwrap_or_else(PoisonError::into_inner);
        found.extend(of_registers);
        let global = self.global.into_inner();
        let global = global.unwrap_or_else(PoisonError::into_inner);
        let program = self.program;
        let place = |pc: &u32| (*pc, Place::of(program, *pc, [0; 3], 0, 0));
        let places = global.seen.iter().map(place).collect();
        Findings {
            all: found.into_values().map(|(_, finding)| finding).collect(),
            clusters: self.heard.into_inner(),
            unwatched: global.unwatched,
            wake: Wake::new(Past {
                global,
                places,
                grid: self.grid,
                cluster: self.cluster,
            }),
        }
    }
}

/// Clusters of a launch, evenly spread, whose barriers, tensors and unwritten memory are checked in
/// addition to those with full checks: checking all would take a third of the launch.
const GLANCES: u64 = 8;

/// Whether `one` of `all` is among the `wanted`: evenly spread, including the first and the last,
/// which have ragged ends.
fn spread(all: u64, wanted: u64, one: u64) -> bool {
    match (all.saturating_sub(1), wanted.saturating_sub(1)) {
        (_, 0) => one == 0,
        (gaps, steps) => {
            let near = (one * steps).div_ceil(gaps.max(1));
            near * gaps / steps == one
        }
    }
}

impl Listener for Detector<'_> {
    fn attend(&self, cluster: u64) -> Option<Box<dyn ClusterListener + '_>> {
        let wanted = spread(self.clusters, self.wanted, cluster);
        if !self.attends(cluster) {
            return None;
        }
        self.heard.fetch_add(wanted.into(), Ordering::Relaxed);
        Some(Box::new(Watcher::new(self, cluster, wanted)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_spread_over_all_and_holds_both_ends() {
        let of =
            |all, wanted| -> Vec<u64> { (0..all).filter(|&i| spread(all, wanted, i)).collect() };
        assert_eq!(of(7, 2), [0, 6]);
        assert_eq!(of(132, 3), [0, 65, 131]);
        assert_eq!(of(9, 1), [0]);
        assert_eq!(of(1, 1), [0]);
        for wanted in 1..=20 {
            assert_eq!(of(20, wanted).len() as u64, wanted);
        }
    }
}
