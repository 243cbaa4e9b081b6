use std::fs::{FileType, OpenOptions, Permissions};
use std::io::{Error, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::Serialize;

use dgx_core::diagnostic::{CommandError, InputError};
use dgx_core::files::folder_of;
use dgx_core::speech;

/// Links that Linux follows in a path.
const MOST_LINKS: usize = 40;

/// Whether a path means standard output; `./-` is a file of that name.
pub(crate) fn is_standard_output(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Whether writing replaces the contents; standard output, a pipe or a device (/dev/stdout) is
/// appended to.
pub(crate) fn replaces(path: &Path) -> bool {
    !is_standard_output(path)
        && open_file(path).is_none()
        && path.metadata().map_or(true, |found| found.is_file())
}

/// The open file of this process that a path names, as /dev/stdout and /dev/fd/1 do. It may be a
/// file like any other, but replacing it would replace the link in /dev.
fn open_file(path: &Path) -> Option<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let folder = folder_of(&path).canonicalize().ok()?;
        if folder.starts_with("/proc") {
            return Some(folder.join(path.file_name()?));
        }
        path = folder.join(path.read_link().ok()?);
    }
    None
}

/// Checks before any work that a file can be written at `path`. If that is standard output, nothing
/// else is printed there from now on.
pub(crate) fn probe(path: &Path) -> Result<(), InputError> {
    if is_standard_output(path) {
        speech::reserve_output();
        return Ok(());
    }
    let refused = |error: Error| {
        InputError::new(
            cannot(path, &error),
            "name a file in a folder that exists and can be written to",
        )
    };
    match path.metadata() {
        Ok(found) if found.is_dir() => Err(refused(Error::other("it is a folder"))),
        Ok(found) if !found.is_file() => takes_text(path, found.file_type()).map_err(refused),
        Ok(_) if open_file(path).is_some() => Ok(()),
        _ => tempfile::tempfile_in(folder_of(path))
            .map(drop)
            .map_err(refused),
    }
}

/// A document as it is written: indented, with a newline at the end.
pub(crate) fn pretty(document: &impl Serialize) -> String {
    // Structs of finite numbers, texts and lists can always be written.
    serde_json::to_string_pretty(document).unwrap_or_default() + "\n"
}

/// Writes all of `text` to `path`, or nothing.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    written(path, text).map_err(|error| {
        CommandError::could_not_run(
            cannot(path, &error),
            "check space and permissions there, or choose another place",
        )
    })
}

fn written(path: &Path, text: &str) -> Result<(), Error> {
    let standard_output = open_file(path).is_some_and(|open| open.ends_with("fd/1"));
    if standard_output || is_standard_output(path) {
        speech::deliver(text);
        return Ok(());
    }
    if !replaces(path) {
        return OpenOptions::new()
            .append(true)
            .open(path)?
            .write_all(text.as_bytes());
    }
    let mut file = tempfile::NamedTempFile::new_in(folder_of(path))?;
    // Errors of the temporary file do not name it, and its name means nothing.
    file.as_file_mut().write_all(text.as_bytes())?;
    // A temporary file is readable only by its owner; a result is for everyone.
    let permissions = Permissions::from_mode(0o644);
    file.as_file().set_permissions(permissions)?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// Whether a path that is not a file accepts text at once: a terminal, `/dev/null`, or the pipe
/// behind `/dev/stdout`. Opening a FIFO blocks until there is a reader, and a trial opening would
/// end the reader's input.
fn takes_text(path: &Path, kind: FileType) -> Result<(), Error> {
    // A pipe without a name has no path in the file system either.
    let named = path.canonicalize().is_ok();
    let what = match () {
        () if kind.is_fifo() && named => "a FIFO",
        () if kind.is_socket() => "a socket",
        () if kind.is_block_device() => "a disk",
        () => return Ok(()),
    };
    Err(Error::other(format!("it is {what}")))
}

fn cannot(path: &Path, error: &Error) -> String {
    format!("cannot write {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_whole_and_a_device_stays_a_device() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.json");
        for text in ["one", "two"] {
            probe(&file).unwrap();
            write(&file, text).unwrap();
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
        let link = folder.path().join("void");
        std::os::unix::fs::symlink("/dev/null", &link).unwrap();
        write(&link, "three").unwrap();
        assert!(link.is_symlink());
        std::os::unix::fs::symlink("/dev/full", folder.path().join("full")).unwrap();
        let error = write(&folder.path().join("full"), "four").unwrap_err();
        assert_eq!(error.exit(), dgx_core::domain::Exit::CouldNotRun);
    }

    #[test]
    fn a_file_is_replaced_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("-");
        assert!(replaces(&file), "it will be one");
        std::fs::write(&file, "").unwrap();
        assert!(replaces(&file));
        assert!(replaces(Path::new("./-")));
        for other in ["-", "/dev/null", "/dev/full"] {
            assert!(!replaces(Path::new(other)), "{other}");
        }
        assert!(!replaces(folder.path()));
    }

    #[test]
    fn what_is_open_already_is_appended_to() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("out");
        let mut open = std::fs::File::create(&name).unwrap();
        open.write_all(b"one ").unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&open);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(format!("/proc/self/fd/{number}"), &link).unwrap();
        for path in [&link, &Path::new("/dev/fd").join(number.to_string())] {
            assert!(!replaces(path), "{}", path.display());
            write(path, "two ").unwrap();
        }
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&name).unwrap(), "one two two ");
    }

    #[test]
    fn a_place_that_cannot_be_is_known_before_any_work() {
        let folder = tempfile::tempdir().unwrap();
        assert!(probe(folder.path()).is_err());
        assert!(probe(&folder.path().join("no/where.json")).is_err());
    }
}
