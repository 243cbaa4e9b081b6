//! The run file of a campaign, merged as its shards finish.

use std::path::PathBuf;
use std::time::Instant;

use super::campaign::LockedCampaign;
use dgx_core::diagnostic::CommandError;
use dgx_core::merge::{self, HeaderChanges};
use dgx_core::record::{Run, Slot, header};

/// After a merge, the next waits this many times as long as it took.
const SHARE: u32 = 10;

pub(super) struct MergedRun {
    /// The command line, for its header.
    argv: Vec<String>,
    /// Shards that were done when it was merged last.
    done: usize,
    /// Why merging failed, if that was reported.
    unmerged: Option<String>,
    /// When merging may be tried again.
    due: Instant,
}

impl MergedRun {
    pub(super) fn new(argv: Vec<String>) -> Self {
        Self {
            argv,
            done: 0,
            unmerged: None,
            due: Instant::now(),
        }
    }

    /// Merges the finished shards if there are more than last time.
    pub(super) fn merge_if_due(&mut self, held: &LockedCampaign, done: usize) {
        if done <= self.done || Instant::now() < self.due {
            return;
        }
        let began = Instant::now();
        match self.merge(held) {
            Ok(_) => (self.done, self.unmerged) = (done, None),
            // It is tried again, and reported once.
            Err(error) => {
                let why = Some(error.to_string());
                if self.unmerged != why {
                    remark!("not merged yet: {error}");
                }
                self.unmerged = why;
            }
        }
        self.due = Instant::now() + began.elapsed() * SHARE;
    }

    /// Merges every shard that has begun; `None` if none has.
    pub(super) fn merge(&self, held: &LockedCampaign) -> Result<Option<Run>, CommandError> {
        let shards = (1..=held.campaign.shards).map(|number| held.shard(number));
        let begun: Vec<PathBuf> = shards.filter(|path| header(path).is_ok()).collect();
        if begun.is_empty() {
            return Ok(None);
        }
        let slot = Slot::at(&held.run()).map_err(|e| CommandError::from(&e))?;
        let title = HeaderChanges {
            argv: self.argv.clone(),
            config: Some(held.campaign.config.clone()),
        };
        merge::merge(&begun, slot, title).map(|merged| Some(merged.run))
    }
}
