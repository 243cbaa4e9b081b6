//! Passes values from and to C.

use std::ffi::{CStr, c_char};

use crate::error::{Error, Result};

/// `dim3`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Dim3 {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) z: u32,
}

impl From<Dim3> for [u32; 3] {
    fn from(dim: Dim3) -> Self {
        [dim.x, dim.y, dim.z]
    }
}

impl From<[u32; 3]> for Dim3 {
    fn from([x, y, z]: [u32; 3]) -> Self {
        Self { x, y, z }
    }
}

/// Returns a value to the caller.
///
/// # Safety
/// `to` must be null or valid.
pub(crate) unsafe fn put<T>(to: *mut T, value: T) -> Result {
    if to.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    // SAFETY: by this function's contract.
    unsafe { to.write(value) };
    Ok(())
}

/// Returns a value to the caller if it wants it.
///
/// # Safety
/// As for `put`.
pub(crate) unsafe fn offer<T>(to: *mut T, value: T) {
    // SAFETY: by this function's contract; null is refused.
    let _ = unsafe { put(to, value) };
}

/// Text from C.
///
/// # Safety
/// `text` must be null or end with a zero.
pub(crate) unsafe fn text<'t>(text: *const c_char) -> Result<&'t str> {
    if text.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    // SAFETY: by this function's contract.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Error::INVALID_VALUE)
}

/// Text to C, cut to `length` bytes with the zero at its end.
///
/// # Safety
/// `to` must have room for `length` bytes.
pub(crate) unsafe fn put_text(to: *mut c_char, length: i32, text: &str) -> Result {
    let length = usize::try_from(length).unwrap_or(0);
    if to.is_null() || length == 0 {
        return Err(Error::INVALID_VALUE);
    }
    let bytes = text.len().min(length - 1);
    // SAFETY: by this function's contract.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), to, bytes);
        *to.add(bytes) = 0;
    }
    Ok(())
}

/// An array from C.
///
/// # Safety
/// `first` must have `count` elements.
pub(crate) unsafe fn array<'a, T>(first: *const T, count: usize) -> Result<&'a [T]> {
    match (count, first.is_null()) {
        (0, _) => Ok(&[]),
        (_, true) => Err(Error::INVALID_VALUE),
        // SAFETY: by this function's contract.
        (_, false) => Ok(unsafe { std::slice::from_raw_parts(first, count) }),
    }
}

/// Fills an array of the caller, or returns the number of elements if it passed no array.
///
/// # Safety
/// `count` must be valid, and `to` null or have room for `*count` elements.
pub(crate) unsafe fn put_array<T: Copy>(to: *mut T, count: *mut usize, values: &[T]) -> Result {
    if count.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    // SAFETY: by this function's contract.
    unsafe {
        if to.is_null() {
            *count = values.len();
            return Ok(());
        }
        let given = values.len().min(*count);
        std::ptr::copy_nonoverlapping(values.as_ptr(), to, given);
        *count = given;
    }
    Ok(())
}
