//! Reads files by other people so that none can hang a command or fill its memory: only regular
//! files of a plausible size.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// No source or header written by hand is larger.
pub const LARGEST: u64 = 16 << 20;

/// The text of a regular file of at most `limit` bytes, or an error.
pub fn read_text(path: &Path, limit: u64) -> Result<String, String> {
    let bytes = read(path, limit).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at]
            .iter()
            .filter(|b| **b == b'\n')
            .count()
            + 1;
        format!("it is not UTF-8, in line {line}")
    })
}

/// The contents of a regular file of at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit {
        true => Err(io::Error::other(format!(
            "it is larger than {} MiB",
            limit >> 20
        ))),
        false => Ok(bytes),
    }
}

/// The contents of a folder, by name; empty if it cannot be read.
pub fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The entries whose names end in this extension.
pub fn ending_in(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut paths = entries(folder);
    paths.retain(|path| has_extension(path, extension));
    paths
}

pub fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

/// The folder a file lies in.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Opens a regular file, and nothing else.
pub fn open(path: &Path) -> io::Result<File> {
    let file = open_at_once(path)?;
    let about = file.metadata()?;
    if about.is_dir() {
        return Err(io::Error::other("it is a folder"));
    }
    if !about.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(file)
}

/// Opens without blocking: a FIFO without a writer must not stop the command.
fn open_at_once(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
    }
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_in_regular_files_of_a_sane_size_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("text"), "µ\n").unwrap();
        assert_eq!(read_text(&path("text"), 16), Ok("µ\n".to_owned()));
        assert_eq!(
            read_text(&path("text"), 2),
            Err("it is larger than 0 MiB".to_owned())
        );
        std::fs::write(path("latin"), b"one\ntw\xf6\n").unwrap();
        assert_eq!(
            read_text(&path("latin"), 16),
            Err("it is not UTF-8, in line 2".to_owned())
        );
        assert_eq!(
            read_text(folder.path(), 16),
            Err("it is a folder".to_owned())
        );
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            path("fifo"),
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        )
        .unwrap();
        assert_eq!(
            read_text(&path("fifo"), 16),
            Err("it is not a regular file".to_owned())
        );
        assert!(read_text(&path("nowhere"), 16).is_err());
    }
}
