//! Flags and final messages that sweeping on a cluster and attaching to it share.

use std::path::Path;

use crate::cli::Globals;
use crate::cli::runs::{self, Exports};
use crate::cluster::Followed;
use crate::export::RunExport;
use dgx_core::config::{Array, Slurm};
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::Exit;
use dgx_core::rank::Ranking;
use dgx_core::record::verdict_exit;

/// How tasks are asked for; each also a key of `[slurm]` in a round or in the
/// user's config.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct SlurmFlags {
    /// Slurm: partition to submit to
    #[arg(long, value_name = "NAME")]
    pub partition: Option<String>,
    /// Slurm: what each task gets [default: gpu:1 unless emulated; '' for none]
    #[arg(long, value_name = "GRES")]
    pub gres: Option<String>,
    /// Slurm: time limit of a task, as sbatch takes it
    #[arg(long, value_name = "TIME")]
    pub time: Option<String>,
    /// Slurm: how often a task that failed is submitted again [default: 3]
    #[arg(long, value_name = "N")]
    pub retries: Option<u32>,
    /// Slurm: a further argument for sbatch; may be given several times
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    pub sbatch_arg: Vec<String>,
}

impl SlurmFlags {
    pub(super) fn slurm(&self, array: Option<Array>) -> Slurm {
        Slurm {
            array,
            partition: self.partition.clone(),
            gres: self.gres.clone(),
            time: self.time.clone(),
            retries: self.retries,
            sbatch_args: self.sbatch_arg.clone(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slurm(None) == Slurm::default()
    }
}

/// Prints the merged run; with the path of its round, if the command knows it.
pub(super) fn ending(
    followed: &Followed,
    round: Option<&Path>,
    exports: &Exports,
    globals: &Globals,
) -> Result<Exit, CommandError> {
    if let Some(run) = &followed.run {
        let written = exports.write(&RunExport::of_run(run, &Ranking::of(run)));
        runs::summarise(run, round, false, globals);
        written?;
    }
    Ok(followed.exit(verdict_exit))
}
