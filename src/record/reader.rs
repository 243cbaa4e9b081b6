//! Loads a run file. The last line may be half written, because a sweep can be
//! killed at any byte; anything else that is out of order is refused with its
//! line, since a table made from half-understood records would look just as
//! sure as one made from good ones.

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Deserialize;
use thiserror::Error;

use super::clean;
use super::run::Run;
use super::schema::{Block, Header, Line, SCHEMA};
use crate::domain::{ContenderId, Micros};

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
    /// What the user can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Io { .. } => "check the path; run files lie in results/ and end in .jsonl",
            Self::Foreign { .. } => "give a .jsonl file that `dgx sweep` wrote",
            Self::Schema { .. } => "read it with the dgx that wrote it, or run the sweep again",
            Self::Corrupt { .. } => {
                "the file was changed after it was written: restore it, or run the sweep again"
            }
            Self::NoRuns { .. } => "name a run file, or make one with `dgx sweep CONFIG`",
        }
    }
}

/// Reads the run file at `path`.
pub fn read(path: &Path) -> Result<Run, ReadError> {
    let bytes = std::fs::read(path).map_err(|source| ReadError::Io {
        path: path.to_owned(),
        source,
    })?;
    read_text(path, &bytes)
}

/// The most recently written run file directly in `dir`.
pub fn newest(dir: &Path) -> Result<PathBuf, ReadError> {
    let none = || ReadError::NoRuns {
        dir: dir.to_owned(),
    };
    let entries = std::fs::read_dir(dir).map_err(|_| none())?;
    let files = entries.flatten().filter_map(|entry| {
        let path = entry.path();
        let is_run = path.extension().is_some_and(|e| e == "jsonl");
        let written = entry.metadata().ok().filter(|m| m.is_file() && is_run)?;
        let at = written.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        Some((at, path))
    });
    files.max().map(|(_, path)| path).ok_or_else(none)
}

/// Every run file directly in `dir`, by name; none where it cannot be listed.
pub fn runs_in(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|e| e.path())
        .filter(|p| p.is_file() && p.extension().is_some_and(|e| e == "jsonl"))
        .collect();
    files.sort();
    files
}

/// The header alone, without reading the rest of the file.
pub fn header(path: &Path) -> Result<Header, ReadError> {
    let io = |source| ReadError::Io {
        path: path.to_owned(),
        source,
    };
    let mut first = Vec::new();
    let file = std::fs::File::open(path).map_err(io)?;
    BufReader::new(file)
        .read_until(b'\n', &mut first)
        .map_err(io)?;
    read_header(path, &first)
}

/// Reads run-file text; `path` is for messages and for [`Run::path`].
pub fn read_text(path: &Path, bytes: &[u8]) -> Result<Run, ReadError> {
    let mut lines = bytes.split_inclusive(|b| *b == b'\n').enumerate();
    let (_, first) = lines.next().ok_or_else(|| ReadError::Foreign {
        path: path.to_owned(),
        found: "it is empty".to_owned(),
    })?;
    let header = read_header(path, first)?;
    let mut loading = Loading::new(path, header);
    for (index, line) in lines {
        loading.line(index + 1, line)?;
    }
    Ok(loading.run)
}

/// Just enough of a first line to know whose file it is and of which version.
#[derive(Deserialize)]
struct Peek {
    #[serde(rename = "type")]
    kind: String,
    schema: u64,
}

fn read_header(path: &Path, line: &[u8]) -> Result<Header, ReadError> {
    let foreign = |found: &str| ReadError::Foreign {
        path: path.to_owned(),
        found: found.to_owned(),
    };
    let peek: Peek = serde_json::from_slice(line)
        .map_err(|_| foreign("its first line is not a header with `type` and `schema`"))?;
    if peek.kind != "header" {
        return Err(foreign("its first line is not a header"));
    }
    if peek.schema != u64::from(SCHEMA) {
        return Err(ReadError::Schema {
            path: path.to_owned(),
            found: peek.schema,
        });
    }
    let corrupt = |message: String| ReadError::Corrupt {
        path: path.to_owned(),
        line: 1,
        message,
    };
    match clean::parse(line) {
        Ok(Line::Header(header)) => {
            check_header(&header).map_err(corrupt)?;
            Ok(*header)
        }
        Ok(_) => Err(foreign("its first line is not a header")),
        Err(error) => Err(corrupt(in_line(&error))),
    }
}

/// The parser counts lines from the one it was given; ours is in the message
/// already.
fn in_line(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column ", ", column ")
}

fn check_header(header: &Header) -> Result<(), String> {
    let mut seen = HashSet::new();
    for contender in &header.contenders {
        if !seen.insert(&contender.id) {
            return Err(format!("contender `{}` is listed twice", contender.id));
        }
    }
    if header.contenders.is_empty() {
        return Err("the header lists no contenders".to_owned());
    }
    if !seen.contains(&header.baseline) {
        return Err(format!(
            "the baseline `{}` is not a contender of the run",
            header.baseline
        ));
    }
    let mut shapes = HashSet::new();
    for shape in &header.shapes {
        if !shapes.insert(shape.name.as_str()) {
            return Err(format!("shape `{}` is listed twice", shape.name));
        }
    }
    if header.shapes.is_empty() {
        return Err("the header lists no shapes".to_owned());
    }
    Ok(())
}

struct Loading {
    run: Run,
    contenders: HashSet<ContenderId>,
    shapes: HashSet<String>,
}

impl Loading {
    fn new(path: &Path, header: Header) -> Self {
        let contenders = header.contenders.iter().map(|c| c.id.clone());
        Self {
            contenders: contenders.chain(header.yardstick.clone()).collect(),
            shapes: header.shapes.iter().map(|s| s.name.clone()).collect(),
            run: Run {
                path: path.to_owned(),
                header,
                builds: Vec::new(),
                blocks: Vec::new(),
                end: None,
                torn: false,
                verdicts: BTreeMap::new(),
                estimates: BTreeMap::new(),
            },
        }
    }

    fn line(&mut self, number: usize, line: &[u8]) -> Result<(), ReadError> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let corrupt = |message: String| ReadError::Corrupt {
            path: self.run.path.clone(),
            line: number,
            message,
        };
        match clean::parse(line) {
            Ok(event) => {
                self.check(&event).map_err(corrupt)?;
                self.keep(event);
                Ok(())
            }
            // Only the last line can lack its newline, and only a kill leaves it so.
            Err(_) if !line.ends_with(b"\n") => {
                self.run.torn = true;
                Ok(())
            }
            Err(error) => Err(corrupt(in_line(&error))),
        }
    }

    fn check(&self, event: &Line) -> Result<(), String> {
        match event {
            Line::Header(_) => Err("a second header: two run files were joined".to_owned()),
            Line::Build(build) => {
                self.known(&build.contender)?;
                build.shapes.iter().try_for_each(|s| self.shape(s))
            }
            Line::Verdict(verdict) => {
                self.known(&verdict.contender)?;
                self.shape(&verdict.shape)
            }
            Line::Block(block) => self.block(block),
            Line::Estimate(estimate) => {
                self.known(&estimate.contender)?;
                self.shape(&estimate.shape)?;
                possible(estimate.micros)
            }
            Line::End(_) => Ok(()),
        }
    }

    fn block(&self, block: &Block) -> Result<(), String> {
        self.shape(&block.shape)?;
        for sample in &block.samples {
            self.known(&sample.contender)?;
            possible(sample.micros)?;
        }
        Ok(())
    }

    fn known(&self, contender: &ContenderId) -> Result<(), String> {
        match self.contenders.contains(contender) {
            true => Ok(()),
            false => Err(format!("contender `{contender}` is not in the header")),
        }
    }

    fn shape(&self, name: &str) -> Result<(), String> {
        match self.shapes.contains(name) {
            true => Ok(()),
            false => Err(format!("shape `{name}` is not in the header")),
        }
    }

    fn keep(&mut self, event: Line) {
        let run = &mut self.run;
        match event {
            Line::Header(_) => {}
            Line::Build(build) => run.builds.push(build),
            Line::Verdict(verdict) => {
                let key = (verdict.contender.clone(), verdict.shape.clone());
                run.verdicts.insert(key, verdict);
            }
            Line::Block(block) => run.blocks.push(block),
            Line::Estimate(estimate) => {
                let key = (estimate.contender.clone(), estimate.shape.clone());
                run.estimates.insert(key, estimate);
            }
            Line::End(end) => run.end = Some(end),
        }
    }
}

/// A time must be a positive number: a zero would win every ranking, and its
/// logarithm would poison every mean.
fn possible(time: Micros) -> Result<(), String> {
    match time.0.is_finite() && time.0 > 0.0 {
        true => Ok(()),
        false => Err(format!("a time of {} µs is impossible", time.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let mut text = Synthetic::round4().text();
        let shape = &crate::record::synthetic::shapes()[0].name;
        text.push_str(&format!(
            "{{\"type\":\"verdict\",\"contender\":\"two-pass\",\"shape\":\"{shape}\",\"status\":\"wrong\",\
             \"reason\":\"stale tile\",\"detail\":null,\"worst\":9.0,\"millis\":1.0}}\n"
        ));
        let run = parse(&text).unwrap();
        let id = ContenderId::from_text("two-pass");
        assert_eq!(run.status(&id, shape), Some(crate::domain::Status::Wrong));
        assert_eq!(run.reason(&id, shape), Some("stale tile"));
    }
}
