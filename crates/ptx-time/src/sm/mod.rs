//! One multiprocessor, or those of one cluster: which warp issues what, when.

mod barriers;
mod burst;
mod clusters;
mod deeds;
mod issue;
mod memory;
mod queue;
mod stuck;
mod telling;
mod tensor;
mod updates;
mod way;
mod work;

use std::collections::VecDeque;

use ptx_emu::mixed::MixedMap;
use ptx_emu::trace::{BarrierAt, Event, GlobalBytes};

use self::barriers::{Gate, Mbarrier};
pub(crate) use self::burst::Burst;
pub(crate) use self::memory::{brought, first_sector};
use self::queue::Queue;
pub use self::stuck::{Awaited, Stuck, Waiting};
use self::tensor::{Ask, TensorCore};
use self::updates::Sector;
use self::way::{Way, Ways};
pub(crate) use self::work::Work;
use crate::script::{Part, Scribe};
use crate::spans::Spans;
use crate::times::{Activity, Cause, CtaTimes, Epilogue, Span, WarpTimes};
use ptx_machine::Machine;

/// Time in parts of a cycle, so that intervals need not be whole.
type Ticks = u64;

/// Ticks of a cycle.
const CYCLE: f64 = 64.0;
const PARTITIONS: usize = 4;
/// Bytes of a line of an SM's own cache.
pub(crate) const LINE: u64 = 128;
/// Bytes of a part of a line that comes by itself.
pub(crate) const SECTOR: u64 = 32;
/// Bytes of a block that L2 gets where it is told so: by every tensor map, and by some loads.
const BLOCK: u64 = 256;
const PIPES: usize = 6;

/// To the nearest, halves up; nothing before 0.
fn ticks(cycles: f64) -> Ticks {
    let ticks = cycles * CYCLE;
    let whole = ticks as Ticks;
    // The library's function is no instruction of every processor: it took 7 % of a replay.
    whole.saturating_add(Ticks::from(ticks - whole as f64 >= 0.5))
}

/// What came of it, in cycles from the start of the first CTA.
#[derive(Debug, Clone, Default)]
pub(crate) struct Replay {
    pub(crate) end: f64,
    /// When every CTA had let the next launch begin, or had ended.
    pub(crate) allowed: f64,
    pub(crate) issued: u64,
    /// Cycles the tensor cores of one partition were busy, the mean.
    pub(crate) tensor: f64,
    pub(crate) ctas: Vec<CtaTimes>,
    pub(crate) warps: Vec<WarpTimes>,
    /// Cycles to the end, by what they went through.
    pub(crate) way: [f64; Cause::ALL.len()],
    pub(crate) spans: Vec<Span>,
    pub(crate) epilogues: Vec<Epilogue>,
    /// When any of its tensor cores worked on wgmmas.
    pub(crate) products: Vec<(f64, f64)>,
    /// The last two stamps of each warp that read a clock.
    pub(crate) stamps: Vec<(f64, f64)>,
    pub(crate) deeds: u64,
    pub(crate) homeless: u64,
    /// Instructions of the cubin for one of the PTX.
    pub(crate) expansion: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    /// A warp may go on.
    Warp(usize),
    /// A product of an SM begins to read its operands, which keep shared memory for so long.
    Operands { sm: usize, port: Ticks },
    /// Arrivals and bytes reach a barrier of a cluster.
    Reach {
        cluster: usize,
        barrier: BarrierAt,
        arrivals: u32,
        bytes: u32,
        /// How it came there, of those that are kept.
        way: u32,
    },
}

#[derive(Debug, Default)]
struct Sm {
    /// When each scheduler is free.
    issue: [Ticks; PARTITIONS],
    pipes: [[Ticks; PIPES]; PARTITIONS],
    /// Until when the even and the odd bank of registers of a partition read.
    banks: [[Ticks; 2]; PARTITIONS],
    /// Until when its last product by a warp reads registers.
    product_reads: [Ticks; PARTITIONS],
    /// Up to when products keep the pipes of a partition.
    stolen: [Ticks; PARTITIONS],
    tensor: [Ticks; PARTITIONS],
    /// Tensor memory, and the tensor core that works on it.
    tmem: TensorCore,
    shared: Ticks,
    lsu: Ticks,
    shuffle: Ticks,
    syncs: Ticks,
    barrier: Ticks,
    copies: Ticks,
    l2: Ticks,
    /// The way to L2, which is not the way from it.
    stores: Ticks,
    memory: Ticks,
    /// Bytes it has got from memory.
    drawn: f64,
    /// Bytes of memory's time that this took.
    taken: f64,
    /// Whether it has waited for memory and asked anew: it is out of step with the others then.
    parted: bool,
    /// What it has asked memory for before anything came.
    burst: Burst,
    /// All that its burst will be, known from an earlier replay of the start.
    coming: Burst,
    remote: Ticks,
    /// Warps it has been given.
    started: usize,
    /// When what this SM has asked memory for is all there, by its region and first byte and the turn
    /// of the CTA.
    seen: MixedMap<(u32, u64, u32), Ticks>,
    /// When tensor maps are known, by their places.
    maps: MixedMap<u64, Ticks>,
    /// When sectors of regions are there that its threads have asked for; with the turn of the CTA,
    /// unless others read them too.
    sectors: MixedMap<(u32, u64, u32), Ticks>,
    /// When lines of constants are there.
    constants: MixedMap<u32, Ticks>,
    /// When each piece of the code is there, of those that were asked for.
    fetched: Vec<Option<Ticks>>,
}

/// What a warp that stands still is woken by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parked {
    /// The end of phases on a board.
    Board(usize),
    /// A barrier, or a phase without a board.
    Gate,
}

#[derive(Debug)]
struct Warp<'w> {
    sm: usize,
    partition: usize,
    cta: usize,
    events: &'w [Event],
    parts: Vec<Part>,
    part: usize,
    step: usize,
    next: Ticks,
    boards: [Ticks; 6],
    /// What each board's result is.
    board_activity: [Activity; 6],
    board_cause: [Cause; 6],
    /// Why it stands still, since when.
    parked: Option<(Parked, Activity, Ticks)>,
    /// Phases that boards wait for: a board with any is busy for ever.
    phases: [u8; 6],
    /// The phase of the cluster's barrier it has arrived at.
    cluster_phase: u64,
    wgmma_open: Ticks,
    wgmma_groups: VecDeque<Ticks>,
    /// When its lanes' copies so far are there, and those of each group.
    lane_done: Ticks,
    lane_open: Ticks,
    lane_groups: VecDeque<Ticks>,
    /// What was in the way of its last copy.
    copies_cause: Cause,
    /// When bulk copies of each group are there.
    bulk_open: Ticks,
    bulk_groups: VecDeque<Ticks>,
    stamps: Vec<Ticks>,
    /// Which of its CTA.
    number: usize,
    /// Line of the PTX it came to last.
    line: u32,
    /// Up to where its time is told.
    told: Ticks,
    way: Way,
    spent: [f64; Activity::ALL.len()],
    /// Whether it has stored to shared memory since its last fence.
    unfenced: bool,
    /// Loads from global memory it has issued.
    loads: usize,
    /// The end of its last product, and its last store since.
    product: Option<Ticks>,
    stored: Option<Ticks>,
    /// What its next atomic on global memory updates: sectors, and the turns that its lanes take.
    updates: Vec<(GlobalBytes, u32)>,
    /// Whether it has waited for a barrier since it last read tensor memory.
    awaited: bool,
    /// When all it has handed to the tensor core is done.
    tmem_done: Ticks,
    /// When what it moves to or from tensor memory is there, as far as no scoreboard tells.
    tmem_moved: Ticks,
}

#[derive(Debug, Default)]
struct Cta {
    cluster: usize,
    rank: u32,
    /// How many CTAs this SM has had before that are told by the same trace.
    turn: u32,
    warps: usize,
    warps_left: usize,
    /// When a warp of it let the next launch begin.
    allowed: Option<Ticks>,
    times: CtaTimes,
    barriers: MixedMap<u32, Gate>,
}

#[derive(Debug, Default)]
struct ClusterState {
    mbarriers: MixedMap<BarrierAt, Mbarrier>,
    gate: Gate,
    /// How often the cluster's barrier has opened, and when it did last.
    phase: u64,
    opened: Ticks,
    warps: u32,
    ctas_left: usize,
}

pub(crate) struct Sim<'w> {
    machine: &'w Machine,
    work: &'w Work<'w>,
    scribe: Scribe<'w>,
    scripts: MixedMap<usize, Vec<Vec<Part>>>,
    /// How many CTAs have been told by each trace so far.
    turns: MixedMap<usize, u32>,
    queue: Queue,
    sms: Vec<Sm>,
    warps: Vec<Warp<'w>>,
    ctas: Vec<Cta>,
    clusters: Vec<ClusterState>,
    /// Sectors of regions that are updated atomically; with the turn of the CTA where no other SM
    /// updates them.
    updated: MixedMap<(u32, u64, u32), Sector>,
    /// Who waits for columns of tensor memory, first come first.
    asks: Vec<Ask>,
    next_cluster: usize,
    running: usize,
    keep_spans: bool,
    spans: Spans,
    ways: Ways,
    /// The way of the warp that ended last.
    last: Way,
    epilogues: Vec<Epilogue>,
    issued: u64,
    tensor_busy: Ticks,
    /// Pieces of time with wgmmas, in the order of their starts.
    products: Vec<(Ticks, Ticks)>,
    /// When every CTA so far had let the next launch begin, or had ended.
    allowed: Ticks,
    end: Ticks,
}

impl<'w> Sim<'w> {
    pub(crate) fn new(machine: &'w Machine, work: &'w Work<'w>, keep_spans: bool) -> Self {
        let ranks = work.clusters.first().map_or(1, Vec::len);
        Self {
            machine,
            work,
            scribe: Scribe::new(work.code),
            scripts: MixedMap::default(),
            turns: MixedMap::default(),
            queue: Queue::default(),
            sms: (0..ranks).map(|_| Sm::default()).collect(),
            warps: Vec::new(),
            ctas: Vec::new(),
            clusters: Vec::new(),
            updated: MixedMap::default(),
            asks: Vec::new(),
            next_cluster: 0,
            running: 0,
            keep_spans,
            spans: Spans::default(),
            ways: Ways::default(),
            last: Way::default(),
            epilogues: Vec::new(),
            issued: 0,
            tensor_busy: 0,
            products: Vec::new(),
            allowed: 0,
            end: 0,
        }
    }

    /// What each SM asks memory for before anything has come.
    pub(crate) fn bursts(mut self) -> Vec<Burst> {
        self.start();
        while let Some((now, item)) = self.queue.pop() {
            self.happen(now, item);
            if self.sms.iter().all(|sm| sm.burst.is_over(now)) {
                break;
            }
        }
        self.sms.into_iter().map(|sm| sm.burst).collect()
    }

    /// The same work, of which is known what each SM will ask memory for first.
    pub(crate) fn expecting(mut self, bursts: Vec<Burst>) -> Self {
        for (sm, burst) in self.sms.iter_mut().zip(bursts) {
            sm.coming = burst;
        }
        self
    }

    fn start(&mut self) {
        for _ in 0..self.work.resident.max(1) {
            self.start_cluster(0, Way::default());
        }
    }

    fn happen(&mut self, now: Ticks, item: Item) {
        match item {
            Item::Warp(warp) => self.go_on(warp, now),
            Item::Operands { sm, port } => {
                let shared = &mut self.sms[sm].shared;
                *shared = now.max(*shared) + port;
            }
            Item::Reach {
                cluster,
                barrier,
                arrivals,
                bytes,
                way,
            } => {
                let way = self.ways.take(way);
                self.reach(cluster, barrier, arrivals, bytes, now, way);
            }
        }
    }

    pub(crate) fn run(mut self) -> Result<Replay, Stuck> {
        self.start();
        while let Some((now, item)) = self.queue.pop() {
            self.happen(now, item);
        }
        if self.running > 0 {
            return Err(self.stuck());
        }
        let stamps = self.warps.iter().filter_map(|warp| match warp.stamps[..] {
            [.., a, b] => Some((a as f64 / CYCLE, b as f64 / CYCLE)),
            _ => None,
        });
        let sms = self.sms.len() as f64;
        Ok(Replay {
            end: self.end as f64 / CYCLE,
            allowed: self.allowed as f64 / CYCLE,
            issued: self.issued,
            tensor: self.tensor_busy as f64 / CYCLE / (PARTITIONS as f64 * sms),
            stamps: stamps.collect(),
            ctas: self.ctas.iter().map(|cta| cta.times).collect(),
            warps: (self.warps.iter())
                .map(|warp| WarpTimes {
                    cta: warp.cta,
                    warp: warp.number,
                    spent: warp.spent,
                })
                .collect(),
            way: self.last.cycles(),
            products: (self.products.iter())
                .map(|&(from, to)| (from as f64 / CYCLE, to as f64 / CYCLE))
                .collect(),
            spans: self.spans.end(),
            epilogues: self.epilogues,
            deeds: self.scribe.deeds,
            homeless: self.scribe.homeless,
            expansion: self.scribe.found as f64 / self.scribe.told.max(1) as f64,
        })
    }

    fn push(&mut self, at: Ticks, item: Item) {
        // Who is told something comes first; of warps that want the same, the youngest goes on.
        match item {
            Item::Operands { .. } | Item::Reach { .. } => self.queue.push_other(at, item),
            Item::Warp(warp) => self.queue.push_warp(at, u32::MAX - warp as u32, warp),
        }
    }

    /// A warp with a load goes on: of several that may, whoever has loaded least, before all others.
    fn push_load(&mut self, at: Ticks, index: usize) {
        let turn = self.warps[index].loads + 1;
        self.queue.push_warp(at, turn as u32, index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_rounded_to_the_nearest() {
        let library = |cycles: f64| (cycles * CYCLE).round().max(0.0) as Ticks;
        let steps = (-300..3000).map(|n| f64::from(n) / 512.0);
        let odd = [
            0.499_999_999_999_999_94 / CYCLE,
            1e15,
            1e300,
            -1e300,
            f64::NAN,
        ];
        let odd = odd.into_iter().chain([f64::INFINITY, f64::NEG_INFINITY]);
        for cycles in steps.chain(odd) {
            assert_eq!(ticks(cycles), library(cycles), "{cycles}");
        }
    }
}
