//! The variants that exist: found by globbing, read on demand, their front matter checked. A broken
//! file affects only rounds that name it.
//!
//! A variant may have a source for each kind of chip: `NAME.cu`, and `sm_100a/NAME.cu` in a folder
//! named after a compile target. Both have one name; the device decides which source is used.

mod args;
mod code;
mod declared;
mod definitions;
mod extend;
mod flags;
mod front_matter;
mod headers;
mod host_code;
mod includes;
mod launch;
mod library;
mod maps;
mod picks;
mod sources;
mod standins;
mod variant;
mod vocabulary;
mod wire;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};

pub use declared::{DeclaredKernel, DeclaredParam, declared};
pub use front_matter::is_identifier;
pub use front_matter::locate as front_matter;
pub use front_matter::toml_of;
pub use headers::Headers;
pub use library::Library;
pub use variant::Definition;
pub use variant::TensorMap;
pub use variant::Tune;
pub use variant::combinations;
pub use variant::{Contender, Launch, LaunchKey, Pick, Scratch, Variant};
pub(crate) use variant::{MAKESPAN, MINIMUM};
pub use vocabulary::{
    Argument, Arguments, Fill, Language, MapType, Number, NumberType, OperandRef, Swizzle,
};

use schemars::{Schema, SchemaGenerator};

use sources::{beside, is_source, lost_source, named_source, passed_over, sidecar};

use crate::toolkit;
use dgx_core::config::Yardstick;
use dgx_core::diagnostic::{InputError, SourceFile, nearest};
use dgx_core::domain::{Chip, bounds, printable_line};
use dgx_core::files;
use dgx_core::operator::{self, Operator};

/// Where variants are looked for by default.
pub const DEFAULT_FOLDER: &str = "variants";

/// The `.cu` files of one or more folders, by name; the source for no particular chip comes first.
#[derive(Clone, Debug)]
pub struct Catalog {
    files: BTreeMap<String, Vec<VariantSource>>,
    /// The same for folders named after an operator, by its name.
    of_operators: BTreeMap<String, BTreeMap<String, Vec<VariantSource>>>,
    folders: Vec<VariantFolder>,
    include: Vec<PathBuf>,
    /// Files among the variants that look like one but are not: the reason, and the remedy.
    passed_over: Vec<InputError>,
    /// PTX and Python files without front matter.
    without_matter: Vec<PathBuf>,
}

#[derive(Clone, Debug)]
struct VariantFolder {
    path: PathBuf,
    /// Read when a variant of the folder is first read.
    library: OnceLock<Library>,
}

impl VariantFolder {
    fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            library: OnceLock::new(),
        }
    }
}

#[derive(Clone, Debug)]
struct VariantSource {
    path: PathBuf,
    /// `NAME.toml`, if that names the source.
    matter: Option<PathBuf>,
    /// Index among the folders.
    folder: usize,
    /// The compile target its folder is named after.
    arch: Option<String>,
    /// The operator its folder is named after.
    operator: Option<String>,
    /// Why it cannot be named, if so.
    refused: Option<InputError>,
}

impl Catalog {
    /// Searches `folders`, or `variants` if none is given. A file that cannot be a variant is kept
    /// with the reason: it affects only rounds that name it.
    pub fn open(folders: &[PathBuf]) -> Result<Self, InputError> {
        let default = PathBuf::from(DEFAULT_FOLDER);
        let folders = match folders {
            [] => std::slice::from_ref(&default),
            given => given,
        };
        let mut catalog = Self {
            files: BTreeMap::new(),
            of_operators: BTreeMap::new(),
            folders: Vec::new(),
            include: Vec::new(),
            passed_over: Vec::new(),
            without_matter: Vec::new(),
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
        for operator in operator::known() {
            let own = folder.join(&operator);
            if own.is_dir() {
                self.add_designs(&own, Some(&operator))?;
            }
        }
        self.add_designs(folder, None)
    }

    /// The designs in a folder, which may be named after an operator.
    fn add_designs(&mut self, folder: &Path, operator: Option<&str>) -> Result<(), InputError> {
        let unlisted = |error: std::io::Error| {
            let shown = folder.display();
            match error.kind() {
                ErrorKind::NotFound => InputError::new(
                    format!("there is no folder {shown}{}", here(folder)),
                    "run dgx in your project, or `dgx new NAME` makes one",
                ),
                _ => InputError::new(
                    format!("cannot list variants in {shown}: {error}"),
                    "check its permissions, or name another with --variants DIR",
                ),
            }
        };
        let mut chips: Vec<(String, PathBuf)> = Vec::new();
        let mut sources: Vec<PathBuf> = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(unlisted)? {
            let path = entry.map_err(unlisted)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            match Chip::parse(&name) {
                Some(_) if path.is_dir() => chips.push((name.into_owned(), path)),
                _ => sources.push(path),
            }
        }
        self.add_sources(folder, (operator, None), sources);
        chips.sort();
        for (arch, folder) in chips {
            let entries = std::fs::read_dir(&folder).map_err(unlisted)?;
            let sources: Result<Vec<PathBuf>, _> = entries.map(|e| e.map(|e| e.path())).collect();
            self.add_sources(&folder, (operator, Some(&arch)), sources.map_err(unlisted)?);
        }
        let include = folder.join("include");
        if include.is_dir() && !self.include.contains(&include) {
            self.include.push(include);
        }
        Ok(())
    }

    fn add_sources(
        &mut self,
        folder: &Path,
        of: (Option<&str>, Option<&str>),
        mut paths: Vec<PathBuf>,
    ) {
        paths.sort();
        let name = |path: &Path| {
            let stem = path.file_stem().unwrap_or_default();
            stem.to_string_lossy().into_owned()
        };
        for path in &paths {
            match is_source(path) {
                true => self.add_file(name(path), (path.clone(), None), of),
                false => {
                    self.passed_over.extend(passed_over(path));
                    let in_a_language = Language::of(path).is_some() && path.is_file();
                    self.without_matter
                        .extend(in_a_language.then(|| path.clone()));
                }
            }
        }
        self.folders.push(VariantFolder::new(folder));
        for matter in paths {
            if let Some(source) = named_source(&matter) {
                let near = source.parent().unwrap_or(folder).to_owned();
                self.add_file(name(&matter), (source, Some(matter)), of);
                self.folders.push(VariantFolder::new(&near));
            }
        }
    }

    fn add_file(
        &mut self,
        name: String,
        (path, matter): (PathBuf, Option<PathBuf>),
        (operator, arch): (Option<&str>, Option<&str>),
    ) {
        let folder = self.folders.len();
        let refused = check_name(&name).err().map(|why| {
            let path = printable_line(&path.display().to_string());
            let message = format!("{path} cannot be a variant: {why}");
            InputError::new(message, "rename the file")
        });
        let climbs = matter.as_ref().filter(|matter| {
            let below = matter.parent().and_then(|own| path.strip_prefix(own).ok());
            let stays = |below: &Path| !below.components().any(|c| c == Component::ParentDir);
            !below.is_some_and(stays)
        });
        let refused = refused.or_else(|| {
            let message = format!("{}: `source` leads out of its folder", climbs?.display());
            Some(InputError::new(message, "name a file below the folder"))
        });
        let lost = (matter.as_ref().filter(|_| !path.exists())).map(|m| lost_source(m, &path));
        let refused = refused.or_else(|| lost.clone());
        let files = match operator {
            Some(operator) => self.of_operators.entry(operator.to_owned()).or_default(),
            None => &mut self.files,
        };
        let sources = files.entry(name.clone()).or_default();
        if let Some(other) = sources.iter_mut().find(|e| e.arch.as_deref() == arch) {
            let (one, two) = (other.path.display(), path.display());
            let message = format!("two variants are named `{name}`: {one} and {two}");
            let twice = || InputError::new(message, "rename one of the files");
            other.refused = Some(lost.unwrap_or_else(twice));
            return;
        }
        sources.push(VariantSource {
            path,
            matter,
            folder,
            arch: arch.map(str::to_owned),
            operator: operator.map(str::to_owned),
            refused,
        });
        // Of two folders the second may have the one for no particular chip.
        sources.sort_by_key(|entry| entry.arch.is_some());
    }

    /// The catalog for a round of `operator`: names of its folder take precedence over those of no
    /// folder.
    pub fn of(&self, operator: &Operator) -> Self {
        let mut seen = self.clone();
        if let Some(own) = self.of_operators.get(&operator.name) {
            seen.files.extend(own.clone());
        }
        seen
    }

    /// The operators whose folders have a design `name`; `None` for a file in no such folder, which
    /// comes first.
    pub fn operators_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Option<&'a str>> {
        let common = self.files.contains_key(name).then_some(None);
        let folders = self.of_operators.iter();
        let own = folders.filter(move |(_, files)| files.contains_key(name));
        common
            .into_iter()
            .chain(own.map(|(operator, _)| Some(operator.as_str())))
    }

    /// The operators that have a folder of designs.
    pub fn operators(&self) -> impl Iterator<Item = &str> {
        self.of_operators.keys().map(String::as_str)
    }

    /// Only the designs of one operator's folder.
    pub fn folder_of(&self, operator: &str) -> Self {
        Self {
            files: self.of_operators.get(operator).cloned().unwrap_or_default(),
            of_operators: BTreeMap::new(),
            passed_over: Vec::new(),
            ..self.clone()
        }
    }

    /// Files among the variants that look like one but are not.
    pub fn passed_over(&self) -> &[InputError] {
        &self.passed_over
    }

    /// Every variant's name, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Reads the variant `name`, those it extends and those it picks from, for no particular chip.
    #[cfg(test)]
    pub fn variant(&self, name: &str) -> Result<Arc<Variant>, InputError> {
        self.read(name, &Lookup::default())
    }

    /// The source of `name` that runs on `chip`; if none does, one that names its own chip.
    pub fn variant_on(&self, name: &str, chip: Chip) -> Result<Arc<Variant>, InputError> {
        let lookup = Lookup {
            chip: Some(chip),
            ..Lookup::default()
        };
        self.read(name, &lookup)
    }

    /// Every source of `name`.
    pub fn sources(&self, name: &str) -> Vec<Result<Arc<Variant>, InputError>> {
        let entries = self.files.get(name).into_iter().flatten();
        entries
            .map(|entry| self.read_source(name, entry, &Lookup::default()))
            .collect()
    }

    /// [`Self::variant_on`] for a name in a round: an unusable file becomes a broken variant, which
    /// fails only its own row. A name without a single file is an error.
    pub fn entrant(&self, name: &str, chip: Chip) -> Result<Arc<Variant>, InputError> {
        let why = match self.variant_on(name, chip) {
            Ok(variant) => return Ok(variant),
            Err(why) => why,
        };
        match self.entry(name, Some(chip), None) {
            Ok(entry) if entry.refused.is_none() => {
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

    fn read(&self, name: &str, lookup: &Lookup) -> Result<Arc<Variant>, InputError> {
        let entry = self.entry(name, lookup.chip, lookup.beside.as_deref());
        let entry = entry.map_err(|missing| {
            let (message, remedy) = missing.explain();
            InputError::new(message, remedy)
        })?;
        self.read_source(name, entry, lookup)
    }

    fn read_source(
        &self,
        name: &str,
        entry: &VariantSource,
        lookup: &Lookup,
    ) -> Result<Arc<Variant>, InputError> {
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
        let matter = entry.matter.clone();
        let beside = beside(&file, matter.unwrap_or_else(|| sidecar(&file.path)))?;
        let folder = &self.folders[entry.folder];
        let library = folder.library.get_or_init(|| {
            let own = Library::gather(&folder.path, &self.include);
            own.searching(toolkit::named_folders())
                .with_toolkit(toolkit::include_folders())
        });
        let lookup = Lookup {
            beside: entry.arch.clone(),
            operator: entry.operator.clone(),
            ..lookup.clone()
        };
        front_matter::read(name, (file, beside), library, self, &lookup).map(Arc::new)
    }

    /// Whether there is a variant `name`. Names are looked up, never joined to
    /// a path, so none can climb out of the folders.
    pub fn knows(&self, name: &str) -> Result<(), NoSuchVariant> {
        self.entry(name, None, None).map(|_| ())
    }

    /// The source of `name` in the folder of the target `beside`, else for `chip`, else for no
    /// particular chip, else any.
    fn entry(
        &self,
        name: &str,
        chip: Option<Chip>,
        beside: Option<&str>,
    ) -> Result<&VariantSource, NoSuchVariant> {
        let sources = self.files.get(name).map_or(&[][..], Vec::as_slice);
        let near = || {
            sources
                .iter()
                .find(|e| beside.is_some() && e.arch.as_deref() == beside)
        };
        let made_for = |arch: &str| {
            let chip = chip.filter(|_| beside.is_none())?;
            chip.refuses(arch).is_none().then(|| Chip::parse(arch))?
        };
        // Of several that run, the one for the latest chip; the one for that chip alone, if there
        // is one (`sm_100a` sorts before `sm_100f`).
        let own = || {
            let fit = sources
                .iter()
                .filter_map(|e| Some((made_for(e.arch.as_deref()?)?, e)));
            fit.rev().max_by_key(|(chip, _)| *chip).map(|(_, e)| e)
        };
        let found = near().or_else(own).or(sources.first());
        let alike = |path: &&PathBuf| path.file_stem().is_some_and(|stem| stem == name);
        found.ok_or_else(|| NoSuchVariant {
            name: name.to_owned(),
            without_matter: self.without_matter.iter().find(alike).cloned(),
            nearest: nearest(name, self.names()).map(str::to_owned),
            malformed: check_name(name).err(),
        })
    }
}

/// The context in which a variant is read.
#[derive(Clone, Debug, Default)]
struct Lookup {
    /// The chip that it is to run on.
    chip: Option<Chip>,
    /// The target folder whose sources come first: that of the variant that extends it, then its
    /// own.
    beside: Option<String>,
    /// The operator its folder is named after.
    operator: Option<String>,
    /// It is picked by another variant, so it may not pick others.
    picked: bool,
    /// The variants that extend it, the last first.
    heirs: Vec<String>,
}

/// A name that is not in the catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchVariant {
    name: String,
    /// A file of this name that has no front matter.
    without_matter: Option<PathBuf>,
    nearest: Option<String>,
    malformed: Option<String>,
}

impl NoSuchVariant {
    /// Message and remedy.
    pub fn explain(&self) -> (String, String) {
        let name = &self.name;
        if let Some(why) = &self.malformed {
            let remedy = match name.trim().contains(char::is_whitespace) {
                true => "names are separated by commas",
                false => "name a file of the variants folder, without folder and .cu",
            };
            return (
                format!("`{name}` cannot be a variant: {why}"),
                remedy.to_owned(),
            );
        }
        if let Some(path) = &self.without_matter {
            let language = Language::of(path).unwrap_or(Language::Cuda);
            let shown = printable_line(&path.display().to_string());
            let message = format!("{shown} does not open with front matter");
            return (message, front_matter::how_to_open(path, language));
        }
        let remedy = match &self.nearest {
            Some(close) => format!("did you mean `{close}`?"),
            None => "`dgx list` lists the variants".to_owned(),
        };
        (format!("there is no variant `{name}`"), remedy)
    }
}

/// What a relative path is relative to.
fn here(path: &Path) -> &'static str {
    match path.is_absolute() {
        true => "",
        false => " here",
    }
}

/// Names go into tables, file names and `name[PARAM=1]`, so they are plain.
pub fn check_name(name: &str) -> Result<(), String> {
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
    if name.starts_with('.') {
        return Err("a file that begins with . is hidden, and passed over".to_owned());
    }
    if name.starts_with('-') {
        return Err("a name that begins with - reads as a flag".to_owned());
    }
    // In any spelling: readers must not confuse the two.
    let letters = |c: &char| c.is_ascii_alphanumeric();
    let spelling: String = name.chars().filter(letters).collect();
    let is_yardstick = |y: Yardstick| spelling.eq_ignore_ascii_case(y.as_str());
    if Yardstick::ALL.into_iter().any(is_yardstick) {
        return Err("that is a yardstick's name".to_owned());
    }
    Ok(())
}

/// The schema of front matter, for other programs.
pub fn schema(generator: SchemaGenerator) -> Schema {
    generator.into_root_schema_for::<wire::FrontMatter>()
}

#[cfg(test)]
mod tests;
