//! Allocations.

use std::ffi::{c_int, c_uint, c_void};

use crate::c::put;
use crate::call::runtime;
use crate::context::in_runtime;
use crate::error::{Error, Result};
use crate::memory::{Kind, PITCH};

/// `cudaExtent`
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) depth: usize,
}

/// `cudaPitchedPtr`
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct PitchedPtr {
    pub(super) ptr: u64,
    pub(super) pitch: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

/// Allocates; 0 bytes give a null pointer.
fn allocate(bytes: usize) -> Result<u64> {
    let mut device = in_runtime()?;
    match bytes {
        0 => Ok(0),
        _ => device.allocate(Kind::Device, bytes as u64, 0),
    }
}

fn pitched(width: usize, rows: usize) -> Result<(u64, usize)> {
    let pitch = width.checked_next_multiple_of(PITCH);
    let pitch = pitch.ok_or(Error::OUT_OF_MEMORY)?;
    let bytes = pitch.checked_mul(rows).ok_or(Error::OUT_OF_MEMORY)?;
    Ok((allocate(bytes)?, pitch))
}

fn pinned(bytes: usize, flags: u32) -> Result<u64> {
    let mut device = in_runtime()?;
    match bytes {
        0 => Ok(0),
        _ => device.allocate_pinned(bytes as u64, flags),
    }
}

/// `cudaPointerAttributes` of CUDA 12. That of CUDA 13 has further fields, which the caller sets.
#[repr(C)]
struct PointerAttributes {
    kind: c_int,
    device: c_int,
    device_pointer: u64,
    host_pointer: u64,
}

runtime! {
    fn cudaMalloc(ptr: *mut u64, bytes: usize) {
        put(ptr, allocate(bytes)?)
    }

    fn cudaMallocManaged(ptr: *mut u64, bytes: usize, flags: c_uint) {
        put(ptr, in_runtime()?.allocate_managed(bytes as u64, flags)?)
    }

    fn cudaMallocPitch(ptr: *mut u64, pitch: *mut usize, width: usize, height: usize) {
        let (start, apart) = pitched(width, height)?;
        put(pitch, apart)?;
        put(ptr, start)
    }

    fn cudaMalloc3D(ptr: *mut PitchedPtr, extent: Extent) {
        let rows = extent.height.checked_mul(extent.depth).ok_or(Error::OUT_OF_MEMORY)?;
        let (start, pitch) = pitched(extent.width, rows)?;
        let (width, height) = (extent.width, extent.height);
        put(ptr, PitchedPtr { ptr: start, pitch, width, height })
    }

    fn cudaMallocHost(ptr: *mut u64, bytes: usize) {
        put(ptr, pinned(bytes, 0)?)
    }

    fn cudaHostAlloc(ptr: *mut u64, bytes: usize, flags: c_uint) {
        put(ptr, pinned(bytes, flags)?)
    }

    fn cudaFree(ptr: u64) {
        let mut device = in_runtime()?;
        match ptr {
            0 => Ok(()),
            _ => device.free(ptr, &[Kind::Device, Kind::Managed]),
        }
    }

    fn cudaFreeHost(ptr: u64) {
        let mut device = in_runtime()?;
        match ptr {
            0 => Ok(()),
            _ => device.free(ptr, &[Kind::Pinned]),
        }
    }

    fn cudaHostRegister(ptr: *mut c_void, bytes: usize, flags: c_uint) {
        in_runtime()?.register(ptr.cast(), bytes as u64, flags)
    }

    fn cudaHostUnregister(ptr: u64) {
        let done = in_runtime()?.free(ptr, &[Kind::Registered]);
        done.map_err(|_| Error::NOT_REGISTERED)
    }

    fn cudaHostGetDevicePointer(to: *mut u64, from: u64, _flags: c_uint) {
        match in_runtime()?.block(from) {
            Some((_, block)) if block.kind != Kind::Device => put(to, from),
            _ => Err(Error::INVALID_VALUE),
        }
    }

    fn cudaHostGetFlags(flags: *mut c_uint, ptr: u64) {
        match in_runtime()?.block(ptr) {
            Some((_, block)) if matches!(block.kind, Kind::Pinned | Kind::Registered) => {
                put(flags, block.flags)
            }
            _ => Err(Error::INVALID_VALUE),
        }
    }

    fn cudaMemGetInfo(free: *mut usize, total: *mut usize) {
        let (free_bytes, all) = in_runtime()?.free_bytes();
        put(free, free_bytes as usize)?;
        put(total, all as usize)
    }

    fn cudaPointerGetAttributes(to: *mut PointerAttributes, ptr: u64) {
        let (kind, on_device, on_host) = match in_runtime()?.kind(ptr) {
            Some(Kind::Managed) => (3, ptr, ptr),
            Some(Kind::Device) => (2, ptr, 0),
            Some(Kind::Pinned | Kind::Registered) => (1, ptr, ptr),
            None => (0, 0, ptr),
        };
        put(to, PointerAttributes {
            kind,
            device: if kind == 0 { -2 } else { 0 },
            device_pointer: on_device,
            host_pointer: on_host,
        })
    }
}

// A prefetch has a device in CUDA 12 and a location with flags in CUDA 13. It changes nothing here,
// so only the pointer is checked; the same for advice.
runtime! {
    fn cudaMemPrefetchAsync
        | cudaMemPrefetchAsync_ptsz
        | cudaMemPrefetchAsync_v2
        | cudaMemPrefetchAsync_v2_ptsz
        | cudaMemAdvise
        | cudaMemAdvise_v2(ptr: u64, _bytes: usize)
    {
        in_runtime()?.block(ptr).map(drop).ok_or(Error::INVALID_VALUE)
    }
}
