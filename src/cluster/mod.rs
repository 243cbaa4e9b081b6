//! A round on a cluster: its shards are an array of Slurm jobs, followed until the last is done and
//! merged as they finish. The whole state lies in a folder beside the run file, so that the
//! following process may die and another one can attach.

mod campaign;
mod ending;
mod follow;
mod question;
mod refusal;
mod slurm;
mod submission;
mod whole;

use std::path::{Path, PathBuf};

pub(crate) use campaign::Campaign;
use campaign::LockedCampaign;
pub(crate) use follow::Followed;
use follow::Follower;

use dgx_core::config::Slurm;
use dgx_core::diagnostic::CommandError;
use dgx_core::interrupt::{self, SignalMessages};

/// A round to be submitted as jobs.
#[derive(Debug)]
pub(crate) struct JobRequest {
    /// The round's name and the text of its file.
    pub name: String,
    pub text: String,
    /// The path of that file, as run files contain it.
    pub config: String,
    pub results: PathBuf,
    /// The command line, for the header of the merged run.
    pub argv: Vec<String>,
    pub stamp: String,
    pub shards: u32,
    pub slurm: Slurm,
    /// The flags of each task, besides its shard.
    pub words: Vec<String>,
}

const FOLLOWING: SignalMessages = SignalMessages {
    first: Some("no longer following"),
    second: "the jobs continue; `dgx attach` follows them again",
};

/// Submits the shards and follows them to their end.
pub(crate) fn submit(order: JobRequest) -> Result<Followed, CommandError> {
    slurm::present()?;
    let argv = order.argv.clone();
    let held = Campaign::begin(order)?;
    interrupt::install(FOLLOWING);
    Follower::new(held, argv).follow()
}

/// Follows what was submitted before, and submits again what is not done.
pub(crate) fn attach(
    run: &Path,
    changed: Slurm,
    argv: Vec<String>,
) -> Result<Followed, CommandError> {
    let mut held = LockedCampaign::open(run)?;
    slurm::present()?;
    held.change(changed)?;
    interrupt::install(FOLLOWING);
    Follower::new(held, argv).follow()
}
