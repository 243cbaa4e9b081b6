//! One allocation, and where on the host its bytes lie.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::UnsafeCell;
use std::ptr::NonNull;

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

/// Who gives an allocation's bytes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backing {
    /// The region: they are on the heap.
    Heap,
    /// The arena they lie in.
    Arena,
    /// The host, which lent them.
    Lent,
}

impl Region {
    fn layout(len: u64) -> Layout {
        Layout::from_size_align(len as usize, ALIGN as usize).expect("length checked by alloc")
    }

    /// Zeroed bytes on the heap; `len` is above zero.
    pub(super) fn heap(len: u64) -> NonNull<u8> {
        let layout = Self::layout(len);
        // SAFETY: the layout has a size above zero.
        match NonNull::new(unsafe { alloc_zeroed(layout) }) {
            Some(ptr) => ptr,
            None => handle_alloc_error(layout),
        }
    }

    /// The same bytes under the same address, on the heap.
    pub(super) fn copied(&self) -> Self {
        let copy = Self {
            ptr: Self::heap(self.len),
            name: self.name.clone(),
            backing: Backing::Heap,
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
        if self.backing == Backing::Heap {
            // SAFETY: allocated in `heap` with this very layout.
            unsafe { dealloc(self.ptr.as_ptr(), Self::layout(self.len)) }
        }
    }
}

// SAFETY: a region is plain bytes, and who may touch them when is said at [`HostBytes`].
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}
