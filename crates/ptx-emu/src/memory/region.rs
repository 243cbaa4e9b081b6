//! One allocation, and where on the host its bytes lie.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::UnsafeCell;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use super::{ALIGN, HostBytes};
use crate::name::source_name;

/// One allocation.
pub(crate) struct Region {
    pub(crate) base: u64,
    pub(crate) len: u64,
    pub(crate) name: String,
    /// A variable of a module, and not what the host allocated.
    pub(super) variable: bool,
    pub(super) ptr: NonNull<u8>,
    pub(super) backing: Backing,
}

/// Bytes from which an allocation has pages of its own.
const MANY: u64 = 1 << 20;

/// Who gives an allocation's bytes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backing {
    /// The region: they are on the heap.
    Heap,
    /// The region: they are pages of their own.
    Pages,
    /// The arena they lie in.
    Arena,
    /// The host, which lent them.
    Lent,
}

impl Region {
    fn layout(len: u64) -> Layout {
        Layout::from_size_align(len as usize, ALIGN as usize).expect("length checked by alloc")
    }

    /// Zeroed bytes; `len` is above zero. Many are pages that the host gives when they are
    /// touched: the heap would write zeros to all of them, because of their alignment, and a
    /// launch of which few CTAs run touches few.
    pub(super) fn zeroed(len: u64) -> (NonNull<u8>, Backing) {
        let layout = Self::layout(len);
        if len >= MANY {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            let anywhere = std::ptr::null_mut();
            // SAFETY: new pages, which nothing else uses.
            let pages =
                unsafe { mmap_anonymous(anywhere, len as usize, access, MapFlags::PRIVATE) };
            match pages.ok().and_then(|pages| NonNull::new(pages.cast())) {
                Some(ptr) => return (ptr, Backing::Pages),
                None => handle_alloc_error(layout),
            }
        }
        // SAFETY: the layout has a size above zero.
        match NonNull::new(unsafe { alloc_zeroed(layout) }) {
            Some(ptr) => (ptr, Backing::Heap),
            None => handle_alloc_error(layout),
        }
    }

    /// The same bytes under the same address, at another place of the host.
    pub(super) fn copied(&self) -> Self {
        let (ptr, backing) = Self::zeroed(self.len);
        let copy = Self {
            ptr,
            name: self.name.clone(),
            backing,
            ..*self
        };
        // SAFETY: no launch runs on either.
        unsafe { copy.bytes().write().copy_from_slice(self.bytes().read()) };
        copy
    }

    /// Its bytes as clusters see them.
    pub(crate) fn bytes(&self) -> HostBytes<'_> {
        let first = self.ptr.as_ptr().cast::<UnsafeCell<u8>>();
        // SAFETY: the allocation is `len` initialised bytes and lives as long as the region.
        HostBytes(unsafe { std::slice::from_raw_parts(first, self.len as usize) })
    }

    pub(super) fn describe(&self) -> String {
        let name = source_name(&self.name);
        format!("{name} at {:#x}, {} bytes", self.base, self.len)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        match self.backing {
            // SAFETY: allocated in `zeroed` with this very layout.
            Backing::Heap => unsafe { dealloc(self.ptr.as_ptr(), Self::layout(self.len)) },
            Backing::Pages => {
                // SAFETY: mapped in `zeroed` with this very length.
                let unmapped = unsafe { munmap(self.ptr.as_ptr().cast(), self.len as usize) };
                debug_assert!(unmapped.is_ok());
            }
            Backing::Arena | Backing::Lent => {}
        }
    }
}

// SAFETY: a region is plain bytes, and who may touch them when is said at [`HostBytes`].
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}
