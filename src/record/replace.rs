//! A run file that is replaced whole, by one process at a time: who reads it
//! meanwhile has the old one or the new one.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::WriteError;
use super::lock::{Claim, claim};
use super::writer::fresh;

/// The place of a run file, held until it is replaced or given up.
#[derive(Debug)]
pub(crate) struct Slot {
    path: PathBuf,
    /// Locked. Whoever comes next finds it so, or another file in its place.
    held: File,
    /// There was nothing before.
    new: bool,
}

impl Slot {
    /// A new file in `folder`, for a run of this name and time.
    pub(crate) fn fresh(folder: &Path, name: &str, stamp: &str) -> Result<Self, WriteError> {
        let error = |source| WriteError::Folder {
            folder: folder.to_owned(),
            source,
        };
        std::fs::create_dir_all(folder).map_err(error)?;
        let (path, held) = fresh(folder, &format!("{name}-{stamp}")).map_err(error)?;
        let _ = claim(&held);
        Ok(Self {
            path,
            held,
            new: true,
        })
    }

    /// The file named, there or not.
    pub(crate) fn at(path: &Path) -> Result<Self, WriteError> {
        let error = |source| WriteError::File {
            path: path.to_owned(),
            source,
        };
        // A pipe would wait for somebody to read it.
        let odd = path.metadata().is_ok_and(|about| !about.is_file());
        if odd {
            return Err(error(std::io::Error::other("it is no regular file")));
        }
        loop {
            let held = OpenOptions::new()
                .append(true)
                .create(true)
                .open(path)
                .map_err(error)?;
            if let Claim::Taken(holder) = claim(&held) {
                return Err(WriteError::Taken {
                    path: path.to_owned(),
                    holder,
                });
            }
            let about = held.metadata().map_err(error)?;
            // Somebody may have replaced it before it was ours.
            let same = path
                .metadata()
                .is_ok_and(|now| (now.dev(), now.ino()) == (about.dev(), about.ino()));
            if same {
                return Ok(Self {
                    path: path.to_owned(),
                    held,
                    new: about.len() == 0,
                });
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it holds a run already.
    pub(crate) fn has_a_run(&self) -> bool {
        !self.new
    }

    /// A file beside it to write the new run to.
    pub(crate) fn draft(&self) -> Result<NamedTempFile, WriteError> {
        let folder = match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let draft = tempfile::Builder::new()
            .prefix(".merge-")
            .permissions(readable())
            .tempfile_in(folder);
        draft.map_err(|source| WriteError::Folder {
            folder: folder.to_owned(),
            source,
        })
    }

    /// Puts the draft in its place, on disk before it is seen.
    pub(crate) fn fill(mut self, draft: NamedTempFile) -> Result<PathBuf, WriteError> {
        let written = draft.as_file().sync_all();
        let placed = written.and_then(|()| draft.persist(&self.path).map_err(|e| e.error));
        placed.map_err(|source| WriteError::File {
            path: self.path.clone(),
            source,
        })?;
        self.new = false;
        Ok(self.path.clone())
    }
}

/// As a file is that a sweep writes; a temporary one would be the owner's only.
fn readable() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o644)
}

impl Drop for Slot {
    fn drop(&mut self) {
        // An empty file is no run, and was made only to be held.
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
}
