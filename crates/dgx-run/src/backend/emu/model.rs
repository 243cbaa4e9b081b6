//! The time of a call on the device: `ptx-time` replays the actions of its warps with the numbers
//! of the target. docs/internals/time.md says what the model covers.

use std::collections::HashSet;

use ptx_emu::trace::{Part, Trace, Watch};
use ptx_emu::{Report, Wake};
use ptx_time::{CallTimes, Code, Launched, Machine};

use super::role::{LaunchLayout, roles};
use crate::backend::Modelled;
use crate::backend::zones::Zones;
use crate::compile::{Footprint, Image};
use crate::plan::LaunchGeometry;
use dgx_core::domain::bounds::MICROS;
use dgx_core::domain::mix;
use dgx_core::domain::{Bytes, Device, Group, Hazard, KernelTime, Micros};
use dgx_core::operator::Operator;

/// CTAs watched of every launch, if all groups have one K.
const WATCHED: u64 = 6;
/// With different groups, up to this many times as many are watched.
const UNLIKE: u64 = 4;
/// CTAs watched for each group, if a side of the grid counts groups and their rows differ: the
/// CTAs behind a group's last row have nothing to do, and their share is estimated.
const WATCHED_A_GROUP: u64 = 8;
/// At most so many of one launch.
const MOST_WATCHED: u64 = 96;

/// CTAs drawn at random besides them if the others do not run; otherwise one in each gap between
/// two.
const DRAWN_ALONE: usize = 2;
/// Up to this ratio of the time with the drawn CTAs, the fixed sample counts: its times repeat.
const SURPRISE: f64 = 1.1;
/// Beyond this ratio, the drawn CTAs are too few to determine the time.
const UNLIKELY: f64 = 2.0;

/// A launch that ended.
pub(super) struct EndedLaunch<'a> {
    pub geometry: &'a LaunchGeometry,
    pub report: Report,
    /// Empty if nothing was watched. The same CTAs in every run, so that times repeat.
    pub trace: Trace,
    /// These and the drawn ones.
    pub whole: Trace,
    /// The hazards found, if they were looked for.
    pub hazards: Vec<Hazard>,
    /// The accesses that a launch which may begin before this one ends must not conflict with.
    pub wake: Wake,
    /// Global memory that was not watched.
    pub unwatched: Bytes,
}

/// The contents of allocations that are made one after the other: the same tensor of all groups is
/// one part.
pub(super) fn parts(allocations: [&Zones; 3]) -> Vec<Part> {
    let mut names: Vec<&str> = Vec::new();
    let mut parts = Vec::new();
    for (region, zones) in (0..).zip(allocations) {
        for zone in zones.all() {
            let name = zone.name.split(" of group ").next().unwrap_or_default();
            let of = names.iter().position(|known| *known == name);
            let of = of.unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            });
            parts.push(Part {
                region,
                first: zone.offset,
                bytes: zone.bytes,
                of: of as u32,
            });
        }
    }
    parts
}

/// A sample of a launch's CTAs: evenly spread, including the first and the last. The time of a CTA
/// depends on K: if K differs, few CTAs may be the longest, and they determine the time of the
/// call. The same if each SM has one CTA for tiles of several groups, no two of them alike, or if
/// each group has as many CTAs as the largest needs.
pub(super) fn watch(
    geometry: &LaunchGeometry,
    (operator, groups): (&Operator, &[Group]),
    sms: u32,
    only: bool,
) -> Watch {
    let last = ctas(geometry).saturating_sub(1);
    let one_each = last < u64::from(sms);
    let rows = |group: &Group| operator.output_extents(0, group).map(|(rows, _)| rows);
    let kind = |group: &Group| (operator.depth(group), rows(group).filter(|_| one_each));
    let kinds: HashSet<(u64, Option<usize>)> = groups.iter().map(kind).collect();
    let of_kinds = WATCHED * (kinds.len() as u64).clamp(1, UNLIKE);
    let differ = groups
        .windows(2)
        .any(|pair| rows(&pair[0]) != rows(&pair[1]));
    let counts_groups = |&side: &u32| side as usize == groups.len();
    let of_groups = match differ && !one_each && geometry.grid.iter().any(counts_groups) {
        true => (WATCHED_A_GROUP * groups.len() as u64).min(MOST_WATCHED),
        false => 0,
    };
    let count = of_kinds.max(of_groups).min(last + 1);
    let spread = |i: u64| i * last / (count - 1).max(1);
    Watch {
        ctas: (0..count).map(spread).collect(),
        only,
    }
}

/// CTAs that a kernel cannot know to be watched, one between two of the sample; if only the sample
/// runs, some of them.
pub(super) fn drawn(watch: &Watch, key: u64) -> Vec<u64> {
    let gaps = watch.ctas.windows(2).zip(0..).filter_map(|(ends, gap)| {
        let inside = ends[0] + 1..ends[1];
        let random = mix(key ^ mix(gap));
        let count = inside.end.saturating_sub(inside.start);
        (count > 0).then(|| (mix(random), inside.start + random % count))
    });
    let mut gaps: Vec<(u64, u64)> = gaps.collect();
    if watch.only {
        gaps.sort_unstable();
        gaps.truncate(DRAWN_ALONE);
    }
    gaps.into_iter().map(|(_, cta)| cta).collect()
}

/// The part of a trace with these CTAs, and those of their clusters.
pub(super) fn part(whole: &Trace, ctas: &[u64]) -> Trace {
    let of = whole.ctas.iter().filter(|cta| ctas.contains(&cta.cta));
    let clusters: HashSet<u64> = of.map(|cta| cta.cluster).collect();
    let own = whole
        .ctas
        .iter()
        .filter(|cta| clusters.contains(&cta.cluster));
    Trace {
        lines: whole.lines.clone(),
        leaders: whole.leaders.clone(),
        regions: whole.regions.clone(),
        ctas: own.cloned().collect(),
    }
}

fn ctas(geometry: &LaunchGeometry) -> u64 {
    geometry.grid.iter().map(|&side| u64::from(side)).product()
}

/// The time of a call, or the reason why there is none.
pub(super) fn modelled(
    device: &Device,
    image: &Image,
    launches: &[EndedLaunch<'_>],
) -> Result<Modelled, String> {
    let scripts_of_launches = scripts(device, image, launches)?;
    let machine = machine(device)?;
    let timed =
        |traces: Vec<&Trace>| replay(machine, launches, &scripts_of_launches, &traces, false);
    let fixed = timed(launches.iter().map(|ended| &ended.trace).collect())?;
    possible(fixed.micros)?;
    recognised(&fixed, launches)?;
    let drawn = |ended: &EndedLaunch<'_>| ended.whole.ctas.len() - ended.trace.ctas.len();
    let count: usize = launches.iter().map(drawn).sum();
    let alike = |(ended, script): (&EndedLaunch<'_>, &LaunchCode)| {
        launched(ended, &ended.trace, script).speaks_for(machine, &ended.whole)
    };
    let represented = count == 0 || launches.iter().zip(&scripts_of_launches).all(alike);
    let (call, remark) = match represented {
        true => (fixed, None),
        false => {
            let whole = timed(launches.iter().map(|ended| &ended.whole).collect())?;
            let drawn: Vec<Trace> = launches.iter().map(outside).collect();
            let drawn = || timed(drawn.iter().collect());
            longer(fixed, whole, drawn, count)?
        }
    };
    possible(call.micros)?;
    Ok(Modelled {
        bound: call.bound().word().to_owned(),
        micros: Micros(call.micros),
        kernels: kernels(&call, launches),
        remark,
    })
}

/// Whether the kernels' machine code could be matched with their traces.
fn recognised(call: &CallTimes, launches: &[EndedLaunch<'_>]) -> Result<(), String> {
    let mut launches = call.launches.iter().zip(launches);
    launches.try_for_each(|(times, ended)| times.recognised(&ended.geometry.kernel))
}

/// The call that counts, of the fixed sample, of the whole one with `count` drawn CTAs, and of
/// these alone, and a remark on it. A kernel can know which CTAs are in the fixed sample: if the
/// others take longer, the fixed ones represent only themselves.
fn longer(
    fixed: CallTimes,
    whole: CallTimes,
    drawn: impl Fn() -> Result<CallTimes, String>,
    count: usize,
) -> Result<(CallTimes, Option<String>), String> {
    if whole.micros <= SURPRISE * fixed.micros {
        return Ok((fixed, None));
    }
    let drawn = drawn()?;
    let longest = match drawn.micros > whole.micros {
        true => drawn,
        false => whole,
    };
    let said = format!(
        "CTAs outside the fixed sample take longer: {:.1} µs by {count} of them, {:.1} µs without",
        longest.micros, fixed.micros
    );
    match longest.micros <= UNLIKELY * fixed.micros {
        true => Ok((longest, Some(format!("{said}; the longer time counts")))),
        false => Err(said),
    }
}

/// The drawn CTAs, without those of the fixed sample; all, if none was drawn.
fn outside(ended: &EndedLaunch<'_>) -> Trace {
    let fixed: HashSet<u64> = ended.trace.ctas.iter().map(|cta| cta.cta).collect();
    let ctas = ended.whole.ctas.iter().map(|cta| cta.cta);
    let drawn: Vec<u64> = ctas.filter(|cta| !fixed.contains(cta)).collect();
    match drawn[..] {
        [] => ended.whole.clone(),
        _ => part(&ended.whole, &drawn),
    }
}

/// Refuses a time that a run file cannot contain, which a target with wild numbers may give.
fn possible(micros: f64) -> Result<(), String> {
    let (least, most) = (MICROS.start(), MICROS.end());
    match MICROS.contains(&micros) {
        true => Ok(()),
        false => Err(format!(
            "{micros:e} µs is no time: {least} to {most:e} µs can be"
        )),
    }
}

/// The start and duration of each launch of a call.
fn kernels(call: &CallTimes, launches: &[EndedLaunch<'_>]) -> Vec<KernelTime> {
    let micros = |cycles: f64| Micros(cycles / call.clock_mhz);
    let launches_timed = call.launches.iter().zip(launches);
    launches_timed
        .map(|(times, ended)| KernelTime {
            name: ended.geometry.kernel.clone(),
            start: micros(times.start),
            micros: micros(times.cycles),
        })
        .collect()
}

/// The numbers behind a device's modelled times.
pub fn machine(device: &Device) -> Result<&Machine, String> {
    let known = device.model.as_ref();
    known.ok_or_else(|| format!("no target describes the speed of {}", device.name))
}

/// The machine code of a launch's traces, and whether its CTAs fit on the SMs beside those of the
/// launch before.
struct LaunchCode {
    code: Code,
    beside: bool,
}

fn scripts(
    device: &Device,
    image: &Image,
    launches: &[EndedLaunch<'_>],
) -> Result<Vec<LaunchCode>, String> {
    let script = |(place, ended): (usize, &EndedLaunch<'_>)| {
        let kernel = &ended.geometry.kernel;
        let entry = image.kernel(kernel).map_or(kernel, |report| &report.entry);
        let code = Code::read(&image.cubin, entry);
        let code = code.map_err(|error| error.to_string())?;
        check_representative(ended)?;
        if code.leaves(&ended.whole) {
            let kernel = &ended.geometry.kernel;
            return Err(format!(
                "{kernel} calls a function that was not inlined, which cannot be modelled"
            ));
        }
        Ok(LaunchCode {
            code,
            beside: place > 0 && beside(device, image, &launches[place - 1], ended),
        })
    };
    launches.iter().enumerate().map(script).collect()
}

/// Whether the watched CTAs represent the launch.
fn check_representative(ended: &EndedLaunch<'_>) -> Result<(), String> {
    ptx_time::telling(&ended.geometry.kernel, &ended.report, &ended.whole)
}

fn replay(
    machine: &Machine,
    launches: &[EndedLaunch<'_>],
    scripts: &[LaunchCode],
    traces: &[&Trace],
    keep_spans: bool,
) -> Result<CallTimes, String> {
    let launches = launches.iter().zip(scripts).zip(traces);
    let launches: Vec<Launched<'_>> = launches
        .map(|((ended, script), trace)| launched(ended, trace, script))
        .collect();
    CallTimes::replay(machine, &launches, keep_spans).map_err(|stuck| stuck.to_string())
}

/// A call whose time can be modelled repeatedly, for different machines.
pub struct TracedCall<'a> {
    launches: Vec<EndedLaunch<'a>>,
    scripts: Vec<LaunchCode>,
}

impl<'a> TracedCall<'a> {
    pub(super) fn new(
        device: &Device,
        image: &Image,
        launches: Vec<EndedLaunch<'a>>,
    ) -> Result<Self, String> {
        let scripts = scripts(device, image, &launches)?;
        Ok(Self { launches, scripts })
    }

    pub fn replay(&self, machine: &Machine, keep_spans: bool) -> Result<CallTimes, String> {
        let traces: Vec<&Trace> = self.launches.iter().map(|ended| &ended.trace).collect();
        replay(machine, &self.launches, &self.scripts, &traces, keep_spans)
    }

    /// Its launches, in order.
    pub fn laid(&self) -> Vec<LaunchLayout> {
        let laid = |ended: &EndedLaunch<'_>| LaunchLayout {
            kernel: ended.geometry.kernel.clone(),
            ctas: ctas(ended.geometry),
            idle: None,
            roles: roles(&ended.trace),
        };
        self.launches.iter().map(laid).collect()
    }
}

fn launched<'l>(
    ended: &'l EndedLaunch<'_>,
    trace: &'l Trace,
    script: &'l LaunchCode,
) -> Launched<'l> {
    let geometry = ended.geometry;
    Launched {
        code: &script.code,
        trace,
        ctas: ctas(geometry),
        cluster: geometry.cluster.iter().product(),
        resident: ended.report.ctas_per_sm,
        dependent: geometry.pdl,
        beside: script.beside,
        // In a sweep, all other contenders are called between two calls.
        fetched: false,
    }
}

/// Whether a launch's CTAs fit on SMs beside those of the one before.
fn beside(
    device: &Device,
    image: &Image,
    before: &EndedLaunch<'_>,
    ended: &EndedLaunch<'_>,
) -> bool {
    let spread = ctas(before.geometry).div_ceil(u64::from(device.limits.sms.max(1)));
    let held = u64::from(before.report.ctas_per_sm).min(spread) as u32;
    let footprint = |geometry: &LaunchGeometry| {
        let report = image.kernel(&geometry.kernel);
        let smem = report.map_or(0, |k| k.static_smem + k.dynamic_smem(geometry));
        Footprint {
            registers: report.map_or(0, |k| k.registers),
            threads: geometry.threads_per_block(),
            smem: Bytes(u64::from(smem)),
        }
    };
    let other = footprint(before.geometry);
    footprint(ended.geometry).fits_beside(&device.limits, &other, held)
}

#[cfg(test)]
mod tests;
