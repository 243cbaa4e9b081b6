use std::path::PathBuf;
use std::sync::Mutex;

use super::append;
use super::board::SharedProgress;
use super::pool::Sweep;
use crate::catalog::LaunchKey;
use crate::compile::{
    Compiled, Compiler, Image, KernelReport, Refusal, TranslationUnit, occupancy, refusal,
    residency,
};
use crate::operator::abi;
use crate::plan::{BuildSpec, LaunchGeometry, OperatorCall, Plan, PlannedCell};
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{Bytes, Limits};
use dgx_core::interrupt;
use dgx_core::record::schema::{Build, KernelResources, Line};
use dgx_core::record::{Run, Writer};

/// Each build's image, or the compiler's message, once it exists: compiling runs beside the stages
/// that need it.
pub(super) struct Images(SharedProgress<State>);

type Outcome = Result<RunnableImage, String>;

struct State {
    built: Vec<Option<Outcome>>,
    /// No stage needs more images.
    given_up: bool,
}

impl Images {
    pub(super) fn of(plan: &Plan) -> Self {
        Self(SharedProgress::new(State {
            built: vec![None; plan.builds.len()],
            given_up: false,
        }))
    }

    /// Waits for the image of a build; `None` if it will not come.
    pub(super) fn wait(&self, build: usize) -> Option<Outcome> {
        self.0.wait(|state, ended| {
            let outcome = &state.built[build];
            (ended || outcome.is_some()).then(|| outcome.clone())
        })
    }

    /// Stops the compiler.
    pub(super) fn give_up(&self) {
        self.0.tell(|state| state.given_up = true);
    }
}

/// An image that can be run.
#[derive(Clone, Debug)]
pub(super) struct RunnableImage {
    /// Its folder in the cache.
    pub folder: PathBuf,
    pub kernels: Vec<KernelReport>,
}

/// Why a device would refuse the call, as far as known before it, and the index of that launch in
/// the call.
pub(super) fn refusal_of(
    plan: &Plan,
    kernels: &[KernelReport],
    call: &OperatorCall,
) -> Option<(usize, Refusal)> {
    let limits = &plan.device.limits;
    let args = abi::args_bytes(&plan.round.operator, call.maps.len());
    let mut launches = call.launches.iter().enumerate();
    launches.find_map(|(place, launch)| Some((place, refusal(limits, kernels, launch, args)?)))
}

/// Compiles what the plan needs, records each build once, and publishes it.
pub(super) fn all(sweep: &Sweep<'_>, compiler: &Compiler, begun: &Run) -> Result<(), CommandError> {
    let Sweep {
        plan,
        images,
        writer,
        progress,
        ..
    } = *sweep;
    let _ends = images.0.ends();
    let units: Vec<TranslationUnit> = plan.builds.iter().map(unit).collect();
    let bar = progress.stage("compile", units.len());
    let broken = Mutex::new(None);
    let done = |index: usize, compiled: &Compiled| {
        let build = record(&plan.builds[index], index, compiled, plan);
        let recorded = match unrecorded(begun, build) {
            Some(build) => {
                keep_code(writer, compiled).and_then(|()| append(writer, &Line::Build(build)))
            }
            None => Ok(()),
        };
        if let Err(error) = recorded {
            let mut broken = broken.lock().unwrap_or_else(|e| e.into_inner());
            broken.get_or_insert(error);
        }
        let built = match &compiled.outcome {
            Ok(image) => Ok(RunnableImage {
                folder: compiler.cache().folder(&image.key),
                kernels: image.kernels.clone(),
            }),
            Err(message) => Err(message.clone()),
        };
        images.0.tell(|state| state.built[index] = Some(built));
        bar.step(1.0);
    };
    let compiled = compiler.compile_all(&units, done, || {
        interrupt::requested() || images.0.read(|state| state.given_up)
    })?;
    if let Some(error) = broken.into_inner().unwrap_or_else(|e| e.into_inner()) {
        return Err(error);
    }
    let cached = compiled.iter().flatten().filter(|c| c.cached).count();
    let ok = compiled.iter().flatten().filter(|c| c.outcome.is_ok());
    let failed = compiled.iter().flatten().filter(|c| c.outcome.is_err());
    bar.done(&compile_summary(
        [units.len(), ok.count(), failed.count()],
        cached,
    ));
    Ok(())
}

/// The part of a build that is not recorded yet: in a merged run, its shapes may be spread over
/// several.
fn unrecorded(run: &Run, build: Build) -> Option<Build> {
    let of = |known: &&Build| known.contender == build.contender;
    let known = |shape: &String| {
        (run.builds.iter())
            .filter(of)
            .any(|b| b.shapes.contains(shape))
    };
    let shapes = build.shapes.iter().filter(|s| !known(s));
    let shapes: Vec<String> = shapes.cloned().collect();
    (!shapes.is_empty()).then_some(Build { shapes, ..build })
}

/// The executed machine code belongs to the record: once the compiler is replaced, it cannot be
/// reproduced.
fn keep_code(writer: &Mutex<Writer>, compiled: &Compiled) -> Result<(), CommandError> {
    let Ok(image) = &compiled.outcome else {
        return Ok(());
    };
    let writer = writer.lock().unwrap_or_else(|e| e.into_inner());
    let kept = writer.keep_code(&image.key, &image.cubin);
    kept.map_err(|error| CommandError::from(&error))
}

/// A cell that a device would refuse, by contender and shape.
#[derive(Clone, Debug)]
pub struct RefusedCell {
    pub contender: usize,
    pub shape: usize,
    pub reason: String,
    /// The launch, by its index in the call, and the key that is the cause.
    pub launch: Option<(usize, LaunchKey)>,
}

impl RefusedCell {
    /// The refusal of a plan's cell.
    pub fn of(cell: &PlannedCell, (place, refusal): (usize, Refusal)) -> Self {
        Self {
            contender: cell.contender,
            shape: cell.shape,
            reason: refusal.reason,
            launch: Some((place, refusal.key)),
        }
    }
}

/// The result of compiling a plan.
pub struct Inspection {
    pub builds: Vec<Build>,
    pub refused: Vec<RefusedCell>,
}

/// Compiles what the plan needs and returns the results, without recording anything.
pub fn inspect(compiler: &Compiler, plan: &Plan) -> Result<Inspection, CommandError> {
    let units: Vec<TranslationUnit> = plan.builds.iter().map(unit).collect();
    compiler.can_compile(&units)?;
    let compiled = compiler.compile_all(&units, |_, _| (), || false)?;
    let image = |build: usize| compiled[build].as_ref()?.outcome.as_ref().ok();
    let refused = plan.cells.iter().filter_map(|cell| {
        let (build, call) = cell.run()?;
        let refused = refusal_of(plan, &image(build)?.kernels, call)?;
        Some(RefusedCell::of(cell, refused))
    });
    let refused = refused.collect();
    let builds = plan.builds.iter().zip(&compiled).enumerate();
    let builds = builds
        .filter_map(|(index, (spec, compiled))| Some(record(spec, index, compiled.as_ref()?, plan)))
        .collect();
    Ok(Inspection { builds, refused })
}

fn compile_summary([all, ok, failed]: [usize; 3], cached: usize) -> String {
    let mut text = format!("{ok}/{all}, {cached} from cache");
    if failed > 0 {
        text.push_str(&format!(", {failed} failed"));
    }
    text
}

/// The compiler's input for a build.
pub fn unit(spec: &BuildSpec) -> TranslationUnit {
    spec.unit.clone()
}

fn record(spec: &BuildSpec, index: usize, compiled: &Compiled, plan: &Plan) -> Build {
    let calls = plan.cells.iter().filter_map(PlannedCell::run);
    let own = calls.filter(|(build, _)| *build == index);
    let launches: Vec<&LaunchGeometry> = own.flat_map(|(_, call)| &call.launches).collect();
    let (kernels, remarks) = match &compiled.outcome {
        Ok(image) => (
            resources(&plan.device.limits, image, spec, &launches),
            image.remarks.clone(),
        ),
        Err(_) => (Vec::new(), Vec::new()),
    };
    Build {
        contender: spec.contender.clone(),
        shapes: spec.shapes.clone(),
        constants: spec.constants.clone(),
        ok: compiled.outcome.is_ok(),
        message: compiled.outcome.as_ref().err().cloned(),
        kernels,
        remarks,
        cached: compiled.cached,
        millis: compiled.millis,
        image: compiled.outcome.as_ref().ok().map(|i| i.key.clone()),
    }
}

/// The resources of each launched kernel on an SM; the largest launch counts.
fn resources(
    limits: &Limits,
    image: &Image,
    spec: &BuildSpec,
    launches: &[&LaunchGeometry],
) -> Vec<KernelResources> {
    spec.unit
        .kernels
        .iter()
        .filter_map(|name| image.kernel(name))
        .map(|kernel| {
            let launched = || launches.iter().filter(|l| l.kernel == kernel.name);
            let threads = launched().map(|l| l.threads_per_block()).max().unwrap_or(0);
            let dynamic = launched()
                .map(|l| kernel.dynamic_smem(l))
                .max()
                .unwrap_or(0);
            let smem = Bytes(u64::from(kernel.static_smem) + u64::from(dynamic));
            let residency = residency(limits, kernel.registers, threads, smem);
            let residency = residency.with_columns(kernel.tensor_columns);
            KernelResources {
                name: kernel.name.clone(),
                registers: kernel.registers,
                spill_bytes: kernel.spill_bytes,
                static_smem: Bytes(u64::from(kernel.static_smem)),
                dynamic_smem: Bytes(u64::from(dynamic)),
                threads,
                occupancy: occupancy(limits, threads, residency),
                tensor_columns: kernel.tensor_columns,
            }
        })
        .collect()
}
