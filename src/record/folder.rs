use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::runs_in;

/// Every run file directly in these folders, the one last written first.
pub(crate) fn newest_first(folders: &[&Path]) -> Vec<PathBuf> {
    let written = |path: &PathBuf| {
        let found = path.metadata().and_then(|m| m.modified());
        found.unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let mut paths: Vec<PathBuf> = folders.iter().flat_map(|folder| runs_in(folder)).collect();
    paths.sort_by_cached_key(|path| std::cmp::Reverse((written(path), path.clone())));
    paths
}
