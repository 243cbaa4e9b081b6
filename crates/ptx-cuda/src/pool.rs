//! Memory pools: stream-ordered allocations. Work is done when it is submitted, so a pool is a
//! name, a count and its attributes.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Weak;

use crate::call::refuse_part;
use crate::error::{Error, Result};
use crate::memory::Kind;
use crate::state::{Device, Locked, NONE};
use crate::stream::submit;
use crate::work::Work;

/// A memory pool.
#[derive(Default)]
pub(crate) struct Pool {
    pub(crate) attributes: BTreeMap<u32, u64>,
    pub(crate) used: u64,
    pub(crate) most: u64,
    /// Maximum bytes.
    limit: Option<u64>,
}

/// `cudaMemLocation`, `CUmemLocation`
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Location {
    kind: c_int,
    number: c_int,
}

/// `cudaMemPoolProps`, `CUmemPoolProps`
#[repr(C)]
pub(crate) struct Properties {
    kind: c_int,
    shared_as: c_int,
    location: Location,
    windows: usize,
    limit: usize,
}

/// `cudaMemAccessDesc`, `CUmemAccessDesc`
#[repr(C)]
pub(crate) struct Access {
    location: Location,
    access: c_int,
}

const PINNED: c_int = 1;
const ON_DEVICE: c_int = 1;
const READ_WRITE: c_int = 3;

/// Attributes that count bytes.
const RESERVED_CURRENT: u32 = 5;
const RESERVED_HIGH: u32 = 6;
const USED_CURRENT: u32 = 7;
const USED_HIGH: u32 = 8;

/// Frees in stream order. An allocation that a captured stream frees is kept as long as the graph
/// can be launched, which needs it at the same address.
pub(crate) fn free_async(mut locked: Locked, stream: usize, ptr: u64) -> Result {
    if locked.streams.get(stream)?.capture.is_none() {
        return submit(locked, stream, Work::Free(ptr));
    }
    let work = locked.graph_free(ptr)?;
    locked.note_work(stream, work)
}

/// Allocates in stream order. An allocation of a captured stream belongs to its graph.
pub(crate) fn allocate_async(
    mut locked: Locked,
    stream: usize,
    pool: Option<usize>,
    bytes: u64,
) -> Result<u64> {
    if locked.streams.get(stream)?.capture.is_some() {
        let (ptr, work) = locked.graph_allocate(bytes)?;
        return locked.note_work(stream, work).map(|()| ptr);
    }
    let pool = match pool {
        Some(pool) => pool,
        None => locked.pool(),
    };
    locked.allocate_from(pool, bytes)
}

impl Properties {
    /// For memory of the one device.
    pub(crate) fn of_device() -> Self {
        Self {
            kind: PINNED,
            shared_as: 0,
            location: Location {
                kind: ON_DEVICE,
                number: 0,
            },
            windows: 0,
            limit: 0,
        }
    }

    /// Fails for all but memory of the one device.
    pub(crate) fn check(&self) -> Result {
        if self.kind != PINNED {
            return Err(refuse_part("a memory pool", "managed memory"));
        }
        if self.location.kind != ON_DEVICE {
            return Err(refuse_part("a memory pool", "memory of the host"));
        }
        if self.shared_as != 0 {
            return Err(refuse_part("a memory pool", "handles for other processes"));
        }
        match self.location.number {
            0 => Ok(()),
            _ => Err(Error::INVALID_DEVICE),
        }
    }
}

impl Device {
    /// The device's own pool.
    pub(crate) fn default_pool(&mut self) -> usize {
        let pools = &mut self.pools;
        *self
            .own_pool
            .get_or_insert_with(|| pools.add(Pool::default()))
    }

    /// The pool for allocations that name none.
    pub(crate) fn pool(&mut self) -> usize {
        match self.current_pool {
            Some(pool) => pool,
            None => self.default_pool(),
        }
    }

    pub(crate) fn set_pool(&mut self, pool: usize) -> Result {
        self.pools.get(pool)?;
        self.current_pool = Some(pool);
        Ok(())
    }

    /// Makes a pool of the device's memory.
    pub(crate) fn make_pool(&mut self, properties: &Properties) -> Result<usize> {
        properties.check()?;
        Ok(self.pools.add(Pool {
            limit: (properties.limit > 0).then_some(properties.limit as u64),
            ..Pool::default()
        }))
    }

    /// The device's own pool stays, and becomes current again if the destroyed one was.
    pub(crate) fn destroy_pool(&mut self, pool: usize) -> Result {
        if self.own_pool == Some(pool) {
            return Err(Error::INVALID_VALUE);
        }
        self.current_pool.take_if(|current| *current == pool);
        self.pools.remove(pool).map(drop)
    }

    /// The one device always has access.
    pub(crate) fn set_pool_access(&self, pool: usize, wanted: &[Access]) -> Result {
        self.pools.get(pool)?;
        wanted.iter().try_for_each(|access| match access {
            Access { location, .. } if location.kind != ON_DEVICE => {
                Err(refuse_part("cudaMemPoolSetAccess", "the host"))
            }
            Access { location, .. } if location.number != 0 => Err(Error::INVALID_DEVICE),
            Access {
                access: READ_WRITE, ..
            } => Ok(()),
            _ => Err(Error::INVALID_VALUE),
        })
    }

    pub(crate) fn allocate_from(&mut self, pool: usize, bytes: u64) -> Result<u64> {
        let Pool { used, limit, .. } = self.pools.get(pool)?;
        let whole = used.checked_add(bytes);
        if whole.is_none_or(|whole| limit.is_some_and(|limit| whole > limit)) {
            return Err(Error::OUT_OF_MEMORY);
        }
        let ptr = self.allocate_in_order(Kind::Device, bytes, 0)?;
        let counted = self.pools.get_mut(pool)?;
        counted.used += bytes;
        counted.most = counted.most.max(counted.used);
        if let Some(block) = self.blocks.get_mut(&ptr) {
            block.pool = Some(pool);
            block.context = NONE;
        }
        Ok(ptr)
    }

    /// Frees in stream order.
    pub(crate) fn free_in_order(&mut self, ptr: u64) -> Result {
        self.give_back(ptr, &[Kind::Device, Kind::Managed])
    }

    /// Frees allocations that destroyed graphs had freed.
    pub(crate) fn free_last(&mut self) -> Result {
        let gone = |(_, keeper): &&(u64, Weak<u64>)| keeper.strong_count() == 0;
        let gone = self.freed_last.iter().filter(gone);
        let gone: Vec<u64> = gone.map(|(ptr, _)| *ptr).collect();
        gone.into_iter()
            .try_for_each(|ptr| self.free_in_order(ptr))?;
        self.release_graph_memory()
    }

    pub(crate) fn pool_attribute(&self, pool: usize, attribute: u32) -> Result<u64> {
        let pool = self.pools.get(pool)?;
        match attribute {
            RESERVED_CURRENT | USED_CURRENT => Ok(pool.used),
            RESERVED_HIGH | USED_HIGH => Ok(pool.most),
            1..=3 => Ok(pool.attributes.get(&attribute).copied().unwrap_or(1)),
            4 => Ok(pool.attributes.get(&attribute).copied().unwrap_or(0)),
            _ => Err(Error::INVALID_VALUE),
        }
    }

    pub(crate) fn set_pool_attribute(&mut self, pool: usize, attribute: u32, value: u64) -> Result {
        let pool = self.pools.get_mut(pool)?;
        match attribute {
            RESERVED_HIGH | USED_HIGH => pool.most = pool.used,
            1..=4 => {
                pool.attributes.insert(attribute, value);
            }
            _ => return Err(Error::INVALID_VALUE),
        }
        Ok(())
    }
}
