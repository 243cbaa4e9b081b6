//! The files in `results/`, and which of them may be removed.

mod mentions;
mod prune;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;

use super::{Globals, runs};
use crate::present::{Column, Table};
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{Bytes, Exit, Timing, counted, printable_line};
use dgx_core::record::schema::Header;
use dgx_core::{files, record};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dgx results                          every run in results/, the newest first
  dgx results prune --keep 5           what would go if five of each round stayed
  dgx results prune --keep 5 --yes     remove it")]
pub(super) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Folder with the run files
    #[arg(long, value_name = "DIR", default_value = runs::RESULTS, global = true)]
    results: PathBuf,
    /// Write the list as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    export_json: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Remove old runs; without --yes, list them
    Prune(prune::Rule),
}

/// Lists the runs, or removes old ones.
pub(super) fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    let entries = entries(&args.results);
    if let Some(Action::Prune(rule)) = &args.action {
        return prune::run(rule, &args.results, &entries, &runs::style(globals));
    }
    runs::probe(
        [&args.export_json],
        entries.iter().map(|e| e.file.as_path()),
    )?;
    let written = runs::write_all([(&args.export_json, &|| {
        let list = serde_json::to_string_pretty(&entries);
        list.unwrap_or_default() + "\n"
    })]);
    say!("{}", table(&entries).render(&runs::style(globals)));
    let bytes = Bytes(entries.iter().map(|e| e.bytes).sum());
    let folder = args.results.display();
    inform!("{} in {folder}, {bytes}", counted(entries.len(), "run"));
    written?;
    Ok(Exit::Done)
}

/// A file that has the name of a run.
#[derive(Debug, Serialize)]
struct RunEntry {
    file: PathBuf,
    round: Option<String>,
    started: Option<String>,
    device: Option<String>,
    backend: Option<&'static str>,
    /// `complete`, `incomplete`, `shard 1/2` or `unreadable`.
    state: String,
    /// Of the run file and the machine code beside it.
    bytes: u64,
    #[serde(skip)]
    written: SystemTime,
    #[serde(skip)]
    timing: Option<Timing>,
    /// Which part of its round it is, of how many.
    #[serde(skip)]
    shard: Option<(u32, u32)>,
}

impl RunEntry {
    fn of(path: &Path) -> Self {
        let header = record::header(path).ok();
        let about = path.symlink_metadata().ok();
        let written = about.as_ref().and_then(|about| about.modified().ok());
        let code: u64 = code(path).iter().map(|file| length(file)).sum();
        Self {
            state: state(path, header.as_ref()),
            bytes: length(path) + code,
            written: written.unwrap_or(SystemTime::UNIX_EPOCH),
            timing: header.as_ref().map(|h| h.device.timing),
            shard: (header.as_ref())
                .and_then(|h| Some((h.shard.as_ref()?.number, h.shard.as_ref()?.of))),
            backend: header.as_ref().map(|h| h.device.backend.as_str()),
            device: header.as_ref().map(|h| h.device.name.clone()),
            started: header.as_ref().map(|h| h.started.clone()),
            round: header.map(|h| h.name),
            file: path.to_owned(),
        }
    }

    fn is_complete(&self) -> bool {
        self.state == COMPLETE
    }

    /// The name that a command takes for it.
    fn name(&self) -> String {
        let stem = self.file.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }
}

const COMPLETE: &str = "complete";

fn state(path: &Path, header: Option<&Header>) -> String {
    let Some(header) = header else {
        return "unreadable".to_owned();
    };
    let end = record::end(path);
    match (&header.shard, record::missing(header, end.as_ref(), path)) {
        (Some(shard), _) => format!("shard {}/{}", shard.number, shard.of),
        (None, Some(_)) => "incomplete".to_owned(),
        (None, None) => COMPLETE.to_owned(),
    }
}

/// The files of machine code that a sweep put beside its run.
fn code(run: &Path) -> Vec<PathBuf> {
    let folder = run.with_extension("cubins");
    if folder.is_symlink() {
        return Vec::new();
    }
    files::ending_in(&folder, "cubin")
}

fn length(path: &Path) -> u64 {
    let about = path.symlink_metadata();
    about.map_or(0, |about| about.len())
}

/// The runs of sweeps and of `dgx watch`, the last written first.
fn entries(results: &Path) -> Vec<RunEntry> {
    let folders = [results, &results.join("watch")];
    let paths = record::newest_first(&folders);
    paths.iter().map(|path| RunEntry::of(path)).collect()
}

fn table(entries: &[RunEntry]) -> Table {
    let mut grid = Table::new(vec![
        Column::key("run"),
        Column::left("round").weight(6),
        Column::left("started").weight(5),
        Column::left("device").weight(4),
        Column::left("backend").weight(4),
        Column::left("state").weight(8),
        Column::right("size").weight(7),
    ]);
    for entry in entries {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let started = text(&entry.started).replacen('T', " ", 1);
        grid.push(vec![
            printable_line(&entry.name()),
            text(&entry.round),
            started.chars().take("2026-01-01 00:00".len()).collect(),
            match entry.timing {
                Some(Timing::Modelled) => format!("{}, emulated", text(&entry.device)),
                _ => text(&entry.device),
            },
            entry.backend.unwrap_or_default().to_owned(),
            entry.state.clone(),
            Bytes(entry.bytes).to_string(),
        ]);
    }
    grid
}
