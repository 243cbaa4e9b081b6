//! Which variants lie in the folders here. A dgx that runs none knows of none.

use std::path::PathBuf;

#[cfg(feature = "run")]
use dgx_core::config::target;
#[cfg(feature = "run")]
use dgx_run::catalog::Catalog;

/// The names of all variants.
#[cfg(feature = "run")]
pub(super) fn variants(folders: &[PathBuf]) -> Vec<String> {
    let catalog = Catalog::open(folders).ok();
    let names = catalog.iter().flat_map(|catalog| catalog.names());
    names.map(str::to_owned).collect()
}

/// The names of all variants, and of every choice of their parameters.
#[cfg(feature = "run")]
pub(super) fn contenders(folders: &[PathBuf]) -> Vec<String> {
    let Ok(catalog) = Catalog::open(folders) else {
        return Vec::new();
    };
    let mut names = Vec::new();
    for name in catalog.names() {
        names.push(name.to_owned());
        let variant = catalog.variant_on(name, target::usual().chip);
        let choices = variant.map(|variant| variant.contenders(&Default::default()));
        let ids = choices.into_iter().flatten().map(|c| c.id.typed());
        names.extend(ids.filter(|id| id != name));
    }
    names
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
