//! Memory that graphs allocate. Its address is the same in every launch, so it is kept as long as
//! the graph can be launched. Between its free and the next launch it has no owner.

use std::ffi::c_void;
use std::sync::{Arc, Weak};

use crate::c::put;
use crate::call::refuse_part;
use crate::error::{Error, Result};
use crate::memory::Kind;
use crate::pool::{Access, Properties};
use crate::state::Device;
use crate::work::Work;

/// An allocation of a graph.
pub(crate) struct Owned {
    pub(crate) bytes: u64,
    /// The graph and its instances, which may launch it.
    keeper: Weak<u64>,
    /// Allocated by a launch, and not freed since.
    live: bool,
}

/// `cudaMemAllocNodeParams`, `CUDA_MEM_ALLOC_NODE_PARAMS`
#[repr(C)]
pub(crate) struct AllocateParams {
    properties: Properties,
    _reserved: [u64; 7],
    access: *const Access,
    access_count: usize,
    bytes: usize,
    /// Answer.
    ptr: u64,
}

/// Attributes of graph memory: bytes that are owned and that are kept, each now and the maximum.
const USED: u32 = 0;
const USED_HIGH: u32 = 1;
const RESERVED: u32 = 2;
const RESERVED_HIGH: u32 = 3;

impl Device {
    /// Memory for a node, and the work of the node.
    pub(crate) fn graph_allocate(&mut self, bytes: u64) -> Result<(u64, Work)> {
        if bytes == 0 {
            return Err(Error::INVALID_VALUE);
        }
        let ptr = self.allocate_in_order(Kind::Device, bytes, 0)?;
        let node = Arc::new(ptr);
        let owned = Owned {
            bytes,
            keeper: Arc::downgrade(&node),
            live: false,
        };
        self.graph_memory.insert(ptr, owned);
        self.count_graph_memory();
        Ok((ptr, Work::Allocate(node)))
    }

    /// As a node's parameters request.
    pub(crate) fn graph_allocate_as(&mut self, params: &mut AllocateParams) -> Result<Work> {
        params.properties.check()?;
        if params.access_count > 1 {
            return Err(refuse_part("a node that allocates", "access of others"));
        }
        let (ptr, work) = self.graph_allocate(params.bytes as u64)?;
        params.ptr = ptr;
        Ok(work)
    }

    /// The allocation of a node.
    pub(crate) fn allocated_by(&mut self, node: usize) -> Result<AllocateParams> {
        let ptr = match &self.node(node)?.work {
            Work::Allocate(ptr) => **ptr,
            _ => return Err(Error::INVALID_VALUE),
        };
        let bytes = self.graph_memory.get(&ptr).map_or(0, |owned| owned.bytes);
        Ok(AllocateParams {
            properties: Properties::of_device(),
            _reserved: [0; 7],
            access: std::ptr::null(),
            access_count: 0,
            bytes: bytes as usize,
            ptr,
        })
    }

    /// The work of a node that frees.
    pub(crate) fn graph_free(&mut self, ptr: u64) -> Result<Work> {
        match self.blocks.contains_key(&ptr) {
            true if self.graph_memory.contains_key(&ptr) => Ok(Work::Free(ptr)),
            true => {
                let last = Arc::new(ptr);
                self.freed_last.push((ptr, Arc::downgrade(&last)));
                Ok(Work::FreeLast(last))
            }
            false => Err(Error::INVALID_VALUE),
        }
    }

    /// A launch reaches a node that allocates.
    pub(crate) fn own(&mut self, ptr: u64) -> Result {
        match self.graph_memory.get_mut(&ptr) {
            Some(owned) if !owned.live => owned.live = true,
            _ => return Err(Error::INVALID_VALUE),
        }
        self.count_graph_memory();
        Ok(())
    }

    /// Frees memory of a graph; false if it is not a graph's.
    pub(crate) fn disown(&mut self, ptr: u64) -> Result<bool> {
        let Some(owned) = self.graph_memory.get_mut(&ptr) else {
            return Ok(false);
        };
        if !std::mem::take(&mut owned.live) {
            return Err(Error::INVALID_VALUE);
        }
        self.release_graph_memory().map(|()| true)
    }

    /// Frees memory that earlier launches of a graph left, if the graph was instantiated with that
    /// flag.
    pub(crate) fn disown_all(&mut self, works: &[Work]) {
        for work in works {
            if let Work::Allocate(ptr) = work
                && let Some(owned) = self.graph_memory.get_mut(ptr)
            {
                owned.live = false;
            }
        }
    }

    /// Releases memory that has no owner and that no launch can use again.
    pub(crate) fn release_graph_memory(&mut self) -> Result {
        let gone = |owned: &Owned| !owned.live && owned.keeper.strong_count() == 0;
        let gone: Vec<u64> = (self.graph_memory.iter())
            .filter_map(|(&ptr, owned)| gone(owned).then_some(ptr))
            .collect();
        gone.into_iter().try_for_each(|ptr| self.release(ptr))
    }

    fn graph_bytes(&self) -> [u64; 2] {
        let bytes = |all: bool| {
            let counted = self.graph_memory.values().filter(|owned| all || owned.live);
            counted.map(|owned| owned.bytes).sum()
        };
        [bytes(false), bytes(true)]
    }

    fn count_graph_memory(&mut self) {
        let now = self.graph_bytes();
        for (most, now) in self.graph_memory_most.iter_mut().zip(now) {
            *most = now.max(*most);
        }
    }

    /// # Safety
    /// `value` must be a number of 64 bits.
    pub(crate) unsafe fn graph_attribute(&self, attribute: u32, value: *mut c_void) -> Result {
        let [used, reserved] = self.graph_bytes();
        let [used_most, reserved_most] = self.graph_memory_most;
        let found = match attribute {
            USED => used,
            USED_HIGH => used_most,
            RESERVED => reserved,
            RESERVED_HIGH => reserved_most,
            _ => return Err(Error::INVALID_VALUE),
        };
        // SAFETY: by this function's contract.
        unsafe { put(value.cast(), found) }
    }

    /// The maximum so far can be reset.
    pub(crate) fn reset_graph_attribute(&mut self, attribute: u32) -> Result {
        let at = match attribute {
            USED_HIGH => 0,
            RESERVED_HIGH => 1,
            _ => return Err(Error::INVALID_VALUE),
        };
        self.graph_memory_most[at] = self.graph_bytes()[at];
        Ok(())
    }
}
