//! Memory pools: allocations in the order of streams. Work is done as it is submitted, so a pool is
//! a name, a count and its attributes.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::memory::Kind;
use crate::state::Device;

/// A memory pool.
#[derive(Default)]
pub(crate) struct Pool {
    pub(crate) attributes: BTreeMap<u32, u64>,
    pub(crate) used: u64,
    pub(crate) most: u64,
}

/// Attributes that count bytes.
const RESERVED_CURRENT: u32 = 5;
const RESERVED_HIGH: u32 = 6;
const USED_CURRENT: u32 = 7;
const USED_HIGH: u32 = 8;

impl Device {
    /// The device's own pool.
    pub(crate) fn default_pool(&mut self) -> usize {
        match self.current_pool {
            Some(pool) => pool,
            None => {
                let pool = self.pools.add(Pool::default());
                self.current_pool = Some(pool);
                pool
            }
        }
    }

    pub(crate) fn allocate_from(&mut self, pool: usize, bytes: u64) -> Result<u64> {
        self.pools.get(pool)?;
        let ptr = self.allocate(Kind::Device, bytes, 0)?;
        let counted = self.pools.get_mut(pool)?;
        counted.used += bytes;
        counted.most = counted.most.max(counted.used);
        if let Some(block) = self.blocks.get_mut(&ptr) {
            block.pool = Some(pool);
        }
        Ok(ptr)
    }

    /// Frees in the order of a stream.
    pub(crate) fn free_to_pool(&mut self, ptr: u64) -> Result {
        let block = *self.blocks.get(&ptr).ok_or(Error::INVALID_VALUE)?;
        self.free(ptr, &[Kind::Device, Kind::Managed])?;
        if let Some(pool) = block.pool.and_then(|pool| self.pools.get_mut(pool).ok()) {
            pool.used -= block.bytes;
        }
        Ok(())
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
