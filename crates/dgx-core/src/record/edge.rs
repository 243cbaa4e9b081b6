//! Limits of a run file. A number that no GPU, clock or author can have meant would be printed like
//! a good one, and larger sizes would let a small file demand any amount of memory; so both are
//! refused on input.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use super::contradiction;
use super::schema::{Build, DeviceRecord, Header, RunEnd, Shard};
use crate::domain::bounds::{CELLS, CLAIM, CONTENDERS, EXTENT, GROUPS, MICROS, name};
use crate::domain::{ALGORITHM_DIGITS, KernelTime, Micros, Shape, Timing, Tuning};
use crate::operator::Operator;

/// Longest line, bytes.
pub(super) const LINE: usize = 16 << 20;
/// Processes that may have timed one shape.
pub(super) const PROCESSES: usize = 1024;

const CLOCK_MHZ: RangeInclusive<f64> = 1.0..=20_000.0;
const SECONDS: RangeInclusive<f64> = 0.0..=1e9;
/// As shares of the measured time.
const MODEL_ERROR: RangeInclusive<f64> = 0.0..=100.0;
/// No memory is larger than this, bytes.
const MEMORY: f64 = 1e15;

type Refusal = Result<(), String>;

fn refuse(when: bool, why: impl FnOnce() -> String) -> Refusal {
    match when {
        true => Err(why()),
        false => Ok(()),
    }
}

fn within(range: &RangeInclusive<f64>, value: f64, what: &str, unit: &str) -> Refusal {
    refuse(!range.contains(&value), || {
        let (least, most) = (range.start(), range.end());
        format!("{what} of {value:?}{unit} is impossible: the range is {least} to {most:e}{unit}")
    })
}

/// A plausible time of a kernel: a zero would win every ranking, and its logarithm would spoil
/// every mean.
pub(super) fn time(Micros(micros): Micros) -> Refusal {
    within(&MICROS, micros, "a time", " µs")
}

/// The start and duration of a call's kernels; both may be 0.
pub(super) fn kernels(kernels: &[KernelTime]) -> Refusal {
    let mut times = kernels.iter().flat_map(|k| [k.start, k.micros]);
    times
        .try_for_each(|Micros(time)| within(&(0.0..=*MICROS.end()), time, "a kernel's time", " µs"))
}

pub(super) fn clock(mhz: Option<f64>) -> Refusal {
    mhz.map_or(Ok(()), |mhz| within(&CLOCK_MHZ, mhz, "an SM clock", " MHz"))
}

pub(super) fn header(header: &Header) -> Refusal {
    let mut seen = HashSet::new();
    for contender in &header.contenders {
        let id = contender.id.as_str();
        name("contender", id)?;
        refuse(!seen.insert(id), || {
            format!("contender `{id}` is listed twice")
        })?;
        if let Some(claim) = &contender.claim {
            within(&CLAIM, claim.geomean, &format!("the claim of `{id}`,"), "×")?;
        }
    }
    if let Some(yardstick) = &header.yardstick {
        let id = yardstick.as_str();
        name("yardstick", id)?;
        refuse(!seen.insert(id), || {
            format!("the yardstick `{id}` is a contender as well")
        })?;
    }
    let (contenders, shapes) = (header.contenders.len(), header.shapes.len());
    refuse(contenders == 0, || {
        "the header lists no contenders".to_owned()
    })?;
    refuse(shapes == 0, || "the header lists no shapes".to_owned())?;
    refuse(
        contenders > CONTENDERS || contenders.saturating_mul(shapes) > CELLS,
        || {
            format!(
                "{contenders} contenders × {shapes} shapes are more than a table can hold: \
                 at most {CONTENDERS} contenders and {CELLS} cells"
            )
        },
    )?;
    let is_contender = header.contenders.iter().any(|c| c.id == header.baseline);
    refuse(!is_contender, || {
        let baseline = &header.baseline;
        format!("the baseline `{baseline}` is not a contender of the run")
    })?;
    let operator = header.operator()?;
    distinct(&header.shapes, &operator)?;
    if let Some(part) = &header.shard {
        shard(part, header, &operator)?;
    }
    refuse(header.parts.len() > shapes, || {
        format!("{} parts of {shapes} shapes", header.parts.len())
    })?;
    device(&header.device)?;
    contradiction::header(header)
}

fn distinct(shapes: &[Shape], operator: &Operator) -> Refusal {
    let mut seen = HashSet::new();
    shapes.iter().try_for_each(|one| {
        shape(one, operator)?;
        refuse(!seen.insert(one.name.as_str()), || {
            format!("shape `{}` is listed twice", one.name)
        })
    })
}

fn shard(shard: &Shard, header: &Header, operator: &Operator) -> Refusal {
    let Shard { number, of, shapes } = shard;
    refuse(!(1..=*of).contains(number), || {
        format!("there is no shard {number} of {of}")
    })?;
    let cells = header.contenders.len().saturating_mul(shapes.len());
    refuse(cells > CELLS, || {
        format!("a round of {cells} cells: it may have {CELLS} at most")
    })?;
    distinct(shapes, operator)?;
    let mut strangers = header.shapes.iter().filter(|s| !shapes.contains(s));
    strangers.next().map_or(Ok(()), |stranger| {
        Err(format!(
            "shape `{}` of the shard is not one of its round",
            stranger.name
        ))
    })
}

fn shape(shape: &Shape, operator: &Operator) -> Refusal {
    name("shape", &shape.name)?;
    let (called, groups) = (&shape.name, shape.groups.len());
    refuse(!(1..=GROUPS).contains(&groups), || {
        format!("shape `{called}` has {groups} groups: a shape has 1 to {GROUPS}")
    })?;
    let mut all = 0.0;
    for group in &shape.groups {
        let names = group.iter().map(|(name, _)| name);
        refuse(!names.eq(operator.sizes.iter()), || {
            let sizes = operator.sizes.join(", ");
            format!("shape `{called}` has a group with other sizes than {sizes}")
        })?;
        let sound = group.sizes().all(|size| (1..=EXTENT).contains(&size));
        refuse(!sound, || {
            format!("shape `{called}` has a group of {group}: sizes are 1 to {EXTENT}")
        })?;
        let sizes: Vec<u64> = group.sizes().map(u64::from).collect();
        let bytes = operator.tensors().map(|tensor| tensor.bytes(&sizes));
        all += bytes
            .map(|b| b.map_or(f64::INFINITY, |b| b as f64))
            .sum::<f64>();
    }
    refuse(all > MEMORY, || {
        format!("shape `{called}` fits into no memory")
    })
}

fn device(device: &DeviceRecord) -> Refusal {
    let (backend, timing) = (device.backend, device.timing);
    refuse(timing != backend.timing(), || {
        let (says, are) = (timing.as_str(), backend.timing().as_str());
        format!("the header calls the times of backend `{backend}` {says}: they are {are}")
    })?;
    // 0 means "not recorded", and then there is no roofline.
    let figures = [
        ("clock_mhz", device.clock_mhz, *CLOCK_MHZ.end()),
        ("bandwidth", device.bandwidth, 1e16),
        ("tensor_flops_per_clock", device.tensor_flops_per_clock, 1e9),
        ("sms", f64::from(device.sms), 1e6),
    ];
    figures
        .iter()
        .try_for_each(|(key, value, most)| within(&(0.0..=*most), *value, key, ""))?;
    let Some(known) = &device.calibration else {
        return Ok(());
    };
    refuse(timing != Timing::Modelled, || {
        format!("{} times with the error of a model", timing.as_str())
    })?;
    name("device", &known.device)?;
    name("run", &known.run)?;
    [known.median, known.p90, known.worst]
        .into_iter()
        .try_for_each(|share| within(&MODEL_ERROR, share, "an error of a model", ""))
}

pub(super) fn build(build: &Build) -> Refusal {
    refuse(build.shapes.is_empty(), || {
        format!("a build of `{}` that serves no shape", build.contender)
    })?;
    let shares = build.kernels.iter().map(|k| k.occupancy);
    shares
        .into_iter()
        .try_for_each(|share| within(&(0.0..=1.0), share, "an occupancy", ""))
}

/// The values that would be passed to the library when the run is resumed.
pub(super) fn tuning(tuning: &Tuning, groups: usize) -> Refusal {
    let (shape, gemms) = (&tuning.shape, tuning.gemms.len());
    refuse(gemms != groups, || {
        format!("a tuning of {gemms} GEMMs for `{shape}`, which has {groups} groups")
    })?;
    for gemm in &tuning.gemms {
        time(gemm.micros)?;
        let hexadecimal = gemm.code.bytes().all(|b| b.is_ascii_hexdigit());
        refuse(!hexadecimal || gemm.code.len() != ALGORITHM_DIGITS, || {
            format!("an algorithm on `{shape}` that is not {ALGORITHM_DIGITS} hexadecimal digits")
        })?;
    }
    Ok(())
}

pub(super) fn end(end: &RunEnd) -> Refusal {
    let seconds = end.seconds.values();
    seconds
        .into_iter()
        .try_for_each(|s| within(&SECONDS, *s, "a stage", " s"))
}
