//! One cell by itself: judged as in a sweep, traced only for its time, or called on a GPU with
//! stamps in its kernels.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::build::{refusal_of, unit};
use super::could_not_run;
use super::runner::{Runner, tools};
use super::validate::judge_job;
use crate::backend::cuda::{CudaBackend, StampedCalls};
use crate::backend::emu::{EmuBackend, TracedCall};
use crate::backend::{CallInput, CallSeed, Emulation, Job, RunFailure};
use crate::compile::{Compiler, Image, KernelReport, TranslationUnit, says_error};
use crate::operator::Operands;
use crate::plan::{OperatorCall, Plan, PlanOutcome, PlannedCell, Stamping};
use crate::worker::{CellCode, CellJob, KeepRequest, KeptCall};
use dgx_core::diagnostic::{CommandError, InputError, render};
use dgx_core::domain::{Chip, ContenderId, Distribution, Shape, Status, Verdict};
use dgx_core::record::schema::Settings;

/// Time limit of a call in the emulator.
const PATIENCE: Duration = Duration::from_secs(60);
/// Calls on a GPU, with stamps and without.
const STAMPED_CALLS: usize = 20;

/// The remedy for a variant that cannot be stamped.
const STAMPABLE: &str = "every kernel begins with DGX_STAMP_KERNEL(args, NAME), see \
                         docs/profile.md; or add --backend emu";

/// The build and the call of a cell that has them.
pub(crate) fn planned(work: &PlanOutcome) -> Result<(usize, &OperatorCall), RunFailure> {
    match work {
        PlanOutcome::Unsupported { reason } => Err(RunFailure::unsupported(reason)),
        PlanOutcome::Broken(why) => Err(RunFailure {
            detail: Some(render(why, false)),
            ..RunFailure::new(Status::CompileError, why.to_string())
        }),
        PlanOutcome::Run { build, call } => Ok((*build, call)),
    }
}

/// The compiled code, if a device would accept the call.
pub(crate) fn launchable<'a, T>(
    compiled: &'a Result<T, String>,
    kernels: impl Fn(&T) -> &[KernelReport],
    plan: &Plan,
    call: &OperatorCall,
) -> Result<&'a T, RunFailure> {
    let image = compiled.as_ref().map_err(|message| RunFailure {
        detail: Some(message.clone()),
        ..RunFailure::new(Status::CompileError, first_error(message))
    })?;
    match refusal_of(plan, kernels(image), call) {
        Some((_, why)) => Err(RunFailure::refused(why.reason)),
        None => Ok(image),
    }
}

/// The line of a compiler message with the error.
fn first_error(message: &str) -> &str {
    let lines = || message.lines().filter(|l| !l.trim().is_empty());
    lines()
        .find(|l| says_error(l))
        .or_else(|| lines().next())
        .unwrap_or("the compiler gave no message")
}

/// The request for a cell, with the round's time limit.
pub(super) fn cell_job(
    plan: &Plan,
    settings: &Settings,
    cell: &PlannedCell,
    call: &OperatorCall,
    image: PathBuf,
) -> CellJob {
    let contender = &plan.contenders[cell.contender];
    CellJob {
        code: CellCode {
            contender: contender.id.clone(),
            image,
            call: call.clone(),
        },
        operator: Arc::clone(&plan.round.operator),
        shape: plan.shapes[cell.shape].clone(),
        settings: settings.clone(),
        time_limit: Duration::from_secs_f64(plan.round.validation.timeout),
        thorough: false,
        expected: contender.variant.expect,
        keep: None,
    }
}

/// A cell of a plan, compiled as far as it can be.
pub struct CompiledCell<'a> {
    pub plan: &'a Plan,
    cell: &'a PlannedCell,
    pub shape: &'a Shape,
    /// The compiler's input and result, if there is something to compile.
    compiled: Option<(TranslationUnit, Result<Image, String>)>,
}

impl<'a> CompiledCell<'a> {
    /// The cell at these indices of a plan.
    pub fn new(
        plan: &'a Plan,
        contender: usize,
        shape: usize,
        compiler: &Compiler,
    ) -> Result<Self, CommandError> {
        let mut cells = plan.cells.iter();
        let cell = cells.find(|c| (c.contender, c.shape) == (contender, shape));
        let cell = cell.ok_or_else(|| could_not_run("nothing is planned for the cell"))?;
        let compiled = match cell.run() {
            Some((build, _)) => {
                let unit = unit(&plan.builds[build]);
                let compiled = compiler.compile(&unit);
                Some((unit, compiled?.outcome))
            }
            None => None,
        };
        Ok(Self {
            plan,
            cell,
            shape: &plan.shapes[shape],
            compiled,
        })
    }

    /// The same, if it can be timed.
    pub fn runnable(
        plan: &'a Plan,
        contender: usize,
        shape: usize,
        compiler: &Compiler,
    ) -> Result<Self, CommandError> {
        let cell = Self::new(plan, contender, shape, compiler)?;
        if let PlanOutcome::Broken(why) = &cell.cell.outcome {
            return Err(why.clone().into());
        }
        let ready = cell.ready().map(|_| ());
        ready.map_err(|no| match (no.status, no.detail) {
            (Status::CompileError, Some(message)) => InputError::new(
                format!("{} does not compile:\n{message}", cell.id()),
                "fix it first; `dgx check` compiles a whole round",
            )
            .into(),
            _ => cell.no_time(&no.message),
        })?;
        Ok(cell)
    }

    fn id(&self) -> &ContenderId {
        &self.plan.contenders[self.cell.contender].id
    }

    /// The image, if it compiles.
    pub fn image(&self) -> Option<&Image> {
        self.compiled.as_ref()?.1.as_ref().ok()
    }

    /// Its image and its call, if it can be launched.
    fn ready(&self) -> Result<(&Image, &OperatorCall), RunFailure> {
        let (_, call) = planned(&self.cell.outcome)?;
        let nothing = || RunFailure::new(Status::CompileError, "nothing was compiled");
        let (_, compiled) = self.compiled.as_ref().ok_or_else(nothing)?;
        let image = launchable(compiled, |image| &image.kernels, self.plan, call)?;
        Ok((image, call))
    }

    /// The job of a cell that is known to be [runnable](Self::runnable).
    fn job(&self) -> Result<Job<'_>, CommandError> {
        match (planned(&self.cell.outcome), self.image()) {
            (Ok((_, call)), Some(image)) => Ok(Job {
                contender: self.id(),
                image,
                call,
            }),
            _ => Err(self.no_time("there is no image of it")),
        }
    }

    /// The compiler's whole log, including warnings; `None` if there is nothing to compile.
    pub fn log(&self, compiler: &Compiler) -> Result<Option<String>, CommandError> {
        match &self.compiled {
            Some((unit, _)) => {
                let log = compiler.log(unit);
                Ok(log.map(Some)?)
            }
            None => Ok(planned(&self.cell.outcome).err().and_then(|no| no.detail)),
        }
    }

    /// Judges it, and returns the buffers of its last call in `folder`; no verdict if the user
    /// asked to stop.
    pub fn judge(
        &self,
        runner: &mut Runner,
        compiler: &Compiler,
        settings: &Settings,
        time_limit: Duration,
        keep: KeepRequest,
    ) -> Result<Option<(Verdict, Option<KeptCall>)>, CommandError> {
        let (image, call) = match self.ready() {
            Ok(ready) => ready,
            Err(no) => return Ok(Some((no.verdict(self.id(), &self.shape.name), None))),
        };
        let folder = keep.folder.clone();
        let job = CellJob {
            time_limit,
            thorough: true,
            keep: Some(keep),
            ..cell_job(
                self.plan,
                settings,
                self.cell,
                call,
                compiler.cache().folder(&image.key),
            )
        };
        let judged = judge_job(runner, &job)?;
        Ok(judged.map(|(verdict, _)| (verdict, KeptCall::read(&folder))))
    }

    /// Runs the CTAs that its time is modelled from, and passes on their traces.
    pub fn traced<T>(
        &self,
        then: impl FnOnce(&TracedCall<'_>) -> Result<T, String>,
    ) -> Result<T, CommandError> {
        let operands = Operands::blank(&self.plan.round.operator, self.shape);
        let mut emulator = EmuBackend::new(self.plan.device.clone());
        let traced = emulator.trace(self.job()?, &self.data(&operands, true));
        let traced = traced.map_err(|failure| self.no_time(&in_words(&failure)))?;
        then(&traced).map_err(|why| self.no_time(&why))
    }

    /// Calls it on the GPU here, with stamps in its kernels and without.
    pub fn stamped(
        &self,
        chip: Chip,
        compiler: &Compiler,
    ) -> Result<(Stamping, StampedCalls), CommandError> {
        let (id, name, plain) = (self.id(), &self.shape.name, self.job()?);
        let (stamping, unit) = self.stamping()?;
        let compiled = compiler.compile(&unit);
        let image = compiled?.outcome.map_err(|message| {
            InputError::new(
                format!("{id} does not compile with stamps:\n{message}"),
                STAMPABLE,
            )
        })?;
        let mut gpu = CudaBackend::open(&tools(compiler, chip, &self.plan.round.operator)?, 0)
            .map_err(|e| could_not_run(&e.to_string()))?;
        let operands = Operands::draw(
            &self.plan.round.operator,
            self.shape,
            Distribution::Benchmark,
            0,
        );
        let stamped = Job {
            image: &image,
            call: &stamping.call,
            ..plain
        };
        let data = self.data(&operands, false);
        let calls = gpu.stamped(&plain, &stamped, &data, STAMPED_CALLS);
        let calls = calls.map_err(|failure| {
            CommandError::could_not_run(
                format!(
                    "{id} could not be stamped on {name}: {}",
                    in_words(&failure)
                ),
                "`--backend emu` models it; `dgx sweep` says whether it is right",
            )
        })?;
        Ok((stamping, calls))
    }

    /// Its call with room for stamps, and the unit to compile for it.
    fn stamping(&self) -> Result<(Stamping, TranslationUnit), CommandError> {
        let id = self.id();
        let (build, call) = planned(&self.cell.outcome).map_err(|no| self.no_time(&no.message))?;
        let stamping = Stamping::of(call)
            .map_err(|why| InputError::new(format!("{id} cannot be stamped: {why}"), STAMPABLE))?;
        let mut unit = unit(&self.plan.builds[build]);
        unit.defines.extend(stamping.defines());
        Ok((stamping, unit))
    }

    fn data<'d>(&'d self, operands: &'d Operands, time_only: bool) -> CallInput<'d> {
        CallInput {
            operands,
            key: &self.shape.name,
            call_seed: CallSeed::of_call(0, 0),
            time_limit: PATIENCE,
            timed: true,
            emulation: Emulation {
                time_only,
                ..Emulation::default()
            },
        }
    }

    fn no_time(&self, why: &str) -> CommandError {
        let (id, shape) = (self.id(), &self.shape.name);
        CommandError::could_not_run(
            format!("no time can be modelled of {id} on {shape}: {why}"),
            "`dgx sweep --backend emu` validates it; other shapes and contenders may work",
        )
    }
}

fn in_words(failure: &RunFailure) -> String {
    let RunFailure {
        status, message, ..
    } = failure;
    format!("{status}: {message}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Backend;
    use crate::catalog::Catalog;
    use crate::compile::Nvrtc;
    use crate::plan::PlanTarget;
    use crate::profile::stamps;
    use dgx_core::config::{Baseline, Round, Selection, target};
    use dgx_core::diagnostic::SourceFile;
    use dgx_core::domain::Device;
    use dgx_core::domain::{HazardWatch, Micros};
    use ptx_time::{CtaTimes, LaunchTimes};

    const ROUND: &str = r#"
question   = "Do stamps change what is computed?"
contenders = ["interleaved"]
baseline   = "interleaved"
shapes     = [{ name = "s", m = [40, 8], n = 128, k = 512 }]
"#;

    fn plan(contender: &str, device: &Device) -> Plan {
        plan_of(ROUND, contender, device)
    }

    fn plan_of(round: &str, contender: &str, device: &Device) -> Plan {
        let here = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let mut round = Round::from_source(SourceFile {
            path: "round.toml".into(),
            text: round.into(),
        })
        .expect("a round");
        let selection = || Selection::parse(contender, 0..0).expect("a contender");
        round.contenders = vec![selection()];
        round.baseline = Baseline::Contender(selection());
        let catalog = Catalog::open(&[here.join("variants")]).expect("variants");
        Plan::new(round, &catalog, &PlanTarget::of(device)).expect("a plan")
    }

    fn image(unit: &TranslationUnit) -> Image {
        let compiler = Nvrtc::find().expect("scripts/nvrtc gets a compiler");
        let headers = unit.headers.texts();
        let headers: Vec<(String, String)> = headers
            .map(|(name, text)| (name.to_owned(), text))
            .collect();
        let compiled = compiler
            .compile(&unit.name, &unit.source, &unit.flags(), &headers)
            .expect("a compiler");
        let mut remarks = vec!["Potential Performance Loss"];
        // Hopper's swap-ab divides by zero on such a small shape, in code that is never reached.
        if unit.flags().iter().any(|flag| flag.contains("sm_100")) {
            remarks.push("warning");
        }
        for remark in remarks {
            assert!(!compiled.log.contains(remark), "{}", compiled.log);
        }
        Image {
            key: unit.flags().join(" "),
            cubin: compiled.cubin.unwrap_or_else(|| panic!("{}", compiled.log)),
            ptx: compiled.ptx,
            kernels: Vec::new(),
            remarks: Vec::new(),
        }
    }

    fn cell(plan: &Plan) -> CompiledCell<'_> {
        let (build, _) = planned(&plan.cells[0].outcome).expect("it runs");
        let unit = unit(&plan.builds[build]);
        CompiledCell {
            plan,
            cell: &plan.cells[0],
            shape: &plan.shapes[0],
            compiled: Some((unit.clone(), Ok(image(&unit)))),
        }
    }

    /// Beside a card only the CTAs of a sample run: missing work of the others must not be
    /// reported.
    #[test]
    fn a_sample_that_runs_alone_accuses_nobody() {
        let wide = ROUND.replace("n = 128, k = 512", "n = 2048, k = 256");
        for contender in ["two-pass", "interleaved", "swap-ab", "ping-pong", "decode"] {
            let plan = plan_of(&wide, contender, target::default_device());
            let cell = cell(&plan);
            let operands =
                Operands::draw(&cell.plan.round.operator, cell.shape, Distribution::Full, 1);
            let emulation = Emulation {
                watch: HazardWatch::Some,
                alone: true,
                ..Emulation::default()
            };
            let data = CallInput {
                emulation,
                ..cell.data(&operands, false)
            };
            let mut emulator = EmuBackend::new(plan.device.clone());
            let seen = emulator
                .load(cell.job().expect("a job"))
                .and_then(|mut job| job.call(&data))
                .unwrap_or_else(|failure| panic!("{contender}: {failure}"));
            assert!(seen.hazards.is_empty(), "{contender}: {:#?}", seen.hazards);
            assert!(seen.outputs.is_empty(), "what is there is not the result");
        }
    }

    #[test]
    fn stamps_change_nothing_that_is_computed() {
        // Whole CTAs, roles of warps and two launches, products of either kind.
        let device = target::default_device();
        stamped(
            device,
            &["interleaved", "warp-specialized", "swap-ab", "decode"],
        );
    }

    #[test]
    fn stamps_change_nothing_that_tensor_memory_holds() {
        let device = target::like("NVIDIA B200", None).expect("a target");
        let alone = ["interleaved", "warp-specialized", "ping-pong", "swap-ab"];
        stamped(device, &alone);
        stamped(device, &["two-pass", "two-cta"]);
    }

    fn stamped(device: &Device, contenders: &[&str]) {
        for contender in contenders {
            let plan = plan(contender, device);
            let cell = cell(&plan);
            assert!(
                !cell.image().expect("an image").ptx.contains("dgx_stamps"),
                "{contender}"
            );
            let (stamping, unit) = cell.stamping().expect("stamps");
            let image = image(&unit);
            let operands = Operands::draw(
                &cell.plan.round.operator,
                cell.shape,
                Distribution::Benchmark,
                1,
            );
            let data = cell.data(&operands, false);
            let mut emulator = EmuBackend::new(plan.device.clone());
            let plain = emulator
                .load(cell.job().expect("a job"))
                .and_then(|mut job| job.call(&data));
            let plain = plain.expect("it runs");
            let job = Job {
                image: &image,
                call: &stamping.call,
                ..cell.job().expect("a job")
            };
            let (seen, bytes) = emulator.stamped(job, &data).expect("it runs");
            assert_eq!(seen.outputs, plain.outputs, "{contender}");

            let decoded = stamps::decode(&bytes, &stamping, Micros(9.0), 132, &[]);
            let (call, laid, lost) = decoded.expect("stamps");
            assert_eq!((lost.silent, lost.full), (0, 0), "{contender}");
            let gates = |launch: &&LaunchTimes| !launch.epilogues.is_empty();
            let gating = call.launches.iter().find(gates).expect("an epilogue");
            let multiplies =
                |cta: &CtaTimes| cta.first_mma.is_some() && cta.last_mma < Some(cta.end);
            assert!(gating.ctas.iter().all(multiplies), "{contender}");
            assert_eq!(laid.len(), stamping.call.launches.len());
        }
    }
}
