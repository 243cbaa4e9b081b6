//! Errors in words.

use std::ffi::{c_char, c_int};

use crate::call::{last, shield, take_last};
use crate::error::Error;
use crate::state::lock;

/// The error of the context, or that of the thread.
fn of_context(thread: Error) -> c_int {
    let sticky = lock().ok().and_then(|device| device.sticky);
    sticky.unwrap_or(thread).0 as c_int
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetLastError() -> c_int {
    shield("cudaGetLastError", || of_context(take_last()))
}

#[unsafe(no_mangle)]
extern "C" fn cudaPeekAtLastError() -> c_int {
    shield("cudaPeekAtLastError", || of_context(last()))
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorName(code: c_int) -> *const c_char {
    let name = Error(code as u32).runtime_name();
    name.unwrap_or(c"unrecognized error code").as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn cudaGetErrorString(code: c_int) -> *const c_char {
    let text = Error(code as u32).text();
    text.unwrap_or(c"unrecognized error code").as_ptr()
}
