//! The folder of a run, with libraries and reports. dgx removes it at the end; if dgx is killed,
//! the next `dgx run` does.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tempfile::TempDir;

const PREFIX: &str = "dgx-run-";

/// A file that dgx keeps locked while it runs.
const LOCK: &str = "lock";

/// A folder, and the lock that keeps it.
pub(super) struct Folder {
    folder: TempDir,
    _lock: File,
}

impl Folder {
    /// Makes a temporary folder, and removes those that other runs left there.
    pub(super) fn make() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
        // The file gets its name only once it is locked: if the lock is free, its dgx is gone.
        let unnamed = folder.path().join("lock.new");
        let lock = File::create_new(&unnamed)?;
        // If files cannot be locked here, no other dgx can lock this one either, and the folder
        // stays.
        let _ = lock.lock();
        std::fs::rename(&unnamed, folder.path().join(LOCK))?;
        remove_left(&std::env::temp_dir(), folder.path().metadata()?.uid());
        Ok(Self {
            folder,
            _lock: lock,
        })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes a user's folders whose dgx is gone.
fn remove_left(place: &Path, user: u32) {
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && (entry.metadata()).is_ok_and(|data| data.is_dir() && data.uid() == user);
        let lock = is_ours.then(|| File::open(entry.path().join(LOCK)));
        if let Some(Ok(lock)) = lock
            && lock.try_lock().is_ok()
        {
            // Another dgx may remove it first.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
