//! Places on the host that were checked for a warp's lanes.

/// Where a lane's bytes lie, within the slice that was checked for it.
#[derive(Clone, Copy)]
pub(crate) struct HostPtr(*mut u8);

impl Default for HostPtr {
    #[inline(always)]
    fn default() -> Self {
        Self(std::ptr::null_mut())
    }
}

impl HostPtr {
    #[inline(always)]
    pub(crate) fn to(first: *mut u8) -> Self {
        Self(first)
    }

    /// So many bytes further on.
    #[inline(always)]
    pub(crate) fn offset(self, bytes: usize) -> Self {
        Self(self.0.wrapping_add(bytes))
    }

    /// So many bytes before, where offsets into a slice are counted from.
    #[inline(always)]
    pub(crate) fn back(self, bytes: usize) -> Self {
        Self(self.0.wrapping_sub(bytes))
    }

    #[inline(always)]
    pub(crate) fn cast<T>(self) -> *mut T {
        self.0.cast()
    }
}

/// Where the lanes of a warp find their bytes; lanes outside the mask repeat a valid place.
pub(crate) struct Pointers(pub(crate) [HostPtr; 32]);

/// Asks for the first lines of something that is read soon, into the nearest cache.
#[inline(always)]
pub(crate) fn fetch<T, const LINES: usize>(what: &T) {
    #[cfg(not(target_arch = "x86_64"))]
    let _ = what;
    #[cfg(target_arch = "x86_64")]
    for line in 0..LINES {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let at = std::ptr::from_ref(what).cast::<i8>();
        // SAFETY: nothing is read, and x86-64 has the instruction.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(64 * line)) };
    }
}
