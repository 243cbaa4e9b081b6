//! Virtual memory management.

use std::ffi::{c_int, c_ulonglong};

use crate::c::{array, put};
use crate::call::{driver, refuse_part};
use crate::context::in_context;
use crate::error::Error;
use crate::virtual_memory::GRANULARITY;

/// `CUmemLocation`: 1 for a device.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Location {
    kind: c_int,
    number: c_int,
}

/// `CUmemAllocationProp`
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct AllocationProp {
    /// 1 for pinned memory, the only kind.
    kind: c_int,
    /// Ways to share it with other processes.
    shared_as: c_int,
    location: Location,
    windows: usize,
    flags: [u8; 8],
}

/// `CUmemAccessDesc`: 3 for reading and writing.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct AccessDesc {
    location: Location,
    access: c_int,
}

const DEVICE: c_int = 1;
const READ_WRITE: c_int = 3;

driver! {
    fn cuMemGetAllocationGranularity(bytes: *mut usize, prop: *const AllocationProp, _option: c_int) {
        prop.as_ref().ok_or(Error::INVALID_VALUE)?;
        put(bytes, GRANULARITY as usize)
    }

    fn cuMemAddressReserve(
        ptr: *mut u64,
        bytes: usize,
        alignment: usize,
        _wish: u64,
        flags: c_ulonglong,
    ) {
        if flags != 0 {
            return Err(Error::INVALID_VALUE);
        }
        put(ptr, in_context()?.virtual_memory.reserve(bytes as u64, alignment as u64)?)
    }

    fn cuMemAddressFree(ptr: u64, bytes: usize) {
        in_context()?.virtual_memory.unreserve(ptr, bytes as u64)
    }

    fn cuMemCreate(
        memory: *mut usize,
        bytes: usize,
        prop: *const AllocationProp,
        flags: c_ulonglong,
    ) {
        let prop = prop.as_ref().ok_or(Error::INVALID_VALUE)?;
        if flags != 0 || prop.kind != 1 {
            return Err(Error::INVALID_VALUE);
        }
        if prop.location.kind != DEVICE {
            return Err(refuse_part("cuMemCreate", "memory of the host"));
        }
        put(memory, in_context()?.create_memory(bytes as u64)?)
    }

    fn cuMemRelease(memory: usize) {
        in_context()?.virtual_memory.release(memory)
    }

    fn cuMemRetainAllocationHandle(memory: *mut usize, ptr: u64) {
        put(memory, in_context()?.virtual_memory.retain(ptr)?)
    }

    fn cuMemMap(ptr: u64, bytes: usize, offset: usize, memory: usize, flags: c_ulonglong) {
        // The API has no other values for these yet.
        if offset != 0 || flags != 0 {
            return Err(Error::INVALID_VALUE);
        }
        in_context()?.virtual_memory.map(ptr, bytes as u64, memory)
    }

    fn cuMemUnmap(ptr: u64, bytes: usize) {
        in_context()?.unmap(ptr, bytes as u64)
    }

    fn cuMemSetAccess(ptr: u64, bytes: usize, wanted: *const AccessDesc, count: usize) {
        let wanted = array(wanted, count)?;
        let ours = |desc: &&AccessDesc| desc.location.kind == DEVICE && desc.location.number == 0;
        let access = wanted.iter().find(ours).ok_or(Error::INVALID_VALUE)?.access;
        match access {
            0 | READ_WRITE => in_context()?.set_access(ptr, bytes as u64, access == READ_WRITE),
            _ => Err(refuse_part("cuMemSetAccess", "access for reading alone")),
        }
    }

    fn cuMemGetAccess(access: *mut c_ulonglong, location: *const Location, ptr: u64) {
        location.as_ref().ok_or(Error::INVALID_VALUE)?;
        let accessible = in_context()?.virtual_memory.accessible(ptr)?;
        put(access, if accessible { READ_WRITE as c_ulonglong } else { 0 })
    }
}
