//! Finds the newest run file in some folders, and lists the files that the search skipped.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

use super::schema::{Header, RunEnd};
use super::{ReadError, end, header, runs_in};
use crate::domain::{Timing, printable_line, typed};

/// Every run file directly in these folders, the last swept or merged first.
pub fn newest_first(folders: &[&Path]) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = folders.iter().flat_map(|folder| runs_in(folder)).collect();
    paths.sort_by_cached_key(|path| std::cmp::Reverse((age(path), path.clone())));
    paths
}

/// The order of runs: when it was made, by its name and header, which a copy keeps; a merged run
/// before its parts; and when the file was written.
fn age(path: &Path) -> (DateTime, bool, SystemTime) {
    let header = header(path).ok();
    let started = header.as_ref().and_then(|header| {
        let local = header.started.get(.."2026-01-31T23:59:59".len())?;
        local.parse::<DateTime>().ok()
    });
    let found = path.metadata().or_else(|_| path.symlink_metadata());
    let written = found.and_then(|m| m.modified());
    let written = written.unwrap_or(SystemTime::UNIX_EPOCH);
    let made = match (stamp(path), started) {
        (Some(minute), Some(started)) if (minute..end_of(minute)).contains(&started) => started,
        // It may be that late, and is reported if it cannot be read.
        (Some(minute), _) => end_of(minute),
        (None, Some(started)) => started,
        (None, None) => Timestamp::try_from(written)
            .map(|at| at.to_zoned(TimeZone::system()).datetime())
            .unwrap_or_default(),
    };
    (made, header.is_none_or(|h| h.shard.is_none()), written)
}

fn end_of(minute: DateTime) -> DateTime {
    minute.saturating_add(Span::new().seconds(60))
}

/// The local time, to the minute, in the name that a sweep gives: `ROUND-20260131-2359`.
fn stamp(path: &Path) -> Option<DateTime> {
    let parts: Vec<&str> = path.file_stem()?.to_str()?.split('-').collect();
    let mut pairs = parts.windows(2);
    pairs.find_map(|pair| {
        let digits = |part: &str, count: usize| {
            part.len() == count && part.bytes().all(|b| b.is_ascii_digit())
        };
        let stamped = digits(pair[0], 8) && digits(pair[1], 4);
        let text = stamped.then(|| pair.concat())?;
        DateTime::strptime("%Y%m%d%H%M", text).ok()
    })
}

/// The run that a search found, and the newer files it skipped.
#[derive(Clone, Debug)]
pub struct Newest {
    pub path: PathBuf,
    pub passed_over: Vec<PassedOver>,
}

/// A file that the search skipped.
#[derive(Clone, Debug)]
pub struct PassedOver {
    pub path: PathBuf,
    /// With the file's name.
    pub why: String,
    pub remedy: String,
    kind: SkippedKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SkippedKind {
    /// A run, but not a complete one.
    Partial,
    /// It would have been chosen if it could be read.
    Unreadable,
    /// It cannot be read, and nothing shows its round.
    Stranger,
}

impl PassedOver {
    /// Whether it would have been chosen.
    pub fn is_newer_run(&self) -> bool {
        self.kind != SkippedKind::Stranger
    }

    pub fn announce(&self) {
        let why = printable_line(&self.why);
        remark!("warning: passed over: {why}; {}", self.remedy);
    }
}

/// Which runs a search accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// Complete runs; a partial one if there is nothing else.
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

    /// The path, after a warning for every skipped file.
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
                    Some(name) if is_called_after(&path, name) => Some(SkippedKind::Unreadable),
                    Some(_) => stamp(&path).is_none().then_some(SkippedKind::Stranger),
                    None => Some(SkippedKind::Unreadable),
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
                kind: SkippedKind::Partial,
                path,
            }),
            (Err(error), _) => passed_over.push(unreadable(path, &error, SkippedKind::Unreadable)),
        }
    }
    // If no run is complete, a partial one is chosen; if none can be read, reading the first
    // reports the error.
    let first = |kind: SkippedKind| passed_over.iter().position(|file| file.kind == kind);
    let at = first(SkippedKind::Partial).or_else(|| first(SkippedKind::Unreadable))?;
    let path = passed_over.swap_remove(at).path;
    passed_over.truncate(at);
    Some(Newest { path, passed_over })
}

/// Whether a sweep or a merge of this round would name its file so.
pub fn is_called_after(path: &Path, round: &str) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let rest = stem.and_then(|stem| stem.strip_prefix(round));
    let stamped = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('-').is_some_and(stamped))
}

fn unreadable(path: PathBuf, error: &ReadError, kind: SkippedKind) -> PassedOver {
    PassedOver {
        why: error.to_string(),
        remedy: "remove it, or run the sweep again".to_owned(),
        kind,
        path,
    }
}

/// Why a run is incomplete, and what completes it.
pub fn missing(header: &Header, end: Option<&RunEnd>, path: &Path) -> Option<(String, String)> {
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

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::Duration;

    use super::*;
    use crate::record::synthetic::Synthetic;

    /// The newest of files with these names and starts, written one after the other, the last one
    /// first.
    fn newest_of(files: &[(&str, Option<&str>)]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        for (place, (name, started)) in files.iter().enumerate() {
            let path = folder.path().join(name);
            let text = match started {
                Some(started) => {
                    Synthetic::round4()
                        .text()
                        .replacen("2026-11-15T09:12:00Z", started, 1)
                }
                None => String::new(),
            };
            fs::write(&path, text).unwrap();
            let hours = Duration::from_secs(3600 * place as u64);
            let file = File::options().append(true).open(&path).unwrap();
            file.set_modified(now - hours).unwrap();
        }
        let found = newest_first(&[folder.path()]);
        assert_eq!(found.len(), files.len());
        found[0].file_name().unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn what_was_swept_last_is_newest_whatever_touched_the_others() {
        const EARLY: &str = "2026-11-15T09:12:30+01:00";
        const LATE: &str = "2026-11-15T09:14:00+01:00";
        // By name.
        let names = [
            ("round4-20261115-0912.jsonl", Some(EARLY)),
            ("round4-20261115-0914.jsonl", Some(LATE)),
        ];
        assert_eq!(newest_of(&names), names[1].0);
        // By header, if the name has no time.
        let names = [("copy.jsonl", Some(EARLY)), ("b.jsonl", Some(LATE))];
        assert_eq!(newest_of(&names), "b.jsonl");
        let names = [
            ("copy.jsonl", Some(EARLY)),
            ("round4-20261115-0914.jsonl", Some(LATE)),
        ];
        assert_eq!(newest_of(&names), names[1].0);
        // Within a minute the header counts.
        let names = [
            ("round4-20261115-0912.jsonl", Some(EARLY)),
            (
                "round4-20261115-0912-2.jsonl",
                Some("2026-11-15T09:12:45+01:00"),
            ),
        ];
        assert_eq!(newest_of(&names), names[1].0);
        // A file without a header may be the newest; its name says when.
        let names = [
            ("round4-20261115-0912.jsonl", Some(EARLY)),
            ("round4-20261115-0914.jsonl", None),
        ];
        assert_eq!(newest_of(&names), names[1].0);
        // If nothing is recorded, the file's own time counts.
        let names = [("a.jsonl", None), ("b.jsonl", Some(LATE))];
        assert_eq!(newest_of(&names), "a.jsonl");
    }
}
