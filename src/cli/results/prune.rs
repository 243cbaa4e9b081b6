//! Which runs may be removed: old ones that nothing names and no sweep writes.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::mentions::mentions;
use super::{RunEntry, code};
use crate::present::{Column, Style, Table};
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{Bytes, Exit, counted, printable_line, typed};
use dgx_core::record::{LockOutcome, try_lock};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Only runs directly in the folder are looked at: those in baselines/ and other
folders below stay. So does a run that a file of the project names (a round, a
document, a script, another run), the newest complete run of each round on each
device, a run that a sweep is writing, and any file that is not a run file.")]
pub(super) struct Rule {
    /// Keep the N newest runs of each round on each device
    #[arg(long, value_name = "N", default_value_t = 3)]
    keep: usize,
    /// Remove only runs written more than this many days ago
    #[arg(long, value_name = "DAYS", value_parser = super::runs::whole(0..=36_500))]
    older_than: Option<u32>,
    /// Remove them; without it, list them
    #[arg(long)]
    yes: bool,
}

pub(super) fn run(
    rule: &Rule,
    results: &Path,
    entries: &[RunEntry],
    style: &Style,
) -> Result<Exit, CommandError> {
    let old = rule.old(results, entries);
    let paths: Vec<&Path> = old.iter().map(|entry| entry.file.as_path()).collect();
    let named = mentions(&paths, results)?;
    let mut grid = Table::new(vec![
        Column::key("run"),
        Column::left("state").weight(6),
        Column::right("size").weight(7),
        Column::left("").weight(8).wraps(),
    ]);
    let (mut count, mut bytes) = (0, 0);
    for entry in old {
        let kept = kept(entry, &named);
        let fate = match (kept, rule.yes) {
            (Some(why), _) => format!("stays: {why}"),
            (None, true) => removed(entry)?.unwrap_or("removed".to_owned()),
            (None, false) => "would be removed".to_owned(),
        };
        if !fate.starts_with("stays") {
            (count, bytes) = (count + 1, bytes + entry.bytes);
        }
        grid.push(vec![
            printable_line(&entry.name()),
            entry.state.clone(),
            Bytes(entry.bytes).to_string(),
            fate,
        ]);
    }
    if !grid.rows.is_empty() {
        say!("{}\n", grid.render(style));
    }
    let unreadable: Vec<String> = entries
        .iter()
        .filter(|entry| entry.round.is_none() && entry.file.parent() == Some(results))
        .map(|entry| printable_line(&entry.file.display().to_string()))
        .collect();
    if !unreadable.is_empty() {
        let line = format!(
            "cannot be read, and stay: {} (`dgx show FILE` prints why)",
            unreadable.join(", ")
        );
        say!("{}", style.fold(&line, 2));
    }
    let sum = format!("{}, {}", counted(count, "run"), Bytes(bytes));
    match (rule.yes, count) {
        (_, 0) => say!("nothing to remove"),
        (true, _) => say!("removed {sum}"),
        (false, _) => say!(
            "{sum} would be removed; `{}` does it",
            rule.command(results)
        ),
    }
    Ok(Exit::Done)
}

impl Rule {
    /// The same command with --yes.
    fn command(&self, results: &Path) -> String {
        let mut words = format!("dgx results prune --keep {}", self.keep);
        if let Some(days) = self.older_than {
            words.push_str(&format!(" --older-than {days}"));
        }
        if results != Path::new(super::runs::RESULTS) {
            words.push_str(&format!(" --results {}", typed(results)));
        }
        words + " --yes"
    }

    /// The runs beyond those that are kept of each round and device.
    fn old<'a>(&self, results: &Path, entries: &'a [RunEntry]) -> Vec<&'a RunEntry> {
        let mut seen: BTreeMap<_, (usize, bool)> = BTreeMap::new();
        let mut old = Vec::new();
        let here = entries.iter().filter(|e| e.file.parent() == Some(results));
        for entry in here.filter(|entry| entry.round.is_some()) {
            let timing = entry.timing.map(|timing| timing.as_str());
            // The parts of a round belong together: none replaces another.
            let of = seen.entry((&entry.round, &entry.device, timing, entry.shard));
            let (count, complete) = of.or_default();
            let newest_complete = entry.is_complete() && !*complete;
            *count += 1;
            *complete |= entry.is_complete();
            if *count > self.keep && !newest_complete && self.is_due(entry) {
                old.push(entry);
            }
        }
        old
    }

    fn is_due(&self, entry: &RunEntry) -> bool {
        let least = self.older_than.unwrap_or(0);
        let least = Duration::from_secs(86_400 * u64::from(least));
        // A file with a date in the future is not old.
        entry.written.elapsed().is_ok_and(|age| age >= least)
    }
}

/// Why an old run is kept.
fn kept(entry: &RunEntry, named: &BTreeMap<PathBuf, PathBuf>) -> Option<String> {
    if let Some(place) = named.get(&entry.file) {
        let place = printable_line(&place.display().to_string());
        return Some(format!("{place} names it"));
    }
    if entry.file.is_symlink() {
        return Some("it is a link".to_owned());
    }
    let jobs = entry.file.with_extension("slurm");
    if jobs.exists() {
        let jobs = printable_line(&jobs.display().to_string());
        return Some(format!("its jobs are in {jobs}"));
    }
    let written = OpenOptions::new().append(true).open(&entry.file);
    match written.map(|file| try_lock(&file)) {
        Ok(LockOutcome::Ours) => None,
        Ok(LockOutcome::Taken(_)) => Some("a sweep is writing it".to_owned()),
        Ok(LockOutcome::Unknown) if entry.is_complete() => None,
        Ok(LockOutcome::Unknown) => Some("a sweep may be writing it".to_owned()),
        Err(error) => Some(format!("it cannot be opened: {error}")),
    }
}

/// Removes a run and the machine code beside it, while no sweep can continue it; returns the reason
/// if the run is kept.
fn removed(entry: &RunEntry) -> Result<Option<String>, CommandError> {
    let held = OpenOptions::new().append(true).open(&entry.file);
    let held = held.map_err(|error| irremovable(&entry.file, &error))?;
    if let LockOutcome::Taken(_) = try_lock(&held) {
        return Ok(Some("stays: a sweep is writing it".to_owned()));
    }
    for file in code(&entry.file).iter().chain([&entry.file]) {
        std::fs::remove_file(file).map_err(|error| irremovable(file, &error))?;
    }
    // A folder that contains something else stays.
    let _ = std::fs::remove_dir(entry.file.with_extension("cubins"));
    Ok(None)
}

fn irremovable(path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::could_not_run(
        format!("cannot remove {}: {error}", path.display()),
        "check the permissions of the folder",
    )
}
