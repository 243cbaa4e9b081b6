//! A call: its launches one after the other, each on all SMs.

mod deal;
mod updates;
mod warmth;

use ptx_emu::mixed::{MixedMap, MixedSet};
use ptx_emu::trace::{Deed, Event, Trace};

use self::deal::last_to_end;
use self::updates::updaters;
use self::warmth::{PAGE, Reads, Warmth, shared_sectors};
use crate::classes::classes;
use crate::cubin::Code;
use crate::sm::{Replay, Sim, Stuck, Work};
use crate::times::{Activity, Cause, CtaTimes, Epilogue, Span, WarpTimes};
use ptx_machine::Machine;

/// One launch of a call, as far as it was traced.
#[derive(Debug, Clone, Copy)]
pub struct Launched<'l> {
    /// The kernel's code.
    pub code: &'l Code,
    /// What some of its CTAs did.
    pub trace: &'l Trace,
    /// CTAs of the grid.
    pub ctas: u64,
    /// CTAs of a cluster.
    pub cluster: u32,
    /// CTAs that fit on an SM.
    pub resident: u32,
    /// Whether it may start before the launch before has ended.
    pub dependent: bool,
    /// Whether its CTAs find room on an SM beside those of the launch before.
    pub beside: bool,
    /// Whether the SMs have run this code since they ran much else. What an earlier launch of the
    /// same call has run they have.
    pub fetched: bool,
}

impl Launched<'_> {
    /// Clusters of the grid, and how many the card has room for side by side, one on each SM.
    fn clusters(&self, machine: &Machine) -> (u64, u64) {
        let cluster = u64::from(self.cluster.max(1));
        let all = self.ctas.div_ceil(cluster).max(1);
        (all, (machine.sms as u64 / cluster).max(1))
    }

    /// Whether CTAs that were traced besides those of this trace have no other time: each does what
    /// one of these does, and, where CTAs come one after another, all of them do the same.
    pub fn speaks_for(&self, machine: &Machine, all: &Trace) -> bool {
        let (clusters, groups) = self.clusters(machine);
        let classes = classes(all);
        let own: MixedSet<u64> = self.trace.ctas.iter().map(|cta| cta.cluster).collect();
        let known = |number| own.contains(number);
        let mut kinds = classes.iter();
        (clusters <= groups || classes.len() == 1)
            && kinds.all(|class| class.clusters.iter().any(known))
    }
}

/// Why a call has no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// No CTA was traced, or one without warps.
    #[error("nothing was traced of a launch: watch one of its CTAs")]
    Empty,
    /// The trace names instructions that its own table of lines does not have.
    #[error("the trace is not of this kernel: it names instructions beyond the last")]
    Foreign,
    /// CTAs of a cluster are missing, or there are too many.
    #[error("{traced} CTAs of a cluster of {size} were traced: all are needed")]
    Cluster {
        /// CTAs in the trace.
        traced: usize,
        /// CTAs of the launch's clusters.
        size: usize,
    },
    /// A number no machine can have.
    #[error(
        "`{0}` of the machine is impossible: give a finite number, above zero where work is divided by it"
    )]
    Machine(&'static str),
    /// A launch works in tensor memory, and the machine has none.
    #[error(
        "the kernel works in tensor memory, of which the machine has no numbers: give those whose names \
         begin with `tmem_`"
    )]
    NoTensorMemory,
    /// The trace does not end.
    #[error(transparent)]
    Stuck(#[from] Stuck),
}

/// How long a call takes.
#[derive(Debug, Clone, Default)]
pub struct CallTimes {
    /// Microseconds, from before its first launch to after its last.
    pub micros: f64,
    /// MHz.
    pub clock_mhz: f64,
    /// Its launches.
    pub launches: Vec<LaunchTimes>,
}

/// How long a launch takes.
#[derive(Debug, Clone, Default)]
pub struct LaunchTimes {
    /// Cycles after the start of the call's first CTA.
    pub start: f64,
    /// Cycles from the first CTA's start to the last one's end.
    pub cycles: f64,
    /// Cycles after which all its CTAs have let the next launch begin, or have ended.
    pub allowed: f64,
    /// Cycles of them in which the tensor cores of an SM work.
    pub tensor_cycles: f64,
    /// How often all SMs rested from products for so long that the clock rose.
    pub rests: f64,
    /// Cycles they did.
    pub rested: f64,
    /// SMs that have anything to do.
    pub active_sms: u64,
    /// CTAs, one after another, of the SM that ends last.
    pub rounds: u64,
    /// Instructions the simulated SM issued.
    pub issued: u64,
    /// The CTAs of that SM.
    pub ctas: Vec<CtaTimes>,
    /// Cycles of warps, by what they went to.
    pub spent: [f64; Activity::ALL.len()],
    /// The same for each of them.
    pub warps: Vec<WarpTimes>,
    /// The same piece by piece, if asked for.
    pub spans: Vec<Span>,
    /// Cycles by what the way to the end went through: that of the warp which ends last, and of
    /// those it had to wait for.
    pub way: [f64; Cause::ALL.len()],
    /// When the warps that multiply were between tiles, or after their last.
    pub epilogues: Vec<Epilogue>,
    /// Cycles between the last two readings of a clock: from the earliest of a warp's to the latest.
    pub stamped: Option<f64>,
    /// The part of what warps did for which the cubin has no instruction.
    pub homeless: f64,
    /// Instructions of the cubin for one of the PTX.
    pub expansion: f64,
}

/// CTAs that come one after another in one place before the rest is told from the second half of
/// them: what is dirty in the beginning has then worn off, and all classes have had their turn.
const ROUNDS: std::ops::RangeInclusive<u64> = 2..=8;

/// The part of a rest's least length within which it is a matter of chance whether it is one.
const REST_BORDER: f64 = 0.1;

impl CallTimes {
    /// Replays a call on a machine whose L2 holds none of what the call reads.
    pub fn replay(
        machine: &Machine,
        launches: &[Launched<'_>],
        keep_spans: bool,
    ) -> Result<Self, ReplayError> {
        Self::replay_after(machine, launches, Warmth::default(), keep_spans)
    }

    /// Replays a call that finds in L2 what the same call has left there.
    pub fn replay_warm(
        machine: &Machine,
        launches: &[Launched<'_>],
        keep_spans: bool,
    ) -> Result<Self, ReplayError> {
        Self::replay_after(machine, launches, Warmth::complete(), keep_spans)
    }

    fn replay_after<'c>(
        machine: &Machine,
        launches: &[Launched<'c>],
        mut warmth: Warmth<'c>,
        keep_spans: bool,
    ) -> Result<Self, ReplayError> {
        if let Some(name) = machine.impossible() {
            return Err(ReplayError::Machine(name));
        }
        launches.iter().try_for_each(checked)?;
        if machine.tmem.is_none() && launches.iter().any(in_tensor_memory) {
            return Err(ReplayError::NoTensorMemory);
        }
        let mut times: Vec<LaunchTimes> = Vec::new();
        let mhz = light_clock(machine, launches);
        for launch in launches {
            // When it starts, in cycles after the call's first CTA, and how long after that the
            // launch before has ended.
            let (start, gate) = match times.last() {
                None => (0.0, 0.0),
                Some(before) => {
                    let end = before.start + before.cycles;
                    let least = machine.dependent_start_micros * mhz;
                    let early = before.start + before.allowed.max(least);
                    let start = match (launch.dependent, launch.beside) {
                        (true, true) => early.min(end),
                        (true, false) => end,
                        (false, _) => end + machine.next_launch_micros * mhz,
                    };
                    let open = end + machine.dependent_wait_micros * mhz;
                    (start, (open - start).max(0.0))
                }
            };
            let mut replayed = replay(machine, mhz, launch, gate, &warmth, keep_spans)?;
            replayed.start = start;
            warmth.keep(launch);
            times.push(replayed);
        }
        let mut call = Self::sum(machine, mhz, times);
        if !warmth.all {
            call.micros += machine.cold_start_micros;
        }
        Ok(call)
    }

    fn sum(machine: &Machine, mhz: f64, launches: Vec<LaunchTimes>) -> Self {
        let end = launches.iter().map(|l| l.start + l.cycles);
        let cycles = end.fold(0.0, f64::max);
        let tensor = launches
            .iter()
            .map(|l| l.tensor_cycles * l.active_sms as f64);
        let busy = tensor.sum::<f64>() / machine.sms / cycles.max(1.0);
        let load = busy.min(1.0);
        let steady = mhz - machine.clock_drop_mhz * load * load;
        let resumed = launches.iter().map(|l| l.rests).sum::<f64>() * machine.resume_micros;
        let rested = launches.iter().map(|l| l.rested).sum::<f64>();
        let gained = rested / steady - rested / machine.rested_clock_mhz;
        let within = (cycles / steady + resumed - gained).max(0.0);
        Self {
            micros: machine.launch_micros + machine.spread_micros + within,
            clock_mhz: match within > 0.0 {
                true => cycles / within,
                false => steady,
            },
            launches,
        }
    }
}

impl CallTimes {
    /// What most of the way to the end goes through.
    pub fn bound(&self) -> Cause {
        let way = self.way();
        let most = Cause::ALL.into_iter().max_by(|a, b| {
            let (a, b) = (way[*a as usize], way[*b as usize]);
            a.total_cmp(&b)
        });
        most.unwrap_or(Cause::Launch)
    }

    /// Microseconds by what the way to the end went through. What no launch tells is starting.
    pub fn way(&self) -> [f64; Cause::ALL.len()] {
        let mut way = [0.0; Cause::ALL.len()];
        for cause in Cause::ALL
            .into_iter()
            .filter(|cause| *cause != Cause::Launch)
        {
            let launches = self.launches.iter().map(|l| l.way[cause as usize]);
            way[cause as usize] = launches.sum::<f64>() / self.clock_mhz.max(1.0);
        }
        // Launches that overlap wait for one another: that is told of the first.
        let told: f64 = way.iter().sum();
        way[Cause::Launch as usize] = (self.micros - told).max(0.0);
        way
    }
}

impl Replay {
    /// As if `all` CTAs had come one after the other where `some` did: each more takes what those of
    /// the second half took.
    fn extended(mut self, some: u64, all: u64) -> Self {
        if some >= all || some < 2 {
            return self;
        }
        let mut ends: Vec<f64> = self.ctas.iter().map(|cta| cta.end).collect();
        ends.sort_by(f64::total_cmp);
        let half = ends.len() / 2;
        let taken = ends[ends.len() - 1] - ends[half - 1];
        let each = taken / (some as f64 * (ends.len() - half) as f64 / ends.len() as f64);
        let more = each * (all - some) as f64;
        self.end += more;
        self.allowed += more;
        let times = all as f64 / some as f64;
        self.tensor *= times;
        self.issued = (self.issued as f64 * times) as u64;
        let longer = self.end / (self.end - more);
        self.way = self.way.map(|cycles| cycles * longer);
        self
    }
}

/// Whether a launch works in tensor memory: nobody can who has no columns.
fn in_tensor_memory(launch: &Launched<'_>) -> bool {
    let ctas = launch.trace.ctas.iter();
    let mut events = ctas.flat_map(|cta| cta.warps.iter().flatten());
    let takes = |event: &Event| match event {
        Event::Did { deed, .. } => matches!(deed, Deed::TmemAlloc { .. }),
        Event::Run { .. } => false,
    };
    events.any(takes)
}

/// The clock of a call that does not load the card, MHz: products take from it however few they are.
fn light_clock(machine: &Machine, launches: &[Launched<'_>]) -> f64 {
    let traced = launches.iter().flat_map(|launch| &launch.trace.ctas);
    let mut events = traced.flat_map(|cta| cta.warps.iter().flatten());
    let multiplies = events.any(|event| match event {
        Event::Did { deed, .. } => matches!(
            deed,
            Deed::Wgmma { .. } | Deed::Mma { .. } | Deed::TmemMma { .. }
        ),
        Event::Run { .. } => false,
    });
    match multiplies {
        true => machine.clock_mhz,
        false => machine.rested_clock_mhz,
    }
}

/// What a launch's trace lacks for a replay.
fn checked(launch: &Launched<'_>) -> Result<(), ReplayError> {
    let trace = launch.trace;
    if trace.ctas.is_empty() || trace.ctas.iter().any(|cta| cta.warps.is_empty()) {
        return Err(ReplayError::Empty);
    }
    let known = trace.lines.len();
    let outside = |event: &Event| match *event {
        Event::Run { first, end } => first >= end || end as usize > known,
        Event::Did { at, .. } => at as usize >= known,
    };
    let mut events = trace.ctas.iter().flat_map(|cta| cta.warps.iter().flatten());
    if events.any(outside) {
        return Err(ReplayError::Foreign);
    }
    let size = launch.cluster.max(1) as usize;
    let mut members: MixedMap<u64, usize> = MixedMap::default();
    for cta in &trace.ctas {
        *members.entry(cta.cluster).or_default() += 1;
    }
    match members.values().find(|&&traced| traced != size) {
        Some(&traced) => Err(ReplayError::Cluster { traced, size }),
        None => Ok(()),
    }
}

/// How often nobody multiplied for long between two products, and how long in all. At that very
/// length it is a matter of chance: it counts half.
fn rests(mut products: Vec<(f64, f64)>, long: f64) -> (f64, f64) {
    products.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut rests, mut rested) = (0.0, 0.0);
    let mut until: Option<f64> = None;
    for (from, to) in products {
        let gap = until.map_or(0.0, |until| from - until);
        if gap > 0.0 {
            let surely = ((gap / long - 1.0) / REST_BORDER + 0.5).clamp(0.0, 1.0);
            rests += surely;
            rested += surely * gap;
        }
        until = Some(until.map_or(to, |until| until.max(to)));
    }
    (rests, rested)
}

/// How many CTAs that come one after another tell how long all take.
fn enough_rounds(machine: &Machine, reads: &Reads, classes: usize, active_sms: u64) -> u64 {
    if classes > 1 {
        return *ROUNDS.end();
    }
    let dirty = machine.dirty_bytes / active_sms as f64;
    let worn = 2.0 * (dirty / reads.of_cta.max(1.0)).ceil();
    (worn as u64).clamp(*ROUNDS.start(), *ROUNDS.end())
}

/// From the first of the second last stamps to the last of all.
fn stamped(stamps: &[(f64, f64)]) -> Option<f64> {
    let first = stamps.iter().map(|s| s.0).min_by(f64::total_cmp)?;
    let last = stamps.iter().map(|s| s.1).max_by(f64::total_cmp)?;
    Some(last - first)
}

fn replay(
    machine: &Machine,
    mhz: f64,
    launch: &Launched<'_>,
    gate: f64,
    warmth: &Warmth<'_>,
    keep_spans: bool,
) -> Result<LaunchTimes, ReplayError> {
    let classes = classes(launch.trace);
    let cluster = u64::from(launch.cluster.max(1));
    let (clusters, groups) = launch.clusters(machine);
    let resident = u64::from(launch.resident.max(1));
    let at_once = clusters <= groups;
    let dealt = last_to_end(launch.trace, &classes, clusters, groups, resident);
    let rounds = dealt.all;
    let active_sms = launch.ctas.min(groups * cluster).max(1);

    let kept = warmth.kept(machine);
    let reads = Reads::of(launch, warmth, &kept);

    // One SM's clusters: all that come one after the other, or each class for itself.
    // A timeline has all of them; for a time some rounds are enough, the rest take as long each.
    let replayed = match keep_spans {
        true => rounds,
        false => rounds.min(enough_rounds(machine, &reads, classes.len(), active_sms) * resident),
    };
    let lots: Vec<Vec<Vec<usize>>> = match at_once {
        true => classes
            .iter()
            .map(|class| vec![class.members.clone()])
            .collect(),
        false => {
            let lot = (0..replayed).map(|i| classes[dealt.class(i, replayed)].members.clone());
            vec![lot.collect()]
        }
    };
    let clock = mhz * 1e6;
    let mut longest: Option<Replay> = None;
    let mut products = Vec::new();
    let mut work = Work {
        code: launch.code,
        fetched: launch.fetched || warmth.code.contains(&launch.code),
        trace: launch.trace,
        clusters: Vec::new(),
        resident: resident as usize,
        gate,
        l2_share: machine.l2_bandwidth / clock / active_sms as f64,
        store_share: machine.store_bandwidth / clock / active_sms as f64,
        memory_share: machine.memory_bandwidth / clock / active_sms as f64,
        dirty_share: machine.dirty_bandwidth / clock / active_sms as f64,
        dirty_bytes: machine.dirty_bytes / active_sms as f64,
        sms: active_sms as f64,
        cold: reads.cold,
        alone: reads.alone,
        // Who is the only one on its SM has nobody to find anything of.
        shared: match at_once {
            true => MixedSet::default(),
            false => shared_sectors(launch.trace),
        },
        updaters: updaters(launch.trace, active_sms.div_ceil(cluster)),
        flushed: !warmth.all,
        warm: &warmth.pages,
        kept,
        page: PAGE,
    };
    for lot in lots {
        work.clusters = lot;
        let bursts = Sim::new(machine, &work, false).bursts();
        let sim = Sim::new(machine, &work, keep_spans).expecting(bursts);
        let mut replay = sim.run()?;
        products.append(&mut replay.products);
        if longest.as_ref().is_none_or(|l| replay.end > l.end) {
            longest = Some(replay);
        }
    }
    let longest = longest
        .ok_or(ReplayError::Empty)?
        .extended(replayed, rounds);
    // SMs that began together are in step, but for the time it took to begin.
    let (rests, rested) = match at_once {
        true => {
            let spread = machine.spread_micros * active_sms as f64 / machine.sms;
            let long = (machine.rest_micros + spread) * mhz;
            rests(products, long)
        }
        false => (0.0, 0.0),
    };
    let spent = |i: usize| longest.warps.iter().map(|w| w.spent[i]).sum::<f64>();
    Ok(LaunchTimes {
        start: 0.0,
        cycles: longest.end,
        allowed: longest.allowed,
        tensor_cycles: longest.tensor,
        rests,
        rested,
        active_sms,
        rounds,
        issued: longest.issued,
        stamped: stamped(&longest.stamps),
        homeless: longest.homeless as f64 / longest.deeds.max(1) as f64,
        expansion: longest.expansion,
        ctas: longest.ctas,
        spent: std::array::from_fn(|i| spent(i) * rounds as f64 / replayed as f64),
        warps: longest.warps,
        way: longest.way,
        spans: longest.spans,
        epilogues: longest.epilogues,
    })
}

#[cfg(test)]
mod tests;
