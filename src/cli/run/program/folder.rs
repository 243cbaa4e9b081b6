//! The folder of a run, with libraries and reports. dgx removes it at the end; if dgx is killed,
//! the next `dgx run` does.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tempfile::TempDir;

const PREFIX: &str = "dgx-run-";

/// A file that dgx has locked while it lives.
const LOCK: &str = "lock";

/// A folder, and the lock that keeps it.
pub(super) struct Folder {
    folder: TempDir,
    _lock: File,
}

impl Folder {
    /// Makes one among the temporary files, and removes what others have left there.
    pub(super) fn make() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
        // It gets its name when it is locked: a lock that can be had means that nobody lives.
        let unnamed = folder.path().join("lock.new");
        let lock = File::create_new(&unnamed)?;
        // Where files cannot be locked, nobody can lock this one either, and it stays.
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

/// Removes folders of a user that no dgx keeps.
fn remove_left(place: &Path, user: u32) {
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
            && (entry.metadata()).is_ok_and(|data| data.is_dir() && data.uid() == user);
        let lock = is_ours.then(|| File::open(entry.path().join(LOCK)));
        if let Some(Ok(lock)) = lock
            && lock.try_lock().is_ok()
        {
            // Another dgx may be faster.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
