use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{Globals, named, runs};
use crate::agreement::Agreement;
use crate::contest::dispatch_table::dispatch_table;
use crate::contest::lineage::lineage;
use crate::contest::story;
use crate::export;
use crate::report::{RankedRun, page};
use dgx_core::diagnostic::{CommandError, InputError};
use dgx_core::domain::Exit;
use dgx_core::rank::mismatch;
use dgx_core::record;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Run files, oldest first; the last is shown in full [default: the newest in results/]
    #[arg(value_name = "RUN", value_parser = named::run())]
    runs: Vec<PathBuf>,
    /// Where to write the page [default: beside the last run file]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// Put runs of different GPUs or backends on one page, labelled
    #[arg(long)]
    across_devices: bool,
    /// Compare modelled with measured times: a file from `dgx calibrate RUN
    /// --export-json`
    #[arg(long, value_name = "FILE")]
    modelled: Option<PathBuf>,
}

pub(super) fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    let paths = match args.runs.is_empty() {
        true => vec![runs::newest()?],
        false => args.runs.clone(),
    };
    let beside = || paths.last().map(|path| path.with_extension("html"));
    let output = args.output.clone().or_else(beside);
    runs::probe(
        [&output],
        paths.iter().chain(&args.modelled).map(PathBuf::as_path),
    )?;
    let modelled = args.modelled.as_deref().map(Agreement::read).transpose()?;
    let subjects = subjects(&args, &paths)?;
    let (Some(last), Some(output)) = (subjects.last(), output) else {
        return Ok(Exit::Done);
    };
    export::write(&output, &page(&subjects, modelled.as_ref()))?;
    let nodes = lineage(&last.run, &last.ranking);
    let table = dispatch_table(&last.run, &last.ranking);
    if nodes.iter().any(|n| n.depth > 0) {
        say!("{}\n", story::lineage_tree(&nodes));
    }
    if let Some(table) = &table {
        say!("{}", story::dispatch_note(table, &runs::style(globals)));
    }
    say!("{}", output.display());
    if args.open {
        let opened = match has_display() {
            true => open(&output),
            // A program that opens pages would report this to nobody.
            false => Err("there is no display (DISPLAY, WAYLAND_DISPLAY, BROWSER)".to_owned()),
        };
        opened.map_err(|why| {
            let message = format!("no browser could be started: {why}");
            CommandError::could_not_run(message, "open the page by hand")
        })?;
    }
    Ok(Exit::Done)
}

fn open(page: &Path) -> Result<(), String> {
    let ended = std::process::Command::new("xdg-open").arg(page).status();
    match ended.map_err(|error| format!("xdg-open: {error}"))? {
        status if status.success() => Ok(()),
        status => Err(format!("xdg-open: {status}")),
    }
}

fn has_display() -> bool {
    let set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let at_all = ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"];
    !cfg!(target_os = "linux") || at_all.iter().any(set)
}

fn subjects(args: &Args, paths: &[PathBuf]) -> Result<Vec<RankedRun>, CommandError> {
    let mut subjects: Vec<RankedRun> = Vec::new();
    for path in paths {
        let (run, hash) = rayon::join(|| record::read(path), || digest(path));
        let run = run?;
        if let Some(first) = subjects.first()
            && let Some(difference) = mismatch(&first.run, &run)
            && !(args.across_devices && difference.is_of_devices())
        {
            let message = format!("the runs {}", difference.why());
            let remedy = match difference.is_of_devices() {
                true => {
                    "give runs of one device, or --across-devices to put them on one page, labelled"
                }
                false => difference.remedy(),
            };
            return Err(InputError::new(message, remedy).into());
        }
        let io = record::ReadError::io(path);
        subjects.push(RankedRun::new(run, hash.map_err(io)?));
    }
    Ok(subjects)
}

/// SHA-256 of a file, in little memory.
fn digest(path: &Path) -> std::io::Result<String> {
    let mut file = dgx_core::files::open(path)?;
    let mut digest = Sha256::new();
    let mut piece = vec![0; 1 << 20];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            read => digest.update(&piece[..read]),
        }
    }
    let bytes = digest.finalize();
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}
