//! One cell, traced for its time alone, or called on a GPU with stamps in its
//! kernels: what profiles are made of.

use std::time::Duration;

use super::build::{refusal_of, unit};
use super::could_not_run;
use super::runner::tools;
use crate::backend::cuda::{CudaBackend, StampedCalls};
use crate::backend::emu::{EmuBackend, Traced};
use crate::backend::{Data, Emulation, Job, RunFailure, Salt};
use crate::compile::{Compiler, Image, Unit};
use crate::operator::Operands;
use dgx_core::diagnostic::{CommandError, InputError};
use dgx_core::domain::{Chip, ContenderId, Exit, Shape};

use crate::plan::{OperatorCall, Plan, Stamping, Work};
use dgx_core::domain::Distribution;

/// What a call may take of the emulator.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a GPU calls it, with stamps and without.
const STAMPED_CALLS: usize = 20;

/// What helps a variant that cannot be stamped.
const STAMPABLE: &str = "every kernel begins with DGX_STAMP_KERNEL(args, NAME), see \
                         docs/profile.md; or add --backend emu";

/// A contender on a shape, compiled.
pub struct CompiledCell<'a> {
    plan: &'a Plan,
    contender: usize,
    pub shape: &'a Shape,
    call: &'a OperatorCall,
    unit: Unit,
    pub image: Image,
}

impl<'a> CompiledCell<'a> {
    /// The cell at these places of a plan.
    pub fn new(
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
        let unit = unit(&plan.builds[build]);
        let remedy = "mend it first; `dgx check` compiles a whole round";
        let image = compiled(&unit, compiler, &format!("{id} does not compile"), remedy)?;
        if let Some(why) = refusal_of(&plan.device.limits, &image.kernels, call) {
            return Err(no_time(id.as_str(), name, &why));
        }
        Ok(Self {
            plan,
            contender,
            shape: &plan.shapes[shape],
            call,
            unit,
            image,
        })
    }

    fn id(&self) -> &ContenderId {
        &self.plan.contenders[self.contender].id
    }

    /// Runs the CTAs that its time is told by, and hands on what they did.
    pub fn traced<T>(
        &self,
        then: impl FnOnce(&Traced<'_>) -> Result<T, String>,
    ) -> Result<T, CommandError> {
        let (id, name) = (self.id(), &self.shape.name);
        let operands = Operands::blank(self.shape);
        let mut emulator = EmuBackend::new(self.plan.device.clone());
        let traced = emulator.trace(self.job(), &self.data(&operands, true));
        let traced = traced.map_err(|failure| no_time(id.as_str(), name, &told(&failure)))?;
        then(&traced).map_err(|why| no_time(id.as_str(), name, &why))
    }

    /// Calls it on the GPU here, with stamps in its kernels and without.
    pub fn stamped(
        &self,
        chip: Chip,
        compiler: &Compiler,
    ) -> Result<(Stamping, StampedCalls), CommandError> {
        let (id, name) = (self.id(), &self.shape.name);
        let (stamping, unit) = self.stamping()?;
        let failed = format!("{id} does not compile with stamps");
        let image = compiled(&unit, compiler, &failed, STAMPABLE)?;
        let mut gpu = CudaBackend::open(&tools(compiler, chip)?, 0)
            .map_err(|e| could_not_run(&e.to_string()))?;
        let operands = Operands::draw(self.shape, Distribution::Benchmark, 0);
        let stamped = Job {
            image: &image,
            call: &stamping.call,
            ..self.job()
        };
        let data = self.data(&operands, false);
        let calls = gpu.stamped(&self.job(), &stamped, &data, STAMPED_CALLS);
        let calls = calls.map_err(|failure| {
            CommandError::new(
                Exit::CouldNotRun,
                format!("{id} could not be stamped on {name}: {}", told(&failure)),
                "`--backend emu` models it; `dgx sweep` says whether it is right",
            )
        })?;
        Ok((stamping, calls))
    }

    /// Its call with room for stamps, and what to compile for it.
    fn stamping(&self) -> Result<(Stamping, Unit), CommandError> {
        let id = self.id();
        let stamping = Stamping::of(self.call)
            .map_err(|why| InputError::new(format!("{id} cannot be stamped: {why}"), STAMPABLE))?;
        let mut unit = self.unit.clone();
        unit.defines.extend(stamping.defines());
        Ok((stamping, unit))
    }

    fn job(&self) -> Job<'_> {
        Job {
            contender: self.id(),
            image: &self.image,
            call: self.call,
        }
    }

    fn data<'d>(&'d self, operands: &'d Operands, time_only: bool) -> Data<'d> {
        Data {
            operands,
            key: &self.shape.name,
            salt: Salt::of_call(0, 0),
            time_limit: PATIENCE,
            timed: true,
            emulation: Emulation {
                time_only,
                ..Emulation::default()
            },
        }
    }
}

fn compiled(
    unit: &Unit,
    compiler: &Compiler,
    failed: &str,
    remedy: &str,
) -> Result<Image, CommandError> {
    let compiled = compiler.compile(unit);
    let compiled = compiled.map_err(|e| could_not_run(&e.to_string()))?;
    let image = compiled.outcome;
    image.map_err(|message| InputError::new(format!("{failed}:\n{message}"), remedy).into())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Backend;
    use crate::catalog::Catalog;
    use crate::compile::Nvrtc;
    use crate::plan::Machine;
    use crate::profile::stamps;
    use dgx_core::config::{Baseline, Round, Selection, target};
    use dgx_core::diagnostic::SourceFile;
    use dgx_core::domain::Device;
    use dgx_core::domain::{Micros, Watch};
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
        Plan::new(round, &catalog, &Machine::of(device)).expect("a plan")
    }

    fn image(unit: &Unit) -> Image {
        let compiler = Nvrtc::find().expect("scripts/nvrtc gets a compiler");
        let headers = unit.headers.texts();
        let headers: Vec<(String, String)> = headers
            .map(|(name, text)| (name.to_owned(), text))
            .collect();
        let compiled = compiler
            .compile(&unit.name, &unit.source, &unit.flags(), &headers)
            .expect("a compiler");
        let mut remarks = vec!["Potential Performance Loss"];
        // Hopper's swap-ab divides by zero where a shape is this small, in code never reached.
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
        let Work::Run { build, call } = &plan.cells[0].work else {
            panic!("{:?}", plan.cells[0].work);
        };
        let unit = unit(&plan.builds[*build]);
        CompiledCell {
            plan,
            contender: 0,
            shape: &plan.shapes[0],
            call,
            image: image(&unit),
            unit,
        }
    }

    /// Beside a card only the CTAs of a sample run: of what the others do not do
    /// nothing must be made.
    #[test]
    fn a_sample_that_runs_alone_accuses_nobody() {
        let wide = ROUND.replace("n = 128, k = 512", "n = 2048, k = 256");
        for contender in ["two-pass", "interleaved", "swap-ab", "ping-pong", "decode"] {
            let plan = plan_of(&wide, contender, target::usual());
            let cell = cell(&plan);
            let operands = Operands::draw(cell.shape, Distribution::Full, 1);
            let emulation = Emulation {
                watch: Watch::Some,
                alone: true,
                ..Emulation::default()
            };
            let data = Data {
                emulation,
                ..cell.data(&operands, false)
            };
            let mut emulator = EmuBackend::new(plan.device.clone());
            let seen = emulator
                .load(cell.job())
                .and_then(|mut job| job.call(&data))
                .unwrap_or_else(|failure| panic!("{contender}: {failure}"));
            assert!(seen.hazards.is_empty(), "{contender}: {:#?}", seen.hazards);
            assert!(seen.c.is_empty(), "what is there is not the result");
        }
    }

    #[test]
    fn stamps_change_nothing_that_is_computed() {
        // Whole CTAs, roles of warps and two launches, products of either kind.
        let device = target::usual();
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
            assert!(!cell.image.ptx.contains("dgx_stamps"), "{contender}");
            let (stamping, unit) = cell.stamping().expect("stamps");
            let image = image(&unit);
            let operands = Operands::draw(cell.shape, Distribution::Benchmark, 1);
            let data = cell.data(&operands, false);
            let mut emulator = EmuBackend::new(plan.device.clone());
            let plain = emulator
                .load(cell.job())
                .and_then(|mut job| job.call(&data));
            let plain = plain.expect("it runs");
            let job = Job {
                image: &image,
                call: &stamping.call,
                ..cell.job()
            };
            let (seen, bytes) = emulator.stamped(job, &data).expect("it runs");
            assert_eq!(seen.c, plain.c, "{contender}");

            let told = stamps::told(&bytes, &stamping, Micros(9.0), 132, &[]);
            let (call, laid, lost) = told.expect("stamps");
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
