use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Globals, named, runs};
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::Exit;
use dgx_core::merge::{HeaderChanges, Merged, merge, then};
use dgx_core::record::{self, Slot};
use dgx_core::record::{argv, stamp, verdict_exit};

/// Join the run files of a round that was swept in parts.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run files of one round, or folders of them
    #[arg(required = true, value_name = "RUN", value_parser = named::any_run())]
    runs: Vec<PathBuf>,
    /// Write the merged run here [default: a new file in results/]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// If the output file exists, merge its run as well and replace it
    #[arg(long, requires = "output")]
    force: bool,
}

pub(crate) fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    let files = files(&args.runs)?;
    if let Some(path) = args.output.as_ref().filter(|path| path.exists())
        && !args.force
    {
        return Err(CommandError::usage(
            format!("{} exists", path.display()),
            "name another file, or give --force to merge its run as well and replace it",
        ));
    }
    let slot = match &args.output {
        Some(path) => Slot::at(path),
        None => {
            let name = record::header(&files[0])?.name;
            Slot::fresh(Path::new(runs::RESULTS), &name, &stamp())
        }
    };
    let title = HeaderChanges {
        argv: argv(),
        config: None,
    };
    let slot = slot.map_err(|e| CommandError::from(&e))?;
    let Merged { run, missing } = merge(&files, slot, title)?;
    runs::summarise(&run, None, false, globals);
    for lack in &missing {
        remark!("missing: {}\n  {}", lack.what, lack.commands.join("\n  "));
    }
    if missing.is_empty() {
        return Ok(verdict_exit(&run));
    }
    if let Some(command) = then(&missing, &run.path) {
        remark!("then:\n  {command}");
    }
    Ok(Exit::Inconclusive)
}

/// The files named, and those in the folders named.
fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
    let mut files = Vec::new();
    for path in named {
        match path.is_dir() {
            true => files.extend(record::runs_in(path)),
            false => files.push(path.clone()),
        }
    }
    let mut seen = BTreeSet::new();
    let place = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    if let Some(again) = files.iter().find(|path| !seen.insert(place(path))) {
        return Err(CommandError::usage(
            format!("{} is named twice", again.display()),
            "name each run once",
        ));
    }
    match files.is_empty() {
        false => Ok(files),
        true => Err(CommandError::usage(
            "none of the named paths is or contains a run file",
            "name the .jsonl files of the shards, or their folder",
        )),
    }
}
