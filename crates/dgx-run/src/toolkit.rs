//! Finds NVIDIA's libraries, headers and programs: in a CUDA toolkit, in wheels below `.dgx`, or in
//! a Python environment. cudarc loads libraries by bare name; a library outside the loader's path
//! is loaded here first, by absolute path, so that the bare name then resolves to it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// How a library came to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Named by an environment variable of dgx.
    Variable,
    /// On the loader's own path.
    Loader,
    /// In a CUDA toolkit's folder.
    Toolkit,
    /// In the checkout's `.dgx` folder.
    Checkout,
    /// In a Python environment.
    Python,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Variable => "environment",
            Self::Loader => "library path",
            Self::Toolkit => "CUDA toolkit",
            Self::Checkout => ".dgx",
            Self::Python => "Python environment",
        })
    }
}

/// A library file and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryFile {
    pub path: PathBuf,
    pub origin: Origin,
}

/// Distinguishes two builds of one version: size and time of the file.
pub(crate) fn identity(file: &Path) -> String {
    let about = std::fs::metadata(file).ok();
    let changed = about.as_ref().and_then(|about| about.modified().ok());
    let since = changed.and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
    format!("{} {since:?}", about.map_or(0, |about| about.len()))
}

/// The newest `stem.so*` in a folder: `libnvrtc` finds `libnvrtc.so.13`, but not
/// `libnvrtc-builtins.so` or `libnvrtc.alt.so`.
pub(crate) fn newest(folder: &Path, stem: &str) -> Option<PathBuf> {
    let prefix = format!("{stem}.so");
    let mut matches: Vec<PathBuf> = std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.file_name()
                .and_then(|n| n.to_str())
                .is_some_and(|n| n.starts_with(&prefix))
        })
        .collect();
    matches.sort();
    matches.pop()
}

/// A file, or the newest of its kind in a folder.
pub(crate) fn file_or_folder(place: &Path, stem: &str) -> Option<PathBuf> {
    if place.is_file() {
        return Some(place.to_path_buf());
    }
    newest(place, stem)
}

/// `CUDA_HOME`, `CUDA_PATH`, `/usr/local/cuda`.
fn toolkits() -> impl Iterator<Item = PathBuf> {
    let named = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(variable);
    named.chain([PathBuf::from("/usr/local/cuda")])
}

/// A path from an environment variable.
pub(crate) fn variable(name: impl AsRef<std::ffi::OsStr>) -> Option<PathBuf> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

/// Library folders of CUDA toolkits.
pub(crate) fn system_library_folders() -> Vec<PathBuf> {
    toolkits()
        .flat_map(|home| {
            let target = format!("targets/{}-linux/lib", std::env::consts::ARCH);
            [home.join("lib64"), home.join(target), home.join("lib")]
        })
        .filter(|folder| folder.is_dir())
        .collect()
}

/// `nvidia/*/lib` folders of Python environments: where wheels and PyTorch keep
/// NVIDIA's libraries.
pub(crate) fn python_library_folders() -> Vec<PathBuf> {
    let packages = python_packages();
    let libraries = packages.iter().map(|package| package.join("lib"));
    libraries.filter(|folder| folder.is_dir()).collect()
}

/// `nvidia/*` of the Python environment that dgx itself is installed in, and of
/// those on `PATH`.
fn python_packages() -> Vec<PathBuf> {
    let own = std::env::current_exe().ok();
    let own = own.and_then(|program| program.parent().map(Path::to_owned));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let bins = own.into_iter().chain(std::env::split_paths(&path));
    bins.filter(|bin| bin.join("python3").is_file())
        .filter_map(|bin| bin.parent().map(|prefix| prefix.join("lib")))
        .flat_map(|lib| subfolders(&lib))
        .filter(|folder| file_name(folder).starts_with("python"))
        .flat_map(|python| {
            ["site-packages/nvidia", "dist-packages/nvidia"].map(|sub| python.join(sub))
        })
        .flat_map(|nvidia| subfolders(&nvidia))
        .collect()
}

/// `nvidia/*` of the wheels that `scripts/nvrtc` fetches.
fn fetched_packages() -> Vec<PathBuf> {
    let fetched = checkout_folder("nvrtc").map(|folder| folder.join("nvidia"));
    fetched
        .iter()
        .flat_map(|nvidia| subfolders(nvidia))
        .collect()
}

/// Folders of headers that the user names for this process.
static NAMED: OnceLock<Vec<PathBuf>> = OnceLock::new();

/// Lets sources include files below `folders`. Only the first call counts.
pub fn include_also(folders: &[PathBuf]) {
    let _ = NAMED.set(folders.to_vec());
}

/// The folders that the user names.
pub(crate) fn named_folders() -> &'static [PathBuf] {
    NAMED.get().map_or(&[], Vec::as_slice)
}

/// The folders in which `#include <cuda_fp16.h>` and `#include <cuda/barrier>` are looked for,
/// after those the user names: of the first place that has them, the one beside the named NVRTC
/// before a toolkit's, fetched wheels and Python environments.
pub(crate) fn include_folders() -> &'static [PathBuf] {
    static FOLDERS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOLDERS.get_or_init(|| {
        let named = variable("DGX_NVRTC");
        let named = named
            .iter()
            .flat_map(|place| place.ancestors().take(3).map(Path::to_owned));
        let homes = named
            .chain(toolkits())
            .chain(fetched_packages())
            .chain(python_packages());
        let mut folders = homes.map(|home| home.join("include"));
        let found = folders.find(|folder| folder.join("cuda_fp16.h").is_file());
        let with_cccl = |folder: PathBuf| [folder.clone(), folder.join("cccl")];
        found.into_iter().flat_map(with_cccl).collect()
    })
}

/// A program on `PATH`, or in the `bin` of a toolkit, of fetched wheels or of a
/// Python package.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let packages = fetched_packages().into_iter().chain(python_packages());
    let bins = toolkits().chain(packages).map(|home| home.join("bin"));
    let mut programs = std::env::split_paths(&path)
        .chain(bins)
        .map(|bin| bin.join(name));
    programs.find(|program| program.is_file())
}

/// `.dgx/NAME` of the checkout around the current folder or around the binary.
pub(crate) fn checkout_folder(name: &str) -> Option<PathBuf> {
    let starts = [std::env::current_dir().ok(), std::env::current_exe().ok()];
    starts
        .into_iter()
        .flatten()
        .flat_map(|start| {
            start
                .ancestors()
                .map(|a| a.join(".dgx").join(name))
                .collect::<Vec<_>>()
        })
        .find(|folder| folder.is_dir())
}

/// The first of `folders`, or any folder below them, that has the library.
pub(crate) fn search(folders: &[PathBuf], stem: &str) -> Option<PathBuf> {
    folders.iter().find_map(|folder| newest(folder, stem))
}

/// A folder and all folders below it, nearest first.
pub(crate) fn below(folder: &Path) -> Vec<PathBuf> {
    let mut all = vec![folder.to_path_buf()];
    let mut next = 0;
    while next < all.len() {
        let more = subfolders(&all[next]);
        all.extend(more);
        next += 1;
    }
    all
}

fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Loads a library for the rest of the process, with its symbols and its soname visible to later
/// lookups.
pub(crate) fn preload(path: &Path) -> Result<(), String> {
    use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
    // SAFETY: NVIDIA's libraries run no initialiser that depends on our state.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) };
    library.map(std::mem::forget).map_err(|e| e.to_string())
}

/// The path of a library that is loaded in this process.
pub(crate) fn loaded_path(stem: &str) -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let prefix = format!("{stem}.so");
    maps.lines()
        .filter_map(|line| line.find('/').map(|at| PathBuf::from(&line[at..])))
        .find(|path| file_name(path).starts_with(&prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_is_not_fooled_by_neighbours() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "libnvrtc.so.12",
            "libnvrtc.so.13",
            "libnvrtc-builtins.so.13.0",
            "libnvrtc.alt.so.13",
        ] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let found = newest(folder.path(), "libnvrtc").unwrap();
        assert!(found.ends_with("libnvrtc.so.13"));
        assert_eq!(newest(folder.path(), "libcublasLt"), None);
    }
}
