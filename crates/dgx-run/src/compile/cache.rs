use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use tempfile::TempDir;

use super::upkeep::{IMAGES, PARTS, STAGING, clear_away, discard};
use super::{Error, Image, KernelReport};
use dgx_core::domain::content_hash;
use dgx_core::files;
use dgx_core::home::user_folder;

/// No part of an entry is larger, bytes.
const LARGEST_PART: u64 = 256 << 20;

/// The folder of reproducible files: `$DGX_CACHE`, else `.dgx/cache` of the checkout around
/// `start`, else the user's cache folder.
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
    user_folder("XDG_CACHE_HOME", ".cache").unwrap_or_else(|| start.join(".dgx/cache"))
}

fn is_checkout(folder: &Path) -> bool {
    folder.join("Cargo.toml").is_file() && folder.join("variants").is_dir()
}

/// Compiled images by content key, one folder each. An entry appears whole, by rename, and has a
/// checksum over its key and all its parts: one that was torn, edited or moved is made again and
/// never used.
///
/// Any number of nodes may write to one on a shared file system. There are no locks, which a dead
/// node would keep: a process that finds no entry makes it, and of several the first is kept, since
/// all made the same.
///
/// If it cannot be written, images are kept in a temporary folder of this process.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
    temporary_folder: Arc<OnceLock<TempDir>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    error: Option<String>,
    kernels: Vec<KernelReport>,
    remarks: Vec<String>,
    /// Over the key, the code and the fields above.
    checksum: String,
}

impl Report {
    fn new(key: &str, outcome: &Result<Image, String>) -> io::Result<Self> {
        let image = outcome.as_ref().ok();
        let mut report = Self {
            error: outcome.as_ref().err().cloned(),
            kernels: image.map_or(Vec::new(), |image| image.kernels.clone()),
            remarks: image.map_or(Vec::new(), |image| image.remarks.clone()),
            checksum: String::new(),
        };
        let (cubin, ptx) = image.map_or((&[][..], ""), |image| (&*image.cubin, &*image.ptx));
        report.checksum = report.sum(key, cubin, ptx)?;
        Ok(report)
    }

    fn sum(&self, key: &str, cubin: &[u8], ptx: &str) -> io::Result<String> {
        let fields = serde_json::to_vec(&(&self.error, &self.kernels, &self.remarks))?;
        Ok(content_hash([
            key.as_bytes(),
            cubin,
            ptx.as_bytes(),
            &fields,
        ]))
    }
}

/// What the cache has under a key.
#[derive(Debug, PartialEq)]
pub enum Cached {
    Absent,
    /// An entry that differs from the published one.
    Damaged,
    Whole(Result<Image, String>),
}

impl Cache {
    pub fn open(root: &Path) -> Result<Self, Error> {
        let cache = Self {
            root: root.join(IMAGES),
            temporary_folder: Arc::default(),
        };
        match fs::create_dir_all(&cache.root) {
            Ok(()) => clear_away(&cache.root),
            Err(source) => {
                cache.temporary_folder(source)?;
            }
        }
        Ok(cache)
    }

    /// The folder of an entry. Workers get this path and read the entry themselves.
    pub fn folder(&self, key: &str) -> PathBuf {
        let temporary_folder = self
            .temporary_folder
            .get()
            .map(|temporary_folder| temporary_folder.path().join(key));
        temporary_folder
            .filter(|folder| folder.exists())
            .unwrap_or_else(|| self.root.join(key))
    }

    /// The folder of entries once the cache could not be written; reports that once.
    fn temporary_folder(&self, source: io::Error) -> Result<&Path, Error> {
        if self.temporary_folder.get().is_none() {
            let failed = |source| Error::Cache {
                path: self.root.clone(),
                source,
            };
            let folder = tempfile::tempdir().map_err(failed)?;
            if self.temporary_folder.set(folder).is_ok() {
                remark!(
                    "warning: the cache {} cannot be written ({source}): what is compiled is kept \
                     for this run only; DGX_CACHE names another folder",
                    self.root.display()
                );
            }
        }
        Ok(self
            .temporary_folder
            .get()
            .map_or(&self.root, TempDir::path))
    }

    /// The entry for `key`.
    pub fn load(&self, key: &str) -> Cached {
        let folder = self.folder(key);
        match Self::read(&folder) {
            Ok(outcome) => Cached::Whole(outcome),
            Err(_) if fs::symlink_metadata(&folder).is_err() => Cached::Absent,
            Err(_) => Cached::Damaged,
        }
    }

    /// Reads an entry that was seen before. If it is being replaced, or a network file system has
    /// not noticed it yet, it appears a moment later.
    pub(crate) fn fetch(folder: &Path) -> io::Result<Result<Image, String>> {
        for pause in PAUSES {
            if let Ok(entry) = Self::read(folder) {
                return Ok(entry);
            }
            std::thread::sleep(pause);
        }
        Self::read(folder)
    }

    /// Reads one entry's folder.
    pub fn read(folder: &Path) -> io::Result<Result<Image, String>> {
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "its checksum is wrong");
        let part = |name: &str| files::read(&folder.join(name), LARGEST_PART);
        let [cubin, ptx, report] = PARTS;
        let report: Report = serde_json::from_slice(&part(report)?)?;
        let key = folder.file_name().unwrap_or_default().to_string_lossy();
        let (cubin, ptx) = match &report.error {
            Some(_) => (Vec::new(), String::new()),
            None => (
                part(cubin)?,
                String::from_utf8(part(ptx)?).map_err(|_| damaged())?,
            ),
        };
        if report.sum(&key, &cubin, &ptx)? != report.checksum {
            return Err(damaged());
        }
        if let Some(message) = report.error {
            return Ok(Err(message));
        }
        Ok(Ok(Image {
            key: key.into_owned(),
            cubin,
            ptx,
            kernels: report.kernels,
            remarks: report.remarks,
        }))
    }

    pub(crate) fn publish(&self, key: &str, outcome: &Result<Image, String>) -> Result<(), Error> {
        let failed = |source| Error::Cache {
            path: self.root.clone(),
            source,
        };
        let Err(why) = write(&self.root, key, outcome) else {
            return Ok(());
        };
        write(self.temporary_folder(why)?, key, outcome).map_err(failed)
    }
}

/// A new entry of `root`, not yet published.
fn staged(root: &Path, key: &str, outcome: &Result<Image, String>) -> io::Result<TempDir> {
    let staging = tempfile::Builder::new().prefix(STAGING).tempdir_in(root)?;
    let [cubin, ptx, report] = PARTS.map(|name| staging.path().join(name));
    if let Ok(image) = outcome {
        fs::write(cubin, &image.cubin)?;
        fs::write(ptx, &image.ptx)?;
    }
    let text = serde_json::to_vec(&Report::new(key, outcome)?)?;
    fs::write(report, text)?;
    Ok(staging)
}

fn write(root: &Path, key: &str, outcome: &Result<Image, String>) -> io::Result<()> {
    let staging = staged(root, key, outcome)?;
    let target = root.join(key);
    if fs::rename(staging.path(), &target).is_ok() {
        let _published = staging.keep();
        return Ok(());
    }
    // Another process published the same content first (or this one did, and a network file system
    // lost the answer), or the entry there is damaged: only then it is replaced, in one step if the
    // file system can, so that no reader meets a gap.
    if Cache::read(&target).is_ok() {
        return Ok(());
    }
    if exchange(staging.path(), &target).is_ok() {
        discard(&staging.keep());
        return Ok(());
    }
    set_aside(root, staging, &target)
}

/// In two steps if there is no exchange, as on NFS. Nothing is deleted in place: files that are
/// open elsewhere would keep the folder there.
fn set_aside(root: &Path, staging: TempDir, target: &Path) -> io::Result<()> {
    for _ in 0..ATTEMPTS {
        let name = format!("{STAGING}{:016x}", rand::random::<u64>());
        let aside = root.join(name);
        // A missing entry need not be moved.
        if fs::rename(target, &aside).is_ok() {
            discard(&aside);
        }
        if fs::rename(staging.path(), target).is_ok() {
            let _published = staging.keep();
            return Ok(());
        }
        // Another process was faster, which is as good.
        if Cache::read(target).is_ok() {
            return Ok(());
        }
    }
    fs::rename(staging.path(), target)
}

/// Attempts to replace a damaged entry while others do as well.
const ATTEMPTS: usize = 10;
/// Pauses before looking again for an entry that was seen.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(10),
    Duration::from_millis(100),
    Duration::from_secs(1),
];

fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(key: &str) -> Image {
        Image {
            key: key.to_owned(),
            cubin: b"\x7fELF code".to_vec(),
            ptx: ".entry k".to_owned(),
            kernels: vec![KernelReport {
                name: "k".to_owned(),
                ..KernelReport::default()
            }],
            remarks: vec!["slow".to_owned()],
        }
    }

    #[test]
    fn a_damaged_entry_is_never_used_and_made_again() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::open(root.path()).unwrap();
        assert_eq!(cache.load("k"), Cached::Absent);
        let outcome = Ok(image("k"));
        let report = |from: &str, to: &str| {
            let path = cache.folder("k").join("report.json");
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.contains(from), "{text}");
            fs::write(path, text.replace(from, to)).unwrap();
        };
        let code = |name: &str, bytes: &[u8]| fs::write(cache.folder("k").join(name), bytes);
        let swap = |name: &str, make: &dyn Fn(&Path)| {
            let path = cache.folder("k").join(name);
            fs::remove_file(&path).unwrap();
            make(&path);
        };
        let fifo = |path: &Path| {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
        };
        let endless = |path: &Path| std::os::unix::fs::symlink("/dev/zero", path).unwrap();
        let huge = |path: &Path| fs::File::create(path).unwrap().set_len(1 << 40).unwrap();
        let damages: [&dyn Fn(); 11] = [
            &|| swap("image.ptx", &fifo),
            &|| swap("report.json", &fifo),
            &|| swap("image.cubin", &endless),
            &|| swap("image.ptx", &|path| fs::create_dir(path).unwrap()),
            &|| swap("report.json", &huge),
            &|| report("{", ""),
            &|| report("slow", "fast"),
            &|| report("\"registers\":0", "\"registers\":9"),
            &|| code("image.ptx", b".entry j").unwrap(),
            &|| code("image.cubin", b"\x7fELF cod").unwrap(),
            &|| fs::remove_file(cache.folder("k").join("image.cubin")).unwrap(),
        ];
        for (place, damage) in damages.iter().enumerate() {
            cache.publish("k", &outcome).unwrap();
            assert_eq!(cache.load("k"), Cached::Whole(outcome.clone()));
            damage();
            assert_eq!(cache.load("k"), Cached::Damaged, "{place}");
        }
    }

    #[test]
    fn what_cannot_be_kept_lies_elsewhere_for_a_while() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let cache = Cache::open(&file.path().join("below-a-file")).unwrap();
        let outcome = Ok(image("k"));
        cache.publish("k", &outcome).unwrap();
        assert_eq!(cache.clone().load("k"), Cached::Whole(outcome));
        let folder = cache.folder("k");
        drop(cache);
        assert!(!folder.exists());
    }

    #[test]
    fn an_entry_answers_to_its_own_key_only() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::open(root.path()).unwrap();
        let outcome = Err("variants/x.cu(1): error".to_owned());
        cache.publish("k", &outcome).unwrap();
        assert_eq!(cache.load("k"), Cached::Whole(outcome));
        fs::rename(cache.folder("k"), cache.folder("j")).unwrap();
        assert_eq!(cache.load("j"), Cached::Damaged);
        fs::write(cache.folder("k"), "not a folder").unwrap();
        assert_eq!(cache.load("k"), Cached::Damaged);
        cache.publish("k", &Ok(image("k"))).unwrap();
        assert_eq!(cache.load("k"), Cached::Whole(Ok(image("k"))));
    }

    #[test]
    fn many_writers_leave_one_whole_entry() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::open(root.path()).unwrap();
        fs::create_dir(cache.folder("k")).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| cache.publish("k", &Ok(image("k"))).unwrap());
            }
        });
        assert_eq!(cache.load("k"), Cached::Whole(Ok(image("k"))));
        assert_eq!(fs::read_dir(root.path().join("images")).unwrap().count(), 1);
    }

    /// As if the file system could not exchange two folders in one step.
    #[test]
    fn a_damaged_entry_is_replaced_by_many_at_once_without_an_exchange() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::open(root.path()).unwrap();
        let folder = cache.folder("k");
        for _ in 0..20 {
            cache.publish("k", &Ok(image("k"))).unwrap();
            fs::write(folder.join("image.ptx"), "torn").unwrap();
            // A reader has it open all the while.
            let _open = fs::File::open(folder.join("image.cubin")).unwrap();
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let root = folder.parent().unwrap();
                        let staging = staged(root, "k", &Ok(image("k"))).unwrap();
                        set_aside(root, staging, &folder).unwrap();
                        assert!(Cache::fetch(&folder).unwrap().is_ok());
                    });
                }
            });
            assert_eq!(cache.load("k"), Cached::Whole(Ok(image("k"))));
        }
        assert_eq!(fs::read_dir(root.path().join("images")).unwrap().count(), 1);
    }

    #[test]
    fn what_the_killed_left_half_written_goes_in_time() {
        let root = tempfile::tempdir().unwrap();
        Cache::open(root.path()).unwrap();
        let [old, new] = [".new-old", ".new-new"].map(|n| root.path().join("images").join(n));
        for folder in [&old, &new] {
            fs::create_dir(folder).unwrap();
        }
        let long_ago = std::time::SystemTime::now() - 2 * super::super::upkeep::ABANDONED;
        fs::File::open(&old)
            .unwrap()
            .set_modified(long_ago)
            .unwrap();
        Cache::open(root.path()).unwrap();
        assert!(!old.exists() && new.exists());
    }
}
