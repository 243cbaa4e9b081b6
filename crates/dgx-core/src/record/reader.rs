//! Loads a run file. The last line may be half written, because a sweep can be killed at any byte;
//! any other disorder is refused with its line, since a table from half-understood records would
//! look as reliable as one from good ones.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;

use super::edge;
use super::lines::{Stopped, pieces};
use super::loading::{RefusedLine, RunLoader};
use super::run::Run;
use super::schema::{Header, Line, SCHEMA};
use crate::clean;
use crate::decode::plain_in_line;
use crate::diagnostic::{CommandError, InputError};
use crate::files;

/// Why a run file cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    #[error("cannot read run file {}: {source}", path.display())]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{}:1: this is not a dgx run file: {found}", path.display())]
    Foreign { path: PathBuf, found: String },
    #[error("{}:1: its first line is incomplete", path.display())]
    Cut { path: PathBuf },
    #[error("{}:1: written with schema {found}; this dgx reads schema {SCHEMA}", path.display())]
    Schema { path: PathBuf, found: u64 },
    #[error("{}:{line}: {message}", path.display())]
    Corrupt {
        path: PathBuf,
        line: usize,
        message: String,
    },
    #[error("no run file in {}", dir.display())]
    NoRuns { dir: PathBuf },
}

impl ReadError {
    /// Turns an I/O error of this file into a `ReadError`.
    pub fn io(path: &Path) -> impl Fn(std::io::Error) -> Self + Copy {
        move |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    fn foreign(path: &Path, found: &str) -> Self {
        Self::Foreign {
            path: path.to_owned(),
            found: found.to_owned(),
        }
    }

    fn corrupt(path: &Path, line: usize, message: String) -> Self {
        Self::Corrupt {
            path: path.to_owned(),
            line,
            message,
        }
    }

    /// What the user can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Io { .. } => "check the path; run files lie in results/ and end in .jsonl",
            Self::Foreign { .. } => "give a .jsonl file that `dgx sweep` wrote",
            Self::Schema { .. } => "read it with the dgx that wrote it, or run the sweep again",
            Self::Cut { .. } => "the sweep was killed while it wrote that line: run it again",
            Self::Corrupt { .. } => {
                "the file was changed after it was written: restore it, or run the sweep again"
            }
            Self::NoRuns { .. } => "name a run file, or make one with `dgx sweep ROUND`",
        }
    }
}

impl From<ReadError> for CommandError {
    fn from(error: ReadError) -> Self {
        InputError::new(error.to_string(), error.remedy()).into()
    }
}

/// Reads the run file at `path`, in memory that does not grow with the number
/// of its blocks.
pub fn read(path: &Path) -> Result<Run, ReadError> {
    let file = files::open(path).map_err(ReadError::io(path))?;
    read_from(path, file)
}

/// All files directly in `dir` that have the name of a run file, sorted by name; empty if `dir`
/// cannot be listed.
pub fn runs_in(dir: &Path) -> Vec<PathBuf> {
    files::ending_in(dir, "jsonl")
}

/// The header alone, without reading the rest of the file.
pub fn header(path: &Path) -> Result<Header, ReadError> {
    let io = ReadError::io(path);
    let mut first = Vec::new();
    let file = files::open(path).map_err(io)?.take(edge::LINE as u64);
    BufReader::new(file)
        .read_until(b'\n', &mut first)
        .map_err(io)?;
    read_header(path, &first)
}

/// Reads run-file text; `path` is for messages and for [`Run::path`].
#[cfg(any(test, feature = "synthetic"))]
pub fn read_text(path: &Path, bytes: &[u8]) -> Result<Run, ReadError> {
    read_from(path, bytes)
}

fn read_from(path: &Path, source: impl Read) -> Result<Run, ReadError> {
    let corrupt = |refused: RefusedLine| ReadError::corrupt(path, refused.line, refused.message);
    let mut loading: Option<RunLoader> = None;
    let read = pieces(source, |line, text| {
        if let Some(loading) = &mut loading {
            return loading.take(line, text).map_err(corrupt);
        }
        let end = text.iter().position(|b| *b == b'\n');
        let (first, rest) = text.split_at(end.map_or(text.len(), |at| at + 1));
        let run = Run::begun(path.to_owned(), read_header(path, first)?);
        loading
            .insert(RunLoader::new(run))
            .take(line + 1, rest)
            .map_err(corrupt)
    });
    read.map_err(|stopped| match stopped {
        Stopped::Io(source) => ReadError::io(path)(source),
        Stopped::TooLong(1) => ReadError::foreign(path, "its first line does not end"),
        Stopped::TooLong(line) => {
            let message = format!("the line is longer than {} MiB", edge::LINE >> 20);
            ReadError::corrupt(path, line, message)
        }
        Stopped::Refused(error) => error,
    })?;
    let loading = loading.ok_or_else(|| ReadError::foreign(path, "it is empty"))?;
    loading.finish().map_err(corrupt)
}

/// How the header of a run file begins.
const BEGINNING: &[u8] = br#"{"type":"header""#;

/// The part of a first line that shows the file's tool and version.
#[derive(Deserialize)]
struct FirstLine {
    #[serde(rename = "type")]
    kind: String,
    schema: u64,
}

fn read_header(path: &Path, line: &[u8]) -> Result<Header, ReadError> {
    let foreign = |found: &str| ReadError::foreign(path, found);
    if line.is_empty() {
        return Err(foreign("it is empty"));
    }
    let is_cut = line.starts_with(BEGINNING) && !line.ends_with(b"\n");
    let peek: FirstLine = serde_json::from_slice(line).map_err(|_| match is_cut {
        true => ReadError::Cut {
            path: path.to_owned(),
        },
        false => foreign("its first line is not a header with `type` and `schema`"),
    })?;
    if peek.kind != "header" {
        return Err(foreign("its first line is not a header"));
    }
    if peek.schema != u64::from(SCHEMA) {
        return Err(ReadError::Schema {
            path: path.to_owned(),
            found: peek.schema,
        });
    }
    let corrupt = |message: String| ReadError::corrupt(path, 1, message);
    match clean::parse(line) {
        Ok(Line::Header(mut header)) => {
            let operator = header.operator().map_err(corrupt)?;
            header.order_sizes(&operator);
            edge::header(&header).map_err(corrupt)?;
            Ok(*header)
        }
        Ok(_) => Err(foreign("its first line is not a header")),
        Err(error) => Err(corrupt(plain_in_line(&error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ContenderId;
    use crate::record::synthetic::Synthetic;

    fn parse(text: &str) -> Result<Run, ReadError> {
        read_text(Path::new("results/x.jsonl"), text.as_bytes())
    }

    fn message(text: &str) -> String {
        let error = parse(text).unwrap_err();
        format!("{error}; {}", error.remedy())
    }

    #[test]
    fn a_half_written_last_line_is_dropped_and_told() {
        let whole = Synthetic::round4().text();
        let torn = &whole[..whole.len() - 40];
        let run = parse(torn).unwrap();
        assert!(run.torn && run.end.is_none());
        assert!(!parse(&whole).unwrap().torn);
    }

    #[test]
    fn a_broken_line_in_the_middle_is_refused_with_its_number() {
        let text = Synthetic::round4()
            .text()
            .replacen("\"type\":\"build\"", "\"type\":", 1);
        assert!(
            message(&text).starts_with("results/x.jsonl:2: "),
            "{}",
            message(&text)
        );
    }

    #[test]
    fn foreign_and_empty_files_are_named() {
        assert!(message("").contains("it is empty"));
        assert!(message("hello\n").contains("not a dgx run file"));
        assert!(message("{\"type\":\"block\",\"schema\":1}\n").contains("not a header"));
    }

    #[test]
    fn a_header_that_was_cut_and_a_line_that_is_a_list_are_damage() {
        let whole = Synthetic::round4().text();
        assert!(message(&whole[..100]).contains("its first line is incomplete"));
        let (header, _) = whole.split_once('\n').unwrap();
        let error = message(&format!("{header}\n[1, 2]\n"));
        assert!(error.contains("x.jsonl:2: the line is damaged"), "{error}");
    }

    #[test]
    fn another_schema_is_refused_before_it_is_misread() {
        let text = Synthetic::round4()
            .text()
            .replacen("\"schema\":1", "\"schema\":2", 1);
        let text = message(&text);
        assert!(text.contains("schema 2; this dgx reads schema 1"), "{text}");
    }

    #[test]
    fn impossible_times_are_refused() {
        for bad in ["0.0", "-1.0", "null", "1e999"] {
            let mut lines: Vec<String> = Synthetic::round4()
                .text()
                .lines()
                .map(String::from)
                .collect();
            let at = lines.iter().position(|l| l.contains("\"block\"")).unwrap();
            let (before, rest) = lines[at].split_once("\"micros\":").unwrap();
            let (_, after) = rest.split_once(',').unwrap();
            lines[at] = format!("{before}\"micros\":{bad},{after}");
            let text = message(&(lines.join("\n") + "\n"));
            assert!(
                text.contains(&format!("x.jsonl:{}: ", at + 1)),
                "{bad}: {text}"
            );
        }
    }

    #[test]
    fn strangers_and_second_headers_are_refused() {
        let whole = Synthetic::round4().text();
        let stranger = whole.replacen(
            "{\"type\":\"verdict\",\"contender\":\"two-pass\"",
            "{\"type\":\"verdict\",\"contender\":\"nobody\"",
            1,
        );
        assert!(message(&stranger).contains("contender `nobody` is not in the header"));
        assert!(message(&(whole.clone() + &whole)).contains("two run files were joined"));
        let unknown = whole.replacen("\"seed\"", "\"sead\"", 1);
        assert!(message(&unknown).contains("sead"));
    }

    #[test]
    fn the_last_verdict_of_a_cell_wins() {
        let text = Synthetic::round4().text();
        let (before, end) = text.split_once("{\"type\":\"end\"").unwrap();
        let shape = &crate::record::synthetic::shapes()[0].name;
        let later = format!(
            "{{\"type\":\"verdict\",\"contender\":\"two-pass\",\"shape\":\"{shape}\",\"status\":\"wrong\",\
             \"reason\":\"stale tile\",\"detail\":null,\"worst\":9.0,\"millis\":1.0}}\n"
        );
        let run = parse(&format!("{before}{later}{{\"type\":\"end\"{end}")).unwrap();
        let id = ContenderId::from_text("two-pass");
        assert_eq!(run.status(&id, shape), Some(crate::domain::Status::Wrong));
        assert_eq!(run.reason(&id, shape), Some("stale tile"));
    }
}
