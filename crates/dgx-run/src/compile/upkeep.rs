//! Which files in a cache are dgx's images, and how they are removed; other files there stay.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

/// The folder of a cache that images are in.
pub const IMAGES: &str = "images";
/// The files of an entry.
pub(super) const PARTS: [&str; 3] = ["image.cubin", "image.ptx", "report.json"];
/// Prefix of entries that are being written; readers ignore them.
pub(super) const STAGING: &str = ".new-";
/// Writing an entry never takes this long, by any clock.
pub(super) const ABANDONED: Duration = Duration::from_secs(2 * 86_400);

/// Whether this is the folder of an image, or one that is being written.
pub fn is_image(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let key = name.len() == 64 && name.bytes().all(|b| b.is_ascii_hexdigit());
    let folder = path.symlink_metadata().is_ok_and(|about| about.is_dir());
    folder && (key || name.starts_with(STAGING))
}

/// Removes the cache's files in the folder of an image, and the folder if nothing else is in it;
/// returns whether it is gone.
pub fn remove_image(folder: &Path) -> io::Result<bool> {
    for name in PARTS {
        let part = folder.join(name);
        match part.symlink_metadata() {
            Ok(about) if about.is_dir() => absent_or(fs::remove_dir(&part))?,
            Ok(_) => absent_or(fs::remove_file(&part))?,
            Err(_) => true,
        };
    }
    absent_or(fs::remove_dir(folder))
}

/// Whether it is gone: another process may have removed it first, and a folder with other contents
/// stays.
fn absent_or(removed: io::Result<()>) -> io::Result<bool> {
    match removed {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes whatever was in an entry's place; of a folder only our own files.
pub(super) fn discard(path: &Path) {
    let folder = path.symlink_metadata().is_ok_and(|about| about.is_dir());
    // Whatever cannot be removed now is found again later, by its age.
    let _ = match folder {
        true => remove_image(path),
        false => fs::remove_file(path).map(|()| true),
    };
}

/// Removes half-written entries of killed processes.
pub(super) fn clear_away(root: &Path) {
    let old = |entry: &fs::DirEntry| {
        let written = entry.metadata().and_then(|about| about.modified());
        let age = written.ok().and_then(|at| at.elapsed().ok());
        age.is_some_and(|age| age > ABANDONED)
    };
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let staged = entries.filter(|e| e.file_name().to_string_lossy().starts_with(STAGING));
    for entry in staged.filter(old) {
        discard(&entry.path());
    }
}
