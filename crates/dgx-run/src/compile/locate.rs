//! Where NVIDIA's libraries may be. cudarc loads them by bare name; what is
//! outside the loader's path is loaded here first, by absolute path, so that
//! the bare name then resolves to it.

use std::fmt;
use std::path::{Path, PathBuf};

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
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Variable => "environment",
            Self::Loader => "library path",
            Self::Toolkit => "CUDA toolkit",
            Self::Checkout => ".dgx",
        })
    }
}

/// A library file and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub path: PathBuf,
    pub origin: Origin,
}

/// The newest `stem.so*` in a folder: `libnvrtc` finds `libnvrtc.so.13`, and
/// not `libnvrtc-builtins.so` nor `libnvrtc.alt.so`.
pub(super) fn newest(folder: &Path, stem: &str) -> Option<PathBuf> {
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

/// Library folders of CUDA toolkits: `CUDA_HOME`, `CUDA_PATH`, `/usr/local/cuda`.
pub(crate) fn system_library_folders() -> Vec<PathBuf> {
    let named = ["CUDA_HOME", "CUDA_PATH"]
        .iter()
        .filter_map(std::env::var_os)
        .filter(|v| !v.is_empty())
        .map(PathBuf::from);
    named
        .chain([PathBuf::from("/usr/local/cuda")])
        .flat_map(|home| {
            let target = format!("targets/{}-linux/lib", std::env::consts::ARCH);
            [home.join("lib64"), home.join(target), home.join("lib")]
        })
        .filter(|folder| folder.is_dir())
        .collect()
}

/// `nvidia/*/lib` folders of the Python environments on `PATH`: where PyTorch
/// and its like keep cuBLAS.
pub(crate) fn python_library_folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .filter(|bin| bin.join("python3").is_file())
        .filter_map(|bin| bin.parent().map(|prefix| prefix.join("lib")))
        .flat_map(|lib| subfolders(&lib))
        .filter(|folder| file_name(folder).starts_with("python"))
        .flat_map(|python| {
            ["site-packages/nvidia", "dist-packages/nvidia"].map(|sub| python.join(sub))
        })
        .flat_map(|nvidia| subfolders(&nvidia))
        .map(|package| package.join("lib"))
        .filter(|folder| folder.is_dir())
        .collect()
}

/// `.dgx/NAME` of the checkout around the current folder or around the binary.
pub(super) fn checkout_folder(name: &str) -> Option<PathBuf> {
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

/// The first of `folders`, or any folder below them, that holds the library.
pub fn search(folders: &[PathBuf], stem: &str) -> Option<PathBuf> {
    folders.iter().find_map(|folder| newest(folder, stem))
}

/// A folder and all folders below it, nearest first.
pub(super) fn below(folder: &Path) -> Vec<PathBuf> {
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

/// Loads a library for the rest of the process, its symbols and its soname
/// visible to later lookups.
pub(crate) fn preload(path: &Path) -> Result<(), String> {
    use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
    // SAFETY: NVIDIA's libraries run no initialiser that depends on our state.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) };
    library.map(std::mem::forget).map_err(|e| e.to_string())
}

/// Where a library that is loaded in this process lies on disk.
pub(super) fn loaded_path(stem: &str) -> Option<PathBuf> {
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
