//! Stream-ordered allocations.

use std::ffi::{c_int, c_void};

use crate::c::{array, put};
use crate::call::runtime;
use crate::context::in_runtime;
use crate::device::check;
use crate::error::{Error, Result};
use crate::pool::{Access, Properties, allocate_async, free_async};

/// Whether an attribute of a pool is a number of 64 bits; the others have 32.
fn is_wide(attribute: u32) -> bool {
    attribute >= 4
}

/// Allocates from a pool.
fn allocate(pool: Option<usize>, bytes: usize, stream: usize) -> Result<u64> {
    let device = in_runtime()?;
    match bytes {
        0 => device.streams.get(stream).map(|_| 0),
        _ => allocate_async(device, stream, pool, bytes as u64),
    }
}

runtime! {
    fn cudaMallocAsync | cudaMallocAsync_ptsz(ptr: *mut u64, bytes: usize, stream: usize) {
        put(ptr, allocate(None, bytes, stream)?)
    }

    fn cudaMallocFromPoolAsync | cudaMallocFromPoolAsync_ptsz(
        ptr: *mut u64,
        bytes: usize,
        pool: usize,
        stream: usize,
    ) {
        put(ptr, allocate(Some(pool), bytes, stream)?)
    }

    fn cudaFreeAsync | cudaFreeAsync_ptsz(ptr: u64, stream: usize) {
        let device = in_runtime()?;
        match ptr {
            0 => device.streams.get(stream).map(drop),
            _ => free_async(device, stream, ptr),
        }
    }

    fn cudaDeviceGetDefaultMemPool(pool: *mut usize, device: c_int) {
        check(device)?;
        put(pool, in_runtime()?.default_pool())
    }

    fn cudaDeviceGetMemPool(pool: *mut usize, device: c_int) {
        check(device)?;
        put(pool, in_runtime()?.pool())
    }

    fn cudaDeviceSetMemPool(device: c_int, pool: usize) {
        check(device)?;
        in_runtime()?.set_pool(pool)
    }

    fn cudaMemPoolCreate(pool: *mut usize, properties: *const Properties) {
        let properties = properties.as_ref().ok_or(Error::INVALID_VALUE)?;
        put(pool, in_runtime()?.make_pool(properties)?)
    }

    fn cudaMemPoolDestroy(pool: usize) {
        in_runtime()?.destroy_pool(pool)
    }

    fn cudaMemPoolTrimTo(pool: usize, _bytes: usize) {
        in_runtime()?.pools.get(pool).map(drop)
    }

    fn cudaMemPoolSetAccess(pool: usize, access: *const Access, count: usize) {
        in_runtime()?.set_pool_access(pool, array(access, count)?)
    }

    fn cudaMemPoolGetAttribute(pool: usize, attribute: u32, value: *mut c_void) {
        let found = in_runtime()?.pool_attribute(pool, attribute)?;
        match is_wide(attribute) {
            true => put(value.cast::<u64>(), found),
            false => put(value.cast::<c_int>(), found as c_int),
        }
    }

    fn cudaMemPoolSetAttribute(pool: usize, attribute: u32, value: *const c_void) {
        if value.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let value = match is_wide(attribute) {
            true => value.cast::<u64>().read_unaligned(),
            false => u64::from(value.cast::<u32>().read_unaligned()),
        };
        in_runtime()?.set_pool_attribute(pool, attribute, value)
    }
}
