//! The device, its limits and its flags.

use std::ffi::{c_char, c_int, c_uint};

use crate::c::{array, put, put_text, text};
use crate::call::runtime;
use crate::context::in_runtime;
use crate::device::{BUS, VERSION, check, settings};
use crate::error::Error;
use crate::limits::{check_limit, limit};
use crate::loaded::is_twelve;
use crate::state::lock;
use crate::stream::HIGHEST;

/// CUDA 12.4: the version assumed for a runtime of CUDA 12.
const TWELVE: c_int = 12_040;

/// The version of the program's runtime.
pub(super) fn version() -> c_int {
    match is_twelve() {
        true => TWELVE,
        false => VERSION,
    }
}

runtime! {
    fn cudaGetDeviceCount(count: *mut c_int) {
        put(count, 1)
    }

    fn cudaSetDevice(device: c_int) {
        check(device)?;
        in_runtime().map(drop)
    }

    fn cudaInitDevice(device: c_int, _device_flags: c_uint, _flags: c_uint) {
        check(device)?;
        in_runtime().map(drop)
    }

    fn cudaGetDevice(device: *mut c_int) {
        put(device, 0)
    }

    fn cudaSetValidDevices(devices: *const c_int, count: c_int) {
        let count = usize::try_from(count).map_err(|_| Error::INVALID_VALUE)?;
        array(devices, count)?.iter().try_for_each(|&device| check(device))
    }

    fn cudaChooseDevice(device: *mut c_int, _properties: usize) {
        put(device, 0)
    }

    fn cudaDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int) {
        check(device)?;
        put(value, settings().properties.attribute(attribute).ok_or(Error::INVALID_VALUE)?)
    }

    fn cudaDeviceSynchronize() {
        in_runtime()?.wait_for_all()
    }

    fn cudaThreadSynchronize() {
        in_runtime()?.wait_for_all()
    }

    fn cudaDeviceReset() {
        lock()?.reset()
    }

    fn cudaThreadExit() {
        lock()?.reset()
    }

    fn cudaDeviceSetLimit(which: c_uint, value: usize) {
        check_limit(which, value)?;
        in_runtime()?.limits.insert(which, value);
        Ok(())
    }

    fn cudaDeviceGetLimit(value: *mut usize, which: c_uint) {
        let plain = limit(which)?;
        put(value, in_runtime()?.limits.get(&which).copied().unwrap_or(plain))
    }

    fn cudaDeviceGetCacheConfig(config: *mut c_int) {
        put(config, 0)
    }

    fn cudaDeviceSetCacheConfig(_config: c_int) {
        in_runtime().map(drop)
    }

    fn cudaDeviceGetSharedMemConfig(config: *mut c_int) {
        put(config, 1)
    }

    fn cudaDeviceSetSharedMemConfig(_config: c_int) {
        in_runtime().map(drop)
    }

    fn cudaDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        put(least, 0)?;
        put(greatest, HIGHEST)
    }

    fn cudaSetDeviceFlags(flags: c_uint) {
        lock()?.contexts.flags = flags;
        Ok(())
    }

    fn cudaGetDeviceFlags(flags: *mut c_uint) {
        put(flags, lock()?.contexts.flags | 8)
    }

    fn cudaDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) {
        check(device)?;
        check(peer)?;
        put(can, 0)
    }

    fn cudaDeviceEnablePeerAccess(_peer: c_int, _flags: c_uint) {
        Err(Error::INVALID_DEVICE)
    }

    fn cudaDeviceDisablePeerAccess(_peer: c_int) {
        Err(Error::INVALID_DEVICE)
    }

    fn cudaDeviceGetPCIBusId(to: *mut c_char, length: c_int, device: c_int) {
        check(device)?;
        put_text(to, length, BUS)
    }

    fn cudaDeviceGetByPCIBusId(device: *mut c_int, bus: *const c_char) {
        match text(bus)? == BUS {
            true => put(device, 0),
            false => Err(Error::INVALID_DEVICE),
        }
    }

    fn cudaDriverGetVersion(version: *mut c_int) {
        put(version, VERSION)
    }

    fn cudaRuntimeGetVersion(to: *mut c_int) {
        put(to, version())
    }

    fn cudaProfilerStart() {
        in_runtime().map(drop)
    }

    fn cudaProfilerStop() {
        in_runtime().map(drop)
    }
}
