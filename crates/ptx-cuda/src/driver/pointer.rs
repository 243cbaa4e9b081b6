//! Attributes of an address.

use std::ffi::{c_int, c_uint, c_void};

use crate::c::{array, put};
use crate::call::driver;
use crate::context::in_context;
use crate::error::{Error, Result};
use crate::memory::Kind;
use crate::state::Device;

/// Returns one attribute of an address.
///
/// # Safety
/// `to` must have room for it.
unsafe fn attribute(device: &mut Device, to: *mut c_void, attribute: c_int, ptr: u64) -> Result {
    let allocation = device.memory.allocation(ptx_emu::DevicePtr(ptr));
    let range = allocation.map(|found| (found.start.0, found.bytes));
    let (start, bytes) = range.ok_or(Error::INVALID_VALUE)?;
    let kind = device.kind(ptr).unwrap_or(Kind::Device);
    let on_host = matches!(kind, Kind::Pinned | Kind::Registered);
    // SAFETY: by this function's contract.
    unsafe {
        match attribute {
            1 => put(to.cast(), device.contexts.primary()),
            2 => put(to.cast::<c_uint>(), if on_host { 1 } else { 2 }),
            3 => put(to.cast(), ptr),
            4 => match kind {
                Kind::Device => Err(Error::INVALID_VALUE),
                _ => put(to.cast(), ptr),
            },
            6 | 10 | 15 => put(to.cast::<c_int>(), 0),
            7 => put(to.cast(), start),
            8 => put(to.cast::<c_int>(), c_int::from(kind == Kind::Managed)),
            9 => put(to.cast::<c_int>(), 0),
            11 | 19 => put(to.cast(), start),
            12 | 18 => put(to.cast(), bytes),
            13 => put(to.cast::<c_int>(), 1),
            14 => put(to.cast::<u64>(), 0),
            16 => put(to.cast::<c_uint>(), 3),
            17 => {
                let pool = device.block(ptr).and_then(|(_, block)| block.pool);
                put(to.cast(), pool.unwrap_or(0))
            }
            _ => Err(Error::INVALID_VALUE),
        }
    }
}

driver! {
    fn cuPointerGetAttribute(to: *mut c_void, which: c_int, ptr: u64) {
        attribute(&mut *in_context()?, to, which, ptr)
    }

    fn cuPointerGetAttributes(
        count: c_uint,
        which: *const c_int,
        to: *const *mut c_void,
        ptr: u64,
    ) {
        let mut device = in_context()?;
        let (which, to) = (array(which, count as usize)?, array(to, count as usize)?);
        for (&which, &to) in which.iter().zip(to) {
            // An attribute that does not apply to an address is zero.
            if attribute(&mut device, to, which, ptr).is_err() {
                match which {
                    1 | 3 | 4 | 11 | 12 => put(to.cast::<u64>(), 0)?,
                    9 => put(to.cast::<c_int>(), -2)?,
                    _ => put(to.cast::<c_int>(), 0)?,
                }
            }
        }
        Ok(())
    }

    fn cuPointerSetAttribute(_value: *const c_void, which: c_int, ptr: u64) {
        match (which, in_context()?.block(ptr)) {
            (6, Some(_)) => Ok(()),
            _ => Err(Error::INVALID_VALUE),
        }
    }
}
