//! Bytes whose first one is aligned like shared memory.

use std::ops::{Deref, DerefMut};

#[derive(Clone, Copy)]
#[repr(C, align(128))]
struct Line([u8; 128]);

/// A buffer aligned to 128 bytes.
#[derive(Clone, Default)]
pub(crate) struct AlignedBytes {
    lines: Vec<Line>,
    len: usize,
}

impl AlignedBytes {
    pub(crate) fn filled(len: usize, byte: u8) -> Self {
        Self {
            lines: vec![Line([byte; 128]); len.div_ceil(128)],
            len,
        }
    }

    /// As [`AlignedBytes::filled`], in the place of what is here.
    pub(crate) fn refill(&mut self, len: usize, byte: u8) {
        self.lines.clear();
        self.lines.resize(len.div_ceil(128), Line([byte; 128]));
        self.len = len;
    }

    /// Bytes it holds on to.
    pub(crate) fn storage(&self) -> usize {
        self.lines.capacity() * size_of::<Line>()
    }
}

impl Deref for AlignedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `lines` is contiguous, initialised and at least `len` bytes long.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl DerefMut for AlignedBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

/// What uninitialised and in-flight shared bytes read as: NaN in every float format that has one.
pub(crate) const POISON: u8 = 0xff;
