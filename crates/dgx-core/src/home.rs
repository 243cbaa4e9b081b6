//! The folders for a user's own files, as XDG defines them.

use std::path::{Path, PathBuf};

/// dgx's folder in the one that `variable` names, else in `usual` of the user's home. `None` if
/// neither is known.
pub fn user_folder(variable: &str, usual: &str) -> Option<PathBuf> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    folder(named, std::env::home_dir(), usual)
}

/// Relative paths are ignored: otherwise files in the current folder, by anyone, would be used.
fn folder(named: Option<PathBuf>, home: Option<PathBuf>, usual: &str) -> Option<PathBuf> {
    let absolute = |path: &PathBuf| Path::is_absolute(path);
    let home = || Some(home.filter(absolute)?.join(usual));
    Some(named.filter(absolute).or_else(home)?.join("dgx"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_the_users_is_absolute() {
        let folder = |named: Option<&str>, home: Option<&str>| {
            let found = folder(named.map(Into::into), home.map(Into::into), ".cache");
            found.map(|path| path.display().to_string())
        };
        let home = Some("/home/me");
        assert_eq!(folder(Some("/caches"), home).unwrap(), "/caches/dgx");
        for unsaid in [None, Some(""), Some("caches")] {
            assert_eq!(folder(unsaid, home).unwrap(), "/home/me/.cache/dgx");
            assert_eq!(folder(unsaid, Some("home")), None);
            assert_eq!(folder(unsaid, None), None);
        }
    }
}
