//! Writes a run file so that whatever was finished survives being killed.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::schema::{Header, Line};
use super::{ReadError, Run, read};

/// Why nothing can be recorded.
#[derive(Debug, Error)]
pub enum WriteError {
    #[error("cannot write in {}: {source}", folder.display())]
    Folder {
        folder: PathBuf,
        source: std::io::Error,
    },
    #[error("cannot write {}: {source}", path.display())]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl WriteError {
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Folder { .. } => "name a folder that can be written with --results",
            Self::File { .. } => "check space and permissions; --resume keeps what is finished",
            Self::Read(error) => error.remedy(),
        }
    }
}

/// An open run file. Each line is one write, unbuffered: once `append`
/// returns, not even `kill -9` takes the line back.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    file: File,
}

impl Writer {
    /// Starts `folder/NAME-TIME.jsonl` with its header.
    pub fn create(folder: &Path, header: &Header, stamp: &str) -> Result<Self, WriteError> {
        let folder_error = |source| WriteError::Folder {
            folder: folder.to_owned(),
            source,
        };
        std::fs::create_dir_all(folder).map_err(folder_error)?;
        let (path, file) =
            fresh(folder, &format!("{}-{stamp}", header.name)).map_err(folder_error)?;
        let mut writer = Self { path, file };
        writer.append(&Line::Header(Box::new(header.clone())))?;
        writer.sync()?;
        Ok(writer)
    }

    /// Opens a run that did not end and cuts off a line that was half written.
    pub fn resume(path: &Path) -> Result<(Self, Run), WriteError> {
        let run = read(path)?;
        let file_error = |source| WriteError::File {
            path: path.to_owned(),
            source,
        };
        let text = std::fs::read(path).map_err(file_error)?;
        let whole = text
            .iter()
            .rposition(|&b| b == b'\n')
            .map_or(0, |at| at + 1);
        let file = OpenOptions::new()
            .append(true)
            .open(path)
            .map_err(file_error)?;
        let mut writer = Self {
            path: path.to_owned(),
            file,
        };
        if run.torn {
            writer.file.set_len(whole as u64).map_err(file_error)?;
        } else if whole < text.len() {
            // The last line is whole but for its newline.
            writer.file.write_all(b"\n").map_err(file_error)?;
        }
        Ok((writer, run))
    }

    /// Whether a run file could be made in `folder`, found out before any work.
    pub fn probe(folder: &Path) -> Result<(), WriteError> {
        let folder_error = |source| WriteError::Folder {
            folder: folder.to_owned(),
            source,
        };
        std::fs::create_dir_all(folder).map_err(folder_error)?;
        tempfile::tempfile_in(folder)
            .map(drop)
            .map_err(folder_error)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn append(&mut self, line: &Line) -> Result<(), WriteError> {
        let mut text = serde_json::to_vec(line).map_err(|e| self.error(e.into()))?;
        text.push(b'\n');
        self.file.write_all(&text).map_err(|e| self.error(e))
    }

    /// Asks the system to put what was written on disk.
    pub fn sync(&mut self) -> Result<(), WriteError> {
        self.file.sync_data().map_err(|e| self.error(e))
    }

    fn error(&self, source: std::io::Error) -> WriteError {
        WriteError::File {
            path: self.path.clone(),
            source,
        }
    }
}

/// A file that was not there: two sweeps in one minute must not share one.
fn fresh(folder: &Path, stem: &str) -> std::io::Result<(PathBuf, File)> {
    let mut number = 1;
    loop {
        let name = match number {
            1 => format!("{stem}.jsonl"),
            n => format!("{stem}-{n}.jsonl"),
        };
        let path = folder.join(name);
        match OpenOptions::new().append(true).create_new(true).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(e) if e.kind() == ErrorKind::AlreadyExists && number < 1000 => number += 1,
            Err(e) => return Err(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ContenderId;
    use crate::record::synthetic::Synthetic;

    /// A header and one verdict.
    fn begun() -> (Header, Line) {
        let mut lines = Synthetic::round4().lines().into_iter();
        let Some(Line::Header(header)) = lines.next() else {
            panic!("a run begins with its header");
        };
        let verdict = lines.find(|l| matches!(l, Line::Verdict(_)));
        (*header, verdict.expect("a run has verdicts"))
    }

    #[test]
    fn a_torn_last_line_is_cut_off_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let (header, verdict) = begun();
        let mut writer = Writer::create(folder.path(), &header, "now").unwrap();
        writer.append(&verdict).unwrap();
        let path = writer.path().to_owned();
        drop(writer);
        let mut text = std::fs::read(&path).unwrap();
        let whole = text.len();
        text.extend_from_slice(b"{\"type\":\"verdict\",\"conten");
        std::fs::write(&path, &text).unwrap();

        let (mut writer, run) = Writer::resume(&path).unwrap();
        assert!(run.torn);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), whole as u64);
        writer.append(&verdict).unwrap();
        let again = read(&path).unwrap();
        assert!(!again.torn);
        let first = &header.shapes[0].name;
        assert!(
            again
                .verdict(&ContenderId::from_text("two-pass"), first)
                .is_some()
        );
    }

    #[test]
    fn a_second_run_in_the_same_minute_gets_its_own_file() {
        let folder = tempfile::tempdir().unwrap();
        let (header, _) = begun();
        let first = Writer::create(folder.path(), &header, "now").unwrap();
        let second = Writer::create(folder.path(), &header, "now").unwrap();
        assert_ne!(first.path(), second.path());
    }

    #[test]
    fn a_folder_that_cannot_be_is_refused_before_any_work() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = Writer::probe(&file.join("results")).unwrap_err();
        assert!(error.to_string().contains("cannot write in"), "{error}");
    }
}
