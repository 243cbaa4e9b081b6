use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use dgx_core::files;

use super::standins;

/// Limits of what is read from folders with arbitrary contents.
pub(super) const MAX_FILES: usize = 4096;
pub(super) const MAX_BYTES: usize = 64 << 20;
const MAX_DEPTH: usize = 16;

/// A file that may be included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// As a user would type it.
    pub path: PathBuf,
    pub text: String,
    /// Whether it is a toolkit's, whose other includes are for hosts.
    pub of_toolkit: bool,
    /// Its path, if it was searched for in one of the user's folders.
    pub found: Option<PathBuf>,
}

impl Header {
    /// A header without a file.
    pub(super) fn made(name: &str, text: String) -> Self {
        Self {
            path: PathBuf::from(name),
            text,
            of_toolkit: false,
            found: None,
        }
    }
}

/// Everything the variants of one folder may include: the files beside them and all below the
/// include folders, read once; and, by name, files of folders too large for that, such as a
/// toolkit's. For the compiler no other file exists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Library {
    /// By the name under its include folder; if two folders have it, the first one's. Those beside
    /// the variants begin with [`BESIDE`].
    pub(super) files: BTreeMap<String, Header>,
    /// Names of files that may not be included, with the reason.
    pub(super) left_out: BTreeMap<String, String>,
    /// The folders, for messages.
    pub(super) variants: PathBuf,
    pub(super) include: Vec<PathBuf>,
    /// Folders that are searched for files that are in none of the above.
    searched: Vec<PathBuf>,
    /// A toolkit's folders, which come last.
    toolkit: Vec<PathBuf>,
    bytes: usize,
}

/// Prefix of the names of files beside the variants, which no name in an include folder has: the
/// two may have the same name.
pub(super) const BESIDE: &str = "./";

impl Library {
    /// Reads the files directly beside the variants of `variants`, and all of the `include`
    /// folders. Unreadable files are left out with the reason.
    pub(crate) fn gather(variants: &Path, include: &[PathBuf]) -> Self {
        let mut library = Self {
            variants: variants.to_owned(),
            include: include.to_vec(),
            ..Self::default()
        };
        library.add(variants, false);
        for folder in include {
            library.add(folder, true);
        }
        library
    }

    /// The same with this text under a name.
    pub(super) fn with(&self, name: &str, text: String) -> Self {
        let mut other = self.clone();
        other
            .files
            .insert(name.to_owned(), Header::made(name, text));
        other
    }

    /// The same with folders that are searched after its own, before those that it already
    /// searches.
    pub(super) fn searching(mut self, folders: &[PathBuf]) -> Self {
        self.searched.splice(0..0, folders.iter().cloned());
        self
    }

    /// The same with a toolkit's folders.
    pub(super) fn with_toolkit(self, folders: &[PathBuf]) -> Self {
        Self {
            toolkit: folders.to_vec(),
            ..self
        }
    }

    /// The file that is included as `name`. A searched file keeps that name: a toolkit gives the
    /// same image wherever it lies.
    pub(super) fn find(&self, name: &str) -> Option<Header> {
        if let Some(header) = self.files.get(name) {
            return Some(header.clone());
        }
        if name.starts_with(BESIDE) || self.left_out.contains_key(name) {
            return None;
        }
        let read = |path: &Path| Some(Header::made(name, readable(path).ok()?));
        let of_toolkit = || {
            let mut paths = self.toolkit.iter().map(|folder| folder.join(name));
            read(&paths.find(|path| path.is_file())?)
        };
        let stand_in = || Some(Header::made(name, standins::text(name)?));
        let named = self.searched(name).and_then(|path| {
            Some(Header {
                found: Some(path.clone()),
                ..read(&path)?
            })
        });
        named.or_else(|| match standins::comes_first(name) {
            true => stand_in(),
            false => of_toolkit().map(|header| Header {
                of_toolkit: true,
                ..header
            }),
        })
    }

    /// The file `name` in the first searched folder that has it. A variant is never a header,
    /// whichever folder is named.
    fn searched(&self, name: &str) -> Option<PathBuf> {
        let variants = self.variants.canonicalize().ok();
        let mut paths = self.searched.iter().map(|folder| folder.join(name));
        paths.find(|path| {
            let real = path.canonicalize().ok();
            let among = |real: &PathBuf| real.parent() == variants.as_deref();
            let is_variant = real.filter(among).is_some_and(|real| is_design(&real));
            path.is_file() && !is_variant
        })
    }

    /// Whether `includer` is a variant or one of the gathered files, not a searched one.
    pub(super) fn owns(&self, includer: &str) -> bool {
        includer == BESIDE || self.files.contains_key(includer)
    }

    /// Headers that are part of dgx, by their include names.
    pub fn carried(headers: &[(&str, &str)]) -> Self {
        let header = |(name, text): &(&str, &str)| {
            let header = Header::made(name, (*text).to_owned());
            ((*name).to_owned(), header)
        };
        Self {
            files: headers.iter().map(header).collect(),
            ..Self::default()
        }
    }

    fn add(&mut self, root: &Path, deep: bool) {
        let Ok(real_root) = root.canonicalize() else {
            return;
        };
        let prefix = match deep {
            true => "",
            false => BESIDE,
        };
        let mut seen = BTreeSet::new();
        let mut folders = vec![(root.to_owned(), prefix.to_owned(), 0)];
        while let Some((folder, prefix, depth)) = folders.pop() {
            if !folder.canonicalize().is_ok_and(|real| seen.insert(real)) {
                continue;
            }
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
            names.sort();
            for file_name in names {
                let Some(text) = file_name.to_str() else {
                    continue;
                };
                let path = folder.join(text);
                let name = format!("{prefix}{text}");
                let outside = !path.canonicalize().is_ok_and(|p| p.starts_with(&real_root));
                if path.is_dir() && !outside {
                    if deep && depth < MAX_DEPTH {
                        folders.push((path, format!("{name}/"), depth + 1));
                    }
                } else if self.files.contains_key(&name) || self.left_out.contains_key(&name) {
                    // An earlier folder has it.
                } else if outside {
                    let why = format!("{} leads out of {}", path.display(), root.display());
                    self.left_out.insert(name, why);
                } else {
                    self.take_in(name, path, deep);
                }
            }
        }
    }

    fn take_in(&mut self, name: String, path: PathBuf, deep: bool) {
        if !deep && is_design(&path) {
            let why = format!("{} is a variant, not a header", path.display());
            self.left_out.insert(name, why);
            return;
        }
        let crowded = self.files.len() == MAX_FILES || self.bytes > MAX_BYTES;
        let text = match crowded {
            true => Err("there are too many files in its folder".to_owned()),
            false => readable(&path),
        };
        match text {
            Ok(text) => {
                self.bytes += text.len();
                let header = Header {
                    path,
                    text,
                    of_toolkit: false,
                    found: None,
                };
                self.files.insert(name, header);
            }
            Err(why) => {
                let why = format!("{} cannot be included: {why}", path.display());
                self.left_out.insert(name, why);
            }
        }
    }
}

/// Whether a file beside variants is one of them.
fn is_design(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "cu")
}

fn readable(path: &Path) -> Result<String, String> {
    let text = files::read_text(path, files::LARGEST)?;
    match text.contains('\0') {
        true => Err("there is a NUL byte in it".to_owned()),
        false => Ok(text),
    }
}
