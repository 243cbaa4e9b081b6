use std::path::PathBuf;

use super::runs::{self, Exports};
use super::select::Shapes;
use super::{Globals, named};
use crate::export::RunExport;
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::Exit;
use dgx_core::rank::Ranking;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run: a file, its name in results/, or a round's name for its newest
    /// run [default: the newest in results/]
    #[arg(value_name = "RUN", value_parser = named::run())]
    run: Option<PathBuf>,
    #[command(flatten)]
    shapes: Shapes,
    /// Also print the emulator's counters
    #[arg(long)]
    counters: bool,
    #[command(flatten)]
    exports: Exports,
}

pub(super) fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    let read = runs::readable(args.run.as_deref());
    args.exports.probe(read.iter().map(PathBuf::as_path))?;
    let run = runs::load_part(args.run.as_deref(), &args.shapes)?;
    let document = RunExport::of_run(&run, &Ranking::of(&run));
    let written = args.exports.write(&document);
    runs::show(&run, args.counters, globals);
    written?;
    Ok(Exit::Done)
}
