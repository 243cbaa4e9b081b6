//! One cell, traced for its time alone: what profiles are made of.

use std::time::Duration;

use super::build::{refusal_of, unit};
use super::could_not_run;
use crate::backend::emu::{EmuBackend, Traced};
use crate::backend::{Data, Emulation, Job, RunFailure, Salt};
use crate::compile::{Compiler, Image};
use crate::diagnostic::{CommandError, InputError};
use crate::domain::{Exit, Shape};
use crate::operator::{Distribution, Operands};
use crate::plan::{OperatorCall, Plan, Work};

/// What a call may take of the emulator.
const PATIENCE: Duration = Duration::from_secs(60);

/// A contender on a shape, compiled.
pub(crate) struct CompiledCell<'a> {
    plan: &'a Plan,
    contender: usize,
    pub shape: &'a Shape,
    call: &'a OperatorCall,
    pub image: Image,
}

impl<'a> CompiledCell<'a> {
    /// The cell at these places of a plan.
    pub(crate) fn new(
        plan: &'a Plan,
        contender: usize,
        shape: usize,
        compiler: &Compiler,
    ) -> Result<Self, CommandError> {
        let id = &plan.contenders[contender].id;
        let name = &plan.shapes[shape].name;
        let cell = (plan.cells.iter()).find(|c| (c.contender, c.shape) == (contender, shape));
        let (build, call) = match cell.map(|cell| &cell.work) {
            Some(Work::Run { build, call }) => (*build, call),
            Some(Work::Broken(why)) => return Err(why.clone().into()),
            Some(Work::Unsupported { reason }) => return Err(no_time(id.as_str(), name, reason)),
            None => return Err(no_time(id.as_str(), name, "nothing is planned for it")),
        };
        let compiled = compiler.compile(&unit(&plan.builds[build]));
        let compiled = compiled.map_err(|e| could_not_run(&e.to_string()))?;
        let image = compiled.outcome.map_err(|message| {
            InputError::new(
                format!("{id} does not compile:\n{message}"),
                "mend it first; `dgx check` compiles a whole round",
            )
        })?;
        if let Some(why) = refusal_of(&plan.device.limits, &image.kernels, call) {
            return Err(no_time(id.as_str(), name, &why));
        }
        Ok(Self {
            plan,
            contender,
            shape: &plan.shapes[shape],
            call,
            image,
        })
    }

    /// Runs the CTAs that its time is told by, and hands on what they did.
    pub(crate) fn traced<T>(
        &self,
        then: impl FnOnce(&Traced<'_>) -> Result<T, String>,
    ) -> Result<T, CommandError> {
        let id = &self.plan.contenders[self.contender].id;
        let name = &self.shape.name;
        let operands = Operands::draw(self.shape, Distribution::Benchmark, 0);
        let mut emulator = EmuBackend::new(self.plan.device.clone());
        let job = Job {
            contender: id,
            image: &self.image,
            call: self.call,
        };
        let traced = emulator.trace(
            job,
            &Data {
                operands: &operands,
                key: name,
                salt: Salt::of_call(0, 0),
                time_limit: PATIENCE,
                emulation: Emulation {
                    time_only: true,
                    ..Emulation::default()
                },
            },
        );
        let traced = traced.map_err(|failure| no_time(id.as_str(), name, &told(&failure)))?;
        then(&traced).map_err(|why| no_time(id.as_str(), name, &why))
    }
}

fn told(failure: &RunFailure) -> String {
    let RunFailure {
        status, message, ..
    } = failure;
    format!("{status}: {message}")
}

fn no_time(contender: &str, shape: &str, why: &str) -> CommandError {
    CommandError::new(
        Exit::CouldNotRun,
        format!("no time can be modelled of {contender} on {shape}: {why}"),
        "`dgx sweep --backend emu` validates it; other shapes and contenders may do",
    )
}
