//! How a task ended, and the words for it.

use std::io::{Read, Seek, SeekFrom};

use super::campaign::LockedCampaign;
use dgx_core::domain::printable;
use dgx_core::files;

/// Bytes read from the end of a log: more than five lines, and less than all.
const TAIL: u64 = 16 << 10;

impl LockedCampaign {
    pub(super) fn name(&self, shard: u32) -> String {
        format!("shard {shard}/{}", self.campaign.shards)
    }

    /// How the task of a shard ended, with its exit code if that was recorded.
    pub(super) fn ending(&self, shard: u32, job: Option<&str>, how: &str) -> String {
        match job.and_then(|job| self.code(shard, job)) {
            Some(code) => format!("{how}, exit code {code}"),
            None => how.to_owned(),
        }
    }

    /// The last lines that the tasks of a shard printed.
    pub(super) fn last_words(&self, shard: u32) -> String {
        let log = self.log(shard);
        let read = || {
            let mut file = files::open(&log)?;
            let skipped = file.metadata()?.len().saturating_sub(TAIL);
            file.seek(SeekFrom::Start(skipped))?;
            let mut bytes = Vec::new();
            file.take(TAIL).read_to_end(&mut bytes)?;
            Ok::<_, std::io::Error>(bytes)
        };
        // A kernel may have printed any bytes.
        let text = String::from_utf8_lossy(&read().unwrap_or_default()).into_owned();
        let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
        let tail = lines[lines.len().saturating_sub(5)..].join("\n    ");
        match tail.is_empty() {
            true => String::new(),
            false => format!("\n  {} ends:\n    {}", log.display(), printable(&tail)),
        }
    }
}

/// A remedy for an end that Slurm caused.
pub(super) fn hint(how: &str) -> &'static str {
    match how.split([',', ' ']).next() {
        Some("TIMEOUT" | "DEADLINE") => " (it continues where it stopped; --time gives it more)",
        Some("OUT_OF_MEMORY") => " (--sbatch-arg=--mem=… gives it more memory)",
        Some("PREEMPTED") => " (it continues where it stopped)",
        Some("NODE_FAIL" | "BOOT_FAIL") => " (its node was lost)",
        _ => "",
    }
}
