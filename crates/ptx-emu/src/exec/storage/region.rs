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
    /// Where in the allocation this load last began, if its lanes lay one behind the other; only
    /// for fetching ahead.
    pub(crate) last: u64,
}

#[cfg(target_arch = "x86_64")]
impl Site {
    /// The number of an instruction's.
    pub(crate) fn number(pc: Pc) -> usize {
        pc as usize % SITES
    }
}

/// Instructions whose site is remembered.
#[cfg(target_arch = "x86_64")]
const SITES: usize = 256;

/// The sites of a kernel's loads.
#[cfg(target_arch = "x86_64")]
#[derive(Default)]
pub(crate) struct Sites {
    all: Vec<Site>,
    /// Allocations that any was in, a bit each; the last one stands for all further ones.
    regions: u64,
}

#[cfg(target_arch = "x86_64")]
impl Sites {
    /// Those of no instruction yet.
    pub(crate) fn none() -> Self {
        Self {
            all: vec![Site::default(); SITES],
            regions: 0,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.all.fill(Site::default());
        self.regions = 0;
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut Site {
        self.all.as_mut_ptr()
    }

    /// Whether an instruction's is this, for drafts of this number.
    #[inline(always)]
    pub(crate) fn know(&self, number: usize, base: u64, generation: u64) -> bool {
        let site = &self.all[number];
        site.base == base && site.generation == generation
    }

    pub(crate) fn set(&mut self, number: usize, region: usize, site: Site) {
        self.all[number] = site;
        self.regions |= 1 << region.min(63);
    }

    /// What is known of an allocation does not hold any more.
    #[inline(always)]
    pub(crate) fn forget(&mut self, region: usize, base: u64) {
        if self.regions >> region.min(63) & 1 == 1 {
            let theirs = self.all.iter_mut().filter(|site| site.base == base);
            theirs.for_each(|site| *site = Site::default());
        }
    }
}
