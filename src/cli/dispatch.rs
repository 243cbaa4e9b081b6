use std::path::PathBuf;

use super::{Globals, runs};
use crate::catalog::Catalog;
use crate::contest::dispatch::dispatch_among;
use crate::diagnostic::CommandError;
use crate::domain::{ContenderId, Exit};
use crate::rank::Ranking;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Run file [default: the newest in results/]
    #[arg(value_name = "RUN")]
    run: Option<PathBuf>,
    /// Where to write the variant, e.g. variants/auto.cu [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Turns who won where into a contender of the next run.
pub fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    let run = runs::load(args.run.as_deref())?;
    runs::probe([&args.output], [run.path.as_path()])?;
    let catalog = Catalog::open(&globals.variants)?;
    // Who picks others cannot be picked.
    let mut own_work: Vec<ContenderId> = Vec::new();
    let mut arch = String::new();
    for contender in &run.header.contenders {
        let variant = catalog.variant(&contender.variant)?;
        if variant.picks.is_empty() {
            own_work.push(contender.id.clone());
            arch.clone_from(&variant.arch);
        }
    }
    let ranking = Ranking::of(&run);
    let table = dispatch_among(&run, &ranking, |id| own_work.contains(id));
    let table = table.ok_or_else(|| {
        CommandError::new(
            Exit::Inconclusive,
            "no contender is valid on every shape, so there is nobody to pick elsewhere",
            "`dgx show` tells what became of each",
        )
    })?;
    let text = table.picks(&arch);
    match &args.output {
        Some(_) => runs::write_all([(&args.output, &|| text.clone())])?,
        None => say!("{}", text.trim_end()),
    }
    Ok(Exit::Done)
}
