//! One cell by itself, judged as a sweep would, and what its last call left.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::build::{refusal_of, unit};
use super::runner::{Emulated, Stage};
use super::validate::{first_error, judge_job, verdict};
use super::{BackendChoice, Gpus, could_not_run};
use crate::backend::Emulation;
use crate::compile::{Compiler, Image, Unit};
use crate::plan::{Machine, OperatorCall, Plan, Work};
use crate::validate::Tolerance;
use crate::worker::{Keep, Kept, ValidateJob};
use dgx_core::diagnostic::{CommandError, render};
use dgx_core::domain::Distribution;
use dgx_core::domain::{BackendKind, Device, Status, Verdict};

/// A backend with a worker on it, for one cell at a time.
pub struct Booth {
    stage: Stage,
}

/// How to judge a cell.
#[derive(Clone, Debug)]
pub struct Trial {
    pub distributions: Vec<Distribution>,
    pub seed: u64,
    pub tolerance: Tolerance,
    pub time_limit: Duration,
    pub emulation: Emulation,
    /// Buffers to keep beside C.
    pub buffers: Vec<String>,
}

/// A cell of a plan, compiled as far as it can be.
pub struct LoneCell<'a> {
    plan: &'a Plan,
    /// What there is to compile and to call, where there is something.
    work: Option<(Unit, &'a OperatorCall)>,
    /// The image, where it compiles.
    pub image: Option<Image>,
    /// What became of it before anything ran, if that is all.
    decided: Option<Verdict>,
}

impl<'a> LoneCell<'a> {
    /// The only cell of a plan, compiled.
    pub fn compile(plan: &'a Plan, compiler: &Compiler) -> Result<Self, CommandError> {
        let mut cell = Self {
            plan,
            work: None,
            image: None,
            decided: None,
        };
        let (build, call) = match &plan.cells[0].work {
            Work::Unsupported { reason } => {
                cell.decide(Status::Unsupported, reason, None);
                return Ok(cell);
            }
            Work::Broken(why) => {
                let whole = Some(render(why, false));
                cell.decide(Status::CompileError, &why.to_string(), whole);
                return Ok(cell);
            }
            Work::Run { build, call } => (*build, call),
        };
        let unit = unit(&plan.builds[build]);
        let compiled = compiler.compile(&unit);
        match compiled.map_err(|e| could_not_run(&e.to_string()))?.outcome {
            Ok(image) => {
                if let Some(why) = refusal_of(&plan.device.limits, &image.kernels, call) {
                    cell.decide(Status::LaunchError, &why, None);
                }
                cell.image = Some(image);
            }
            Err(message) => {
                let first = first_error(&message).to_owned();
                cell.decide(Status::CompileError, &first, Some(message));
            }
        }
        cell.work = Some((unit, call));
        Ok(cell)
    }

    fn decide(&mut self, status: Status, reason: &str, detail: Option<String>) {
        let (contender, shape) = (&self.plan.contenders[0].id, &self.plan.shapes[0].name);
        self.decided = Some(verdict(contender, shape, status, reason, detail));
    }

    /// Everything the compiler says of it, warnings included; nothing where
    /// there is nothing to compile.
    pub fn log(&self, compiler: &Compiler) -> Result<Option<String>, CommandError> {
        match (&self.work, &self.decided) {
            (Some((unit, _)), _) => {
                let log = compiler.log(unit);
                log.map(Some).map_err(|e| could_not_run(&e.to_string()))
            }
            (None, Some(verdict)) => Ok(verdict.detail.clone()),
            (None, None) => Ok(None),
        }
    }
}

impl Booth {
    /// Opens one backend.
    pub fn open(
        choice: BackendChoice,
        target: Option<String>,
        compiler: &Compiler,
        cache: &Path,
    ) -> Result<Self, CommandError> {
        let emulated = Emulated {
            target,
            times_of: None,
        };
        let stages = Stage::open(choice, &Gpus::First, None, &emulated, compiler, cache)?;
        let mut stages = stages.into_iter();
        let stage = stages
            .next()
            .ok_or_else(|| could_not_run("no worker starts"))?;
        Ok(Self { stage })
    }

    pub fn kind(&self) -> BackendKind {
        self.stage.kind()
    }

    pub fn device(&self) -> &Device {
        self.stage.device()
    }

    pub fn machine(&self) -> Machine<'_> {
        self.stage.machine()
    }

    /// Judges a cell, and hands over what its last call left in `folder`; no
    /// verdict if the user asked to stop.
    pub fn judge(
        &mut self,
        cell: &LoneCell<'_>,
        compiler: &Compiler,
        trial: &Trial,
        folder: PathBuf,
    ) -> Result<Option<(Verdict, Option<Kept>)>, CommandError> {
        let (image, call) = match (&cell.decided, &cell.image, &cell.work) {
            (Some(verdict), _, _) => return Ok(Some((verdict.clone(), None))),
            (None, Some(image), Some((_, call))) => (image, *call),
            _ => return Ok(None),
        };
        let job = ValidateJob {
            contender: cell.plan.contenders[0].id.clone(),
            image: compiler.cache().folder(&image.key),
            call: OperatorCall::clone(call),
            shape: cell.plan.shapes[0].clone(),
            distributions: trial.distributions.clone(),
            seed: trial.seed,
            tolerance: trial.tolerance,
            time_limit: trial.time_limit,
            emulation: trial.emulation,
            thorough: true,
            expected: cell.plan.contenders[0].variant.expect,
            keep: Some(Keep {
                folder: folder.clone(),
                buffers: trial.buffers.clone(),
            }),
        };
        let judged = judge_job(&mut self.stage, &job)?;
        Ok(judged.map(|(verdict, _)| (verdict, Kept::read(&folder))))
    }
}
