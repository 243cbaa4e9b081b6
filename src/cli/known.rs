//! The variants in the folders here. A dgx built without `run` lists none.

#[cfg(feature = "run")]
use std::collections::HashSet;
use std::path::PathBuf;

#[cfg(feature = "run")]
use dgx_core::config::target;
#[cfg(feature = "run")]
use dgx_run::catalog::Catalog;

/// The names of all variants, of whatever operator.
#[cfg(feature = "run")]
pub(super) fn variants(folders: &[PathBuf]) -> Vec<String> {
    let catalogs = catalogs(folders);
    let names = catalogs.iter().flat_map(|catalog| catalog.names());
    unique(names.map(str::to_owned))
}

/// The names of all variants, and of every choice of their parameters.
#[cfg(feature = "run")]
pub(super) fn contenders(folders: &[PathBuf]) -> Vec<String> {
    let mut names = Vec::new();
    for catalog in catalogs(folders) {
        for name in catalog.names() {
            names.push(name.to_owned());
            let variant = catalog.variant_on(name, target::default_device().chip);
            let choices = variant.map(|variant| variant.contenders(&Default::default()));
            let ids = choices.into_iter().flatten().map(|c| c.id.typed());
            names.extend(ids.filter(|id| id != name));
        }
    }
    unique(names)
}

/// The catalog of variants outside operators' folders, then that of each operator.
#[cfg(feature = "run")]
fn catalogs(folders: &[PathBuf]) -> Vec<Catalog> {
    let Ok(catalog) = Catalog::open(folders) else {
        return Vec::new();
    };
    let own = catalog.operators().map(|name| catalog.folder_of(name));
    let own: Vec<Catalog> = own.collect();
    std::iter::once(catalog).chain(own).collect()
}

/// Several operators may have designs of the same name.
#[cfg(feature = "run")]
fn unique(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    let names = names.into_iter();
    names.filter(|name| seen.insert(name.clone())).collect()
}

/// Whether there is a variant of this name.
#[cfg(feature = "run")]
pub(super) fn is_here(folders: &[PathBuf], variant: &str) -> bool {
    Catalog::open(folders).is_ok_and(|catalog| catalog.knows(variant).is_ok())
}

#[cfg(not(feature = "run"))]
pub(super) fn variants(_: &[PathBuf]) -> Vec<String> {
    Vec::new()
}

#[cfg(not(feature = "run"))]
pub(super) fn contenders(_: &[PathBuf]) -> Vec<String> {
    Vec::new()
}

#[cfg(not(feature = "run"))]
pub(super) fn is_here(_: &[PathBuf], _: &str) -> bool {
    false
}
