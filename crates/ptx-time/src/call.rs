//! A call: its launches one after the other, each on all SMs.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use ptx_emu::trace::{CtaTrace, Deed, Event, Trace, Way};

use crate::cubin::Code;
use crate::machine::Machine;
use crate::sm::{Replay, Sim, Stuck, Work};
use crate::times::{Cause, CtaTimes, Epilogue, Span, Spent, WarpTimes};

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
}

/// How long a call takes.
#[derive(Debug, Clone, Default)]
pub struct Call {
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
    /// Cycles of them in which the tensor cores of an SM work.
    pub tensor_cycles: f64,
    /// SMs that have anything to do.
    pub active_sms: u64,
    /// CTAs, one after another, of the SM that ends last.
    pub rounds: u64,
    /// Instructions the simulated SM issued.
    pub issued: u64,
    /// The CTAs of that SM.
    pub ctas: Vec<CtaTimes>,
    /// Cycles of warps, by what they went to.
    pub spent: [f64; Spent::ALL.len()],
    /// The same for each of them.
    pub warps: Vec<WarpTimes>,
    /// Cycles by what the way to the end went through: that of the warp which ends last, and of
    /// those it had to wait for.
    pub way: [f64; Cause::ALL.len()],
    /// The same piece by piece, if asked for.
    pub spans: Vec<Span>,
    /// When the warps that multiply were between tiles, or after their last.
    pub epilogues: Vec<Epilogue>,
    /// Cycles between the last two readings of a clock: from the earliest of a warp's to the latest.
    pub stamped: Option<f64>,
    /// The part of what warps did for which the cubin has no instruction.
    pub homeless: f64,
}

/// Bytes that are asked whether they were used before.
const PAGE: u32 = 16;

/// What a call finds in L2, and leaves there.
#[derive(Debug, Default)]
struct Warmth {
    /// Everything is there.
    all: bool,
    pages: HashSet<(u32, u64)>,
    /// Regions written by a launch of this call.
    written: HashSet<u32>,
}

impl Call {
    /// Replays a call on a machine whose L2 holds none of what the call reads.
    pub fn replay(
        machine: &Machine,
        launches: &[Launched<'_>],
        keep_spans: bool,
    ) -> Result<Self, Stuck> {
        Self::replay_after(machine, launches, Warmth::default(), keep_spans)
    }

    /// Replays a call that finds in L2 what the same call has left there.
    pub fn replay_warm(
        machine: &Machine,
        launches: &[Launched<'_>],
        keep_spans: bool,
    ) -> Result<Self, Stuck> {
        let warmth = Warmth {
            all: true,
            ..Warmth::default()
        };
        Self::replay_after(machine, launches, warmth, keep_spans)
    }

    fn replay_after(
        machine: &Machine,
        launches: &[Launched<'_>],
        mut warmth: Warmth,
        keep_spans: bool,
    ) -> Result<Self, Stuck> {
        let mut times: Vec<LaunchTimes> = Vec::new();
        let mhz = machine.clock_mhz - machine.clock_drop_mhz / 2.0;
        for launch in launches {
            // When it starts, in cycles after the call's first CTA, and how long after that the
            // launch before has ended.
            let (start, gate) = match times.last() {
                None => (0.0, 0.0),
                Some(before) => {
                    let end = before.start + before.cycles;
                    let early = before.start + machine.dependent_start_micros * mhz;
                    let start = match (launch.dependent, launch.beside) {
                        (true, true) => early.min(end),
                        (true, false) => end,
                        (false, _) => end + machine.next_launch_micros * mhz,
                    };
                    let open = end + machine.dependent_wait_micros * mhz;
                    (start, (open - start).max(0.0))
                }
            };
            let mut replayed = replay(machine, launch, gate, &warmth, keep_spans)?;
            replayed.start = start;
            warmth.keep(launch);
            times.push(replayed);
        }
        let mut call = Self::sum(machine, times);
        if !warmth.all {
            call.micros += machine.cold_start_micros;
        }
        Ok(call)
    }

    fn sum(machine: &Machine, launches: Vec<LaunchTimes>) -> Self {
        let end = launches.iter().map(|l| l.start + l.cycles);
        let cycles = end.fold(0.0, f64::max);
        let tensor = launches
            .iter()
            .map(|l| l.tensor_cycles * l.active_sms as f64);
        let busy = tensor.sum::<f64>() / machine.sms / cycles.max(1.0);
        let clock_mhz = machine.clock_mhz - machine.clock_drop_mhz * busy.min(1.0);
        Self {
            micros: machine.launch_micros + machine.spread_micros + cycles / clock_mhz,
            clock_mhz,
            launches,
        }
    }
}

impl Call {
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

impl Warmth {
    fn keep(&mut self, launch: &Launched<'_>) {
        each_access(launch.trace, |at, writes| {
            self.pages.insert((at.0, at.1 >> PAGE));
            if writes {
                self.written.insert(at.0);
            }
        });
    }
}

/// Calls back with region, first byte and bytes of every access to global memory.
fn each_access(trace: &Trace, mut call: impl FnMut((u32, u64, u32), bool)) {
    for cta in &trace.ctas {
        for event in cta.warps.iter().flatten() {
            let Event::Did { deed, .. } = event else {
                continue;
            };
            match deed {
                Deed::Global { at, writes, .. } => call((at.region, at.first, at.bytes), *writes),
                Deed::LaneCopy { at } => call((at.region, at.first, at.bytes), false),
                Deed::Bulk {
                    at: Some(at), way, ..
                } => call((at.region, at.first, at.bytes), *way == Way::Store),
                _ => {}
            }
        }
    }
}

/// Clusters that did the same, by the first of them and how many there are.
fn classes(trace: &Trace) -> Vec<(Vec<usize>, usize)> {
    let mut clusters: Vec<(u64, Vec<usize>)> = Vec::new();
    for (index, cta) in trace.ctas.iter().enumerate() {
        match clusters.iter_mut().find(|c| c.0 == cta.cluster) {
            Some(cluster) => cluster.1.push(index),
            None => clusters.push((cta.cluster, vec![index])),
        }
    }
    let mut found: Vec<(u64, Vec<usize>, usize)> = Vec::new();
    for (_, members) in clusters {
        let mut hasher = DefaultHasher::new();
        for &member in &members {
            hash_cta(&trace.ctas[member], &mut hasher);
        }
        let class = hasher.finish();
        match found.iter_mut().find(|f| f.0 == class) {
            Some(same) => same.2 += 1,
            None => found.push((class, members, 1)),
        }
    }
    found.into_iter().map(|f| (f.1, f.2)).collect()
}

fn hash_cta(cta: &CtaTrace, hasher: &mut DefaultHasher) {
    for events in &cta.warps {
        events.len().hash(hasher);
        for event in events {
            match event {
                Event::Run { first, end } => (first, end).hash(hasher),
                Event::Did { at, deed } => {
                    (at, std::mem::discriminant(deed)).hash(hasher);
                    match deed {
                        Deed::Wgmma { n, .. } => n.hash(hasher),
                        Deed::Bulk { bytes, rows, .. } => (bytes, rows).hash(hasher),
                        Deed::Shared { wavefronts, .. } => wavefronts.hash(hasher),
                        Deed::Global { at, .. } => at.sectors.hash(hasher),
                        _ => {}
                    }
                }
            }
        }
    }
}

fn replay(
    machine: &Machine,
    launch: &Launched<'_>,
    gate: f64,
    warmth: &Warmth,
    keep_spans: bool,
) -> Result<LaunchTimes, Stuck> {
    let classes = classes(launch.trace);
    let cluster = u64::from(launch.cluster.max(1));
    let clusters = launch.ctas.div_ceil(cluster).max(1);
    let groups = (machine.sms as u64 / cluster).max(1);
    let rounds = clusters.div_ceil(groups);
    let active_sms = launch.ctas.min(groups * cluster).max(1);

    // What is read in all, by region, told from the part that was traced.
    let traced = launch.trace.ctas.len().max(1) as f64;
    let mut read: HashMap<u32, f64> = HashMap::new();
    each_access(launch.trace, |(region, _, bytes), writes| {
        if !writes {
            *read.entry(region).or_default() += f64::from(bytes);
        }
    });
    let alone: Vec<f64> = (0..)
        .zip(&launch.trace.regions)
        .map(|(region, &size)| {
            let all = read.get(&region).copied().unwrap_or(0.0) * launch.ctas as f64 / traced;
            (size as f64 / all.max(1.0)).min(1.0)
        })
        .collect();
    let cold = (0..)
        .zip(&alone)
        .map(
            |(region, &part)| match warmth.all || warmth.written.contains(&region) {
                true => 0.0,
                false => part,
            },
        )
        .collect();

    // One SM's clusters: all that come one after the other, or each class for itself.
    let resident = u64::from(launch.resident.max(1));
    let lots: Vec<Vec<Vec<usize>>> = match rounds {
        1 => classes.iter().map(|class| vec![class.0.clone()]).collect(),
        _ => {
            let all: Vec<&Vec<usize>> = classes
                .iter()
                .flat_map(|(members, count)| std::iter::repeat_n(members, *count))
                .collect();
            if all.is_empty() {
                return Ok(LaunchTimes::default());
            }
            let pick = |i: u64| all[(i * all.len() as u64 / rounds) as usize % all.len()].clone();
            vec![(0..rounds).map(pick).collect()]
        }
    };
    let clock = machine.clock_mhz * 1e6;
    let mut longest: Option<Replay> = None;
    let mut work = Work {
        code: launch.code,
        trace: launch.trace,
        clusters: Vec::new(),
        resident: resident as usize,
        gate,
        l2_share: machine.l2_bandwidth / clock / active_sms as f64,
        memory_share: machine.memory_bandwidth / clock / active_sms as f64,
        dirty_share: machine.dirty_bandwidth / clock / active_sms as f64,
        dirty_bytes: machine.dirty_bytes / active_sms as f64,
        cold,
        alone,
        cold_maps: !warmth.all,
        warm: &warmth.pages,
        page: PAGE,
    };
    for lot in lots {
        work.clusters = lot;
        let replay = Sim::new(machine, &work, keep_spans).run()?;
        if longest.as_ref().is_none_or(|l| replay.end > l.end) {
            longest = Some(replay);
        }
    }
    let longest = longest.unwrap_or_default();
    let stamped = longest.stamps.iter().map(|s| s.1).fold(f64::MIN, f64::max)
        - longest.stamps.iter().map(|s| s.0).fold(f64::MAX, f64::min);
    Ok(LaunchTimes {
        start: 0.0,
        cycles: longest.end,
        tensor_cycles: longest.tensor,
        active_sms,
        rounds,
        issued: longest.issued,
        stamped: Some(stamped).filter(|_| !longest.stamps.is_empty()),
        homeless: longest.homeless as f64 / longest.deeds.max(1) as f64,
        ctas: longest.ctas,
        spent: std::array::from_fn(|i| longest.warps.iter().map(|w| w.spent[i]).sum()),
        warps: longest.warps,
        way: longest.way,
        spans: longest.spans,
        epilogues: longest.epilogues,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sass::{Kind, Sass};
    use ptx_emu::trace::GlobalBytes;

    /// Two warps meet at a barrier, then do two tiles each: a product and a store.
    fn two_tiles() -> (Code, Trace) {
        let kinds = [
            Kind::Barrier,
            Kind::Mma,
            Kind::Global,
            Kind::Mma,
            Kind::Global,
            Kind::Exit,
        ];
        let instruction = |kind| Sass {
            kind,
            stall: 2,
            waits: 0,
            result: None,
            operands: None,
            guarded: false,
            offset: 0,
        };
        let code = Code {
            instructions: kinds.map(instruction).to_vec(),
            lines: (1..=6).collect(),
        };
        let barrier = Deed::Barrier {
            id: 0,
            threads: 64,
            waits: true,
        };
        let product = Deed::Mma {
            shape: [16, 8, 16],
            bits: 16,
        };
        let store = Deed::Global {
            at: GlobalBytes {
                region: 0,
                first: 0,
                bytes: 128,
                sectors: 4,
            },
            writes: true,
            atomic: false,
        };
        let deeds = [barrier, product, store, product, store];
        let did = (0..).zip(deeds).map(|(at, deed)| Event::Did { at, deed });
        let warp: Vec<Event> = did.chain([Event::Run { first: 5, end: 6 }]).collect();
        let trace = Trace {
            lines: (1..=6).collect(),
            leaders: vec![true, false, false, false, false, false],
            regions: vec![1 << 20],
            ctas: vec![CtaTrace {
                cta: 7,
                cluster: 7,
                rank: 0,
                warps: vec![warp.clone(), warp],
            }],
        };
        (code, trace)
    }

    fn launched<'l>(code: &'l Code, trace: &'l Trace) -> Launched<'l> {
        Launched {
            code,
            trace,
            ctas: 1,
            cluster: 1,
            resident: 1,
            dependent: false,
            beside: false,
        }
    }

    #[test]
    fn a_warps_time_is_told_once_and_where_it_went() {
        let (code, trace) = two_tiles();
        let machine = Machine::from_numbers(|_| Some(8.0)).unwrap();
        let call = Call::replay(&machine, &[launched(&code, &trace)], true).unwrap();
        let times = &call.launches[0];
        assert_eq!(times.ctas[0].cta, 7);
        for warp in 0..2 {
            let spans: Vec<&Span> = times.spans.iter().filter(|s| s.warp == warp).collect();
            for pair in spans.windows(2) {
                assert!(pair[0].to <= pair[1].from, "{pair:?}");
            }
            let told: f64 = spans.iter().map(|s| s.to - s.from).sum();
            assert!(told <= times.cycles, "{told} of {}", times.cycles);
            let tiles = times.epilogues.iter().filter(|e| e.warp == warp);
            assert!(tiles.clone().all(|e| e.from <= e.to));
            assert_eq!(tiles.count(), 2);
        }
        let waits = times.spans.iter().filter(|s| s.spent == Spent::Barrier);
        let lines: Vec<u32> = waits.map(|s| s.line).collect();
        assert!(
            !lines.is_empty() && lines.iter().all(|&line| line == 1),
            "{lines:?}"
        );
    }
    #[test]
    fn the_way_to_the_end_is_told_once_and_through_those_waited_for() {
        let (code, trace) = two_tiles();
        let machine = Machine::from_numbers(|_| Some(8.0)).unwrap();
        let call = Call::replay(&machine, &[launched(&code, &trace)], false).unwrap();
        let times = &call.launches[0];
        let told: f64 = times.way.iter().sum();
        assert!((told - times.cycles).abs() < 1e-6, "{:?}", times.way);
        let of = |cause: Cause| times.way[cause as usize];
        assert_eq!(of(Cause::Launch), 8.0, "{:?}", times.way);
        assert!(of(Cause::Barriers) >= 8.0, "{:?}", times.way);
        assert!((call.way().iter().sum::<f64>() - call.micros).abs() < 1e-9);
        // What is on the way is what removing it can save at most.
        let free = Machine::from_numbers(|name| match name {
            "barrier_latency" | "barrier_interval" => Some(0.0),
            _ => Some(8.0),
        });
        let without = Call::replay(&free.unwrap(), &[launched(&code, &trace)], false).unwrap();
        let saved = times.cycles - without.launches[0].cycles;
        assert!(saved > 0.0 && saved <= of(Cause::Barriers), "{saved}");
    }

    #[test]
    fn a_trace_that_does_not_end_says_who_waits_where() {
        let (code, mut trace) = two_tiles();
        trace.ctas[0].warps.truncate(1);
        let machine = Machine::from_numbers(|_| Some(8.0)).unwrap();
        let stuck = Call::replay(&machine, &[launched(&code, &trace)], false).unwrap_err();
        let said = stuck.to_string();
        assert!(
            said.contains(": warps 0 of CTA 7 for barrier 0, where 32 threads have arrived"),
            "{said}"
        );
        let barrier = ptx_emu::trace::BarrierAt {
            rank: 0,
            address: 0x40,
        };
        let init = Deed::Init { barrier, count: 2 };
        let wait = Deed::Await { barrier, parity: 0 };
        let deeds = [init, wait];
        let did = (0..).zip(deeds).map(|(at, deed)| Event::Did { at, deed });
        trace.ctas[0].warps[0] = did.collect();
        let stuck = Call::replay(&machine, &[launched(&code, &trace)], false).unwrap_err();
        let said = stuck.to_string();
        assert!(
            said.contains("the mbarrier at 0x40 of rank 0, whose phase 0 lacks 2 arrivals"),
            "{said}"
        );
    }
}
