//! Paths as run files and pages contain them. Both travel, so the folder of the project on the
//! machine that made them is left out: it is private, and means nothing elsewhere.

use std::path::{Component, Path, PathBuf};

/// Replaces the folders that are left out.
pub(crate) const ELIDED: char = '…';

/// Whether only the last part of a path is recorded.
pub fn is_elided(path: &str) -> bool {
    path.starts_with(ELIDED)
}

/// The path relative to the project's folder; outside it, only the name.
pub fn portable(path: &Path, project: &Path) -> String {
    let whole = normal(&project.join(path));
    let inside = whole.strip_prefix(normal(project)).ok().map(Path::to_owned);
    let real = || {
        let (path, project) = (whole.canonicalize().ok()?, project.canonicalize().ok()?);
        path.strip_prefix(project).ok().map(Path::to_owned)
    };
    match (inside.or_else(real), whole.file_name()) {
        (Some(inside), _) if inside.as_os_str().is_empty() => ".".to_owned(),
        (Some(inside), _) => inside.display().to_string(),
        (None, Some(name)) => format!("{ELIDED}/{}", name.display()),
        (None, None) => ELIDED.to_string(),
    }
}

/// A word of a command line, in which a path outside the project, alone or after `--flag=`, is
/// written as in a run file.
pub fn portable_word(word: &str, project: &Path) -> String {
    let (flag, value) = match word.split_once('=') {
        Some((flag, value)) if flag.starts_with("--") => (&word[..=flag.len()], value),
        _ => ("", word),
    };
    let path = Path::new(value);
    let climbs = path.components().any(|c| c == Component::ParentDir);
    match path.is_absolute() || climbs {
        true => format!("{flag}{}", portable(path, project)),
        false => word.to_owned(),
    }
}

/// Files and folders that a text may name, and their form in files that travel.
#[derive(Debug)]
pub struct PortablePaths(Vec<(String, String)>);

impl PortablePaths {
    /// Only absolute paths reveal where they lie on this machine.
    pub fn of<'p>(paths: impl IntoIterator<Item = &'p Path>, project: &Path) -> Self {
        let absolute = paths
            .into_iter()
            .filter(|path| path.is_absolute() && path.file_name().is_some());
        let mut all: Vec<(String, String)> = absolute
            .map(|path| {
                let written = path.display().to_string();
                let written = written.trim_end_matches('/').to_owned();
                (written, portable(path, project))
            })
            .collect();
        // A folder within another one is replaced first.
        all.sort_by_key(|(written, _)| std::cmp::Reverse(written.len()));
        Self(all)
    }

    pub fn rewrite(&self, text: &str) -> String {
        let names = self.0.iter();
        names.fold(text.to_owned(), |text, (written, portable)| {
            text.replace(written, portable)
        })
    }
}

/// Without `.` and `..`, by the text alone.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(out.pop()),
            part => out.push(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_inside_the_project_keeps_its_folders() {
        let project = Path::new("/home/someone/dgx");
        let path = |p: &str| portable(Path::new(p), project);
        assert_eq!(path("configs/round4.toml"), "configs/round4.toml");
        assert_eq!(path("/home/someone/dgx/variants"), "variants");
        assert_eq!(path("./a/../b.toml"), "b.toml");
        assert_eq!(path("/home/someone/dgx"), ".");
        assert_eq!(path("/home/someone/dgx2/x.toml"), "…/x.toml");
        assert_eq!(path("../other/x.toml"), "…/x.toml");
        assert_eq!(path("/"), "…");
        let word = |w: &str| portable_word(w, project);
        assert_eq!(word("--results"), "--results");
        assert_eq!(word("--results=/tmp/secret/out"), "--results=…/out");
        assert_eq!(word("/home/someone/dgx/w"), "w");
        assert_eq!(word("pipelined[STAGES=2]"), "pipelined[STAGES=2]");
        assert_eq!(word("bank-conflicts=1.02"), "bank-conflicts=1.02");
    }

    #[test]
    fn a_text_tells_nothing_of_the_machine() {
        let project = Path::new("/home/someone/dgx");
        let paths = ["/tmp/mine", "/tmp/mine/variants/", "variants", "/"].map(Path::new);
        let inside = Path::new("/home/someone/dgx/configs/round4.toml");
        let portable = PortablePaths::of(paths.into_iter().chain([inside]), project);
        let rewritten = |text: &str| portable.rewrite(text);
        assert_eq!(
            rewritten("reads at /tmp/mine/variants/x.cu:3 > /tmp/mine/y.cuh:4"),
            "reads at …/variants/x.cu:3 > …/mine/y.cuh:4"
        );
        assert_eq!(
            rewritten("dgx sanitize /home/someone/dgx/configs/round4.toml --variants '/tmp/mine'"),
            "dgx sanitize configs/round4.toml --variants '…/mine'"
        );
        assert_eq!(rewritten("variants/x.cu:3, 1/2"), "variants/x.cu:3, 1/2");
    }

    #[test]
    fn a_link_to_the_project_is_the_project() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("project");
        std::fs::create_dir(&project).unwrap();
        std::fs::write(project.join("x.toml"), "").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&project, &link).unwrap();
        assert_eq!(portable(&link.join("x.toml"), &project), "x.toml");
    }
}
