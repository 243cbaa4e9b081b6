//! Initialisation, errors and the device.

use std::ffi::{c_char, c_int, c_uint};
use std::sync::atomic::Ordering::Relaxed;

use crate::c::{put, put_text, text};
use crate::call::{check_process, driver};
use crate::context::{INITIALISED, current};
use crate::device::{BUS, UUID, VERSION, check, settings};
use crate::error::{Error, Result};

/// The device with this number, for calls that need no context.
pub(super) fn device(number: c_int) -> Result {
    match INITIALISED.load(Relaxed) || current() != 0 {
        true => check(number),
        false => Err(Error::NOT_INITIALIZED),
    }
}

driver! {
    fn cuInit(flags: c_uint) {
        check_process()?;
        if flags != 0 {
            return Err(Error::INVALID_VALUE);
        }
        INITIALISED.store(true, Relaxed);
        Ok(())
    }

    fn cuDriverGetVersion(version: *mut c_int) {
        put(version, VERSION)
    }

    fn cuGetErrorName(code: c_int, name: *mut *const c_char) {
        match Error(code as u32).driver_name() {
            Some(found) => put(name, found.as_ptr()),
            None => put(name, std::ptr::null()).and(Err(Error::INVALID_VALUE)),
        }
    }

    fn cuGetErrorString(code: c_int, words: *mut *const c_char) {
        match Error(code as u32).text() {
            Some(found) => put(words, found.as_ptr()),
            None => put(words, std::ptr::null()).and(Err(Error::INVALID_VALUE)),
        }
    }

    fn cuDeviceGet(to: *mut c_int, number: c_int) {
        device(number)?;
        put(to, number)
    }

    fn cuDeviceGetCount(count: *mut c_int) {
        device(0)?;
        put(count, 1)
    }

    fn cuDeviceGetName(name: *mut c_char, length: c_int, number: c_int) {
        device(number)?;
        put_text(name, length, &settings().properties.name)
    }

    fn cuDeviceGetUuid | cuDeviceGetUuid_v2(uuid: *mut [u8; 16], number: c_int) {
        device(number)?;
        put(uuid, UUID)
    }

    fn cuDeviceTotalMem_v2(bytes: *mut usize, number: c_int) {
        device(number)?;
        put(bytes, settings().properties.memory as usize)
    }

    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, number: c_int) {
        device(number)?;
        put(value, settings().properties.attribute(attribute).ok_or(Error::INVALID_VALUE)?)
    }

    fn cuDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, number: c_int) {
        device(number)?;
        put(major, settings().properties.major())?;
        put(minor, settings().properties.minor())
    }

    fn cuDeviceGetPCIBusId(to: *mut c_char, length: c_int, number: c_int) {
        device(number)?;
        put_text(to, length, BUS)
    }

    fn cuDeviceGetByPCIBusId(to: *mut c_int, bus: *const c_char) {
        match text(bus)? == BUS {
            true => put(to, 0),
            false => Err(Error::INVALID_DEVICE),
        }
    }

    fn cuDeviceCanAccessPeer(can: *mut c_int, number: c_int, peer: c_int) {
        device(number)?;
        device(peer)?;
        put(can, 0)
    }

    fn cuProfilerStart() {
        device(0)
    }

    fn cuProfilerStop() {
        device(0)
    }
}
