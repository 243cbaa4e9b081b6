//! The allocation an address lies in.

use crate::memory::{HostBytes, Memory};
#[cfg(target_arch = "x86_64")]
use crate::op::Pc;

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

/// An allocation that a load of machine code was in, and of which the cluster has no pages.
#[cfg(target_arch = "x86_64")]
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Site {
    pub(crate) base: u64,
    pub(crate) length: u64,
    /// The address of its bytes, and those of the set of its sectors that were read; 0 if nobody
    /// wants to know of them.
    pub(crate) host: usize,
    pub(crate) marked: usize,
    pub(crate) strides: usize,
    /// The drafts that it holds for.
    pub(crate) generation: u64,
}

/// Instructions whose site is remembered.
#[cfg(target_arch = "x86_64")]
const SITES: usize = 256;

#[cfg(target_arch = "x86_64")]
impl Site {
    /// Those of no instruction yet.
    pub(crate) fn none() -> Vec<Self> {
        vec![Self::default(); SITES]
    }

    /// The number of an instruction's.
    pub(crate) fn number(pc: Pc) -> usize {
        pc as usize % SITES
    }
}
