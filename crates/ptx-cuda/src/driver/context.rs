//! Contexts.

use std::ffi::{c_int, c_uint, c_void};

use super::device::device;
use crate::c::put;
use crate::call::{driver, refuse_part};
use crate::context::{current, in_context, pop, push, set};
use crate::error::{Error, Result};
use crate::limits::{check_limit, limit};
use crate::state::lock;
use crate::stream::HIGHEST;

/// `CUctxCreateParams`
#[repr(C)]
struct CreateParams {
    affinity: *const c_void,
    count: c_int,
    graphics: *const c_void,
}

/// Makes a context and makes it current.
fn make(flags: u32, number: c_int) -> Result<usize> {
    device(number)?;
    let context = lock()?.contexts.make(flags);
    push(context);
    Ok(context)
}

driver! {
    fn cuCtxCreate_v2(context: *mut usize, flags: c_uint, number: c_int) {
        put(context, make(flags, number)?)
    }

    fn cuCtxCreate_v3(
        context: *mut usize,
        affinity: *const c_void,
        _count: c_int,
        flags: c_uint,
        number: c_int,
    ) {
        match affinity.is_null() {
            true => put(context, make(flags, number)?),
            false => Err(refuse_part("cuCtxCreate", "an affinity")),
        }
    }

    fn cuCtxCreate_v4(
        context: *mut usize,
        params: *const CreateParams,
        flags: c_uint,
        number: c_int,
    ) {
        let plain = |params: &CreateParams| params.affinity.is_null() && params.graphics.is_null();
        match params.as_ref().is_none_or(plain) {
            true => put(context, make(flags, number)?),
            false => Err(refuse_part("cuCtxCreate", "an affinity or graphics")),
        }
    }

    fn cuCtxDestroy_v2(context: usize) {
        lock()?.destroy_context(context)
    }

    fn cuCtxPushCurrent_v2(context: usize) {
        lock()?.contexts.check(context)?;
        push(context);
        Ok(())
    }

    fn cuCtxPopCurrent_v2(context: *mut usize) {
        let popped = pop()?;
        crate::c::offer(context, popped);
        Ok(())
    }

    fn cuCtxSetCurrent(context: usize) {
        if context != 0 {
            lock()?.contexts.check(context)?;
        }
        set(context);
        Ok(())
    }

    fn cuCtxGetCurrent(context: *mut usize) {
        put(context, current())
    }

    fn cuCtxGetDevice(number: *mut c_int) {
        in_context()?;
        put(number, 0)
    }

    fn cuCtxGetFlags(flags: *mut c_uint) {
        put(flags, in_context()?.contexts.flags_of(current()))
    }

    fn cuCtxSetFlags(flags: c_uint) {
        in_context()?.contexts.set_flags(current(), flags);
        Ok(())
    }

    fn cuCtxGetId(context: usize, id: *mut u64) {
        let context = if context == 0 { current() } else { context };
        lock()?.contexts.check(context)?;
        put(id, context as u64)
    }

    fn cuCtxGetApiVersion(context: usize, version: *mut c_uint) {
        let context = if context == 0 { current() } else { context };
        lock()?.contexts.check(context)?;
        put(version, 3020)
    }

    fn cuCtxSynchronize() {
        in_context()?.wait_for_all()
    }

    fn cuCtxSetLimit(which: c_uint, value: usize) {
        check_limit(which, value)?;
        in_context()?.limits.insert(which, value);
        Ok(())
    }

    fn cuCtxGetLimit(value: *mut usize, which: c_uint) {
        let plain = limit(which)?;
        put(value, in_context()?.limits.get(&which).copied().unwrap_or(plain))
    }

    fn cuCtxGetCacheConfig(config: *mut c_int) {
        in_context()?;
        put(config, 0)
    }

    fn cuCtxSetCacheConfig(_config: c_int) {
        in_context().map(drop)
    }

    fn cuCtxGetSharedMemConfig(config: *mut c_int) {
        in_context()?;
        put(config, 1)
    }

    fn cuCtxSetSharedMemConfig(_config: c_int) {
        in_context().map(drop)
    }

    fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        in_context()?;
        crate::c::offer(least, 0);
        crate::c::offer(greatest, HIGHEST);
        Ok(())
    }

    fn cuCtxResetPersistingL2Cache() {
        in_context().map(drop)
    }

    fn cuCtxEnablePeerAccess(_peer: usize, _flags: c_uint) {
        Err(Error::PEER_UNSUPPORTED)
    }

    fn cuDevicePrimaryCtxRetain(context: *mut usize, number: c_int) {
        device(number)?;
        let mut state = lock()?;
        state.contexts.retained += 1;
        put(context, state.contexts.primary())
    }

    fn cuDevicePrimaryCtxRelease_v2(number: c_int) {
        device(number)?;
        let mut state = lock()?;
        match state.contexts.retained {
            0 => Err(Error::INVALID_CONTEXT),
            1 if !state.contexts.in_runtime => {
                state.contexts.retained = 0;
                state.reset()
            }
            _ => {
                state.contexts.retained -= 1;
                Ok(())
            }
        }
    }

    fn cuDevicePrimaryCtxReset_v2(number: c_int) {
        device(number)?;
        lock()?.reset()
    }

    fn cuDevicePrimaryCtxSetFlags_v2(number: c_int, flags: c_uint) {
        device(number)?;
        lock()?.contexts.flags = flags;
        Ok(())
    }

    fn cuDevicePrimaryCtxGetState(number: c_int, flags: *mut c_uint, active: *mut c_int) {
        device(number)?;
        let state = lock()?;
        put(flags, state.contexts.flags)?;
        put(active, c_int::from(state.contexts.is_active()))
    }
}
