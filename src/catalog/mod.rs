//! The variants that exist: found by globbing, read on demand, their front
//! matter checked. A broken file hurts only those who name it.

mod front_matter;
mod variant;
mod wire;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use variant::{Contender, Launch, Scratch, TensorMap, Tune, Variant};
pub(crate) use variant::{MAKESPAN, combinations};

use crate::diagnostic::{InputError, SourceFile, nearest};

/// The contender that is no variant: what a user of the vendor's library gets.
pub const YARDSTICK: &str = "cublas";

/// Where variants are looked for unless told otherwise.
pub const DEFAULT_FOLDER: &str = "variants";

/// The `.cu` files of one or more folders, by name.
#[derive(Clone, Debug)]
pub struct Catalog {
    files: BTreeMap<String, PathBuf>,
    include: Vec<PathBuf>,
}

impl Catalog {
    /// Looks into `folders`, or into `variants` where none is given.
    pub fn open(folders: &[PathBuf]) -> Result<Self, InputError> {
        let default = PathBuf::from(DEFAULT_FOLDER);
        let folders = match folders {
            [] => std::slice::from_ref(&default),
            given => given,
        };
        let mut catalog = Self {
            files: BTreeMap::new(),
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
        let entries = std::fs::read_dir(folder).map_err(|error| {
            InputError::new(
                format!("cannot list variants in {}: {error}", folder.display()),
                "run dgx in the checkout, or name the folder with --variants DIR",
            )
        })?;
        for entry in entries {
            let path = match entry {
                Ok(entry) => entry.path(),
                Err(error) => {
                    return Err(InputError::new(
                        format!("cannot list variants in {}: {error}", folder.display()),
                        "check the folder's permissions",
                    ));
                }
            };
            if path.extension().is_none_or(|extension| extension != "cu") || !path.is_file() {
                continue;
            }
            let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) else {
                return Err(InputError::new(
                    format!("the name of {} is not UTF-8", path.display()),
                    "rename the file",
                ));
            };
            check_name(name).map_err(|why| {
                InputError::new(
                    format!("{} cannot be a variant: {why}", path.display()),
                    "rename the file",
                )
            })?;
            if let Some(other) = self.files.insert(name.to_owned(), path.clone()) {
                return Err(InputError::new(
                    format!(
                        "two variants are named `{name}`: {} and {}",
                        other.display(),
                        path.display()
                    ),
                    "rename one of the files",
                ));
            }
        }
        let include = folder.join("include");
        if include.is_dir() && !self.include.contains(&include) {
            self.include.push(include);
        }
        Ok(())
    }

    /// Every variant's name, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Folders the compiler searches for headers.
    pub fn include(&self) -> &[PathBuf] {
        &self.include
    }

    /// Reads the variant `name`.
    pub fn variant(&self, name: &str) -> Result<Arc<Variant>, InputError> {
        let path = self.path(name).map_err(|missing| {
            let (message, remedy) = missing.explain();
            InputError::new(message, remedy)
        })?;
        let file = SourceFile::read(path, "variant", "check the file's permissions and encoding")?;
        front_matter::read(name, file, self.include.clone()).map(Arc::new)
    }

    /// The file of `name`. Names are looked up, never joined to a path, so
    /// none can climb out of the folders.
    pub fn path(&self, name: &str) -> Result<&Path, NoSuchVariant> {
        self.files
            .get(name)
            .map(PathBuf::as_path)
            .ok_or_else(|| NoSuchVariant {
                name: name.to_owned(),
                nearest: nearest(name, self.names()).map(str::to_owned),
                malformed: check_name(name).err(),
            })
    }
}

/// A name that is not in the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchVariant {
    name: String,
    nearest: Option<String>,
    malformed: Option<&'static str>,
}

impl NoSuchVariant {
    /// Message and remedy.
    pub fn explain(&self) -> (String, String) {
        let name = &self.name;
        if let Some(why) = self.malformed {
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
fn check_name(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        return Err("the name is empty");
    }
    if name.contains(['/', '\\']) || name.contains("..") {
        return Err("a name is not a path");
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !name.chars().all(plain) {
        return Err("only letters, digits, - _ and . may be in a name");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
