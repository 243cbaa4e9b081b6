//! Replaces a run file as a whole, one process at a time: a reader sees either the old file or the
//! new one.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::WriteError;
use super::lock::{LockOutcome, try_lock};
use super::writer::{fresh, locked};
use crate::files;

/// The place of a run file, locked until it is replaced or given up.
#[derive(Debug)]
pub struct Slot {
    path: PathBuf,
    /// Another process finds it locked, or another file in its place.
    held: File,
    /// The file system has locks.
    locked: bool,
    /// There was nothing before.
    new: bool,
}

/// Separates the name of a run file from the unique part of its draft's name.
const DRAFT: &str = ".merge-";

impl Slot {
    /// A new file in `folder`, for a run of this name and time.
    pub fn fresh(folder: &Path, name: &str, stamp: &str) -> Result<Self, WriteError> {
        let error = WriteError::folder(folder);
        std::fs::create_dir_all(folder).map_err(error)?;
        let (path, held) = fresh(folder, &format!("{name}-{stamp}")).map_err(error)?;
        let locked = matches!(try_lock(&held), LockOutcome::Ours);
        Ok(Self {
            path,
            held,
            locked,
            new: true,
        })
    }

    /// The named file, whether it exists or not.
    pub fn at(path: &Path) -> Result<Self, WriteError> {
        let error = WriteError::file(path);
        // Opening a pipe would wait for a reader.
        let special = path.metadata().is_ok_and(|about| !about.is_file());
        if special {
            return Err(error(std::io::Error::other("it is not a regular file")));
        }
        loop {
            let held = OpenOptions::new()
                .append(true)
                .create(true)
                .open(path)
                .map_err(error)?;
            let locked = locked(&held, path)?;
            let about = held.metadata().map_err(error)?;
            // Another process may have replaced it before we locked it.
            let same = path
                .metadata()
                .is_ok_and(|now| (now.dev(), now.ino()) == (about.dev(), about.ino()));
            if same {
                return Ok(Self {
                    path: path.to_owned(),
                    held,
                    locked,
                    new: about.len() == 0,
                });
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it already contains a run.
    pub(crate) fn has_a_run(&self) -> bool {
        !self.new
    }

    /// A file beside it for the new run. Drafts of processes that were killed are removed.
    pub(crate) fn draft(&self) -> Result<NamedTempFile, WriteError> {
        let folder = files::folder_of(&self.path);
        if self.locked {
            remove_left_drafts(folder, &self.path);
        }
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let draft = tempfile::Builder::new()
            .prefix(&format!(".{name}{DRAFT}"))
            .permissions(readable())
            .tempfile_in(folder);
        draft.map_err(WriteError::folder(folder))
    }

    /// Moves the draft into place, after it is on disk.
    pub fn fill(mut self, draft: NamedTempFile) -> Result<PathBuf, WriteError> {
        let written = draft.as_file().sync_all();
        let placed = written.and_then(|()| draft.persist(&self.path).map_err(|e| e.error));
        placed.map_err(WriteError::file(&self.path))?;
        self.new = false;
        Ok(self.path.clone())
    }
}

/// Removes drafts in this folder whose run file is not locked: their process is gone, whatever the
/// clock says. `held` is our own, and has none yet.
fn remove_left_drafts(folder: &Path, held: &Path) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let Some(run) = name.to_str().and_then(of_draft) else {
            continue;
        };
        let run = folder.join(run);
        if held.file_name() == run.file_name() {
            let _ = std::fs::remove_file(entry.path());
            continue;
        }
        let (lock, there) = match OpenOptions::new().append(true).open(&run) {
            Ok(file) => (Some(try_lock(&file)), Some(file)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => (None, None),
            Err(_) => continue,
        };
        if !matches!(lock, None | Some(LockOutcome::Ours)) {
            continue;
        }
        let _ = std::fs::remove_file(entry.path());
        // It was created only to be locked.
        if there.is_some_and(|file| file.metadata().is_ok_and(|about| about.len() == 0)) {
            let _ = std::fs::remove_file(&run);
        }
    }
}

/// The name of a draft's run file.
fn of_draft(name: &str) -> Option<&str> {
    let (run, unique) = name.strip_prefix('.')?.rsplit_once(DRAFT)?;
    let random = unique.len() == 6 && unique.bytes().all(|b| b.is_ascii_alphanumeric());
    (random && !run.is_empty()).then_some(run)
}

/// The permissions of a sweep's file; a temporary one would be readable only by its owner.
fn readable() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o644)
}

impl Drop for Slot {
    fn drop(&mut self) {
        // An empty file is no run, and was created only to be locked.
        let empty = self.held.metadata().is_ok_and(|about| about.len() == 0);
        if self.new && empty {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_nothing_is_left_of_one_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        let slot = Slot::at(&path).unwrap();
        assert!(!slot.has_a_run());
        let error = Slot::at(&path).unwrap_err();
        let own = format!("is being written by process {}", std::process::id());
        assert!(error.to_string().ends_with(&own), "{error}");
        drop(slot);
        assert!(!path.exists());
        let slot = Slot::at(&path).unwrap();
        let draft = slot.draft().unwrap();
        std::fs::write(draft.path(), "a run").unwrap();
        slot.fill(draft).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a run");
        let again = Slot::at(&path).unwrap();
        assert!(again.has_a_run());
        drop(again);
        assert!(path.exists());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn drafts_of_the_dead_go_and_those_of_the_living_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let other = Slot::at(&path("other.jsonl")).unwrap();
        let living = other.draft().unwrap();
        // One killed over a new file, over an old one, and over the one we have.
        std::fs::write(path("begun.jsonl"), "").unwrap();
        std::fs::write(path("kept.jsonl"), "a run").unwrap();
        let left = ["begun", "kept", "mine", "gone"];
        let left = left.map(|name| path(&format!(".{name}.jsonl.merge-a1B2c3")));
        for draft in &left {
            std::fs::write(draft, "half").unwrap();
        }
        let not_ours = path(".merge-notes");
        std::fs::write(&not_ours, "").unwrap();
        let mine = Slot::at(&path("mine.jsonl")).unwrap();
        let draft = mine.draft().unwrap();
        assert!(left.iter().all(|draft| !draft.exists()));
        assert!(draft.path().exists() && living.path().exists() && not_ours.exists());
        assert!(!path("begun.jsonl").exists() && path("kept.jsonl").exists());
    }
}
