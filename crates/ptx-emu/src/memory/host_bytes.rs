use std::cell::UnsafeCell;
use std::ops::Range;

/// Bytes on the host that stand for memory of the device: a slice that says nothing yet about who
/// reads or writes it.
///
/// Nobody does both at once, whatever a kernel does. While the clusters of a wave run, memory is
/// only read: each keeps what it writes to itself (see `exec::storage::draft`), and that and shared
/// memory belong to the one host thread that runs their cluster. Memory itself is written by a
/// cluster that is alone, by the one whose turn it is between epochs, and when what clusters kept is
/// published. So a data race of a kernel never becomes one of the host.
#[derive(Clone, Copy, Default)]
pub(crate) struct HostBytes<'m>(pub(super) &'m [UnsafeCell<u8>]);

// SAFETY: by the discipline above.
unsafe impl Send for HostBytes<'_> {}
// SAFETY: as above.
unsafe impl Sync for HostBytes<'_> {}

impl<'m> HostBytes<'m> {
    /// Of an array that is written through a shared reference.
    #[inline(always)]
    pub(crate) fn of_cell<const N: usize>(cell: &'m UnsafeCell<[u8; N]>) -> Self {
        let first = cell.get().cast::<UnsafeCell<u8>>().cast_const();
        // SAFETY: the array is N bytes, borrowed as long as this, and may change all the time.
        Self(unsafe { std::slice::from_raw_parts(first, N) })
    }

    /// Of bytes that one cluster has to itself.
    #[inline(always)]
    pub(crate) fn of_slice(bytes: &'m mut [u8]) -> Self {
        let first = bytes.as_mut_ptr().cast::<UnsafeCell<u8>>().cast_const();
        // SAFETY: as above, and nobody else has them.
        Self(unsafe { std::slice::from_raw_parts(first, bytes.len()) })
    }

    /// Of bytes that will only be read.
    #[cfg(any(test, feature = "bench"))]
    pub(crate) fn to_read(bytes: &'m [u8]) -> Self {
        let first = bytes.as_ptr().cast::<UnsafeCell<u8>>();
        // SAFETY: as above, if nobody asks to write.
        Self(unsafe { std::slice::from_raw_parts(first, bytes.len()) })
    }

    /// For longer than the borrow it came from.
    ///
    /// # Safety
    /// The bytes must stay where they are for as long.
    pub(crate) unsafe fn outlive<'l>(self) -> HostBytes<'l> {
        // SAFETY: by this function's contract.
        HostBytes(unsafe { std::slice::from_raw_parts(self.0.as_ptr(), self.0.len()) })
    }

    /// The bytes of a range, which must lie inside.
    #[inline(always)]
    pub(crate) fn part(self, range: Range<usize>) -> Self {
        Self(&self.0[range])
    }

    /// Fetches a range, which must lie inside, while something else is done: rows that lie far apart
    /// are otherwise waited for one by one.
    #[inline(always)]
    pub(crate) fn fetch(self, range: Range<usize>) {
        #[cfg(target_arch = "x86_64")]
        for line in self.part(range).0.chunks(64) {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: every x86-64 has the instruction, and it changes nothing that is seen.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = range;
    }

    /// The first byte.
    #[inline(always)]
    pub(crate) fn first(self) -> *mut u8 {
        self.0.as_ptr().cast_mut().cast()
    }

    /// To read.
    ///
    /// # Safety
    /// Nobody may write them meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn read(self) -> &'m [u8] {
        // SAFETY: by this function's contract.
        unsafe { std::slice::from_raw_parts(self.first(), self.0.len()) }
    }

    /// To write.
    ///
    /// # Safety
    /// Nobody else may reach them meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn write(self) -> &'m mut [u8] {
        // SAFETY: by this function's contract.
        unsafe { std::slice::from_raw_parts_mut(self.first(), self.0.len()) }
    }
}
