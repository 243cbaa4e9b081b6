//! Writes a run file so that finished work survives a kill.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::lock::{LockOutcome, try_lock};
use super::schema::{Header, Line, RunEnd};
use super::{ReadError, Run, edge, read};
use crate::diagnostic::CommandError;
use crate::domain::Exit;
use crate::files;

/// Why a run cannot be recorded.
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
    /// The file has nothing of the run.
    #[error("cannot write {}: {source}", path.display())]
    NewFile {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{} is being written by {}", path.display(), holder_text(*holder))]
    Taken { path: PathBuf, holder: Option<u32> },
    #[error("no run file can hold this: {0}")]
    Limits(String),
    #[error(transparent)]
    Read(#[from] ReadError),
}

fn holder_text(holder: Option<u32>) -> String {
    match holder {
        Some(pid) => format!("process {pid}"),
        None => "another process".to_owned(),
    }
}

impl WriteError {
    /// Turns an I/O error of this file into a `WriteError`.
    pub(super) fn file(path: &Path) -> impl Fn(std::io::Error) -> Self + Copy {
        move |source| Self::File {
            path: path.to_owned(),
            source,
        }
    }

    /// Turns an I/O error of this folder into a `WriteError`.
    pub(super) fn folder(folder: &Path) -> impl Fn(std::io::Error) -> Self + Copy {
        move |source| Self::Folder {
            folder: folder.to_owned(),
            source,
        }
    }

    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Folder { .. } => "name a folder that can be written",
            Self::File { .. } => "check space and permissions; --resume keeps what is finished",
            Self::NewFile { .. } => "check space and permissions, or choose another place",
            Self::Taken { .. } => {
                "let that sweep end, or stop it first: the file is free when its process is gone"
            }
            Self::Limits(_) => "sweep fewer cells at a time, or fix the named problem",
            Self::Read(error) => error.remedy(),
        }
    }
}

/// A wrong path is the user's mistake; a full disk, or a file that another process writes, is not.
impl From<&WriteError> for CommandError {
    fn from(error: &WriteError) -> Self {
        let exit = match error {
            WriteError::Folder { .. } | WriteError::Limits(_) | WriteError::Read(_) => Exit::Usage,
            WriteError::File { .. } | WriteError::NewFile { .. } | WriteError::Taken { .. } => {
                Exit::CouldNotRun
            }
        };
        Self::new(exit, error.to_string(), error.remedy())
    }
}

/// An open run file that no other process has. Each line is one write, unbuffered: once `append`
/// returns, not even `kill -9` loses the line.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    file: File,
    /// Length of all whole lines, in bytes.
    whole: u64,
    /// Whether the file still ends in half a line.
    spoilt: bool,
    locked: bool,
}

impl Writer {
    /// Starts `folder/NAME-TIME.jsonl` with its header, if the reader would accept it: a run that
    /// cannot be read again must not be started.
    pub fn create(folder: &Path, header: &Header, stamp: &str) -> Result<Self, WriteError> {
        edge::header(header).map_err(WriteError::Limits)?;
        let folder_error = WriteError::folder(folder);
        std::fs::create_dir_all(folder).map_err(folder_error)?;
        let (path, file) =
            fresh(folder, &format!("{}-{stamp}", header.name)).map_err(folder_error)?;
        Self::start(path, file, header)
    }

    /// Puts the machine code of an image beside the run file, once.
    pub fn keep_code(&self, key: &str, cubin: &[u8]) -> Result<(), WriteError> {
        let folder = self.path.with_extension("cubins");
        let path = folder.join(format!("{key}.cubin"));
        // An incomplete one is written again.
        let whole = |about: std::fs::Metadata| about.len() == cubin.len() as u64;
        if path.metadata().is_ok_and(whole) {
            return Ok(());
        }
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(&path, cubin))
            .map_err(|source| WriteError::File { path, source })
    }

    /// Starts exactly the named file, which must not exist.
    pub fn begin(path: &Path, header: &Header) -> Result<Self, WriteError> {
        edge::header(header).map_err(WriteError::Limits)?;
        let error = |source| WriteError::NewFile {
            path: path.to_owned(),
            source,
        };
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(path)
            .map_err(error)?;
        Self::start(path.to_owned(), file, header)
    }

    fn start(path: PathBuf, file: File, header: &Header) -> Result<Self, WriteError> {
        // Another process may be checking whether it can be resumed, briefly.
        let locked = file.lock().is_ok();
        let mut writer = Self {
            path,
            file,
            whole: 0,
            spoilt: false,
            locked,
        };
        let begun = writer.append(&Line::Header(Box::new(header.clone())));
        if let Err(error) = begun.and_then(|()| writer.sync()) {
            // A file without a header is not a run file.
            let _ = std::fs::remove_file(&writer.path);
            return Err(match error {
                WriteError::File { path, source } => WriteError::NewFile { path, source },
                other => other,
            });
        }
        Ok(writer)
    }

    /// Opens a run to continue it, if no other process writes it. Nothing is changed before
    /// [`Writer::end_last_line`].
    pub fn reopen(path: &Path) -> Result<(Self, Run), WriteError> {
        let unreadable = ReadError::io(path);
        files::open(path).map_err(unreadable)?;
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .open(path)
            .map_err(WriteError::file(path))?;
        let locked = locked(&file, path)?;
        let run = read(path)?;
        let whole = whole_lines(&mut file).map_err(WriteError::file(path))?;
        let writer = Self {
            path: path.to_owned(),
            file,
            whole,
            spoilt: false,
            locked,
        };
        Ok((writer, run))
    }

    /// Makes the file end in a whole line: a half-written one is cut off, one that lacks only its
    /// newline gets it.
    pub fn end_last_line(&mut self, torn: bool) -> Result<(), WriteError> {
        let length = self.file.metadata().map_err(|e| self.error(e))?.len();
        if length == self.whole {
            return Ok(());
        }
        if torn {
            return self.file.set_len(self.whole).map_err(|e| self.error(e));
        }
        self.file.write_all(b"\n").map_err(|e| self.error(e))?;
        self.whole = length + 1;
        Ok(())
    }

    /// Checks before any work that a run file can be made in `folder`.
    pub fn probe(folder: &Path) -> Result<(), WriteError> {
        let folder_error = WriteError::folder(folder);
        std::fs::create_dir_all(folder).map_err(folder_error)?;
        tempfile::tempfile_in(folder)
            .map(drop)
            .map_err(folder_error)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether other writers are certainly kept out: not every network file system can do that.
    pub fn is_locked(&self) -> bool {
        self.locked
    }

    pub fn append(&mut self, line: &Line) -> Result<(), WriteError> {
        let mut text = serde_json::to_vec(line).map_err(|e| self.error(e.into()))?;
        text.push(b'\n');
        if text.len() > edge::LINE {
            let mib = edge::LINE >> 20;
            return Err(WriteError::Limits(format!("a line of more than {mib} MiB")));
        }
        if self.spoilt {
            return Err(self.error(std::io::Error::other("an earlier line is half written")));
        }
        if let Err(error) = self.file.write_all(&text) {
            // Only the last line may ever be incomplete: on a full disk it is removed again, so
            // that the file stays readable.
            self.spoilt = self.file.set_len(self.whole).is_err();
            return Err(self.error(error));
        }
        self.whole += text.len() as u64;
        Ok(())
    }

    /// Asks the system to put what was written on disk.
    pub fn sync(&mut self) -> Result<(), WriteError> {
        self.file.sync_data().map_err(|e| self.error(e))
    }

    fn error(&self, source: std::io::Error) -> WriteError {
        WriteError::file(&self.path)(source)
    }
}

/// The end of the last whole line of a file.
fn whole_lines(file: &mut File) -> std::io::Result<u64> {
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut piece = vec![0; 1 << 16];
    while end > 0 {
        let start = end.saturating_sub(piece.len() as u64);
        let piece = &mut piece[..(end - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(piece)?;
        if let Some(at) = piece.iter().rposition(|&b| b == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Whether a run was begun in this file: one killed before its header was complete has left
/// nothing, and is removed.
pub fn begun(path: &Path) -> Result<bool, WriteError> {
    let error = WriteError::file(path);
    if !path.try_exists().map_err(error)? {
        return Ok(false);
    }
    let mut file = files::open(path).map_err(error)?;
    let whole = whole_lines(&mut file).map_err(error)? > 0;
    let ours = file.metadata().map_err(error)?.len() == 0 || starts_a_header(&mut file);
    if whole || !ours {
        return Ok(true);
    }
    locked(&file, path)?;
    std::fs::remove_file(path).map_err(error)?;
    Ok(false)
}

fn starts_a_header(file: &mut File) -> bool {
    const HEADER: &[u8] = b"{\"type\":\"header\"";
    let mut first = Vec::new();
    let read = file.rewind().and_then(|()| {
        file.take(HEADER.len() as u64)
            .read_to_end(&mut first)
            .map(|_| ())
    });
    read.is_ok() && HEADER.starts_with(&first)
}

/// Whether a run file ends with a line that says it is complete.
pub fn ended(path: &Path) -> bool {
    end(path).is_some_and(|end| end.complete)
}

/// The last line of a run file, if it ended, without reading the rest of it.
pub fn end(path: &Path) -> Option<RunEnd> {
    const TAIL: u64 = 64 << 10;
    let last = || -> std::io::Result<Vec<u8>> {
        let mut file = files::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut tail = Vec::new();
        file.take(TAIL).read_to_end(&mut tail)?;
        Ok(tail)
    };
    let tail = last().ok()?;
    let line = tail.trim_ascii_end().rsplit(|b| *b == b'\n').next()?;
    match serde_json::from_slice(line) {
        Ok(Line::End(end)) => Some(end),
        _ => None,
    }
}

/// Claims the file for this process: true if a lock guarantees it.
pub(super) fn locked(file: &File, path: &Path) -> Result<bool, WriteError> {
    match try_lock(file) {
        LockOutcome::Ours => Ok(true),
        LockOutcome::Unknown => Ok(false),
        LockOutcome::Taken(holder) => Err(WriteError::Taken {
            path: path.to_owned(),
            holder,
        }),
    }
}

/// Creates a new file: two sweeps in one minute must not share one.
pub(super) fn fresh(folder: &Path, stem: &str) -> std::io::Result<(PathBuf, File)> {
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

        let (mut writer, run) = Writer::reopen(&path).unwrap();
        assert!(run.torn);
        writer.end_last_line(run.torn).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), whole as u64);
        let Line::Verdict(mut later) = verdict else {
            panic!("a verdict was begun with");
        };
        later.status = crate::domain::Status::Wrong;
        writer.append(&Line::Verdict(later)).unwrap();
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
    fn a_line_that_lacks_only_its_newline_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (header, verdict) = begun();
        let writer = Writer::create(folder.path(), &header, "now").unwrap();
        let path = writer.path().to_owned();
        drop(writer);
        let text =
            std::fs::read_to_string(&path).unwrap() + &serde_json::to_string(&verdict).unwrap();
        std::fs::write(&path, &text).unwrap();
        let (mut writer, run) = Writer::reopen(&path).unwrap();
        writer.end_last_line(run.torn).unwrap();
        writer.append(&verdict).unwrap();
        let again = std::fs::read_to_string(&path).unwrap();
        assert_eq!(again.lines().count(), 3);
        assert!(again.starts_with(&(text + "\n")));
    }

    #[test]
    fn a_file_has_one_writer_until_that_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let (header, _) = begun();
        let writer = Writer::create(folder.path(), &header, "now").unwrap();
        let path = writer.path().to_owned();
        let link = folder.path().join("link.jsonl");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for way in [&path, &link] {
            let error = Writer::reopen(way).unwrap_err();
            let own = format!("process {}", std::process::id());
            assert!(error.to_string().ends_with(&own), "{error}");
        }
        // Readers are not locked out.
        assert!(read(&path).is_ok());
        drop(writer);
        let (first, _) = Writer::reopen(&path).unwrap();
        assert!(first.is_locked() && Writer::reopen(&path).is_err());
    }

    #[test]
    fn what_the_reader_would_refuse_is_not_begun() {
        let (header, verdict) = begun();
        let mut long = header.clone();
        long.shapes[0].name = "x".repeat(201);
        let mut crowd = header.clone();
        crowd.contenders = (0..2001)
            .map(|i| {
                let mut one = header.contenders[0].clone();
                one.id = ContenderId::from_text(format!("x{i}"));
                one
            })
            .collect();
        let mut endless = header.clone();
        endless.config.text = " ".repeat(edge::LINE);
        for (header, word) in [
            (long, "shape"),
            (crowd, "2001 contenders"),
            (endless, "MiB"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let error = Writer::create(folder.path(), &header, "now").unwrap_err();
            assert!(matches!(error, WriteError::Limits(_)), "{error}");
            assert!(error.to_string().contains(word), "{error}");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(folder.path(), &header, "now").unwrap();
        let Line::Verdict(mut wordy) = verdict else {
            panic!("a verdict was begun with");
        };
        wordy.detail = Some(" ".repeat(edge::LINE));
        assert!(writer.append(&Line::Verdict(wordy)).is_err());
        assert!(read(writer.path()).is_ok(), "nothing of it was written");
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
