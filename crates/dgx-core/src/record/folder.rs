//! Which of the run files in some folders is the newest, and what a search for
//! it passed over.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::schema::{End, Header};
use super::{ReadError, end, header, runs_in};
use crate::domain::{Timing, printable_line, typed};

/// Every run file directly in these folders, the one last written first.
pub fn newest_first(folders: &[&Path]) -> Vec<PathBuf> {
    let written = |path: &PathBuf| {
        let found = path.metadata().or_else(|_| path.symlink_metadata());
        let found = found.and_then(|m| m.modified());
        found.unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let mut paths: Vec<PathBuf> = folders.iter().flat_map(|folder| runs_in(folder)).collect();
    paths.sort_by_cached_key(|path| std::cmp::Reverse((written(path), path.clone())));
    paths
}

/// The run that a search ended with, and the newer files it passed over.
#[derive(Clone, Debug)]
pub struct Newest {
    pub path: PathBuf,
    pub passed_over: Vec<PassedOver>,
}

/// A file that is not the run meant.
#[derive(Clone, Debug)]
pub struct PassedOver {
    pub path: PathBuf,
    /// With the file's name.
    pub why: String,
    pub remedy: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A run, though not a whole one.
    Partial,
    /// It would have been the run meant, if it could be read.
    Unreadable,
    /// It cannot be read, and nothing says of which round it is.
    Stranger,
}

impl PassedOver {
    /// Whether it would have been the run meant.
    pub fn is_newer_run(&self) -> bool {
        self.kind != Kind::Stranger
    }

    pub fn announce(&self) {
        let why = printable_line(&self.why);
        remark!("warning: passed over: {why}; {}", self.remedy);
    }
}

/// Which runs a search accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// Complete ones; a partial one where there is nothing else.
    Whole,
    /// Complete or not.
    Any,
}

impl Newest {
    /// A file that was named, not searched for.
    pub fn named(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            passed_over: Vec::new(),
        }
    }

    /// The path, after a warning for every file that was passed over.
    pub fn announced(self) -> PathBuf {
        self.passed_over.iter().for_each(PassedOver::announce);
        if !self.passed_over.is_empty() {
            remark!(
                "  reading {}; name a file to read another",
                self.path.display()
            );
        }
        self.path
    }
}

/// The first run of `paths` that `fits` accepts and that is of the round `name`,
/// if one is given.
pub fn newest(
    paths: impl IntoIterator<Item = PathBuf>,
    name: Option<&str>,
    search: Search,
    mut fits: impl FnMut(&Path) -> Result<bool, ReadError>,
) -> Option<Newest> {
    let mut passed_over = Vec::new();
    for path in paths {
        let header = match header(&path) {
            Ok(header) if name.is_some_and(|name| name != header.name) => continue,
            Ok(header) => header,
            Err(error) => {
                let kind = match name {
                    Some(name) if is_called_after(&path, name) => Some(Kind::Unreadable),
                    Some(_) => (!is_stamped(&path)).then_some(Kind::Stranger),
                    None => Some(Kind::Unreadable),
                };
                passed_over.extend(kind.map(|kind| unreadable(path, &error, kind)));
                continue;
            }
        };
        let missing = match search {
            Search::Whole => missing(&header, end(&path).as_ref(), &path),
            Search::Any => None,
        };
        match (fits(&path), missing) {
            (Ok(false), _) => {}
            (Ok(true), None) => return Some(Newest { path, passed_over }),
            (Ok(true), Some((why, remedy))) => passed_over.push(PassedOver {
                why: format!("{}: {why}", path.display()),
                remedy,
                kind: Kind::Partial,
                path,
            }),
            (Err(error), _) => passed_over.push(unreadable(path, &error, Kind::Unreadable)),
        }
    }
    // Where no run is whole, a partial one is meant; where none can be read,
    // whoever reads the first says why.
    let first = |kind: Kind| passed_over.iter().position(|file| file.kind == kind);
    let at = first(Kind::Partial).or_else(|| first(Kind::Unreadable))?;
    let path = passed_over.swap_remove(at).path;
    passed_over.truncate(at);
    Some(Newest { path, passed_over })
}

/// Whether a sweep or a merge of this round would give its file such a name.
pub fn is_called_after(path: &Path, round: &str) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let rest = stem.and_then(|stem| stem.strip_prefix(round));
    let stamped = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('-').is_some_and(stamped))
}

/// Whether a name is one that sweeps give: `ROUND-20260131-2359`.
fn is_stamped(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let digits =
        |part: &str, count: usize| part.len() == count && part.bytes().all(|b| b.is_ascii_digit());
    let parts: Vec<&str> = stem.unwrap_or_default().split('-').collect();
    let mut pairs = parts.windows(2);
    pairs.any(|pair| digits(pair[0], 8) && digits(pair[1], 4))
}

fn unreadable(path: PathBuf, error: &ReadError, kind: Kind) -> PassedOver {
    PassedOver {
        why: error.to_string(),
        remedy: "remove it, or run the sweep again".to_owned(),
        kind,
        path,
    }
}

/// What keeps a run from being whole, and what completes it.
pub fn missing(header: &Header, end: Option<&End>, path: &Path) -> Option<(String, String)> {
    if header.device.timing == Timing::Recorded {
        return None;
    }
    if let Some(shard) = &header.shard {
        let why = format!("it is shard {}/{} of its round", shard.number, shard.of);
        return Some((why, "`dgx merge` joins the shards".to_owned()));
    }
    let why = match end {
        Some(end) if end.complete => return None,
        Some(end) => {
            let reason = end.reason.as_ref().and_then(|why| why.lines().next());
            let reason = reason.map_or(String::new(), |why| format!(" ({why})"));
            format!("it is incomplete{reason}")
        }
        None => "it is incomplete: its sweep was stopped, or still runs".to_owned(),
    };
    let remedy = format!("`dgx sweep --resume {}` completes it", typed(path));
    Some((why, remedy))
}
