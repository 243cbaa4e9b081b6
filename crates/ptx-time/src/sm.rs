//! One multiprocessor, or those of one cluster: which warp issues what, when.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};

use ptx_emu::trace::{BarrierAt, Deed, Event, GlobalBytes, Trace, Way};

use crate::cubin::Code;
use crate::machine::Machine;
use crate::sass::Kind;
use crate::script::{Part, Scribe};

/// Time in parts of a cycle, so that intervals need not be whole.
type Ticks = u64;

const CYCLE: f64 = 64.0;
const PARTITIONS: usize = 4;
/// Bytes of a sector, and of a line of the first-level cache.
const SECTOR: f64 = 32.0;
const LINE: u64 = 128;

fn ticks(cycles: f64) -> Ticks {
    (cycles * CYCLE).round().max(0.0) as Ticks
}

/// What the SMs are given to do.
#[derive(Debug)]
pub(crate) struct Work<'w> {
    pub(crate) code: &'w Code,
    pub(crate) trace: &'w Trace,
    /// Clusters in the order in which they come, as indices of the trace's CTAs by rank.
    pub(crate) clusters: Vec<Vec<usize>>,
    /// CTAs an SM holds at once.
    pub(crate) resident: usize,
    /// Cycles after the start of this launch at which the one before has ended.
    pub(crate) gate: f64,
    /// Bytes a cycle one SM gets of what all get from L2.
    pub(crate) l2_share: f64,
    /// Bytes a cycle one SM gets of what all get from memory.
    pub(crate) memory_share: f64,
    /// The same while what is read drives out what others have written, and for how many bytes
    /// of one SM that is so.
    pub(crate) dirty_share: f64,
    pub(crate) dirty_bytes: f64,
    /// For each region the part of what is read first that comes from memory; others have read
    /// the rest by then.
    pub(crate) cold: Vec<f64>,
    /// For each region the part of what is read that no other SM reads.
    pub(crate) alone: Vec<f64>,
    /// Whether tensor maps come from memory.
    pub(crate) cold_maps: bool,
    /// Pages of regions that launches before have used, and the bits of an address within one.
    pub(crate) warm: &'w HashSet<(u32, u64)>,
    pub(crate) page: u32,
}

impl Work<'_> {
    /// Bytes a cycle that L2 gives one SM of these: more of what many ask for.
    fn l2_rate(&self, at: &GlobalBytes, machine: &Machine) -> f64 {
        let alone = self.alone.get(at.region as usize).copied().unwrap_or(1.0);
        let cost = machine.l2_same + (1.0 - machine.l2_same) * alone;
        (self.l2_share / cost).min(machine.l2_port)
    }

    /// The part of these bytes that memory must give if this SM has not read them yet.
    fn coldness(&self, at: &GlobalBytes) -> f64 {
        match self.warm.contains(&(at.region, at.first >> self.page)) {
            true => 0.0,
            false => self.cold.get(at.region as usize).copied().unwrap_or(0.0),
        }
    }
}

/// What a warp's time went to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Spent {
    /// Issuing, and the fixed latencies between instructions.
    Issuing,
    /// Another warp had the scheduler or the pipe.
    Contending,
    /// A result of shared memory, a conversion or the like.
    Result,
    /// A result of global memory.
    Memory,
    /// An mbarrier.
    Phase,
    /// A barrier of the CTA or the cluster.
    Barrier,
    /// Wgmmas.
    Wgmma,
    /// Copies by groups.
    Copies,
    /// The launch before.
    Launch,
}

impl Spent {
    /// All, in the order in which they are told.
    pub const ALL: [Self; 9] = [
        Self::Issuing,
        Self::Contending,
        Self::Result,
        Self::Memory,
        Self::Phase,
        Self::Barrier,
        Self::Wgmma,
        Self::Copies,
        Self::Launch,
    ];
}

/// A piece of a warp's time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// Which of the CTAs that ran, in order of their start.
    pub cta: usize,
    /// Which of its warps.
    pub warp: usize,
    /// Cycles.
    pub from: f64,
    /// Cycles.
    pub to: f64,
    /// What it went to.
    pub spent: Spent,
    /// Line of the PTX.
    pub line: u32,
}

/// A warp's way from its last product of a tile to its last store of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Epilogue {
    /// Which of the CTAs that ran, in order of their start.
    pub cta: usize,
    /// Which of its warps.
    pub warp: usize,
    /// Cycles: the end of the product.
    pub from: f64,
    /// Cycles: the store, or the end of the warp after its last product.
    pub to: f64,
}

/// What came of it, in cycles from the start of the first CTA.
#[derive(Debug, Clone, Default)]
pub(crate) struct Replay {
    pub(crate) end: f64,
    pub(crate) issued: u64,
    /// Cycles the tensor cores of one partition were busy, the mean.
    pub(crate) tensor: f64,
    pub(crate) ctas: Vec<CtaTimes>,
    pub(crate) spent: [f64; Spent::ALL.len()],
    pub(crate) spans: Vec<Span>,
    pub(crate) epilogues: Vec<Epilogue>,
    /// First and second last stamp of each warp that read a clock.
    pub(crate) stamps: Vec<(f64, f64)>,
    pub(crate) deeds: u64,
    pub(crate) homeless: u64,
}

/// When a CTA did what.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CtaTimes {
    /// Its number in the grid.
    pub cta: u64,
    /// Its first instruction.
    pub start: f64,
    /// Its first tensor instruction.
    pub first_mma: Option<f64>,
    /// The end of its last tensor instruction.
    pub last_mma: Option<f64>,
    /// Its last warp's end.
    pub end: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    /// A warp may go on.
    Warp(usize),
    /// Arrivals and bytes reach a barrier of a cluster.
    Reach {
        cluster: usize,
        barrier: BarrierAt,
        arrivals: u32,
        bytes: u32,
    },
}

#[derive(Debug, Default)]
struct Sm {
    /// When each scheduler is free.
    issue: [Ticks; PARTITIONS],
    pipes: [[Ticks; PIPES]; PARTITIONS],
    tensor: [Ticks; PARTITIONS],
    shared: Ticks,
    lsu: Ticks,
    shuffle: Ticks,
    syncs: Ticks,
    barrier: Ticks,
    copies: Ticks,
    l2: Ticks,
    memory: Ticks,
    /// Bytes it has got from memory.
    drawn: f64,
    remote: Ticks,
    /// Bulk copies of regions this SM has asked for, by their first byte.
    seen: HashSet<(u32, u64)>,
    /// Instructions that have read their tensor maps.
    maps: HashSet<u32>,
    /// Lines of regions its threads have read.
    lines: HashSet<(u32, u64)>,
}

impl Sm {
    /// Gets bytes from memory.
    fn draw(&mut self, now: Ticks, bytes: f64, work: &Work<'_>) {
        let share = match self.drawn < work.dirty_bytes {
            true => work.dirty_share,
            false => work.memory_share,
        };
        self.drawn += bytes;
        self.memory = self.memory.max(now) + ticks(bytes / share);
    }
}

const PIPES: usize = 5;

/// The units of a partition that a kind takes, each for its interval. Half precision is done by
/// both halves of the arithmetic at once.
fn pipes(kind: Kind) -> &'static [usize] {
    const ALU: usize = 0;
    const FMA: usize = 1;
    const MUFU: usize = 2;
    const DOUBLE: usize = 3;
    const UNIFORM: usize = 4;
    match kind {
        Kind::Alu | Kind::Pack => &[ALU],
        Kind::Imad | Kind::ImadHigh | Kind::Fma => &[FMA],
        Kind::Half => &[ALU, FMA],
        Kind::Mufu | Kind::Convert => &[MUFU],
        Kind::Double => &[DOUBLE],
        Kind::Uniform | Kind::ToUniform | Kind::Constant => &[UNIFORM],
        _ => &[],
    }
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
    board_spent: [Spent; 6],
    /// Why it stands still, since when.
    parked: Option<(Parked, Spent, Ticks)>,
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
    /// When bulk copies of each group are there, and have been read.
    bulk_open: (Ticks, Ticks),
    bulk_groups: VecDeque<(Ticks, Ticks)>,
    stamps: Vec<Ticks>,
    /// Which of its CTA.
    number: usize,
    /// Line of the PTX it came to last.
    line: u32,
    /// Up to where its time is told.
    told: Ticks,
    /// The end of its last product, and its last store since.
    product: Option<Ticks>,
    stored: Option<Ticks>,
}

#[derive(Debug, Default)]
struct Cta {
    cluster: usize,
    rank: u32,
    warps_left: usize,
    times: CtaTimes,
    barriers: HashMap<u32, Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    arrived: u32,
    waiting: Vec<usize>,
}

#[derive(Debug, Default)]
struct Mbarrier {
    count: i64,
    pending: i64,
    bytes: i64,
    phase: u32,
    /// Warps and the boards that wait for the end of a parity.
    waiting: Vec<(usize, u8, u32)>,
}

#[derive(Debug, Default)]
struct ClusterState {
    mbarriers: HashMap<BarrierAt, Mbarrier>,
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
    scripts: HashMap<usize, Vec<Vec<Part>>>,
    heap: BinaryHeap<Reverse<(Ticks, u64, Item)>>,
    order: u64,
    sms: Vec<Sm>,
    warps: Vec<Warp<'w>>,
    ctas: Vec<Cta>,
    clusters: Vec<ClusterState>,
    next_cluster: usize,
    running: usize,
    keep_spans: bool,
    spent: [f64; Spent::ALL.len()],
    spans: Vec<Span>,
    epilogues: Vec<Epilogue>,
    issued: u64,
    tensor_busy: Ticks,
    end: Ticks,
}

/// A trace that does not end, in the time it is given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the replay stands still after {cycles} cycles: {waiting} warps wait for what never comes")]
pub struct Stuck {
    /// When.
    pub cycles: u64,
    /// How many warps.
    pub waiting: usize,
}

impl<'w> Sim<'w> {
    pub(crate) fn new(machine: &'w Machine, work: &'w Work<'w>, keep_spans: bool) -> Self {
        let ranks = work.clusters.first().map_or(1, Vec::len);
        Self {
            machine,
            work,
            scribe: Scribe::new(work.code),
            scripts: HashMap::new(),
            heap: BinaryHeap::new(),
            order: 0,
            sms: (0..ranks).map(|_| Sm::default()).collect(),
            warps: Vec::new(),
            ctas: Vec::new(),
            clusters: Vec::new(),
            next_cluster: 0,
            running: 0,
            keep_spans,
            spent: Default::default(),
            spans: Vec::new(),
            epilogues: Vec::new(),
            issued: 0,
            tensor_busy: 0,
            end: 0,
        }
    }

    pub(crate) fn run(mut self) -> Result<Replay, Stuck> {
        for _ in 0..self.work.resident.max(1) {
            self.start_cluster(0);
        }
        while let Some(Reverse((now, _, item))) = self.heap.pop() {
            match item {
                Item::Warp(warp) => self.go_on(warp, now),
                Item::Reach {
                    cluster,
                    barrier,
                    arrivals,
                    bytes,
                } => self.reach(cluster, barrier, arrivals, bytes, now),
            }
        }
        if self.running > 0 {
            let waiting = self.warps.iter().filter(|w| w.part < w.parts.len());
            return Err(Stuck {
                cycles: self.end / CYCLE as u64,
                waiting: waiting.count(),
            });
        }
        let stamps = self.warps.iter().filter_map(|warp| match warp.stamps[..] {
            [.., a, b] => Some((a as f64 / CYCLE, b as f64 / CYCLE)),
            _ => None,
        });
        let sms = self.sms.len() as f64;
        Ok(Replay {
            end: self.end as f64 / CYCLE,
            issued: self.issued,
            tensor: self.tensor_busy as f64 / CYCLE / (PARTITIONS as f64 * sms),
            stamps: stamps.collect(),
            ctas: self.ctas.iter().map(|cta| cta.times).collect(),
            spent: self.spent,
            spans: self.spans,
            epilogues: self.epilogues,
            deeds: self.scribe.deeds,
            homeless: self.scribe.homeless,
        })
    }

    fn push(&mut self, at: Ticks, item: Item) {
        self.order += 1;
        self.heap.push(Reverse((at, self.order, item)));
    }

    /// Starts the next cluster, if there is one.
    fn start_cluster(&mut self, at: Ticks) {
        let Some(members) = self.work.clusters.get(self.next_cluster) else {
            return;
        };
        self.next_cluster += 1;
        let cluster = self.clusters.len();
        let mut state = ClusterState {
            ctas_left: members.len(),
            ..ClusterState::default()
        };
        let start = at + ticks(self.machine.start_cycles);
        for (rank, &index) in members.iter().enumerate() {
            let trace = &self.work.trace.ctas[index];
            if !self.scripts.contains_key(&index) {
                let told = self.scribe.tell(self.work.trace, trace);
                self.scripts.insert(index, told);
            }
            let scripts = self.scripts[&index].clone();
            let cta = self.ctas.len();
            state.warps += trace.warps.len() as u32;
            for (number, (events, parts)) in trace.warps.iter().zip(scripts).enumerate() {
                let warp = self.warps.len();
                self.warps.push(Warp {
                    sm: rank,
                    partition: number % PARTITIONS,
                    cta,
                    events,
                    parts,
                    part: 0,
                    step: 0,
                    next: start,
                    boards: [0; 6],
                    board_spent: [Spent::Result; 6],
                    parked: None,
                    phases: [0; 6],
                    cluster_phase: 0,
                    wgmma_open: 0,
                    wgmma_groups: VecDeque::new(),
                    lane_done: 0,
                    lane_open: 0,
                    lane_groups: VecDeque::new(),
                    bulk_open: (0, 0),
                    bulk_groups: VecDeque::new(),
                    stamps: Vec::new(),
                    number,
                    line: 0,
                    told: start,
                    product: None,
                    stored: None,
                });
                self.push(start, Item::Warp(warp));
            }
            self.ctas.push(Cta {
                cluster,
                rank: rank as u32,
                warps_left: trace.warps.len(),
                times: CtaTimes {
                    cta: trace.cta,
                    start: start as f64 / CYCLE,
                    ..CtaTimes::default()
                },
                barriers: HashMap::new(),
            });
            self.running += 1;
        }
        self.clusters.push(state);
    }

    /// Tells what a piece of a warp's time went to; what was told of it before stands.
    fn spend(&mut self, index: usize, spent: Spent, from: Ticks, to: Ticks) {
        let warp = &mut self.warps[index];
        let from = from.max(warp.told);
        if to <= from {
            return;
        }
        warp.told = to;
        let (from, to) = (from as f64 / CYCLE, to as f64 / CYCLE);
        self.spent[spent as usize] += to - from;
        if self.keep_spans {
            self.spans.push(Span {
                cta: warp.cta,
                warp: warp.number,
                from,
                to,
                spent,
                line: warp.line,
            });
        }
    }

    /// A product of a warp ends then; if it has stored since the last, a tile was done.
    fn multiply(&mut self, index: usize, start: Ticks, done: Ticks) {
        let warp = &mut self.warps[index];
        let times = &mut self.ctas[warp.cta].times;
        times.first_mma.get_or_insert(start as f64 / CYCLE);
        times.last_mma = Some(done as f64 / CYCLE);
        let stored = warp.stored.take();
        let before = warp.product.replace(done);
        if let (Some(from), Some(to)) = (before, stored) {
            self.end_tile(index, from, to);
        }
    }

    fn end_tile(&mut self, index: usize, from: Ticks, to: Ticks) {
        let warp = &self.warps[index];
        self.epilogues.push(Epilogue {
            cta: warp.cta,
            warp: warp.number,
            from: from as f64 / CYCLE,
            to: to.max(from) as f64 / CYCLE,
        });
    }

    /// Issues the warp's next instruction, or says when to try again.
    fn go_on(&mut self, index: usize, now: Ticks) {
        let warp = &mut self.warps[index];
        let (part, step) = loop {
            let Some(&part) = warp.parts.get(warp.part) else {
                return self.leave(index, now);
            };
            let steps = &self.scribe.stretch(part).steps;
            if let Some(&step) = steps.get(warp.step) {
                break (part, step);
            }
            warp.part += 1;
            warp.step = 0;
        };
        let deed = step
            .deed
            .map(|at| match warp.events[part.base + at as usize] {
                Event::Did { deed, .. } => deed,
                Event::Run { .. } => unreachable!("only deeds are told"),
            });
        let Some(op) = step.op else {
            // Nobody issues it: it happens here.
            if let Some(deed) = deed
                && !self.act(index, now, &deed, None, None)
            {
                return;
            }
            self.warps[index].step += 1;
            let next = self.warps[index].next.max(now);
            return self.push(next, Item::Warp(index));
        };
        self.issue(index, now, op, deed);
    }

    fn issue(&mut self, index: usize, now: Ticks, op: u32, deed: Option<Deed>) {
        let sass = self.work.code.instructions[op as usize];
        let line = self.work.code.lines[op as usize];
        let warp = &mut self.warps[index];
        // The assembler's own instructions stand for the line before them.
        if line != 0 {
            warp.line = line;
        }
        // Scoreboards.
        let mut ready = now;
        let mut board = None;
        for at in 0..6 {
            if sass.waits >> at & 1 == 0 {
                continue;
            }
            if warp.phases[at] > 0 {
                let (_, _, since) = *warp.parked.get_or_insert((Parked::Gate, Spent::Phase, now));
                warp.parked = Some((Parked::Board(at), Spent::Phase, since));
                return;
            }
            if warp.boards[at] > ready {
                ready = warp.boards[at];
                board = Some(at);
            }
        }
        if let Some(at) = board {
            let spent = warp.board_spent[at];
            self.spend(index, spent, now, ready);
            return self.push(ready, Item::Warp(index));
        }
        let (sm, partition) = (warp.sm, warp.partition);
        if let Some((_, spent, since)) = warp.parked.take() {
            self.spend(index, spent, since, now);
        }
        let units = pipes(sass.kind);
        let state = &mut self.sms[sm];
        let mut free = state.issue[partition];
        for &unit in units {
            free = free.max(state.pipes[partition][unit]);
        }
        if sass.kind == Kind::Shuffle {
            free = free.max(state.shuffle);
        }
        // Memory takes so much ahead, and no more.
        let ahead = ticks(self.machine.queue_cycles);
        match sass.kind {
            Kind::Shared => free = free.max(state.shared.saturating_sub(ahead)),
            Kind::Global => {
                let far = ticks(self.machine.l2_queue_cycles);
                free = free.max(state.lsu.saturating_sub(ahead));
                free = free.max(state.l2.saturating_sub(far));
            }
            Kind::Arrive | Kind::Phase => free = free.max(state.syncs),
            Kind::Barrier => free = free.max(state.barrier),
            Kind::Mma => free = free.max(state.tensor[partition]),
            _ => {}
        }
        if free > now {
            self.spend(index, Spent::Contending, now, free);
            return self.push(free, Item::Warp(index));
        }
        // It issues.
        self.issued += 1;
        let m = self.machine;
        state.issue[partition] = now + ticks(1.0);
        let interval = match sass.kind {
            Kind::Alu => m.alu_interval,
            Kind::Imad => m.imad_interval,
            Kind::ImadHigh => m.imad_high_interval,
            Kind::Fma => m.fma_interval,
            Kind::Half => m.half_interval,
            Kind::Double => m.double_interval,
            Kind::Mufu => m.mufu_interval,
            Kind::Pack => m.pack_interval,
            Kind::Convert => m.convert_interval,
            _ => 1.0,
        };
        for &unit in units {
            state.pipes[partition][unit] = now + ticks(interval);
        }
        match sass.kind {
            Kind::Shuffle => state.shuffle = now + ticks(m.shuffle_interval),
            Kind::Arrive | Kind::Phase => state.syncs = now + ticks(m.syncs_interval),
            Kind::Barrier => state.barrier = now + ticks(m.barrier_interval),
            _ => {}
        }
        let (latency, spent) = match sass.kind {
            Kind::Mufu => (m.mufu_latency, Spent::Result),
            Kind::Convert => (m.convert_latency, Spent::Result),
            Kind::Shuffle => (m.shuffle_latency, Spent::Result),
            Kind::ToUniform => (m.to_uniform_latency, Spent::Result),
            Kind::Constant => (m.constant_latency, Spent::Result),
            Kind::Special | Kind::Clock => (m.special_latency, Spent::Result),
            // What a deed says, it says itself; without one no lane took part.
            Kind::Shared => (1.0, Spent::Result),
            Kind::Global => (1.0, Spent::Memory),
            Kind::Local => (m.l1_latency, Spent::Memory),
            Kind::Arrive => (m.arrive_latency, Spent::Result),
            Kind::Phase => (m.phase_latency, Spent::Phase),
            Kind::Double => (m.double_interval + 16.0, Spent::Result),
            Kind::Mma => (1.0, Spent::Wgmma),
            Kind::Fence => (m.fence_latency, Spent::Memory),
            _ => (12.0, Spent::Result),
        };
        let warp = &mut self.warps[index];
        let result = now + ticks(latency);
        for board in [sass.result, sass.operands].into_iter().flatten() {
            let at = usize::from(board);
            if warp.boards[at] <= now {
                warp.board_spent[at] = spent;
            }
        }
        if let Some(board) = sass.result {
            let at = usize::from(board);
            warp.boards[at] = warp.boards[at].max(result);
        }
        if let Some(board) = sass.operands {
            let at = usize::from(board);
            warp.boards[at] = warp.boards[at].max(now + ticks(latency.min(20.0)));
        }
        let mut stall = f64::from(sass.stall.max(1));
        if sass.kind == Kind::Branch {
            stall += m.branch_cycles;
        }
        warp.next = now + ticks(stall);
        self.spend(index, Spent::Issuing, now, now + ticks(stall));
        if let Some(deed) = deed
            && !self.act(index, now, &deed, Some(op), sass.result)
        {
            return;
        }
        let warp = &mut self.warps[index];
        warp.step += 1;
        let next = warp.next.max(now);
        self.push(next, Item::Warp(index));
    }

    /// Holds the warp until then.
    fn hold(&mut self, index: usize, from: Ticks, until: Ticks, spent: Spent) {
        let from = from.max(self.warps[index].next);
        self.spend(index, spent, from, until);
        let warp = &mut self.warps[index];
        warp.next = warp.next.max(until);
    }

    /// Sets the scoreboard of an instruction that is not done before `until`.
    fn occupy(&mut self, index: usize, board: Option<u8>, until: Ticks, spent: Spent) {
        if let Some(board) = board {
            let warp = &mut self.warps[index];
            let at = usize::from(board);
            if until > warp.boards[at] {
                warp.boards[at] = until;
                warp.board_spent[at] = spent;
            }
        }
    }

    /// Does a deed. False if the warp stands still until somebody wakes it.
    fn act(
        &mut self,
        index: usize,
        now: Ticks,
        deed: &Deed,
        issued: Option<u32>,
        board: Option<u8>,
    ) -> bool {
        let m = self.machine;
        let (sm, partition, cta) = {
            let warp = &self.warps[index];
            (warp.sm, warp.partition, warp.cta)
        };
        match *deed {
            Deed::Shared {
                wavefronts, atomic, ..
            } => {
                let state = &mut self.sms[sm];
                let start = state.shared.max(now);
                state.shared = start + ticks(f64::from(wavefronts) * m.shared_interval);
                let latency = match atomic {
                    true => m.shared_atomic_latency,
                    false => m.shared_latency,
                };
                let done = state.shared + ticks(latency - m.shared_interval);
                self.occupy(index, board, done, Spent::Result);
            }
            Deed::Remote {
                bytes,
                barrier,
                writes,
                ..
            } => {
                let state = &mut self.sms[sm];
                let start = state.remote.max(now);
                state.remote = start + ticks(f64::from(bytes) / m.remote_port);
                let done = state.remote + ticks(m.remote_latency);
                if !writes {
                    self.occupy(index, board, done, Spent::Result);
                }
                if let Some(barrier) = barrier {
                    let cluster = self.ctas[cta].cluster;
                    self.push(
                        done,
                        Item::Reach {
                            cluster,
                            barrier,
                            arrivals: 0,
                            bytes,
                        },
                    );
                }
            }
            Deed::Global { at, writes, atomic } => {
                let done = self.fetch(sm, now, &at, writes);
                if writes {
                    self.warps[index].stored = Some(now);
                }
                if !writes || atomic {
                    self.occupy(index, board, done, Spent::Memory);
                }
            }
            Deed::LaneCopy { at } => {
                let done = self.fetch(sm, now, &at, false);
                let warp = &mut self.warps[index];
                warp.lane_open = warp.lane_open.max(done);
                warp.lane_done = warp.lane_done.max(done);
            }
            Deed::LaneCommit => {
                let warp = &mut self.warps[index];
                let open = std::mem::take(&mut warp.lane_open);
                warp.lane_groups.push_back(open);
            }
            Deed::BulkCommit => {
                let warp = &mut self.warps[index];
                let open = std::mem::take(&mut warp.bulk_open);
                warp.bulk_groups.push_back(open);
            }
            Deed::LaneWait(groups) => {
                let all = &mut self.warps[index].lane_groups;
                let ended = all.len().saturating_sub(groups as usize);
                let until = all.drain(..ended).fold(now, Ticks::max);
                self.hold(index, now, until, Spent::Copies);
            }
            Deed::BulkWait { groups, read } => {
                let all = &mut self.warps[index].bulk_groups;
                let ended = all.len().saturating_sub(groups as usize);
                let when = |(done, was_read)| if read { was_read } else { done };
                let until = all.drain(..ended).map(when).fold(now, Ticks::max);
                self.hold(index, now, until, Spent::Copies);
            }
            Deed::LaneArrive { barrier, arrivals } => {
                let open = self.warps[index].lane_done;
                let cluster = self.ctas[cta].cluster;
                let done = open.max(now) + ticks(m.arrive_latency);
                self.push(
                    done,
                    Item::Reach {
                        cluster,
                        barrier,
                        arrivals,
                        bytes: 0,
                    },
                );
            }
            Deed::Bulk {
                way,
                at,
                rows,
                bytes,
                to,
                barrier,
            } => {
                let start = now.max(self.map_read(sm, now, issued));
                self.bulk(index, start, way, at, rows, bytes, to, barrier);
            }
            Deed::Barrier { id, threads, waits } => {
                return self.meet(index, now, id, threads, waits);
            }
            Deed::Init { barrier, count } => {
                let cluster = self.ctas[cta].cluster;
                let count = i64::from(count);
                self.clusters[cluster].mbarriers.insert(
                    barrier,
                    Mbarrier {
                        count,
                        pending: count,
                        ..Mbarrier::default()
                    },
                );
            }
            Deed::Arrive {
                barrier,
                arrivals,
                expects,
            } => {
                let state = &self.ctas[cta];
                let (cluster, far) = (state.cluster, barrier.rank != state.rank);
                let latency = match far {
                    true => m.remote_latency,
                    false => m.arrive_latency,
                };
                if expects > 0 {
                    let of = self.clusters[cluster].mbarriers.entry(barrier).or_default();
                    of.bytes += i64::from(expects);
                }
                self.push(
                    now + ticks(latency),
                    Item::Reach {
                        cluster,
                        barrier,
                        arrivals,
                        bytes: 0,
                    },
                );
            }
            Deed::Await { barrier, parity } => {
                let cluster = self.ctas[cta].cluster;
                let state = self.clusters[cluster].mbarriers.entry(barrier).or_default();
                if state.phase % 2 == parity % 2 {
                    match board {
                        Some(board) => {
                            state.waiting.push((index, board, parity));
                            let warp = &mut self.warps[index];
                            warp.phases[usize::from(board)] += 1;
                            warp.board_spent[usize::from(board)] = Spent::Phase;
                        }
                        None => {
                            state.waiting.push((index, u8::MAX, parity));
                            self.warps[index].parked = Some((Parked::Gate, Spent::Phase, now));
                            self.warps[index].step += 1;
                            return false;
                        }
                    }
                }
            }
            Deed::ClusterArrive => {
                let cluster = self.ctas[cta].cluster;
                let state = &mut self.clusters[cluster];
                self.warps[index].cluster_phase = state.phase + 1;
                state.gate.arrived += 1;
                self.open_cluster(cluster, now);
            }
            Deed::ClusterWait => {
                let cluster = self.ctas[cta].cluster;
                let state = &mut self.clusters[cluster];
                if state.phase < self.warps[index].cluster_phase {
                    state.gate.waiting.push(index);
                    self.warps[index].parked = Some((Parked::Gate, Spent::Barrier, now));
                    self.warps[index].step += 1;
                    return false;
                }
                let opened = state.opened;
                self.hold(index, now, opened, Spent::Barrier);
            }
            Deed::Wgmma {
                n,
                registers,
                sparse,
                ..
            } => {
                // K is 256 bits of whatever element, or twice that of a sparse A at twice the rate.
                let cycles = (f64::from(n) * m.wgmma_column).max(m.wgmma_least);
                // Operands from shared memory: A for this warp, a quarter of B; the port is that
                // of all four.
                let rows = if registers { 0.0 } else { 512.0 };
                let column = if sparse { 16.0 } else { 8.0 };
                let port = (rows + f64::from(n) * column) / 128.0 * m.shared_interval;
                let cycles = cycles.max(port * PARTITIONS as f64);
                let state = &mut self.sms[sm];
                state.shared = state.shared.max(now) + ticks(port);
                let start = state.tensor[partition].max(now);
                let end = start + ticks(cycles);
                state.tensor[partition] = end;
                self.tensor_busy += ticks(cycles);
                let steal = ticks(m.wgmma_steal + m.wgmma_steal_column * f64::from(n));
                for pipe in &mut state.pipes[partition] {
                    *pipe = (*pipe).max(now) + steal;
                }
                let done = end + ticks(m.wgmma_latency);
                let warp = &mut self.warps[index];
                warp.wgmma_open = warp.wgmma_open.max(done);
                self.multiply(index, start, done);
            }
            Deed::WgmmaCommit => {
                let warp = &mut self.warps[index];
                let open = std::mem::take(&mut warp.wgmma_open);
                warp.wgmma_groups.push_back(open);
            }
            Deed::WgmmaWait(groups) => {
                let warp = &mut self.warps[index];
                let mut until = now;
                while warp.wgmma_groups.len() > groups as usize {
                    until = until.max(warp.wgmma_groups.pop_front().unwrap_or(0));
                }
                self.hold(
                    index,
                    now,
                    until + ticks(m.wgmma_wait_latency),
                    Spent::Wgmma,
                );
            }
            Deed::WgmmaFence | Deed::AllowLaunch | Deed::Registers(_) => {}
            Deed::Mma { shape, bits } => {
                let [rows, columns, depth] = shape.map(f64::from);
                let share = rows * columns * depth * f64::from(bits) / (16.0 * 8.0 * 16.0 * 16.0);
                let state = &mut self.sms[sm];
                let start = state.tensor[partition].max(now);
                state.tensor[partition] = start + ticks(share * m.mma_interval);
                self.tensor_busy += ticks(share * m.mma_interval);
                let done = state.tensor[partition] + ticks(m.mma_latency);
                self.occupy(index, board, done, Spent::Wgmma);
                self.multiply(index, start, done);
            }
            Deed::AwaitLaunch => {
                let gate = ticks(self.work.gate);
                self.hold(index, now, gate, Spent::Launch);
            }
            // A fence the compiler has left out costs nothing.
            Deed::Fence { .. } if issued.is_none() => {}
            Deed::Fence { beyond_cta, .. } => {
                let latency = match beyond_cta {
                    true => m.far_fence_latency,
                    false => m.fence_latency,
                };
                self.hold(index, now, now + ticks(latency), Spent::Memory);
            }
            Deed::Sleep(nanos) => {
                let cycles = f64::from(nanos) * m.clock_mhz / 1000.0;
                self.hold(index, now, now + ticks(cycles), Spent::Issuing);
            }
            Deed::Stamp => self.warps[index].stamps.push(now),
        }
        true
    }

    /// When bytes of global memory have come, or have left.
    fn fetch(&mut self, sm: usize, now: Ticks, at: &GlobalBytes, writes: bool) -> Ticks {
        let m = self.machine;
        let cold = self.work.coldness(at);
        let rate = self.work.l2_rate(at, m);
        let state = &mut self.sms[sm];
        if !writes && !state.lines.insert((at.region, at.first / LINE)) {
            return now + ticks(m.l1_latency);
        }
        let bytes = f64::from(at.sectors) * SECTOR;
        let sectors = f64::from(at.sectors) / m.sectors_per_cycle;
        state.lsu = state.lsu.max(now) + ticks(sectors);
        state.l2 = state.l2.max(now) + ticks(bytes / rate);
        let mut done = state.l2.max(state.lsu) + ticks(m.l2_latency);
        if !writes && cold > 0.0 {
            state.draw(now, bytes * cold, self.work);
            done = done.max(state.memory + ticks(m.l2_latency)) + ticks(m.memory_latency);
        }
        done
    }

    /// When a tensor copy knows its map: the first of an instruction finds it in memory.
    fn map_read(&mut self, sm: usize, now: Ticks, op: Option<u32>) -> Ticks {
        let tensor = |op: &u32| self.work.code.instructions[*op as usize].kind == Kind::Tensor;
        match op.filter(tensor) {
            Some(op) if self.work.cold_maps && self.sms[sm].maps.insert(op) => {
                now + ticks(self.machine.map_latency)
            }
            _ => now,
        }
    }

    #[expect(clippy::too_many_arguments, reason = "they are the deed's")]
    fn bulk(
        &mut self,
        index: usize,
        now: Ticks,
        way: Way,
        at: Option<GlobalBytes>,
        rows: u32,
        bytes: u32,
        to: u32,
        barrier: Option<BarrierAt>,
    ) {
        let m = self.machine;
        let (sm, cta) = (self.warps[index].sm, self.warps[index].cta);
        let rate = at.map_or(m.l2_port, |at| self.work.l2_rate(&at, m));
        let state = &mut self.sms[sm];
        let engine = state.copies.max(now);
        state.copies = engine + ticks(m.bulk_interval + m.row_interval * f64::from(rows));
        let sent = state.copies;
        let size = at.map_or(0.0, |at| f64::from(at.sectors) * SECTOR);
        let mut done = match way {
            Way::Exchange => {
                state.remote = state.remote.max(engine) + ticks(f64::from(bytes) / m.remote_port);
                state.remote.max(sent) + ticks(m.remote_latency)
            }
            Way::Store => {
                state.l2 = state.l2.max(engine) + ticks(size / rate);
                state.l2.max(sent) + ticks(m.bulk_store_latency)
            }
            Way::Load | Way::Prefetch => {
                state.l2 = state.l2.max(engine) + ticks(size / rate);
                state.l2.max(sent) + ticks(m.bulk_latency)
            }
        };
        if let (Way::Load | Way::Prefetch, Some(at)) = (way, at) {
            let cold = self.work.coldness(&at);
            if cold > 0.0 && state.seen.insert((at.region, at.first)) {
                state.draw(engine, size * cold, self.work);
                done = done.max(state.memory + ticks(m.bulk_latency)) + ticks(m.memory_latency);
            }
        }
        match (way, barrier) {
            (Way::Prefetch, _) => {}
            (Way::Store, _) | (_, None) => {
                let warp = &mut self.warps[index];
                if way == Way::Store {
                    warp.stored = Some(now);
                }
                warp.bulk_open.0 = warp.bulk_open.0.max(done);
                let read = sent + ticks(m.bulk_store_latency / 2.0);
                warp.bulk_open.1 = warp.bulk_open.1.max(read);
            }
            (_, Some(barrier)) => {
                let cluster = self.ctas[cta].cluster;
                let own = 1 << barrier.rank;
                let receivers = if to == 0 { own } else { to };
                for rank in (0..32).filter(|rank| receivers >> rank & 1 == 1) {
                    let barrier = BarrierAt {
                        rank,
                        address: barrier.address,
                    };
                    let item = Item::Reach {
                        cluster,
                        barrier,
                        arrivals: 0,
                        bytes,
                    };
                    self.push(done, item);
                }
            }
        }
    }

    /// A barrier of the CTA.
    fn meet(&mut self, index: usize, now: Ticks, id: u32, threads: u32, waits: bool) -> bool {
        let cta = self.warps[index].cta;
        let gate = self.ctas[cta].barriers.entry(id).or_default();
        gate.arrived += 32;
        if gate.arrived >= threads {
            gate.arrived = 0;
            let open = now + ticks(self.machine.barrier_latency);
            let waiting = std::mem::take(&mut gate.waiting);
            for other in waiting {
                self.wake(other, open);
            }
            if waits {
                self.hold(index, now, open, Spent::Barrier);
            }
            return true;
        }
        if waits {
            gate.waiting.push(index);
            self.warps[index].parked = Some((Parked::Gate, Spent::Barrier, now));
            self.warps[index].step += 1;
            return false;
        }
        true
    }

    /// Opens the cluster's barrier if all warps that are left have arrived.
    fn open_cluster(&mut self, cluster: usize, now: Ticks) {
        let state = &mut self.clusters[cluster];
        if state.gate.arrived == 0 || state.gate.arrived < state.warps {
            return;
        }
        state.gate.arrived = 0;
        state.phase += 1;
        state.opened = now + ticks(self.machine.cluster_latency);
        let open = state.opened;
        for waiting in std::mem::take(&mut state.gate.waiting) {
            self.wake(waiting, open);
        }
    }

    /// A warp that stood at a barrier goes on.
    fn wake(&mut self, index: usize, at: Ticks) {
        let warp = &mut self.warps[index];
        warp.next = warp.next.max(at);
        let next = warp.next;
        if let Some((_, spent, since)) = warp.parked.take() {
            self.spend(index, spent, since, at);
        }
        self.push(next, Item::Warp(index));
    }

    fn reach(&mut self, cluster: usize, barrier: BarrierAt, arrivals: u32, bytes: u32, now: Ticks) {
        let state = self.clusters[cluster].mbarriers.entry(barrier).or_default();
        state.pending -= i64::from(arrivals);
        state.bytes -= i64::from(bytes);
        if state.pending > 0 || state.bytes != 0 {
            return;
        }
        let ended = state.phase % 2;
        state.phase += 1;
        state.pending += state.count;
        let wake = now + ticks(self.machine.wake_latency);
        let waiting = std::mem::take(&mut state.waiting);
        let (through, still): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .partition(|&(_, _, parity)| parity % 2 == ended);
        state.waiting = still;
        for (warp, board, _) in through {
            match board {
                u8::MAX => self.wake(warp, wake),
                board => {
                    let state = &mut self.warps[warp];
                    let at = usize::from(board);
                    state.phases[at] -= 1;
                    state.boards[at] = state.boards[at].max(wake);
                    let waits = |&(parked, ..): &(Parked, _, _)| parked == Parked::Board(at);
                    if state.phases[at] == 0
                        && let Some((_, spent, since)) = state.parked.take_if(|p| waits(p))
                    {
                        let next = state.next.max(state.boards[at]);
                        self.spend(warp, spent, since, next);
                        self.push(next, Item::Warp(warp));
                    }
                }
            }
        }
    }

    /// The warp has done all it did.
    fn leave(&mut self, index: usize, now: Ticks) {
        if let Some(from) = self.warps[index].product {
            self.end_tile(index, from, now);
        }
        let cta = self.warps[index].cta;
        self.end = self.end.max(now);
        // Nobody waits at the cluster's barrier for a warp that has gone.
        let cluster = self.ctas[cta].cluster;
        self.clusters[cluster].warps -= 1;
        self.open_cluster(cluster, now);
        let state = &mut self.ctas[cta];
        state.warps_left -= 1;
        if state.warps_left > 0 {
            return;
        }
        state.times.end = now as f64 / CYCLE;
        self.running -= 1;
        let left = &mut self.clusters[cluster].ctas_left;
        *left -= 1;
        if *left == 0 {
            self.start_cluster(now + ticks(self.machine.turnover_cycles));
        }
    }
}
