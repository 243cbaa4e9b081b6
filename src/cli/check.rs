use std::path::PathBuf;

use tabled::builder::Builder;

use super::list::plain;
use super::{Globals, runs};
use crate::catalog::Catalog;
use crate::diagnostic::CommandError;
use crate::domain::{Bytes, Exit, Status};
use crate::plan::{Cell, Machine, Plan, Work};
use crate::record::schema::Build;
use crate::sweep::inspect;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Round files to check
    #[arg(value_name = "ROUND.toml", required = true)]
    rounds: Vec<PathBuf>,
    /// Multiprocessors to plan for: `sms` in expressions
    #[arg(long, value_name = "N", default_value_t = Machine::H200.sms, value_parser = clap::value_parser!(u32).range(1..))]
    sms: u32,
    /// Read and plan only
    #[arg(long)]
    no_compile: bool,
    #[command(flatten)]
    compile: runs::CompileLimits,
}

/// Reads, resolves and evaluates everything a sweep would, and runs nothing.
pub fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    let catalog = Catalog::open(&globals.variants)?;
    let machine = Machine {
        sms: args.sms,
        ..Machine::H200
    };
    let mut plans = Vec::new();
    for path in &args.rounds {
        let plan = Plan::new(runs::round(path)?, &catalog, &machine)?;
        refuse_unsupported(&plan)?;
        warn_of_strangers(&plan, &catalog);
        plans.push(plan);
    }
    let compiler = match args.no_compile {
        true => None,
        false => Some(runs::compiler(
            args.compile.limits(),
            "scripts/dgx fetches NVRTC; --no-compile checks without it",
        )?),
    };
    let mut exit = Exit::Done;
    for plan in &plans {
        summarise(plan);
        if let Some(compiler) = &compiler {
            let builds = inspect(compiler, plan)?;
            say!("{}", resources(&builds));
            if report_failures(plan, &builds) {
                exit = Exit::Unexpected;
            }
        }
    }
    Ok(exit)
}

/// A row for each kernel of each image.
fn resources(builds: &[Build]) -> tabled::Table {
    let mut rows = Builder::default();
    let head = [
        "contender",
        "kernel",
        "regs",
        "spills",
        "smem",
        "threads",
        "occupancy",
        "shapes",
    ];
    rows.push_record(head);
    for build in builds {
        let contender = build.contender.as_str();
        let shapes = build.shapes.len().to_string();
        if !build.ok {
            rows.push_record([contender, "does not compile", "", "", "", "", "", &shapes]);
        }
        for kernel in &build.kernels {
            let smem = Bytes(kernel.static_smem.0 + kernel.dynamic_smem.0);
            rows.push_record([
                contender,
                &kernel.name,
                &kernel.registers.to_string(),
                &Bytes(kernel.spill_bytes.into()).to_string(),
                &smem.to_string(),
                &kernel.threads.to_string(),
                &format!("{:.0} %", 100.0 * kernel.occupancy),
                &shapes,
            ]);
        }
    }
    plain(rows)
}

/// Prints remarks and compile errors; true if one was not declared.
fn report_failures(plan: &Plan, builds: &[Build]) -> bool {
    let mut surprised = false;
    for (spec, build) in plan.builds.iter().zip(builds) {
        for kernel in &spec.kernels {
            if build.ok && build.kernels.iter().all(|k| k.name != *kernel) {
                let id = &build.contender;
                say!("{id}: no kernel `{kernel}`: declare it extern \"C\" __global__");
                surprised = true;
            }
        }
        for remark in &build.remarks {
            say!("{}: {remark}", build.contender);
        }
        let contender = plan.contenders.iter().find(|c| c.id == build.contender);
        let expected = contender.is_some_and(|c| c.variant.expect == Status::CompileError);
        surprised |= build.ok == expected;
        if let Some(message) = &build.message {
            say!("{}: {message}", build.contender);
        }
    }
    surprised
}

/// In a sweep this is a row. A specialist may leave shapes to others, but a
/// contender that can run none is a mistake in the round.
fn refuse_unsupported(plan: &Plan) -> Result<(), CommandError> {
    let unsupported = |cell: &Cell| matches!(cell.work, Work::Unsupported { .. });
    let idle = |contender: usize| {
        let mut own = plan.cells.iter().filter(|c| c.contender == contender);
        own.all(unsupported)
    };
    let surprising = |cell: &&Cell| {
        let expected = plan.contenders[cell.contender].variant.expect;
        expected != Status::Unsupported && unsupported(cell) && idle(cell.contender)
    };
    let Some(cell) = plan.cells.iter().find(surprising) else {
        return Ok(());
    };
    let Work::Unsupported { reason } = &cell.work else {
        return Ok(());
    };
    let id = &plan.contenders[cell.contender].id;
    let shape = &plan.shapes[cell.shape].name;
    let span = plan.round.shape_spans[cell.shape].clone();
    Err(plan
        .round
        .file
        .error(
            span,
            format!("{id} cannot run shape {shape}: {reason}"),
            "change the shape, drop the contender, or widen what the variant requires",
        )
        .into())
}

/// Lineage and claims name other variants; a name that means nothing is no
/// reason not to run, and worth a word.
fn warn_of_strangers(plan: &Plan, catalog: &Catalog) {
    let mut told = Vec::new();
    for contender in &plan.contenders {
        let variant = &contender.variant;
        let parent = variant.parent.as_deref().map(|name| ("parent", name));
        let over = variant.claim.as_ref().map(|claim| {
            let name = claim.over.split('[').next().unwrap_or(&claim.over);
            ("claim.over", name)
        });
        for (key, name) in parent.into_iter().chain(over) {
            let known = catalog.path(name).is_ok() || name == crate::catalog::YARDSTICK;
            let warning = format!(
                "warning: {}: `{key}` names `{name}`, which is not there",
                variant.file.path.display()
            );
            if !known && !told.contains(&warning) {
                remark!("{warning}");
                told.push(warning);
            }
        }
    }
}

pub(super) fn summarise(plan: &Plan) {
    let name = &plan.round.name;
    say!("{name}  {}", plan.round.question);
    say!(
        "{} contenders × {} shapes, {} images to compile, baseline {}",
        plan.contenders.len(),
        plan.shapes.len(),
        plan.builds.len(),
        plan.baseline
    );
}
