//! The allocation an address lies in.

use crate::memory::{HostBytes, Memory};

/// The allocation accessed last.
#[derive(Clone, Copy, Default)]
pub(crate) struct CachedRegion<'m> {
    pub(crate) base: u64,
    pub(crate) end: u64,
    pub(crate) bytes: HostBytes<'m>,
    pub(crate) index: usize,
}

impl<'m> CachedRegion<'m> {
    /// The allocation that holds an address.
    #[inline(never)]
    pub(crate) fn of(memory: &'m Memory, address: u64) -> Option<Self> {
        let index = memory.find(address)?;
        let region = &memory.regions()[index];
        Some(Self {
            base: region.base,
            end: region.base + region.len,
            bytes: region.bytes(),
            index,
        })
    }
}

/// Instructions whose allocation is remembered.
pub(crate) const REMEMBERED: usize = 32;
