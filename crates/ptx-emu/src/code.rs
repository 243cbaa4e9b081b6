//! Machine code of a kernel, and the memory it lies in.
//!
//! Memory is written while it cannot be executed, and then executed while it cannot be written.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Once, OnceLock};

/// Bytes of all code, at most. Kernels beyond are interpreted.
const MOST_BYTES: usize = 256 << 20;

/// Bytes of all code.
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Places a warp can be taken up at: for some of its lanes, and for all.
pub(crate) type Entries = [Vec<Option<u32>>; 2];

/// The code of one kernel.
#[derive(Debug)]
pub(crate) struct Code {
    memory: Executable,
    entries: Entries,
}

impl Code {
    /// Code that begins with the way in; none where executable memory is forbidden, which is
    /// said once, or where there is too much of it.
    pub(crate) fn new(bytes: &[u8], entries: Entries) -> Option<Self> {
        let memory = Executable::new(bytes)?;
        Some(Self { memory, entries })
    }

    /// The address of the code for an instruction, if a warp can be taken up there.
    #[inline(always)]
    pub(crate) fn entry(&self, pc: u32, whole: bool) -> Option<*const u8> {
        let offset = (*self.entries[usize::from(whole)].get(pc as usize)?)?;
        Some(self.memory.at(offset))
    }

    /// The address of the way in.
    #[inline(always)]
    pub(crate) fn start(&self) -> *const u8 {
        self.memory.at(0)
    }
}

/// The code of a kernel, made when it pays.
#[derive(Debug, Default)]
pub(crate) struct Compiled {
    code: OnceLock<Option<Code>>,
    /// Warp instructions that have been interpreted.
    interpreted: AtomicU64,
}

/// A copy of a kernel has instructions of its own, and so needs code of its own.
impl Clone for Compiled {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Compiled {
    /// Counts interpreted instructions; how many it were in all.
    pub(crate) fn count(&self, instructions: u64) -> u64 {
        self.interpreted.fetch_add(instructions, Relaxed) + instructions
    }

    /// Whether there is any by now.
    pub(crate) fn is_made(&self) -> bool {
        self.code.get().is_some_and(Option::is_some)
    }

    /// The code, made by `make` at the first call.
    pub(crate) fn get(&self, make: impl FnOnce() -> Option<Code>) -> Option<&Code> {
        self.code.get_or_init(make).as_ref()
    }
}

/// Pages that can be executed.
#[derive(Debug)]
struct Executable {
    first: *mut u8,
    len: usize,
}

// SAFETY: nobody writes the pages once `new` has returned.
unsafe impl Send for Executable {}
// SAFETY: as above.
unsafe impl Sync for Executable {}

impl Executable {
    fn new(bytes: &[u8]) -> Option<Self> {
        use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};
        let len = bytes.len().next_multiple_of(4096).max(4096);
        if BYTES.fetch_add(len, Relaxed) + len > MOST_BYTES {
            BYTES.fetch_sub(len, Relaxed);
            return None;
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: new pages, which nothing else uses.
        let first = unsafe { mmap_anonymous(std::ptr::null_mut(), len, access, MapFlags::PRIVATE) };
        let first = match first {
            Ok(first) => first.cast(),
            Err(error) => {
                BYTES.fetch_sub(len, Relaxed);
                say_interpreted(error);
                return None;
            }
        };
        let pages = Self { first, len };
        // SAFETY: the pages are new, writable, and at least as long.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), pages.first, bytes.len()) };
        let access = MprotectFlags::READ | MprotectFlags::EXEC;
        // SAFETY: nothing borrows the pages.
        if let Err(error) = unsafe { mprotect(pages.first.cast(), len, access) } {
            say_interpreted(error);
            return None;
        }
        Some(pages)
    }

    #[inline(always)]
    fn at(&self, offset: u32) -> *const u8 {
        assert!((offset as usize) < self.len);
        // SAFETY: within the pages.
        unsafe { self.first.add(offset as usize) }
    }
}

/// Says once that there is no memory for code.
fn say_interpreted(error: rustix::io::Errno) {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        eprintln!("ptx-emu: kernels are interpreted: no memory can be executed: {error}");
    });
}

impl Drop for Executable {
    fn drop(&mut self) {
        // SAFETY: the pages of `new`. A program owns its code, and whoever runs it borrows the
        // program, so nobody has an address any more.
        let unmapped = unsafe { rustix::mm::munmap(self.first.cast(), self.len) };
        debug_assert!(unmapped.is_ok());
        BYTES.fetch_sub(self.len, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_bounded() {
        assert!(Code::new(&vec![0xc3; 300 << 20], Entries::default()).is_none());
        assert!(Code::new(&[0xc3], Entries::default()).is_some());
    }
}
