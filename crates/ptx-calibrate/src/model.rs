//! What the model says to cells of a plan.

use std::time::Duration;

use super::each::each;
use super::measure::could_not_run;
use dgx_core::diagnostic::{CommandError, InputError};
use dgx_core::domain::{ContenderId, Device};
use dgx_run::backend::emu::EmuBackend;
use dgx_run::backend::{Backend, CallInput, CallSeed, Emulation, Job, Modelled};
use dgx_run::compile::{Compiler, Image};
use dgx_run::operator::Operands;
use dgx_run::plan::{OperatorCall, Plan, PlanOutcome, PlannedCell};
use dgx_run::sweep::{Bar, unit};

/// Emulating the few CTAs of a cell takes no longer, unless it never ends.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// The modelled times of some cells of a plan on its device, in their order.
pub fn model(
    plan: &Plan,
    cells: &[&PlannedCell],
    compiler: &Compiler,
    bar: &Bar<'_>,
) -> Result<Vec<Modelled>, CommandError> {
    let works: Result<Vec<(usize, &OperatorCall)>, CommandError> =
        cells.iter().map(|cell| work(plan, cell)).collect();
    let works = works?;
    let images = images(plan, works.iter().map(|work| work.0), compiler)?;
    let mut times: Vec<Option<Modelled>> = vec![None; cells.len()];
    for (index, shape) in plan.shapes.iter().enumerate() {
        let here: Vec<usize> = (0..cells.len())
            .filter(|&c| cells[c].shape == index)
            .collect();
        if here.is_empty() {
            continue;
        }
        let operands = Operands::blank(&plan.round.operator, shape);
        let timed = each(&here, |&place| {
            let (build, call) = works[place];
            let contender = &plan.contenders[cells[place].contender].id;
            let image = images[build].as_ref();
            let image = image.ok_or_else(|| could_not_run("compiling was stopped"))?;
            bar.at(format!("{contender} on {}", shape.name));
            let time = time(&plan.device, contender, image, call, &operands);
            bar.step(1.0);
            time.map_err(|why| {
                CommandError::could_not_run(
                    format!("{contender} on {}: {why}", shape.name),
                    "`dgx sweep --backend emu` says more of what it does there",
                )
            })
        });
        let timed: Result<Vec<Modelled>, CommandError> = timed.into_iter().collect();
        for (place, time) in here.into_iter().zip(timed?) {
            times[place] = Some(time);
        }
    }
    Ok(times.into_iter().flatten().collect())
}

fn work<'p>(
    plan: &'p Plan,
    cell: &'p PlannedCell,
) -> Result<(usize, &'p OperatorCall), CommandError> {
    match &cell.outcome {
        PlanOutcome::Run { build, call } => Ok((*build, call)),
        PlanOutcome::Broken(why) => Err(why.clone().into()),
        PlanOutcome::Unsupported { reason } => {
            let contender = &plan.contenders[cell.contender].id;
            let shape = &plan.shapes[cell.shape].name;
            Err(InputError::new(
                format!("{contender} cannot run on {shape}: {reason}"),
                "name the folder of the variant that was measured by --variants",
            )
            .into())
        }
    }
}

/// The images of some builds, by their places in the plan.
fn images(
    plan: &Plan,
    needed: impl Iterator<Item = usize>,
    compiler: &Compiler,
) -> Result<Vec<Option<Image>>, CommandError> {
    let mut needed: Vec<usize> = needed.collect();
    needed.sort_unstable();
    needed.dedup();
    let units = needed.iter().map(|&build| unit(&plan.builds[build]));
    let compiled = compiler.compile_all(&units.collect::<Vec<_>>(), |_, _| (), || false);
    let compiled = compiled.map_err(|e| could_not_run(&e.to_string()))?;
    let mut images = vec![None; plan.builds.len()];
    for (build, compiled) in needed.into_iter().zip(compiled) {
        images[build] = match compiled.map(|compiled| compiled.outcome) {
            Some(Err(message)) => {
                let contender = &plan.builds[build].contender;
                let message = format!("{contender} does not compile:\n{message}");
                return Err(could_not_run(&message));
            }
            outcome => outcome.and_then(Result::ok),
        };
    }
    Ok(images)
}

/// The modelled time of one call.
fn time(
    device: &Device,
    contender: &ContenderId,
    image: &Image,
    call: &OperatorCall,
    operands: &Operands,
) -> Result<Modelled, String> {
    let mut backend = EmuBackend::new(device.clone());
    let job = Job {
        contender,
        image,
        call,
    };
    let mut loaded = backend.load(job).map_err(|failure| failure.message)?;
    let observed = loaded.call(&CallInput {
        operands,
        key: "",
        call_seed: CallSeed::of_call(0, 0),
        time_limit: TIME_LIMIT,
        timed: true,
        emulation: Emulation {
            time_only: true,
            ..Emulation::default()
        },
    });
    let observed = observed.map_err(|failure| failure.message)?;
    observed
        .modelled
        .ok_or_else(|| "nothing was timed".to_owned())?
}
