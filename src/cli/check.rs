use std::path::PathBuf;

use super::Globals;
use crate::catalog::Catalog;
use crate::compile::{Compiler, cache_root};
use crate::config::Round;
use crate::diagnostic::CommandError;
use crate::domain::{Exit, Status};
use crate::plan::{Cell, Machine, Plan, Work};
use crate::sweep::compile_unit;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Round files to check
    #[arg(value_name = "ROUND.toml", required = true)]
    rounds: Vec<PathBuf>,
    /// Multiprocessors to plan for: `sms` in expressions
    #[arg(long, value_name = "N", default_value_t = Machine::H200.sms, value_parser = clap::value_parser!(u32).range(1..))]
    sms: u32,
}

/// Reads, resolves and evaluates everything a sweep would, and runs nothing.
pub fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    let catalog = Catalog::open(&globals.variants)?;
    let machine = Machine {
        sms: args.sms,
        ..Machine::H200
    };
    let mut exit = Exit::Done;
    for path in &args.rounds {
        let plan = Plan::new(Round::read(path)?, &catalog, &machine)?;
        refuse_unsupported(&plan)?;
        warn_of_strangers(&plan, &catalog);
        summarise(&plan);
        if compile(&plan)? != Exit::Done {
            exit = Exit::Unexpected;
        }
    }
    Ok(exit)
}

/// In a sweep this is a row; before one it is a mistake in the round.
fn refuse_unsupported(plan: &Plan) -> Result<(), CommandError> {
    let surprising = |cell: &&Cell| {
        let expected = plan.contenders[cell.contender].variant.expect;
        matches!(cell.work, Work::Unsupported { .. }) && expected != Status::Unsupported
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
                eprintln!("{warning}");
                told.push(warning);
            }
        }
    }
}

pub(super) fn summarise(plan: &Plan) {
    let name = &plan.round.name;
    println!("{name}  {}", plan.round.question);
    println!(
        "{} contenders × {} shapes, {} images to compile, baseline {}",
        plan.contenders.len(),
        plan.shapes.len(),
        plan.builds.len(),
        plan.baseline
    );
}

/// Compiles what the round would, and passes on what the compiler says. A
/// machine without a compiler has checked the rest.
fn compile(plan: &Plan) -> Result<Exit, CommandError> {
    let here = std::env::current_dir().unwrap_or_default();
    let compiler = match Compiler::new(&cache_root(&here)) {
        Ok(compiler) => compiler,
        Err(error) => {
            eprintln!("warning: nothing was compiled: {error}");
            return Ok(Exit::Done);
        }
    };
    let units: Vec<_> = plan.builds.iter().map(compile_unit).collect();
    let compiled = compiler.compile_all(&units, |_, _| {}).map_err(|error| {
        let remedy = "`dgx doctor` shows what is here";
        CommandError::new(Exit::CouldNotRun, error.to_string(), remedy)
    })?;
    let mut exit = Exit::Done;
    for (build, compiled) in plan.builds.iter().zip(&compiled) {
        let id = &build.contender;
        match &compiled.outcome {
            Ok(image) => {
                for remark in &image.remarks {
                    println!("  {id}: {remark}");
                }
            }
            Err(message) => {
                println!("  {id} does not compile:\n{message}");
                let expected = plan.contenders.iter().find(|c| c.id == *id);
                if expected.is_none_or(|c| c.variant.expect != Status::CompileError) {
                    exit = Exit::Unexpected;
                }
            }
        }
    }
    let cached = compiled.iter().filter(|c| c.cached).count();
    println!("{} images, {cached} from cache", compiled.len());
    Ok(exit)
}
