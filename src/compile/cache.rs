use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Error, Image, KernelReport};

/// Where dgx keeps what it can make again: `$DGX_CACHE`, else `.dgx/cache` of
/// the checkout around `start`, else the user's cache folder.
pub fn cache_root(start: &Path) -> PathBuf {
    if let Some(set) = std::env::var_os("DGX_CACHE").filter(|v| !v.is_empty()) {
        return PathBuf::from(set);
    }
    let checkout = start
        .ancestors()
        .find(|a| a.join(".dgx").is_dir() || is_checkout(a));
    if let Some(checkout) = checkout {
        return checkout.join(".dgx/cache");
    }
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
    variable("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .unwrap_or_else(std::env::temp_dir)
        .join("dgx")
}

fn is_checkout(folder: &Path) -> bool {
    folder.join("Cargo.toml").is_file() && folder.join("variants").is_dir()
}

/// Compiled images by content key, one folder each. An entry appears whole, by
/// rename, so that a reader never meets a half-written one.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    error: Option<String>,
    kernels: Vec<KernelReport>,
    remarks: Vec<String>,
}

impl Cache {
    pub fn open(root: &Path) -> Result<Self, Error> {
        let root = root.join("images");
        fs::create_dir_all(&root).map_err(|source| Error::Cache {
            path: root.clone(),
            source,
        })?;
        Ok(Self { root })
    }

    /// The folder of an entry. Workers are handed this, and read it themselves.
    pub fn folder(&self, key: &str) -> PathBuf {
        self.root.join(key)
    }

    /// The entry for `key`; anything unreadable counts as absent and is made again.
    pub fn load(&self, key: &str) -> Option<Result<Image, String>> {
        Self::read(&self.folder(key)).ok()
    }

    /// Reads one entry's folder.
    pub fn read(folder: &Path) -> io::Result<Result<Image, String>> {
        let report: Report = serde_json::from_slice(&fs::read(folder.join("report.json"))?)?;
        if let Some(message) = report.error {
            return Ok(Err(message));
        }
        let key = folder.file_name().unwrap_or_default().to_string_lossy();
        Ok(Ok(Image {
            key: key.into_owned(),
            cubin: fs::read(folder.join("image.cubin"))?,
            ptx: fs::read_to_string(folder.join("image.ptx"))?,
            kernels: report.kernels,
            remarks: report.remarks,
        }))
    }

    pub(super) fn publish(&self, key: &str, outcome: &Result<Image, String>) -> Result<(), Error> {
        self.write(key, outcome).map_err(|source| Error::Cache {
            path: self.root.clone(),
            source,
        })
    }

    fn write(&self, key: &str, outcome: &Result<Image, String>) -> io::Result<()> {
        let staging = tempfile::Builder::new()
            .prefix(".new-")
            .tempdir_in(&self.root)?;
        let report = match outcome {
            Ok(image) => {
                fs::write(staging.path().join("image.cubin"), &image.cubin)?;
                fs::write(staging.path().join("image.ptx"), &image.ptx)?;
                Report {
                    error: None,
                    kernels: image.kernels.clone(),
                    remarks: image.remarks.clone(),
                }
            }
            Err(message) => Report {
                error: Some(message.clone()),
                kernels: Vec::new(),
                remarks: Vec::new(),
            },
        };
        fs::write(
            staging.path().join("report.json"),
            serde_json::to_vec(&report)?,
        )?;
        let target = self.folder(key);
        if let Err(error) = fs::rename(staging.path(), &target) {
            // Another process published the same content first, or the old
            // entry was unreadable: replace only the latter.
            if Self::read(&target).is_ok() {
                return Ok(());
            }
            if target.exists() {
                fs::remove_dir_all(&target)?;
                fs::rename(staging.path(), &target)?;
            } else {
                return Err(error);
            }
        }
        let _published = staging.keep();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_entry_is_made_again() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::open(root.path()).unwrap();
        let outcome = Err("variants/x.cu(1): error".to_owned());
        cache.publish("k", &outcome).unwrap();
        assert_eq!(cache.load("k"), Some(outcome.clone()));
        fs::write(cache.folder("k").join("report.json"), "{").unwrap();
        assert_eq!(cache.load("k"), None);
        cache.publish("k", &outcome).unwrap();
        assert_eq!(cache.load("k"), Some(outcome));
    }
}
