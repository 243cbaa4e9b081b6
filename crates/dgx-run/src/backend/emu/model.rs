//! The time of a call on the device: `ptx-time` replays the actions of its warps with the numbers
//! of the target. docs/internals/time.md says what the model covers.

use std::collections::HashSet;

use ptx_emu::trace::{Part, Trace, Watch};
use ptx_emu::{Report, Wake};
use ptx_time::{Call, Code, Launched, Machine};

use super::role::{Laid, roles};
use crate::backend::Modelled;
use crate::backend::zones::Zones;
use crate::compile::{Footprint, Image};
use crate::plan::LaunchGeometry;
use dgx_core::domain::bounds::MICROS;
use dgx_core::domain::mix;
use dgx_core::domain::{Bytes, Device, Group, Hazard, KernelTime, Micros};
use dgx_core::operator::Operator;

/// CTAs watched of every launch, where all groups are of one K.
const WATCHED: u64 = 6;
/// Times as many are watched where there are so many different ones.
const UNLIKE: u64 = 4;

/// CTAs drawn beside them, one between two of them: all gaps have one where the others run too.
const DRAWN_ALONE: usize = 2;
/// Up to so many times as long with the drawn ones, the fixed sample decides: its times repeat.
const SURPRISE: f64 = 1.1;
/// Beyond so many times, the drawn ones are too few to say how long it takes.
const UNLIKELY: f64 = 2.0;

/// A launch that ended.
pub(super) struct Ended<'a> {
    pub geometry: &'a LaunchGeometry,
    pub report: Report,
    /// Empty where nothing was watched. The same CTAs in every run, so that times repeat.
    pub trace: Trace,
    /// These and the ones that were drawn.
    pub whole: Trace,
    /// What was found, where it was looked for.
    pub hazards: Vec<Hazard>,
    /// What a launch that may begin before this one is over must not meet.
    pub wake: Wake,
    /// Global memory that was not watched.
    pub unwatched: Bytes,
}

/// What lies in allocations that are made one after the other: the same tensor of all groups is one
/// thing.
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

/// A sample of a launch's CTAs: evenly spread, the first and the last of them. How long a CTA takes
/// goes with K: where that differs, few may be the longest, and a call takes as long as these. The
/// same where each SM has one CTA for tiles of several groups, no two of which have the same.
pub(super) fn watch(
    geometry: &LaunchGeometry,
    (operator, groups): (&Operator, &[Group]),
    sms: u32,
    only: bool,
) -> Watch {
    let last = ctas(geometry).saturating_sub(1);
    let one_each = last < u64::from(sms);
    let kind = |group: &Group| {
        let rows = operator.output_extents(0, group).map(|(rows, _)| rows);
        (operator.depth(group), rows.filter(|_| one_each))
    };
    let kinds: HashSet<(u64, Option<usize>)> = groups.iter().map(kind).collect();
    let unlike = (kinds.len() as u64).clamp(1, UNLIKE);
    let count = (WATCHED * unlike).min(last + 1);
    let spread = |i: u64| i * last / (count - 1).max(1);
    Watch {
        ctas: (0..count).map(spread).collect(),
        only,
    }
}

/// CTAs that nobody can know to be watched, one between two of the sample's; where only the sample
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

/// The part of a trace that is of these CTAs, and those of their clusters.
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

/// The time of a call, or why there is none.
pub(super) fn modelled(
    device: &Device,
    image: &Image,
    launches: &[Ended<'_>],
) -> Result<Modelled, String> {
    let told = scripts(device, image, launches)?;
    let machine = machine(device)?;
    let timed = |traces: Vec<&Trace>| replay(machine, launches, &told, &traces, false);
    let fixed = timed(launches.iter().map(|ended| &ended.trace).collect())?;
    possible(fixed.micros)?;
    recognised(&fixed, launches)?;
    let drawn = |ended: &Ended<'_>| ended.whole.ctas.len() - ended.trace.ctas.len();
    let count: usize = launches.iter().map(drawn).sum();
    let (call, remark) = match count {
        0 => (fixed, None),
        _ => {
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

/// Whether the kernels' machine code was recognised in what they did.
fn recognised(call: &Call, launches: &[Ended<'_>]) -> Result<(), String> {
    let mut launches = call.launches.iter().zip(launches);
    launches.try_for_each(|(times, ended)| times.recognised(&ended.geometry.kernel))
}

/// The call that counts, of the fixed sample, of the whole one with so many drawn CTAs, and of
/// these alone, and what is to be said of it. A kernel can tell which CTAs are in the fixed
/// sample: where the others take longer, the fixed ones stand for themselves at most.
fn longer(
    fixed: Call,
    whole: Call,
    drawn: impl Fn() -> Result<Call, String>,
    count: usize,
) -> Result<(Call, Option<String>), String> {
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

/// The CTAs that were drawn, without those of the fixed sample; where none was, all.
fn outside(ended: &Ended<'_>) -> Trace {
    let fixed: HashSet<u64> = ended.trace.ctas.iter().map(|cta| cta.cta).collect();
    let ctas = ended.whole.ctas.iter().map(|cta| cta.cta);
    let drawn: Vec<u64> = ctas.filter(|cta| !fixed.contains(cta)).collect();
    match drawn[..] {
        [] => ended.whole.clone(),
        _ => part(&ended.whole, &drawn),
    }
}

/// A time that a run file holds: with numbers of a target that are far off there are others.
fn possible(micros: f64) -> Result<(), String> {
    let (least, most) = (MICROS.start(), MICROS.end());
    match MICROS.contains(&micros) {
        true => Ok(()),
        false => Err(format!(
            "{micros:e} µs is no time: {least} to {most:e} µs can be"
        )),
    }
}

/// When each launch of a call runs.
fn kernels(call: &Call, launches: &[Ended<'_>]) -> Vec<KernelTime> {
    let micros = |cycles: f64| Micros(cycles / call.clock_mhz);
    let told = call.launches.iter().zip(launches);
    told.map(|(times, ended)| KernelTime {
        name: ended.geometry.kernel.clone(),
        start: micros(times.start),
        micros: micros(times.cycles),
    })
    .collect()
}

/// The numbers that a device's times are made of.
pub fn machine(device: &Device) -> Result<&Machine, String> {
    let known = device.model.as_ref();
    known.ok_or_else(|| format!("no target describes the speed of {}", device.name))
}

/// What a launch's traces are told in, and whether its CTAs find room beside
/// those of the launch before.
struct Script {
    code: Code,
    beside: bool,
}

fn scripts(device: &Device, image: &Image, launches: &[Ended<'_>]) -> Result<Vec<Script>, String> {
    let script = |(place, ended): (usize, &Ended<'_>)| {
        let kernel = &ended.geometry.kernel;
        let entry = image.kernel(kernel).map_or(kernel, |report| &report.entry);
        let code = Code::read(&image.cubin, entry);
        let code = code.map_err(|error| error.to_string())?;
        telling(ended)?;
        if code.leaves(&ended.whole) {
            let kernel = &ended.geometry.kernel;
            return Err(format!(
                "{kernel} calls a function that was not inlined, which cannot be modelled"
            ));
        }
        Ok(Script {
            code,
            beside: place > 0 && beside(device, image, &launches[place - 1], ended),
        })
    };
    launches.iter().enumerate().map(script).collect()
}

/// Whether what was watched stands for what was done.
fn telling(ended: &Ended<'_>) -> Result<(), String> {
    ptx_time::telling(&ended.geometry.kernel, &ended.report, &ended.whole)
}

fn replay(
    machine: &Machine,
    launches: &[Ended<'_>],
    scripts: &[Script],
    traces: &[&Trace],
    keep_spans: bool,
) -> Result<Call, String> {
    let launches = launches.iter().zip(scripts).zip(traces);
    let launches: Vec<Launched<'_>> = launches
        .map(|((ended, script), trace)| launched(ended, trace, script))
        .collect();
    Call::replay(machine, &launches, keep_spans).map_err(|stuck| stuck.to_string())
}

/// A call whose time can be told again and again, for this machine or that.
pub struct Traced<'a> {
    launches: Vec<Ended<'a>>,
    scripts: Vec<Script>,
}

impl<'a> Traced<'a> {
    pub(super) fn new(
        device: &Device,
        image: &Image,
        launches: Vec<Ended<'a>>,
    ) -> Result<Self, String> {
        let scripts = scripts(device, image, &launches)?;
        Ok(Self { launches, scripts })
    }

    pub fn replay(&self, machine: &Machine, keep_spans: bool) -> Result<Call, String> {
        let traces: Vec<&Trace> = self.launches.iter().map(|ended| &ended.trace).collect();
        replay(machine, &self.launches, &self.scripts, &traces, keep_spans)
    }

    /// What its launches are, in their order.
    pub fn laid(&self) -> Vec<Laid> {
        let laid = |ended: &Ended<'_>| Laid {
            kernel: ended.geometry.kernel.clone(),
            ctas: ctas(ended.geometry),
            idle: None,
            roles: roles(&ended.trace),
        };
        self.launches.iter().map(laid).collect()
    }
}

fn launched<'l>(ended: &'l Ended<'_>, trace: &'l Trace, script: &'l Script) -> Launched<'l> {
    let geometry = ended.geometry;
    Launched {
        code: &script.code,
        trace,
        ctas: ctas(geometry),
        cluster: geometry.cluster.iter().product(),
        resident: ended.report.ctas_per_sm,
        dependent: geometry.pdl,
        beside: script.beside,
        // Between two calls of a sweep all other contenders were called.
        fetched: false,
    }
}

/// Whether a launch's CTAs find room on SMs where those of the one before are.
fn beside(device: &Device, image: &Image, before: &Ended<'_>, ended: &Ended<'_>) -> bool {
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
