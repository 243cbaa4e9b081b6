use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::Error;

/// Every header a source reaches, by its path under the include folder.
///
/// Preprocessor conditions are not evaluated: a header behind an `#if` counts,
/// which can only compile once too often, never once too seldom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(BTreeMap<String, String>);

impl Headers {
    /// The headers `source` includes from `include`, and those they include.
    /// One that is not there is left for the compiler to complain about.
    pub fn of(source: &str, include: &[PathBuf]) -> Result<Self, Error> {
        let mut headers = Self::default();
        for root in include {
            headers.follow(source, Path::new(""), root)?;
        }
        Ok(headers)
    }

    /// Name and text of each, in order of name.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
    }

    fn follow(&mut self, text: &str, folder: &Path, root: &Path) -> Result<(), Error> {
        for target in includes(text) {
            let beside = folder.join(target);
            let place = [beside, PathBuf::from(target)]
                .into_iter()
                .find(|p| root.join(p).is_file());
            let Some(place) = place else { continue };
            let name = place.to_string_lossy().into_owned();
            if self.0.contains_key(&name) {
                continue;
            }
            let path = root.join(&place);
            let body = std::fs::read_to_string(&path).map_err(|source| Error::Read {
                path: path.clone(),
                source,
            })?;
            self.0.insert(name, body.clone());
            let folder = place.parent().unwrap_or(Path::new("")).to_path_buf();
            self.follow(&body, &folder, root)?;
        }
        Ok(())
    }
}

fn includes(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix('#')?.trim_start();
        let rest = rest.strip_prefix("include")?.trim_start();
        let (open, close) = match rest.as_bytes().first()? {
            b'<' => ('<', '>'),
            b'"' => ('"', '"'),
            _ => return None,
        };
        rest.strip_prefix(open)?.split(close).next()
    })
}

/// SHA-256 of the parts, each with its length so that no two lists collide.
pub fn content_hash<S: AsRef<str>>(parts: &[S]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        let part = part.as_ref().as_bytes();
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_includes_transitively_and_only_what_is_reached() {
        let root = tempfile::tempdir().unwrap();
        let dgx = root.path().join("dgx/ptx");
        std::fs::create_dir_all(&dgx).unwrap();
        std::fs::write(dgx.join("tma.cuh"), "#pragma once\n#include \"bar.cuh\"\n").unwrap();
        std::fs::write(dgx.join("bar.cuh"), "# include <dgx/ptx/tma.cuh>\n").unwrap();
        std::fs::write(dgx.join("other.cuh"), "").unwrap();
        let source = "#include <dgx/ptx/tma.cuh>\n#include <nowhere.h>\n";
        let headers = Headers::of(source, &[root.path().to_path_buf()]).unwrap();
        let names: Vec<&str> = headers.files().map(|(name, _)| name).collect();
        assert_eq!(names, ["dgx/ptx/bar.cuh", "dgx/ptx/tma.cuh"]);
    }

    #[test]
    fn hash_tells_apart_what_concatenation_would_not() {
        assert_ne!(content_hash(&["ab", "c"]), content_hash(&["a", "bc"]));
    }
}
