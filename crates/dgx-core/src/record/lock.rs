//! One writer at a time: an advisory lock, held while the file is open for writing and released
//! when its process ends in any way. Readers do not need it.

use std::fs::{File, TryLockError};
use std::os::linux::fs::MetadataExt;

/// Whether this process now has the file to itself.
pub enum LockOutcome {
    Ours,
    /// Another process has it: this one, if the system reports it.
    Taken(Option<u32>),
    /// The file system has no locks.
    Unknown,
}

pub fn try_lock(file: &File) -> LockOutcome {
    match file.try_lock() {
        Ok(()) => LockOutcome::Ours,
        Err(TryLockError::WouldBlock) => LockOutcome::Taken(holder(file)),
        Err(TryLockError::Error(_)) => LockOutcome::Unknown,
    }
}

/// The process the kernel lists for this file, as `device:inode`.
fn holder(file: &File) -> Option<u32> {
    let found = file.metadata().ok()?;
    let (device, inode) = (found.st_dev(), found.st_ino());
    let major = ((device >> 8) & 0xfff) | ((device >> 32) & !0xfff);
    let minor = (device & 0xff) | ((device >> 12) & !0xff);
    let own = format!("{major:02x}:{minor:02x}:{inode}");
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let words = locks
        .lines()
        .map(|l| l.split_whitespace().collect::<Vec<_>>());
    let mut holders = words.filter_map(|w| match w.as_slice() {
        [_, _, _, _, pid, file, ..] if *file == own => pid.parse().ok(),
        _ => None,
    });
    holders.find(|pid| *pid > 0)
}
