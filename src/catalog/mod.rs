//! The variants that exist: found by globbing, read on demand, their front
//! matter checked. A broken file hurts only those who name it.

mod definitions;
mod extend;
mod front_matter;
mod headers;
mod includes;
mod library;
mod picks;
mod variant;
mod vocabulary;
mod wire;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

pub(crate) use front_matter::is_identifier;
pub(crate) use headers::Headers;
pub(crate) use library::Library;
pub(crate) use variant::{Contender, Definition, Launch, Scratch, TensorMap, Tune, Variant};
pub(crate) use variant::{MAKESPAN, combinations};
pub(crate) use vocabulary::{Fill, MapType, OperandRef, Swizzle};

use crate::diagnostic::{InputError, SourceFile, nearest};
use crate::domain::{bounds, printable_line};
use crate::files;

/// The contender that is no variant: what a user of the vendor's library gets.
pub(crate) const YARDSTICK: &str = "cublas";

/// Where variants are looked for unless told otherwise.
pub(crate) const DEFAULT_FOLDER: &str = "variants";

/// The `.cu` files of one or more folders, by name.
#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    files: BTreeMap<String, Entry>,
    folders: Vec<Folder>,
    include: Vec<PathBuf>,
}

#[derive(Clone, Debug)]
struct Folder {
    path: PathBuf,
    /// Read when a variant of the folder first is.
    library: OnceLock<Library>,
}

#[derive(Clone, Debug)]
struct Entry {
    path: PathBuf,
    /// Place among the folders.
    folder: usize,
    /// Why nobody can name it, where that is so.
    refused: Option<InputError>,
}

impl Catalog {
    /// Looks into `folders`, or into `variants` where none is given. A file
    /// that cannot be a variant is kept with its reason: it concerns only
    /// those who name it.
    pub(crate) fn open(folders: &[PathBuf]) -> Result<Self, InputError> {
        let default = PathBuf::from(DEFAULT_FOLDER);
        let folders = match folders {
            [] => std::slice::from_ref(&default),
            given => given,
        };
        let mut catalog = Self {
            files: BTreeMap::new(),
            folders: Vec::new(),
            include: Vec::new(),
        };
        for folder in folders {
            catalog.add_folder(folder)?;
        }
        // Fixtures elsewhere still include the shared device code.
        let shared = default.join("include");
        if shared.is_dir() && !catalog.include.contains(&shared) {
            catalog.include.push(shared);
        }
        Ok(catalog)
    }

    fn add_folder(&mut self, folder: &Path) -> Result<(), InputError> {
        let unlisted = |error: std::io::Error| {
            InputError::new(
                format!("cannot list variants in {}: {error}", folder.display()),
                "run dgx in the checkout, or name the folder with --variants DIR",
            )
        };
        for entry in std::fs::read_dir(folder).map_err(unlisted)? {
            let path = entry.map_err(unlisted)?.path();
            let stem = path.file_stem().unwrap_or_default();
            // Editors leave hidden files beside those they edit.
            if path.extension() == Some(OsStr::new("cu"))
                && !stem.as_encoded_bytes().starts_with(b".")
            {
                let name = stem.to_string_lossy().into_owned();
                self.add_file(name, path);
            }
        }
        self.folders.push(Folder {
            path: folder.to_owned(),
            library: OnceLock::new(),
        });
        let include = folder.join("include");
        if include.is_dir() && !self.include.contains(&include) {
            self.include.push(include);
        }
        Ok(())
    }

    fn add_file(&mut self, name: String, path: PathBuf) {
        let folder = self.folders.len();
        let refused = check_name(&name).err().map(|why| {
            let path = printable_line(&path.display().to_string());
            let message = format!("{path} cannot be a variant: {why}");
            InputError::new(message, "rename the file")
        });
        if let Some(other) = self.files.get_mut(&name) {
            let (one, two) = (other.path.display(), path.display());
            let message = format!("two variants are named `{name}`: {one} and {two}");
            other.refused = Some(InputError::new(message, "rename one of the files"));
            return;
        }
        self.files.insert(
            name,
            Entry {
                path,
                folder,
                refused,
            },
        );
    }

    /// Every variant's name, sorted.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Reads the variant `name`, those it extends and those it picks from.
    pub(crate) fn variant(&self, name: &str) -> Result<Arc<Variant>, InputError> {
        self.read(name, &Asked::default())
    }

    /// The same for those who name it in a round: a file that cannot be used
    /// has somebody to stand for it. A name that means no one file is nobody's.
    pub(crate) fn entrant(&self, name: &str) -> Result<Arc<Variant>, InputError> {
        let why = match self.variant(name) {
            Ok(variant) => return Ok(variant),
            Err(why) => why,
        };
        match self.files.get(name) {
            Some(entry) if entry.refused.is_none() => {
                let text = files::read_text(&entry.path, files::LARGEST).unwrap_or_default();
                let file = SourceFile {
                    path: entry.path.clone(),
                    text: text.into(),
                };
                Ok(Arc::new(Variant::broken(name, file, why)))
            }
            _ => Err(why),
        }
    }

    fn read(&self, name: &str, asked: &Asked) -> Result<Arc<Variant>, InputError> {
        let entry = self.entry(name).map_err(|missing| {
            let (message, remedy) = missing.explain();
            InputError::new(message, remedy)
        })?;
        if let Some(error) = &entry.refused {
            return Err(error.clone());
        }
        let text = files::read_text(&entry.path, files::LARGEST).map_err(|why| {
            InputError::new(
                format!("cannot read variant {}: {why}", entry.path.display()),
                "check the file's kind, permissions and encoding",
            )
        })?;
        let file = SourceFile {
            path: entry.path.clone(),
            text: text.into(),
        };
        let folder = &self.folders[entry.folder];
        let library = folder
            .library
            .get_or_init(|| Library::gather(&folder.path, &self.include));
        front_matter::read(name, file, library, self, asked).map(Arc::new)
    }

    /// The file of `name`. Names are looked up, never joined to a path, so
    /// none can climb out of the folders.
    pub(crate) fn path(&self, name: &str) -> Result<&Path, NoSuchVariant> {
        self.entry(name).map(|entry| entry.path.as_path())
    }

    fn entry(&self, name: &str) -> Result<&Entry, NoSuchVariant> {
        self.files.get(name).ok_or_else(|| NoSuchVariant {
            name: name.to_owned(),
            nearest: nearest(name, self.names()).map(str::to_owned),
            malformed: check_name(name).err(),
        })
    }
}

/// On whose behalf a variant is read.
#[derive(Clone, Debug, Default)]
struct Asked {
    /// Somebody picks it, so it may not pick others.
    picked: bool,
    /// Those that extend it, the last first.
    heirs: Vec<String>,
}

/// A name that is not in the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoSuchVariant {
    name: String,
    nearest: Option<String>,
    malformed: Option<String>,
}

impl NoSuchVariant {
    /// Message and remedy.
    pub(crate) fn explain(&self) -> (String, String) {
        let name = &self.name;
        if let Some(why) = &self.malformed {
            return (
                format!("`{name}` cannot be a variant: {why}"),
                "name a file of the variants folder, without folder and .cu".to_owned(),
            );
        }
        let remedy = match &self.nearest {
            Some(close) => format!("did you mean `{close}`?"),
            None => "`dgx list` shows what there is".to_owned(),
        };
        (format!("there is no variant `{name}`"), remedy)
    }
}

/// Names go into tables, file names and `name[PARAM=1]`, so they are plain.
fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("the name is empty".to_owned());
    }
    bounds::name("contender", name)?;
    if name.contains(['/', '\\']) || name.contains("..") {
        return Err("a name is not a path".to_owned());
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !name.chars().all(plain) {
        return Err("only letters, digits, - _ and . may be in a name".to_owned());
    }
    if name.starts_with('-') {
        return Err("a name that begins with - reads as a flag".to_owned());
    }
    // However it is spelt: a reader must not take one for the other.
    let letters = |c: &char| c.is_ascii_alphanumeric();
    let spelling: String = name.chars().filter(letters).collect();
    if spelling.eq_ignore_ascii_case(YARDSTICK) {
        return Err("that is the yardstick's name".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
