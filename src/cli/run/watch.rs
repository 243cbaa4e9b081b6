use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, SystemTime};

use clap::ValueEnum;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cli::runs::{WATCHED, whole};
use crate::cli::{Globals, named};
use dgx_core::config::{Round, target};
use dgx_core::diagnostic::CommandError;
use dgx_core::domain::{Exit, Joined, content_hash, typed};
use dgx_core::interrupt::{self, SignalMessages};
use dgx_run::catalog::{Catalog, DEFAULT_FOLDER};
use dgx_run::plan::{Plan, PlanTarget};
use dgx_run::sweep::contender_record;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  dgx watch mine
  dgx watch mine -- --backend emu --schedule 3

The first sweep runs the whole round, later ones the contenders that changed and
the baseline. Each replaces the run file of the previous one,
results/watch/ROUND.jsonl, which counts as the newest run. Ctrl-C ends it.")]
pub(crate) struct Args {
    /// Round file, or its name in configs/
    #[arg(value_name = "ROUND", value_parser = named::round())]
    round: PathBuf,
    /// Stop after N sweeps
    #[arg(long, value_name = "N", value_parser = whole(1..=u32::MAX))]
    runs: Option<u32>,
    /// Flags for `dgx sweep`
    #[arg(last = true, value_name = "SWEEP FLAGS")]
    sweep: Vec<String>,
}

/// How often files are checked, and how long they must stay unchanged before they count as saved.
const LOOK: Duration = Duration::from_millis(200);

const WATCHING: SignalMessages = SignalMessages {
    first: Some("no longer watching"),
    second: "ended",
};

/// Sweeps the changed contenders whenever a file of the round changes.
pub(super) fn run(args: Args, globals: &Globals) -> Result<Exit, CommandError> {
    Round::read(&args.round)?;
    interrupt::install(WATCHING);
    let mut watched = Watched::new(&args.round, &globals.variants);
    let mut known = BTreeMap::new();
    let mut runs = 0;
    while !interrupt::requested() && args.runs.is_none_or(|most| runs < most) {
        let seen = watched.settled();
        let (now, headers) = fingerprints(&args.round, globals);
        if watched.headers != headers {
            watched.headers = headers;
            continue;
        }
        let changed = changed(&known, &now);
        known = now;
        if changed.is_empty() && runs > 0 {
            watched.wait(&seen);
            continue;
        }
        remark!("{}", announced(&changed, runs));
        let code = sweep(&args, globals, &changed, runs, &watched, &seen)?;
        runs += 1;
        let done = args.runs.is_some_and(|most| runs >= most);
        if let Some(code) = code
            && !done
        {
            remark!("exit {code}; waiting for a change in {}", watched.names());
            watched.wait(&seen);
        }
    }
    Ok(Exit::Done)
}

/// A hash of the sources of each contender, by its name; that of the round has an empty name. A
/// contender that cannot be read is reported by the sweep.
type Fingerprints = BTreeMap<String, String>;

/// The fingerprints, and the headers outside the folders of variants.
fn fingerprints(path: &Path, globals: &Globals) -> (Fingerprints, BTreeSet<PathBuf>) {
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut headers = BTreeSet::new();
    let mut found = Fingerprints::from([(String::new(), content_hash([text.as_bytes()]))]);
    let plan = Round::read(path).and_then(|round| {
        let catalog = Catalog::open(&globals.variants)?;
        Plan::new(round, &catalog, &PlanTarget::of(target::default_device()))
    });
    if let Ok(plan) = plan {
        for contender in &plan.contenders {
            let hash = contender_record(contender).hash;
            found.insert(contender.id.as_str().to_owned(), hash);
            let variant = &contender.variant;
            headers.extend(variant.headers.found().map(Path::to_owned));
            // A missing file may still be created there.
            headers.extend(variant.include.iter().cloned());
        }
    }
    (found, headers)
}

/// The contenders that changed; if the round itself changed, its empty name is among them.
fn changed(known: &Fingerprints, now: &Fingerprints) -> BTreeSet<String> {
    let differs = |name: &&String| known.get(*name) != now.get(*name);
    let names = known.keys().chain(now.keys());
    names.filter(differs).cloned().collect()
}

fn announced(changed: &BTreeSet<String>, runs: u32) -> String {
    match (runs, changed.contains("")) {
        (0, _) => "sweeping the whole round".to_owned(),
        (_, true) => "the round changed: sweeping all of it".to_owned(),
        (_, false) => {
            let names = changed.iter().map(String::as_str).joined(", ");
            format!("changed: {names}")
        }
    }
}

/// Runs a sweep to its end, or until a file changes; returns its exit code.
fn sweep(
    args: &Args,
    globals: &Globals,
    changed: &BTreeSet<String>,
    runs: u32,
    watched: &Watched,
    seen: &Stamps,
) -> Result<Option<i32>, CommandError> {
    let failed = |why: std::io::Error| {
        let message = format!("cannot sweep {}: {why}", args.round.display());
        CommandError::could_not_run(message, "`dgx sweep` may print more")
    };
    let name = args.round.file_stem().unwrap_or_default().to_string_lossy();
    let into = Path::new(WATCHED).join(format!("{name}.jsonl"));
    fs::create_dir_all(WATCHED).map_err(failed)?;
    match fs::remove_file(&into) {
        Err(why) if why.kind() != std::io::ErrorKind::NotFound => return Err(failed(why)),
        _ => {}
    }
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command.arg("sweep").arg(&args.round);
    for folder in &globals.variants {
        command.arg("--variants").arg(folder);
    }
    if let Some(when) = globals.color.to_possible_value() {
        command.arg("--color").arg(when.get_name());
    }
    if globals.quiet {
        command.arg("--quiet");
    }
    for _ in 0..globals.verbose {
        command.arg("--verbose");
    }
    if runs > 0 && !changed.contains("") {
        // The sweep adds the baseline by itself.
        for contender in changed {
            command.arg("--only").arg(contender);
        }
    }
    command.arg("--into").arg(&into).args(&args.sweep);
    let mut child = command.spawn().map_err(failed)?;
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(status.code());
        }
        if interrupt::requested() {
            // It has received the same signal if that came from the terminal.
            end(&mut child);
            return Ok(None);
        }
        if watched.stamps() != *seen {
            remark!("a file changed: beginning again");
            end(&mut child);
            return Ok(None);
        }
        thread::sleep(LOOK);
    }
}

/// Ends a sweep whose result is no longer needed.
fn end(child: &mut Child) {
    if let Ok(pid) = i32::try_from(child.id()) {
        let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
    }
    for _ in 0..10 {
        if matches!(child.try_wait(), Ok(Some(_)) | Err(_)) {
            return;
        }
        thread::sleep(LOOK / 2);
    }
    // Its workers end with it.
    let _ = child.kill();
    let _ = child.wait();
}

/// Files whose change may matter, with the time of the last change.
type Stamps = BTreeMap<PathBuf, (SystemTime, u64)>;

/// A round file, and the folders its variants and their headers are in.
struct Watched {
    round: PathBuf,
    folders: Vec<PathBuf>,
    /// Headers of other folders, and the folders they are searched for in.
    headers: BTreeSet<PathBuf>,
}

/// How deep the folders of variants are searched, and for how many files in all.
const DEPTH: usize = 8;
const FILES: usize = 10_000;

impl Watched {
    fn new(round: &Path, variants: &[PathBuf]) -> Self {
        let mut folders = variants.to_vec();
        let usual = PathBuf::from(DEFAULT_FOLDER);
        // All variants may include these headers.
        if !folders.contains(&usual) {
            folders.push(usual);
        }
        Self {
            round: round.to_owned(),
            folders,
            headers: BTreeSet::new(),
        }
    }

    fn names(&self) -> String {
        let folders = self.folders.iter().chain(&self.headers);
        let folders = folders.filter(|folder| folder.is_dir());
        let all = std::iter::once(&self.round).chain(folders);
        all.map(typed).joined(", ")
    }

    fn stamps(&self) -> Stamps {
        let mut stamps = Stamps::new();
        for path in std::iter::once(&self.round).chain(&self.headers) {
            note(path, &mut stamps);
        }
        let mut folders: Vec<(PathBuf, usize)> =
            self.folders.iter().map(|f| (f.clone(), 0)).collect();
        while let Some((folder, depth)) = folders.pop() {
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            for entry in entries {
                let Ok(kind) = entry.file_type() else {
                    continue;
                };
                if kind.is_dir() && depth < DEPTH {
                    folders.push((entry.path(), depth + 1));
                } else if !kind.is_dir() && stamps.len() < FILES {
                    note(&entry.path(), &mut stamps);
                }
            }
        }
        stamps
    }

    /// The state of the files once nothing writes to them.
    fn settled(&self) -> Stamps {
        let mut before = self.stamps();
        while !interrupt::requested() {
            thread::sleep(LOOK / 2);
            let now = self.stamps();
            if now == before {
                break;
            }
            before = now;
        }
        before
    }

    /// Waits until a file changes, or the user stops.
    fn wait(&self, seen: &Stamps) {
        while !interrupt::requested() && self.stamps() == *seen {
            thread::sleep(LOOK);
        }
    }
}

fn note(path: &Path, stamps: &mut Stamps) {
    if let Ok(about) = fs::metadata(path)
        && let Ok(changed) = about.modified()
    {
        stamps.insert(path.to_owned(), (changed, about.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprints(all: &[(&str, &str)]) -> Fingerprints {
        let owned = |(name, hash): &(&str, &str)| ((*name).to_owned(), (*hash).to_owned());
        all.iter().map(owned).collect()
    }

    #[test]
    fn only_who_changed_is_swept_again() {
        let known = fingerprints(&[("", "r"), ("a", "1"), ("b", "2")]);
        assert!(changed(&known, &known).is_empty());
        let now = fingerprints(&[("", "r"), ("a", "1"), ("b", "3"), ("c", "4")]);
        let names = changed(&known, &now);
        assert_eq!(names.iter().collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(announced(&names, 1), "changed: b, c");
        let round = fingerprints(&[("", "s"), ("a", "1"), ("b", "2")]);
        assert!(changed(&known, &round).contains(""));
    }
}
