//! What all clusters of a launch have in common.

use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use super::cta::Cta;
use super::residency::{Demand, Residency};
use super::sources::{Accumulators, all_accumulators, readers};
use super::spares;
use super::template::{Template, mixed};
#[cfg(target_arch = "x86_64")]
use crate::config::Engine;
use crate::exec::clock::{Began, Steps};
use crate::exec::listen::visit::Listener;
use crate::exec::storage::bytes::{AlignedBytes, POISON};
use crate::exec::storage::mbarrier::Mbarriers;
use crate::exec::storage::named::NamedBarrier;
use crate::exec::storage::tmem::multiprocessors::Multiprocessors;
use crate::exec::trace::recorder::Watched;
use crate::exec::warp::Warp;
use crate::limits::DeviceLimits;
use crate::memory::{Footprint, Memory};
use crate::numeric::simd::Level;
use crate::op::{Program, SHARED_BASE, Special, ranked};
use crate::tensor::Numerics as MmaMode;

pub(crate) struct Env<'a> {
    pub(crate) program: &'a Program,
    /// Who hears of every access, besides the counters.
    pub(crate) listener: Option<&'a dyn Listener>,
    /// Clusters whose warps are followed.
    pub(crate) watched: Option<Watched>,
    /// Class of each instruction, for the counters.
    pub(crate) classes: Vec<u8>,
    /// Instructions that anybody but their warp can tell.
    pub(crate) observable: Vec<bool>,
    /// Instructions that read accumulators of wgmma.
    pub(crate) readers: Vec<bool>,
    /// Registers each wgmma writes.
    pub(crate) accumulators: Accumulators,
    pub(crate) memory: &'a Memory,
    pub(crate) read: Footprint,
    pub(crate) written: Footprint,
    pub(crate) params: AlignedBytes,
    /// Addresses of the module's variables.
    pub(crate) globals: Vec<u64>,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) cluster: [u32; 3],
    pub(crate) explicit_cluster: bool,
    pub(crate) dynamic_shared: u32,
    /// One past the last shared byte of a CTA.
    pub(crate) shared_end: u32,
    /// Clusters of this launch may talk to each other through global memory.
    pub(crate) shared_grid: bool,
    /// Who has which columns of tensor memory, where CTAs of one multiprocessor share them.
    pub(crate) multiprocessors: Option<Multiprocessors>,
    pub(crate) seed: u64,
    pub(crate) step_limit: Steps,
    pub(crate) deadline: Option<Deadline>,
    pub(crate) mma_mode: MmaMode,
    pub(crate) scoreboard: bool,
    pub(crate) level: Level,
    #[cfg(target_arch = "x86_64")]
    pub(crate) engine: Engine,
    pub(crate) limits: DeviceLimits,
    pub(crate) detailed_counters: bool,
    /// Clusters run one after the other, by the thread that launches.
    pub(crate) one_thread: bool,
    pub(crate) launch_id: u64,
    /// What `%globaltimer` shows when the launch begins.
    pub(crate) began_nanos: u64,
    /// How many clusters have been launched or cancelled. Never touched while clusters run beside
    /// each other.
    pub(crate) begun: AtomicU64,
    /// 32-bit registers per thread, if the compiler's count is known.
    registers: Option<u32>,
    /// Address of what a cooperative launch gives its kernel, or 0.
    workspace: u64,
    template: Template,
}

/// The launch's own part of an [`Env`].
pub(crate) struct Setup<'a> {
    pub(crate) program: &'a Program,
    pub(crate) listener: Option<&'a dyn Listener>,
    pub(crate) watched: Option<Watched>,
    pub(crate) memory: &'a Memory,
    pub(crate) params: AlignedBytes,
    pub(crate) globals: Vec<u64>,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) cluster: Option<[u32; 3]>,
    pub(crate) dynamic_shared: u32,
    pub(crate) shared_grid: bool,
    pub(crate) seed: u64,
    pub(crate) step_limit: Steps,
    pub(crate) deadline: Option<Deadline>,
    pub(crate) mma_mode: MmaMode,
    pub(crate) scoreboard: bool,
    pub(crate) level: Level,
    #[cfg(target_arch = "x86_64")]
    pub(crate) engine: Engine,
    pub(crate) limits: DeviceLimits,
    pub(crate) detailed_counters: bool,
    /// Clusters run one after the other, by the thread that launches.
    pub(crate) one_thread: bool,
    pub(crate) launch_id: u64,
    /// What `%globaltimer` shows when the launch begins.
    pub(crate) began_nanos: u64,
    pub(crate) registers: Option<u32>,
    pub(crate) workspace: u64,
}

/// When a launch must have ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    began: Instant,
    pub(crate) limit: Duration,
}

impl Deadline {
    pub(crate) fn after(limit: Duration) -> Self {
        let began = Instant::now();
        Self { began, limit }
    }

    pub(crate) fn passed(&self) -> bool {
        self.began.elapsed() > self.limit
    }
}

/// Coordinates of CTA `rank` of cluster `index`, of so many clusters: (cluster, within the cluster).
fn coordinates(clusters: [u32; 3], sizes: [u32; 3], index: u64, rank: u32) -> ([u32; 3], [u32; 3]) {
    let [nx, ny, _] = clusters.map(u64::from);
    let cluster = [index % nx, index / nx % ny, index / (nx * ny)].map(|x| x as u32);
    let [cx, cy, _] = sizes;
    (cluster, [rank % cx, rank / cx % cy, rank / (cx * cy)])
}

/// `%ctaid` of CTA `rank` of cluster `index` of a grid.
pub(crate) fn cta_id(grid: [u32; 3], sizes: [u32; 3], index: u64, rank: u32) -> [u32; 3] {
    let clusters = std::array::from_fn(|i| grid[i] / sizes[i]);
    let (cluster, within) = coordinates(clusters, sizes, index, rank);
    std::array::from_fn(|i| cluster[i] * sizes[i] + within[i])
}

impl<'a> Env<'a> {
    pub(crate) fn new(setup: Setup<'a>) -> Self {
        let program = setup.program;
        let warps = setup.block.iter().product::<u32>().div_ceil(32);
        let of_lane = |special, warp, lane| of_lane(setup.block, special, warp, lane);
        let template = Template::new(program, setup.seed, &setup.globals, warps, of_lane);
        let mut env = Self {
            program,
            listener: setup.listener,
            watched: setup.watched,
            classes: program
                .insts
                .iter()
                .map(|inst| inst.op.class() as u8)
                .collect(),
            observable: (program.insts.iter())
                .map(|inst| inst.op.is_observable())
                .collect(),
            readers: readers(program),
            accumulators: all_accumulators(program),
            memory: setup.memory,
            read: Footprint::new(setup.memory, setup.detailed_counters),
            written: Footprint::new(setup.memory, setup.detailed_counters),
            params: setup.params,
            globals: setup.globals,
            grid: setup.grid,
            block: setup.block,
            cluster: setup.cluster.unwrap_or([1; 3]),
            explicit_cluster: setup.cluster.is_some(),
            dynamic_shared: setup.dynamic_shared,
            shared_end: program.shared_dynamic_start.max(program.shared_static_end)
                + setup.dynamic_shared,
            shared_grid: setup.shared_grid,
            multiprocessors: None,
            seed: setup.seed,
            step_limit: setup.step_limit,
            deadline: setup.deadline,
            mma_mode: setup.mma_mode,
            scoreboard: setup.scoreboard,
            level: setup.level,
            #[cfg(target_arch = "x86_64")]
            engine: setup.engine,
            limits: setup.limits,
            detailed_counters: setup.detailed_counters,
            one_thread: setup.one_thread,
            launch_id: setup.launch_id,
            began_nanos: setup.began_nanos,
            begun: AtomicU64::new(0),
            registers: setup.registers,
            workspace: setup.workspace,
            template,
        };
        if env.shares_columns() {
            env.shared_grid = true;
            env.multiprocessors = Some(Multiprocessors::new(env.limits.sms));
        }
        env
    }

    /// Whether CTAs that allocate tensor memory will share a multiprocessor. CTAs are spread as far
    /// as they go, so that a small grid has one on each.
    fn shares_columns(&self) -> bool {
        let ranks: u32 = self.cluster.iter().product();
        let ctas = self.running() * u64::from(ranks);
        let crowded = ctas > u64::from(self.limits.sms) && self.residency().per_sm > 1;
        crowded && self.program.allocates()
    }

    /// What of this launch fits on the device at once.
    pub(crate) fn residency(&self) -> Residency {
        Residency::of(&self.limits, &self.demand())
    }

    fn demand(&self) -> Demand {
        Demand {
            threads: self.threads(),
            // The reserved KiB of each CTA is part of `shared_end`.
            shared: self.shared_end,
            registers: self.registers,
            cluster: self.cluster.iter().product(),
        }
    }

    /// Registers per thread a kernel starts with: its limit, or an even share of the file.
    pub(crate) fn registers_per_thread(&self) -> u32 {
        let threads = self.threads().next_multiple_of(32);
        let share = self.limits.registers_per_sm / threads / 8 * 8;
        self.registers
            .or(self.program.max_registers)
            .unwrap_or(share)
            .min(255)
    }

    /// Number of clusters in each dimension.
    pub(crate) fn clusters(&self) -> [u32; 3] {
        std::array::from_fn(|i| self.grid[i] / self.cluster[i])
    }

    /// How many clusters are to run.
    pub(crate) fn running(&self) -> u64 {
        match &self.watched {
            Some(watched) if watched.only => watched.clusters.len() as u64,
            _ => self.all_clusters(),
        }
    }

    /// How many clusters the grid has.
    pub(crate) fn all_clusters(&self) -> u64 {
        self.clusters().iter().map(|&n| u64::from(n)).product()
    }

    /// The number of the `nth` of them.
    pub(crate) fn nth_running(&self, nth: u64) -> u64 {
        match &self.watched {
            Some(watched) if watched.only => watched.clusters[nth as usize],
            _ => nth,
        }
    }

    /// Whether what a cluster does is written down.
    pub(crate) fn watches(&self, cluster: u64) -> bool {
        let traced = self
            .watched
            .as_ref()
            .filter(|watched| watched.plan.is_some());
        traced.is_some_and(|watched| watched.clusters.binary_search(&cluster).is_ok())
    }

    pub(crate) fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// Coordinates of CTA `rank` of cluster `index`: (cluster, within the cluster).
    fn coordinates(&self, index: u64, rank: u32) -> ([u32; 3], [u32; 3]) {
        coordinates(self.clusters(), self.cluster, index, rank)
    }

    /// Index in the grid of a cluster's first CTA.
    pub(crate) fn first_cta(&self, index: u64) -> [u32; 3] {
        let (cluster, _) = self.coordinates(index, 0);
        std::array::from_fn(|i| cluster[i] * self.cluster[i])
    }

    /// A fresh CTA, its warps at the first instruction.
    pub(crate) fn cta(&self, index: u64, rank: u32) -> Cta {
        let (cluster, within) = self.coordinates(index, rank);
        let id = std::array::from_fn(|i| cluster[i] * self.cluster[i] + within[i]);
        let warps = self.threads().div_ceil(32);
        let at = CtaPlace {
            id,
            cluster,
            within,
            rank,
            warps,
        };
        let Cta {
            mut shared,
            mut touched,
            mut tmem,
            mut in_flight,
            mut named,
            warps: mut storage,
            ..
        } = spares::cta();
        // The reserved first KiB, then static and dynamic variables.
        shared.refill(self.shared_end.max(SHARED_BASE) as usize, POISON);
        touched.renew(self.shared_end);
        tmem.renew();
        in_flight.clear();
        named.clear();
        named.resize(16, NamedBarrier::default());
        storage.resize_with(warps as usize, || Box::new(Warp::new(0, 0, 0, 0, 0, 0)));
        for (w, index) in storage.iter_mut().zip(0..) {
            self.begin(w, &at, index);
        }
        Cta {
            id,
            shared,
            touched,
            mbarriers: Mbarriers::default(),
            tmem,
            in_flight,
            named,
            awaited: 0,
            warps: storage,
            running: warps,
            asleep: 0,
            free_registers: None,
        }
    }

    /// Makes a warp out of the storage of another.
    fn begin(&self, w: &mut Warp, at: &CtaPlace, index: u32) {
        let lanes = (self.threads() - index * 32).min(32);
        let mask = if lanes == 32 {
            u32::MAX
        } else {
            (1 << lanes) - 1
        };
        w.renew(at.rank, index, mask);
        let of_warp = |special| self.of_warp(special, at, index);
        self.template.fill(w, index, of_warp);
    }

    /// What the clocks show when a cluster begins: those of its multiprocessor have run since the
    /// device was switched on, and one that takes its turn behind others begins later.
    pub(crate) fn began(&self, cluster: u64) -> Began {
        const TURN_NANOS: u64 = 2_000;
        let sms = u64::from(self.limits.sms.max(1));
        let late = cluster / sms * TURN_NANOS + u64::from(mixed(self.seed, cluster)) % 512;
        let nanos = self.began_nanos + late;
        Began {
            cycles: 2 * (nanos - FIRST_NANOS) + u64::from(mixed(!0, cluster % sms)) % 4096,
            nanos,
        }
    }

    /// A special register that is the same in all lanes, and 0 for one that is not.
    fn of_warp(&self, special: Special, at: &CtaPlace, warp: u32) -> u64 {
        // Divided only where it is asked for.
        let clusters = || self.clusters();
        let value = match special {
            Special::TidX | Special::TidY | Special::TidZ | Special::Laneid => 0,
            Special::LanemaskEq | Special::LanemaskLt | Special::LanemaskLe => 0,
            Special::LanemaskGe | Special::LanemaskGt => 0,
            Special::NtidX => self.block[0],
            Special::NtidY => self.block[1],
            Special::NtidZ => self.block[2],
            Special::CtaidX => at.id[0],
            Special::CtaidY => at.id[1],
            Special::CtaidZ => at.id[2],
            Special::NctaidX => self.grid[0],
            Special::NctaidY => self.grid[1],
            Special::NctaidZ => self.grid[2],
            Special::Warpid => warp,
            Special::Nwarpid => at.warps,
            Special::Smid => {
                let linear = at.id[0] + self.grid[0] * (at.id[1] + self.grid[1] * at.id[2]);
                linear % self.limits.sms
            }
            Special::Nsmid => self.limits.sms,
            Special::Gridid => return self.launch_id,
            Special::ClusteridX => at.cluster[0],
            Special::ClusteridY => at.cluster[1],
            Special::ClusteridZ => at.cluster[2],
            Special::NclusteridX => clusters()[0],
            Special::NclusteridY => clusters()[1],
            Special::NclusteridZ => clusters()[2],
            Special::ClusterCtaidX => at.within[0],
            Special::ClusterCtaidY => at.within[1],
            Special::ClusterCtaidZ => at.within[2],
            Special::ClusterNctaidX => self.cluster[0],
            Special::ClusterNctaidY => self.cluster[1],
            Special::ClusterNctaidZ => self.cluster[2],
            Special::ClusterCtarank => at.rank,
            Special::ClusterNctarank => self.cluster.iter().product(),
            Special::IsExplicitCluster => u32::from(self.explicit_cluster),
            Special::DynamicSmemSize => self.dynamic_shared,
            Special::TotalSmemSize | Special::AggrSmemSize => self.shared_end,
            Special::SharedRank => match self.cluster.iter().product() {
                0..=1 => 0,
                _ => ranked(0, at.rank),
            },
            Special::WorkspaceHigh => return self.workspace >> 32,
            Special::WorkspaceLow => return self.workspace & 0xffff_ffff,
        };
        u64::from(value)
    }
}

/// A special register that differs by lane; none if it is another. For CTAs of so many threads.
fn of_lane([bx, by, _]: [u32; 3], special: Special, warp: u32, lane: u32) -> Option<u64> {
    let thread = u64::from(warp * 32 + lane);
    let (bx, by) = (u64::from(bx), u64::from(by));
    let bit = 1u64 << lane;
    Some(match special {
        Special::TidX => thread % bx,
        Special::TidY => thread / bx % by,
        Special::TidZ => thread / (bx * by),
        Special::Laneid => lane.into(),
        Special::LanemaskEq => bit,
        Special::LanemaskLt => bit - 1,
        Special::LanemaskLe => bit * 2 - 1,
        Special::LanemaskGe => !(bit - 1) & 0xffff_ffff,
        Special::LanemaskGt => !(bit * 2 - 1) & 0xffff_ffff,
        _ => return None,
    })
}

/// When a device of this seed is launched on first: some day of a year, in nanoseconds since 1970.
pub(crate) fn first_launch(seed: u64) -> u64 {
    const MICROS_IN_YEAR: u64 = 31_557_600_000_000;
    let drawn = u64::from(mixed(seed, 1)) << 32 | u64::from(mixed(seed, 2));
    FIRST_NANOS + (3_600_000_000 + drawn % MICROS_IN_YEAR) * 1_000
}

/// 1 January 2026.
const FIRST_NANOS: u64 = 1_767_225_600_000_000_000;

/// Where a CTA is in its grid and cluster.
struct CtaPlace {
    id: [u32; 3],
    cluster: [u32; 3],
    within: [u32; 3],
    rank: u32,
    warps: u32,
}
