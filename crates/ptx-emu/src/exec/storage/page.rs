//! A page of global memory that a cluster writes to.

use std::cell::{Cell, UnsafeCell};

use super::region::CachedRegion;
use crate::memory::HostBytes;

/// Bytes of a page: small, because the rows of a tile lie far apart.
pub(crate) const PAGE: usize = 1024;

/// Bits of one word of a page's mask.
pub(crate) const WORD: usize = u64::BITS as usize;

/// Bytes as the cluster sees them, and which of them it has written itself.
#[repr(C, align(64))]
pub(super) struct Page {
    bytes: UnsafeCell<[u8; PAGE]>,
    pub(super) written: [Cell<u64>; PAGE / WORD],
    /// Whether the others are those of memory: many pages are written and never read.
    filled: Cell<bool>,
}

impl Page {
    pub(super) fn empty() -> Self {
        Self {
            bytes: UnsafeCell::new([0; PAGE]),
            written: [const { Cell::new(0) }; PAGE / WORD],
            filled: Cell::new(false),
        }
    }

    /// None of its bytes is written or filled in any more.
    pub(super) fn clear(&mut self) {
        self.written = [const { Cell::new(0) }; PAGE / WORD];
        self.filled = Cell::new(false);
    }

    /// Copies what the cluster has not written from memory, once.
    #[inline]
    pub(super) fn fill(&self, region: &CachedRegion<'_>, number: usize) {
        if !self.filled.replace(true) {
            self.copy_unwritten(region, number);
        }
    }

    #[inline(never)]
    fn copy_unwritten(&self, region: &CachedRegion<'_>, number: usize) {
        let start = number * PAGE;
        let len = ((region.end - region.base) as usize - start).min(PAGE);
        // SAFETY: memory is only written between waves.
        let source = unsafe { region.bytes.part(start..start + len).read() };
        // SAFETY: the cluster that asks for it is the only one that has it.
        let bytes = unsafe { &mut *self.bytes.get() };
        let parts = bytes.chunks_mut(WORD).zip(source.chunks(WORD));
        for ((to, from), written) in parts.zip(&self.written) {
            merge(&mut to[..from.len()], from, !written.get());
        }
    }

    #[inline(always)]
    pub(super) fn host(&self) -> HostBytes<'_> {
        HostBytes::of_cell(&self.bytes)
    }

    #[inline(always)]
    fn add(&self, word: usize, bits: u64) {
        self.written[word].set(self.written[word].get() | bits);
    }

    /// Notes bytes as written; there is at least one.
    #[inline]
    pub(super) fn mark(&self, from: usize, bytes: usize) {
        let (first, last) = (from / WORD, (from + bytes - 1) / WORD);
        let head = u64::MAX << (from % WORD);
        let tail = u64::MAX >> (WORD - 1 - (from + bytes - 1) % WORD);
        if first == last {
            return self.add(first, head & tail);
        }
        self.add(first, head);
        for word in &self.written[first + 1..last] {
            word.set(u64::MAX);
        }
        self.add(last, tail);
    }

    /// Notes what a warp writes: `bytes` at each offset of an allocation, aligned, all in here.
    #[inline]
    pub(super) fn mark_lanes(&self, at: &[u32; 32], bytes: u32) {
        let each = u64::MAX >> (WORD as u32 - bytes);
        let (mut word, mut bits) = (at[0] as usize % PAGE / WORD, 0);
        for &a in at {
            let a = a as usize % PAGE;
            if a / WORD != word {
                self.add(word, bits);
                (word, bits) = (a / WORD, 0);
            }
            bits |= each << (a % WORD);
        }
        self.add(word, bits);
    }

    /// Writes over memory what the cluster has written.
    pub(super) fn put(&self, target: &mut [u8]) {
        // SAFETY: pages are published when the cluster that wrote them has stopped.
        let bytes = unsafe { &*self.bytes.get() };
        let parts = target.chunks_mut(WORD).zip(bytes.chunks(WORD));
        for ((to, new), written) in parts.zip(&self.written) {
            merge(to, new, written.get());
        }
    }
}

/// Copies those of at most [`WORD`] bytes whose bits are set.
#[inline(always)]
fn merge(to: &mut [u8], from: &[u8], bits: u64) {
    match bits {
        0 => {}
        u64::MAX => to.copy_from_slice(&from[..to.len()]),
        some => {
            for (i, (to, from)) in to.iter_mut().zip(from).enumerate() {
                *to = if some >> i & 1 == 1 { *from } else { *to };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_ranges_and_of_lanes_are_the_bytes_they_cover() {
        let marked = |page: &Page| -> Vec<usize> {
            let bit = |i: &usize| page.written[i / WORD].get() >> (i % WORD) & 1 == 1;
            (0..PAGE).filter(bit).collect()
        };
        for (from, bytes) in [(0, 1), (63, 2), (5, 59), (64, 64), (100, 500), (0, PAGE)] {
            let page = Page::empty();
            page.mark(from, bytes);
            assert_eq!(marked(&page), Vec::from_iter(from..from + bytes));
        }
        let page = Page::empty();
        let at = std::array::from_fn(|lane| 4 * PAGE as u32 + 32 * (31 - lane as u32));
        page.mark_lanes(&at, 16);
        let expected = (0..PAGE).filter(|i| i % 32 < 16);
        assert_eq!(marked(&page), Vec::from_iter(expected));
    }
}
