//! Explains a contender's speed without a profiler: the resources its kernels take on an SM, the
//! waves of its grid, the share of padding in its work, the K steps that feed its pipeline, and the
//! bound of the shape itself. Pure arithmetic on a plan and its builds.

use std::collections::BTreeMap;

use crate::compile::{Residency, residency};
use crate::plan::{LaunchGeometry, OperatorCall, TileLists};
use dgx_core::domain::roofline::{Ceiling, Resource};
use dgx_core::domain::{Bytes, Limits, Micros, Shape};
use dgx_core::operator::Operator;
use dgx_core::record::schema::{Build, KernelResources};

/// A launch that leaves more of the SMs idle than this gets a remark.
const IDLE: f64 = 0.25;
/// So does padding beyond this share of the rows.
const PADDING: f64 = 0.25;

/// A kernel on an SM.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelFit {
    pub resources: KernelResources,
    pub smem: Bytes,
    pub residency: Residency,
}

impl KernelFit {
    pub fn of(limits: &Limits, kernel: &KernelResources) -> Self {
        let smem = Bytes(kernel.static_smem.0 + kernel.dynamic_smem.0);
        Self {
            residency: residency(limits, kernel.registers, kernel.threads, smem)
                .with_columns(kernel.tensor_columns),
            smem,
            resources: kernel.clone(),
        }
    }
}

/// One launch over the device.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchFit {
    pub kernel: String,
    pub blocks: u64,
    /// The grid in units of all resident blocks; `None` if no block fits.
    pub waves: Option<f64>,
    /// Share of the resident places that have a block, over all waves; if tiles are dealt to the
    /// blocks, as long as these have any.
    pub busy: Option<f64>,
}

impl LaunchFit {
    fn of(
        limits: &Limits,
        launch: &LaunchGeometry,
        deal: Option<&TileLists>,
        build: &Build,
    ) -> Self {
        let blocks: u64 = launch.grid.iter().map(|d| u64::from(*d)).product();
        let kernel = build.kernels.iter().find(|k| k.name == launch.kernel);
        let resident = kernel.map_or(0, |k| KernelFit::of(limits, k).residency.blocks);
        // A block may also be alone on its SM: with fewer blocks than SMs, they are spread so.
        let sms = limits.sms;
        let places = u64::from(sms) * u64::from(resident);
        let waves = (places > 0).then(|| blocks as f64 / places as f64);
        let busy = waves.map(|waves| match waves <= 1.0 {
            true => (blocks as f64 / f64::from(sms)).min(1.0),
            false => waves / waves.ceil(),
        });
        let dealt = deal.filter(|deal| u64::from(deal.workers) == blocks);
        let evenness = dealt.map_or(1.0, TileLists::evenness);
        Self {
            kernel: launch.kernel.clone(),
            blocks,
            waves,
            busy: busy.map(|busy| busy * evenness),
        }
    }
}

/// A contender's call on a shape.
#[derive(Clone, Debug, PartialEq)]
pub struct CallFit {
    pub shape: String,
    pub launches: Vec<LaunchFit>,
    /// Superfluous rows over wanted rows, if `BM` is known.
    pub padding: Option<f64>,
    /// Fewest and most K steps of a tile, if `BK` is known.
    pub k_steps: Option<(u32, u32)>,
    pub stages: Option<i64>,
    /// The minimum time on the device, as in tables and reports, and what limits it; `None` if the
    /// device is unknown.
    pub floor: Option<(Micros, Resource)>,
    /// Device memory beyond the operands.
    pub scratch: Bytes,
}

impl CallFit {
    /// `ceiling` is at the clock of its samples, if it was timed.
    pub fn of(
        (operator, shape): (&Operator, &Shape),
        call: &OperatorCall,
        build: &Build,
        limits: &Limits,
        ceiling: Option<Ceiling>,
    ) -> Self {
        let constant = |name: &str| build.constants.get(name).copied().filter(|v| *v > 0);
        Self {
            shape: shape.name.clone(),
            launches: call
                .launches
                .iter()
                .map(|launch| LaunchFit::of(limits, launch, call.deal.as_ref(), build))
                .collect(),
            padding: constant("BM").map(|rows| padding(operator, shape, rows as usize)),
            k_steps: constant("BK").map(|step| k_steps(operator, shape, step)),
            stages: constant("STAGES"),
            floor: ceiling.map(|ceiling| ceiling.floor(&operator.least_work(shape))),
            scratch: Bytes(call.scratch.iter().map(|s| s.size.total()).sum()),
        }
    }

    /// The launch that leaves most places without a block counts.
    fn least_busy(&self) -> Option<f64> {
        let busy = self.launches.iter().filter_map(|launch| launch.busy);
        busy.min_by(f64::total_cmp)
    }
}

fn padding(operator: &Operator, shape: &Shape, tile_rows: usize) -> f64 {
    let groups = shape.groups.iter();
    let rows = groups.filter_map(|group| Some(operator.output_extents(0, group)?.0));
    let wanted: usize = rows.clone().sum();
    let computed: usize = rows.map(|rows| rows.next_multiple_of(tile_rows)).sum();
    computed as f64 / wanted as f64 - 1.0
}

fn k_steps(operator: &Operator, shape: &Shape, step: i64) -> (u32, u32) {
    let steps = shape
        .groups
        .iter()
        .map(|group| (operator.depth(group) as i64 / step) as u32);
    let most = steps.clone().max().unwrap_or(0);
    (steps.min().unwrap_or(0), most)
}

/// Remarkable facts, in sentences with a next step.
pub fn remarks(kernels: &[KernelFit], calls: &[CallFit]) -> Vec<String> {
    let mut remarks = Vec::new();
    for kernel in kernels {
        let KernelResources {
            name, spill_bytes, ..
        } = &kernel.resources;
        if *spill_bytes > 0 {
            remarks.push(format!(
                "{name} spills {spill_bytes} bytes a thread: fewer live registers, or fewer threads"
            ));
        }
        if kernel.residency.blocks == 0 {
            remarks.push(format!(
                "{name} fits on no SM: too much of {}",
                kernel.residency.limit
            ));
        }
    }
    let count = |of: &dyn Fn(&CallFit) -> bool| calls.iter().filter(|call| of(call)).count();
    let all = calls.len();
    let idle = count(&|call| call.least_busy().is_some_and(|busy| busy < 1.0 - IDLE));
    if idle > 0 {
        remarks.push(format!(
            "on {idle} of {all} shapes more than a quarter of the SMs idle in the last wave: \
             smaller tiles, or K split over CTAs"
        ));
    }
    let padded = count(&|call| call.padding.is_some_and(|share| share > PADDING));
    if padded > 0 {
        remarks.push(format!(
            "on {padded} of {all} shapes more than a quarter of the rows are padding: \
             shorter tiles, or tokens as the narrow side"
        ));
    }
    let shallow = count(&|call| match (call.k_steps, call.stages) {
        (Some((least, _)), Some(stages)) => i64::from(least) < 2 * stages,
        _ => false,
    });
    if shallow > 0 {
        remarks.push(format!(
            "on {shallow} of {all} shapes K has fewer than two steps per stage: \
             filling the pipeline is a large part of the time"
        ));
    }
    let single = calls.iter().filter(|call| call.stages == Some(1)).count();
    if single == all && all > 0 {
        remarks.push(
            "one stage: every load waits for the arithmetic before it, and the other way round"
                .to_owned(),
        );
    }
    remarks
}

/// Builds by the shapes they serve.
pub fn builds_by_shape(builds: &[Build]) -> BTreeMap<&str, &Build> {
    let pairs = builds.iter().flat_map(|build| {
        let shapes = build.shapes.iter();
        shapes.map(move |shape| (shape.as_str(), build))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::config::target::default_device;
    use dgx_core::domain::{ContenderId, Timing};
    use dgx_core::operator;
    use dgx_core::record::synthetic::group;

    fn shape(ms: &[u32], k: u32) -> Shape {
        let group = |&m: &u32| group(m, 4096, k);
        Shape {
            name: "s".to_owned(),
            groups: ms.iter().map(group).collect(),
        }
    }

    fn build(registers: u32, smem: u64) -> Build {
        Build {
            contender: ContenderId::from_text("x"),
            shapes: vec!["s".to_owned()],
            constants: [("BM", 128), ("BK", 128), ("STAGES", 4)]
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
            ok: true,
            message: None,
            kernels: vec![KernelResources {
                name: "k".to_owned(),
                registers,
                spill_bytes: 0,
                static_smem: Bytes(0),
                dynamic_smem: Bytes(smem),
                threads: 256,
                occupancy: 0.125,
                tensor_columns: 0,
            }],
            remarks: Vec::new(),
            cached: false,
            millis: 0.0,
            image: None,
        }
    }

    fn call(blocks: u32) -> OperatorCall {
        OperatorCall {
            group_order: vec![0],
            tile_begin: vec![0],
            tile_count: blocks,
            deal: None,
            scratch: Vec::new(),
            maps: Vec::new(),
            launches: vec![LaunchGeometry {
                kernel: "k".to_owned(),
                grid: [blocks, 1, 1],
                block: [256, 1, 1],
                cluster: [1; 3],
                smem: 0,
                pdl: false,
                ..LaunchGeometry::default()
            }],
        }
    }

    fn fit_of(shape: &Shape, call: &OperatorCall, build: &Build) -> CallFit {
        let ceiling = default_device().ceiling(Timing::Measured);
        CallFit::of(
            (operator::default_operator(), shape),
            call,
            build,
            &default_device().limits,
            ceiling,
        )
    }

    fn fit(blocks: u32, smem: u64) -> CallFit {
        let shape = shape(&[40, 130], 512);
        fit_of(&shape, &call(blocks), &build(128, smem))
    }

    #[test]
    fn waves_and_idle_places() {
        let one_each = 200 * 1024;
        assert_eq!(fit(66, one_each).launches[0].busy, Some(0.5));
        assert_eq!(fit(132, one_each).launches[0].waves, Some(1.0));
        let spilled_over = &fit(133, one_each).launches[0];
        assert!((spilled_over.busy.unwrap() - 133.0 / 264.0).abs() < 1e-9);
        assert_eq!(fit(132, 0).launches[0].waves, Some(0.5), "two fit on an SM");
        let dealt = OperatorCall {
            deal: Some(TileLists {
                workers: 132,
                tiles: vec![132; 132],
                cost: 99,
                makespan: 1,
            }),
            ..call(132)
        };
        let shape = shape(&[40, 130], 512);
        let uneven = fit_of(&shape, &dealt, &build(128, one_each));
        assert_eq!(uneven.launches[0].busy, Some(0.75));
        assert_eq!(fit(132, 0).launches[0].busy, Some(1.0));
        assert_eq!(fit(1, 300 * 1024).launches[0].waves, None, "none fits");
    }

    #[test]
    fn padding_steps_and_remarks() {
        let fit = fit(66, 200 * 1024);
        assert_eq!(fit.padding, Some(384.0 / 170.0 - 1.0));
        assert_eq!(fit.k_steps, Some((4, 4)));
        let kernels = [KernelFit::of(
            &default_device().limits,
            &build(128, 200 * 1024).kernels[0],
        )];
        let remarks = remarks(&kernels, &[fit]);
        assert_eq!(remarks.len(), 3, "{remarks:?}");
        assert!(remarks[0].contains("idle") && remarks[1].contains("padding"));
        assert!(remarks[2].contains("two steps per stage"));
    }
}
