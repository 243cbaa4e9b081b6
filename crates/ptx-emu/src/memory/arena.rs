//! Address space of the host in which device memory lies, so that both know a byte by one address.

use std::ffi::c_void;
use std::io;
use std::ptr::{self, NonNull};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

use super::GAP;
use crate::op::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW};

/// Where the arena should lie: above what programs use, below where the host maps libraries.
const WISH: usize = 0x2_0000_0000;

/// Bytes of a window of generic addresses.
const WINDOW: usize = 1 << 32;

/// A range of addresses. The host takes pages as they are touched.
pub(super) struct Arena {
    start: NonNull<c_void>,
    bytes: usize,
}

// SAFETY: a range of addresses; who may touch its bytes when is said at `HostBytes`.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// Takes a range of at least `bytes`, and several times that where the host lets it, so that
    /// addresses return late.
    pub(super) fn of(bytes: u64) -> io::Result<Self> {
        set_windows_aside();
        let least = (bytes.saturating_add(1 << 32)) as usize;
        let mut error = io::Error::from(io::ErrorKind::OutOfMemory);
        for times in [32, 8, 2, 1] {
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
            let access = ProtFlags::READ | ProtFlags::WRITE;
            let bytes = least.saturating_mul(times);
            // SAFETY: without FIXED the range is one that nobody has.
            match unsafe { mmap_anonymous(ptr::without_provenance_mut(WISH), bytes, access, flags) }
            {
                Ok(start) => {
                    let start = NonNull::new(start).expect("mmap gives no null");
                    let arena = Self { start, bytes };
                    arena.advise(start, bytes, Advice::LinuxDontDump);
                    return Ok(arena);
                }
                Err(failed) => error = failed.into(),
            }
        }
        Err(error)
    }

    /// First address that allocations may have.
    pub(super) fn first(&self) -> u64 {
        (self.start.as_ptr().addr() as u64).next_multiple_of(GAP)
    }

    /// One past the last.
    pub(super) fn end(&self) -> u64 {
        (self.start.as_ptr().addr() + self.bytes) as u64
    }

    /// Where the host reaches an address of the arena.
    pub(super) fn at(&self, address: u64) -> NonNull<u8> {
        let offset = address as usize - self.start.as_ptr().addr();
        assert!(offset < self.bytes, "an address of the arena");
        // SAFETY: inside the range.
        unsafe { self.start.cast::<u8>().add(offset) }
    }

    /// Gives the pages of a freed allocation back; they read as zero from now on.
    pub(super) fn release(&self, address: u64, bytes: u64) {
        let whole = (bytes as usize).next_multiple_of(GAP as usize);
        let whole = whole.min(self.end() as usize - address as usize);
        self.advise(self.at(address).cast(), whole, Advice::LinuxDontNeed);
    }

    fn advise(&self, start: NonNull<c_void>, bytes: usize, advice: Advice) {
        // SAFETY: a part of the range that no allocation uses (or a matter of core files alone).
        let done = unsafe { madvise(start.as_ptr(), bytes, advice) };
        debug_assert!(done.is_ok(), "{done:?}");
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: regions of the arena end before it does.
        let done = unsafe { munmap(self.start.as_ptr(), self.bytes) };
        debug_assert!(done.is_ok(), "{done:?}");
    }
}

/// Keeps the host from using addresses that mean shared, local or parameter memory in a kernel:
/// memory it lends must lie elsewhere. What it has mapped there already stays.
fn set_windows_aside() {
    for window in [SHARED_WINDOW, LOCAL_WINDOW, PARAM_WINDOW] {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE;
        let at = ptr::without_provenance_mut(window as usize);
        // SAFETY: nothing that exists is replaced. It fails where the window is taken aside already.
        let _ = unsafe { mmap_anonymous(at, WINDOW, ProtFlags::empty(), flags) };
    }
}
