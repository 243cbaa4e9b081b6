use std::path::PathBuf;

use super::cluster::{self, SlurmFlags};
use crate::cli::runs::Exports;
use crate::cli::{Globals, named};
use crate::cluster::attach;
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::Exit;
use dgx_core::record::argv;

/// Follow the jobs of a sweep on a cluster again, and submit what is not done.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run file that `dgx sweep --engine slurm` named
    #[arg(value_name = "RUN", value_parser = named::any_run())]
    run: PathBuf,
    #[command(flatten)]
    slurm: SlurmFlags,
    #[command(flatten)]
    exports: Exports,
}

pub(crate) fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    args.exports.probe([args.run.as_path()])?;
    let followed = attach(&args.run, args.slurm.slurm(None), argv())?;
    cluster::ending(&followed, None, &args.exports, globals)
}
