//! Allocations.

use std::ffi::{c_int, c_uint, c_void};

use crate::c::{array, put};
use crate::call::driver;
use crate::context::in_context;
use crate::error::{Error, Result};
use crate::memory::{Kind, PITCH};
use crate::pool::{Access, Properties, allocate_async, free_async};

fn free(ptr: u64, kinds: &[Kind]) -> Result {
    let mut device = in_context()?;
    match ptr {
        0 => Ok(()),
        _ => device.free(ptr, kinds),
    }
}

driver! {
    fn cuMemAlloc_v2(ptr: *mut u64, bytes: usize) {
        put(ptr, in_context()?.allocate(Kind::Device, bytes as u64, 0)?)
    }

    fn cuMemAllocManaged(ptr: *mut u64, bytes: usize, flags: c_uint) {
        put(ptr, in_context()?.allocate_managed(bytes as u64, flags)?)
    }

    fn cuMemAllocPitch_v2(
        ptr: *mut u64,
        pitch: *mut usize,
        width: usize,
        height: usize,
        _element: c_uint,
    ) {
        let apart = width.checked_next_multiple_of(PITCH).ok_or(Error::OUT_OF_MEMORY)?;
        let bytes = apart.checked_mul(height).ok_or(Error::OUT_OF_MEMORY)?;
        put(ptr, in_context()?.allocate(Kind::Device, bytes as u64, 0)?)?;
        put(pitch, apart)
    }

    fn cuMemFree_v2(ptr: u64) {
        free(ptr, &[Kind::Device, Kind::Managed])
    }

    fn cuMemAllocHost_v2(ptr: *mut u64, bytes: usize) {
        put(ptr, in_context()?.allocate_pinned(bytes as u64, 0)?)
    }

    fn cuMemHostAlloc(ptr: *mut u64, bytes: usize, flags: c_uint) {
        put(ptr, in_context()?.allocate_pinned(bytes as u64, flags)?)
    }

    fn cuMemFreeHost(ptr: u64) {
        free(ptr, &[Kind::Pinned])
    }

    fn cuMemHostRegister_v2(ptr: *mut c_void, bytes: usize, flags: c_uint) {
        in_context()?.register(ptr.cast(), bytes as u64, flags)
    }

    fn cuMemHostUnregister(ptr: u64) {
        let done = in_context()?.free(ptr, &[Kind::Registered]);
        done.map_err(|_| Error::NOT_REGISTERED)
    }

    fn cuMemHostGetDevicePointer_v2(to: *mut u64, from: u64, _flags: c_uint) {
        match in_context()?.block(from) {
            Some((_, block)) if block.kind != Kind::Device => put(to, from),
            _ => Err(Error::INVALID_VALUE),
        }
    }

    fn cuMemHostGetFlags(flags: *mut c_uint, ptr: u64) {
        match in_context()?.block(ptr) {
            Some((_, block)) if matches!(block.kind, Kind::Pinned | Kind::Registered) => {
                put(flags, block.flags)
            }
            _ => Err(Error::INVALID_VALUE),
        }
    }

    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        let (free_bytes, all) = in_context()?.free_bytes();
        put(free, free_bytes as usize)?;
        put(total, all as usize)
    }

    fn cuMemGetAddressRange_v2(start: *mut u64, bytes: *mut usize, ptr: u64) {
        let device = in_context()?;
        let found = device.memory.allocation(ptx_emu::DevicePtr(ptr)).ok_or(Error::NOT_FOUND)?;
        crate::c::offer(start, found.start.0);
        crate::c::offer(bytes, found.bytes as usize);
        Ok(())
    }

    fn cuMemAllocAsync | cuMemAllocAsync_ptsz(ptr: *mut u64, bytes: usize, stream: usize) {
        put(ptr, allocate_async(in_context()?, stream, None, bytes as u64)?)
    }

    fn cuMemAllocFromPoolAsync | cuMemAllocFromPoolAsync_ptsz(
        ptr: *mut u64,
        bytes: usize,
        pool: usize,
        stream: usize,
    ) {
        put(ptr, allocate_async(in_context()?, stream, Some(pool), bytes as u64)?)
    }

    fn cuMemFreeAsync | cuMemFreeAsync_ptsz(ptr: u64, stream: usize) {
        free_async(in_context()?, stream, ptr)
    }

    fn cuDeviceGetDefaultMemPool(pool: *mut usize, number: c_int) {
        super::device::device(number)?;
        put(pool, crate::state::device()?.default_pool())
    }

    fn cuDeviceGetMemPool(pool: *mut usize, number: c_int) {
        super::device::device(number)?;
        put(pool, crate::state::device()?.pool())
    }

    fn cuDeviceSetMemPool(number: c_int, pool: usize) {
        super::device::device(number)?;
        crate::state::device()?.set_pool(pool)
    }

    fn cuMemPoolCreate(pool: *mut usize, properties: *const Properties) {
        let properties = properties.as_ref().ok_or(Error::INVALID_VALUE)?;
        put(pool, crate::state::device()?.make_pool(properties)?)
    }

    fn cuMemPoolDestroy(pool: usize) {
        crate::state::device()?.destroy_pool(pool)
    }

    fn cuMemPoolTrimTo(pool: usize, _bytes: usize) {
        crate::state::device()?.pools.get(pool).map(drop)
    }

    fn cuMemPoolSetAccess(pool: usize, access: *const Access, count: usize) {
        crate::state::device()?.set_pool_access(pool, array(access, count)?)
    }

    fn cuMemPoolGetAttribute(pool: usize, attribute: c_uint, value: *mut c_void) {
        let found = crate::state::device()?.pool_attribute(pool, attribute)?;
        match attribute >= 4 {
            true => put(value.cast::<u64>(), found),
            false => put(value.cast::<c_int>(), found as c_int),
        }
    }

    fn cuMemPoolSetAttribute(pool: usize, attribute: c_uint, value: *const c_void) {
        if value.is_null() {
            return Err(Error::INVALID_VALUE);
        }
        let value = match attribute >= 4 {
            true => value.cast::<u64>().read_unaligned(),
            false => u64::from(value.cast::<u32>().read_unaligned()),
        };
        crate::state::device()?.set_pool_attribute(pool, attribute, value)
    }

    // Advice and prefetches change nothing, so only the pointer is checked: their versions differ
    // in the other parameters.
    fn cuMemAdvise
        | cuMemAdvise_v2
        | cuMemPrefetchAsync
        | cuMemPrefetchAsync_ptsz
        | cuMemPrefetchAsync_v2
        | cuMemPrefetchAsync_v2_ptsz(ptr: u64, _bytes: usize)
    {
        in_context()?.block(ptr).map(drop).ok_or(Error::INVALID_VALUE)
    }
}
