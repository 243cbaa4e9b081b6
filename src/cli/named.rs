//! Names in place of files: `round4` means `configs/round4.toml`, the run file of that name, or the
//! newest run of that round.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};

use super::runs::{self, RESULTS};
use dgx_core::diagnostic::nearest;
use dgx_core::domain::{Pattern, printable_line};
use dgx_core::record::{self, Newest, Search, schema::Header};
use dgx_core::{files, interchange};

pub(super) const CONFIGS: &str = "configs";

/// Takes a round file, or its name in `configs/`.
pub(super) fn round() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|word| round_file(&word))
}

/// Takes a run file, its name in `results/`, or the name of a round for its
/// newest whole run, with a warning about newer files.
pub(super) fn run() -> impl TypedValueParser<Value = PathBuf> {
    newest_run().map(Newest::announced)
}

/// The same, for a command that must know which files were skipped.
pub(super) fn newest_run() -> impl TypedValueParser<Value = Newest> {
    OsStringValueParser::new().try_map(|word| run_file(&word, Search::Whole))
}

/// The same, including incomplete runs.
pub(super) fn any_run() -> impl TypedValueParser<Value = PathBuf> {
    let found = |word: OsString| run_file(&word, Search::Any).map(Newest::announced);
    OsStringValueParser::new().try_map(found)
}

/// Takes either; a name is a round's before it is a run's.
pub(super) fn round_or_run() -> impl TypedValueParser<Value = PathBuf> {
    let either = |word: OsString| {
        let run = || run_file(&word, Search::Whole).map(Newest::announced);
        let found = round_file(&word).or_else(|_| run());
        found.map_err(|_| missing(&word, &[ROUNDS, RUNS]))
    };
    OsStringValueParser::new().try_map(either)
}

/// Whether a word is a path rather than a name.
fn is_path(word: &OsString, extension: &str) -> bool {
    let path = Path::new(word);
    let named = path.extension().is_some_and(|found| found == extension);
    named || path.components().count() != 1 || (path.exists() && !path.is_dir())
}

pub(super) fn round_file(word: &OsString) -> Result<PathBuf, String> {
    let mut name = word.clone();
    name.push(".toml");
    let file = Path::new(CONFIGS).join(name);
    if is_path(word, "toml") {
        return as_round(Path::new(word)).map(|()| word.into());
    }
    if file.is_file() {
        return Ok(file);
    }
    Err(missing(word, &[ROUNDS]))
}

/// Refuses a path that cannot be a round, if it is clear what was meant.
fn as_round(path: &Path) -> Result<(), String> {
    let name = stem(path).unwrap_or_default();
    if path.is_dir() {
        return Err(A_FOLDER.to_owned());
    }
    if path.extension().is_some_and(|ending| ending == "jsonl") {
        return Err("that is a run file, not a round; `dgx show` prints it".to_owned());
    }
    if is_variant(path) {
        let round = Path::new(CONFIGS).join(format!("{name}.toml"));
        let remedy = match round.is_file() {
            true => format!("did you mean {}?", round.display()),
            false => format!("`dgx new NAME` writes a round in {CONFIGS}/"),
        };
        return Err(format!("that is a variant, not a round; {remedy}"));
    }
    let others = files::ending_in(files::folder_of(path), "toml");
    let names: Vec<String> = others.iter().filter_map(|other| stem(other)).collect();
    let near = nearest(&name, names.iter().map(String::as_str)).filter(|_| !path.exists());
    match near {
        Some(near) => Err(format!(
            "there is no such file; did you mean {}?",
            path.with_file_name(format!("{near}.toml")).display()
        )),
        None => Ok(()),
    }
}

const A_FOLDER: &str = "that is a folder; give a file in it";

fn is_variant(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ["cu", "ptx", "py"].contains(&ending))
}

/// Refuses a path that cannot be a run, if it is clear what was meant.
fn as_run(path: &Path) -> Result<(), String> {
    if is_variant(path) {
        return Err("that is a variant, not a run; `dgx sweep ROUND` makes one".to_owned());
    }
    match path.extension().is_some_and(|ending| ending == "toml") {
        true => Err("that is a round, not a run; `dgx sweep` runs it".to_owned()),
        false => Ok(()),
    }
}

fn all_rounds() -> Vec<PathBuf> {
    files::ending_in(Path::new(CONFIGS), "toml")
}

/// The file that a word names, as a round or as a run.
pub(super) fn file(word: &OsString) -> Option<PathBuf> {
    let run = |_| run_file(word, Search::Any).map(|newest| newest.path);
    round_file(word).or_else(run).ok()
}

/// The names of all runs, and of the rounds that have one.
pub(super) fn runs() -> Vec<String> {
    let mut names: Vec<String> = all_runs().iter().filter_map(|path| stem(path)).collect();
    let of_round = |round: &String| {
        let dated = format!("{round}-");
        names.iter().any(|run| run.starts_with(&dated))
    };
    let rounds: Vec<String> = rounds().into_iter().filter(of_round).collect();
    names.extend(rounds);
    names.sort();
    names.dedup();
    names
}

/// The names of all rounds in `configs/`.
pub(super) fn rounds() -> Vec<String> {
    let names = all_rounds().into_iter().filter_map(|path| stem(&path));
    names.collect()
}

fn run_file(word: &OsString, search: Search) -> Result<Newest, String> {
    // Folders of run files and other tools' files are accepted too.
    let path = Path::new(word);
    if is_path(word, "jsonl") || path.is_dir() || interchange::is_foreign(path) {
        return as_run(path).map(|()| Newest::named(word));
    }
    let found = word.to_str().and_then(|name| run_named(name, search));
    found.ok_or_else(|| missing(word, &[RUNS]))
}

/// The run that a name means, if there is one: the newest of the round of that name, or the file of
/// that name. Runs in subfolders count only if there are no others.
fn run_named(name: &str, search: Search) -> Option<Newest> {
    let all = all_runs();
    let of_round = |path: &PathBuf| Some(record::header(path).ok()?).filter(|h| h.name == name);
    let called = |path: &&PathBuf| stem(path).as_deref() == Some(name);
    let file = all.iter().find(called).cloned();
    // A file may have the name of its round and be an old run of it.
    if let Some(file) = file.filter(|file| of_round(file).is_none()) {
        return Some(Newest::named(file));
    }
    let newest = |paths: Vec<PathBuf>| record::newest(paths, Some(name), search, |_| Ok(true));
    let kept = || {
        let headed = |path: PathBuf| Some((of_round(&path)?.started, path));
        let mut headed: Vec<_> = all.into_iter().filter_map(headed).collect();
        headed.sort_by(|a, b| b.cmp(a));
        newest(headed.into_iter().map(|(_, path)| path).collect())
    };
    newest(runs::newest_first()).or_else(kept)
}

/// A word that may be a contender's name or a run's: the run, unless the run in
/// question (or the newest) has such a contender.
pub(super) fn run_rather_than_contender(word: &str, of: Option<&Path>) -> Option<Newest> {
    if is_path(&word.into(), "jsonl") || interchange::is_foreign(Path::new(word)) {
        return Some(Newest::named(word));
    }
    let named = run_named(word, Search::Whole)?;
    let newest = || Some(runs::newest_of(None).ok()?.path);
    let header = of.map(Path::to_owned).or_else(newest);
    let header = header.and_then(|path| record::header(&path).ok());
    let has = |header: &Header| {
        let contenders = header.contenders.iter().map(|c| &c.id);
        let mut all = contenders.chain(&header.yardstick);
        all.any(|id| Pattern::new(word).picks(id))
    };
    header.is_none_or(|header| !has(&header)).then_some(named)
}

/// Those in `results/`, then those in its folders.
fn all_runs() -> Vec<PathBuf> {
    let mut paths = record::runs_in(Path::new(RESULTS));
    let folders = files::entries(Path::new(RESULTS)).into_iter();
    paths.extend(folders.flat_map(|folder| record::runs_in(&folder)));
    paths
}

fn stem(path: &Path) -> Option<String> {
    Some(path.file_stem()?.to_str()?.to_owned())
}

/// The kind of thing that a name can mean, where those lie, and how to make one.
struct NamedKind {
    what: &'static str,
    folder: &'static str,
    all: fn() -> Vec<PathBuf>,
    beginning: &'static str,
}

const ROUNDS: NamedKind = NamedKind {
    what: "round",
    folder: CONFIGS,
    all: all_rounds,
    beginning: "`dgx new NAME` writes one",
};
const RUNS: NamedKind = NamedKind {
    what: "run",
    folder: RESULTS,
    all: all_runs,
    beginning: "`dgx sweep ROUND` makes one",
};
/// Names that are listed if none is similar.
const LISTED: usize = 12;

fn missing(word: &OsString, kinds: &[NamedKind]) -> String {
    let places = kinds
        .iter()
        .map(|kind| format!("no {} of this name in {}/", kind.what, kind.folder));
    let names = kinds.iter().flat_map(|kind| (kind.all)());
    let names = names.filter_map(|path| Some(printable_line(&stem(&path)?)));
    let names: Vec<String> = names.collect();
    let word = word.to_string_lossy();
    let hint = match nearest(&word, names.iter().map(String::as_str)) {
        Some(close) => format!("did you mean `{close}`?"),
        None if names.is_empty() => kinds[0].beginning.to_owned(),
        None => {
            let more = if names.len() > LISTED { ", …" } else { "" };
            format!(
                "there are {}{more}",
                names[..names.len().min(LISTED)].join(", ")
            )
        }
    };
    let places: Vec<String> = places.collect();
    if Path::new(&*word).is_dir() {
        return A_FOLDER.to_owned();
    }
    format!(
        "there is no such file, and {}; {hint}",
        places.join(" and ")
    )
}
