//! Submits so that no shard gets two tasks: a submission is written down before it is made, and the
//! note stays until Slurm reports its outcome.

use std::collections::BTreeSet;
use std::fmt;

use super::campaign::{LockedCampaign, Submission};
use super::refusal;
use super::slurm::{self, SlurmError, States};
use dgx_core::diagnostic::CommandError;

/// Why there is no job.
#[derive(Debug)]
pub(super) enum NotSubmitted {
    Slurm(SlurmError),
    /// It could not be written down.
    Disk(CommandError),
}

impl fmt::Display for NotSubmitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slurm(SlurmError::Refused(words)) => match refusal::silent(words) {
                true => write!(f, "Slurm did not answer: {words}"),
                false => write!(f, "Slurm refused the jobs: {words}"),
            },
            Self::Slurm(trouble) => write!(f, "nothing was submitted: {trouble}"),
            Self::Disk(error) => error.fmt(f),
        }
    }
}

impl NotSubmitted {
    pub(super) fn remedy(&self) -> &'static str {
        match self {
            Self::Slurm(SlurmError::Refused(words)) => refusal::remedy(words),
            Self::Slurm(_) => "see to it that `sbatch` runs here",
            Self::Disk(_) => "make room, or check permissions",
        }
    }

    /// Whether it may succeed later without any change.
    pub(super) fn passes(&self) -> bool {
        match self {
            Self::Slurm(SlurmError::Refused(words)) => {
                refusal::full(words) || refusal::silent(words)
            }
            Self::Slurm(SlurmError::Missing(_)) => false,
            Self::Slurm(SlurmError::CouldNotRun(..)) | Self::Disk(_) => true,
        }
    }
}

impl LockedCampaign {
    /// Submits an array of these shards.
    pub(super) fn submit(&mut self, shards: &[u32]) -> Result<(), NotSubmitted> {
        self.campaign.submissions.push(Submission {
            job: None,
            shards: shards.to_vec(),
        });
        if let Err(error) = self.save() {
            self.campaign.submissions.pop();
            return Err(NotSubmitted::Disk(error));
        }
        let count = self.campaign.submissions.len();
        let words = slurm::words(&self.campaign, &self.folder, shards);
        match slurm::submit(&words) {
            Ok(job) => {
                self.campaign.submissions[count - 1].job = Some(job);
                self.note();
                Ok(())
            }
            Err(trouble) => {
                // A submission that timed out may have succeeded all the same.
                if let Ok(states) = slurm::states(&self.campaign.job_name, &[]) {
                    self.recover(&states);
                    if self.campaign.submissions.len() == count {
                        return Ok(());
                    }
                }
                Err(NotSubmitted::Slurm(trouble))
            }
        }
    }

    /// Records the result of a submission. If that fails, the next follower asks Slurm.
    fn note(&self) {
        if let Err(error) = self.save() {
            remark!("warning: {error}; the jobs are found again by their name");
        }
    }

    /// Finds out whether the last submission has a job, before another is made.
    pub(super) fn recover_first(&mut self) -> Result<(), CommandError> {
        if self.campaign.submissions.iter().all(|s| s.job.is_some()) {
            return Ok(());
        }
        match slurm::states(&self.campaign.job_name, &[]) {
            Ok(states) => {
                self.recover(&states);
                Ok(())
            }
            Err(trouble) => Err(CommandError::could_not_run(
                format!("Slurm does not answer whether it accepted the earlier jobs: {trouble}"),
                format!("when `squeue` answers: {}", self.attach()),
            )),
        }
    }

    /// A follower that died while submitting may have left a job whose number it did not know.
    pub(super) fn recover(&mut self, states: &States) {
        if self.campaign.submissions.iter().all(|s| s.job.is_some()) {
            return;
        }
        let known: BTreeSet<String> = self.jobs().into_iter().collect();
        let jobs: BTreeSet<String> = states.keys().map(|(job, _)| job.clone()).collect();
        let mut found = jobs.difference(&known).cloned();
        let submissions = &mut self.campaign.submissions;
        for submission in submissions.iter_mut().filter(|s| s.job.is_none()) {
            submission.job = found.next();
        }
        submissions.retain(|s| s.job.is_some());
        self.note();
    }
}
