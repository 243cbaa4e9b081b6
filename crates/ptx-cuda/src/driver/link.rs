//! The linker, for PTX.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use super::jit::Options;
use crate::c::{array, offer, put, text};
use crate::call::{driver, refuse_part};
use crate::context::in_context;
use crate::error::{Error, Result};
use crate::link::Link;

/// `CU_JIT_INPUT_PTX`
const PTX: c_int = 1;

fn check_kind(kind: c_int) -> Result {
    match kind {
        PTX => Ok(()),
        _ => Err(refuse_part("cuLinkAddData", "anything but PTX")),
    }
}

driver! {
    fn cuLinkCreate_v2(
        count: c_uint,
        names: *const c_int,
        values: *mut *mut c_void,
        link: *mut usize,
    ) {
        Options { count, names, values }.answer("")?;
        put(link, in_context()?.links.add(Link::default()))
    }

    fn cuLinkAddData_v2(
        link: usize,
        kind: c_int,
        data: *const u8,
        bytes: usize,
        _name: *const c_char,
        _count: c_uint,
        _options: *mut c_int,
        _values: *mut *mut c_void,
    ) {
        check_kind(kind)?;
        let data = array(data, bytes)?;
        // The size may count the zero at the end.
        let data = CStr::from_bytes_until_nul(data).map_or(data, CStr::to_bytes);
        let text = std::str::from_utf8(data).map_err(|_| Error::INVALID_IMAGE)?;
        in_context()?.links.get_mut(link)?.add(text);
        Ok(())
    }

    fn cuLinkAddFile_v2(
        link: usize,
        kind: c_int,
        path: *const c_char,
        _count: c_uint,
        _options: *mut c_int,
        _values: *mut *mut c_void,
    ) {
        check_kind(kind)?;
        let content = std::fs::read_to_string(text(path)?).map_err(|_| Error::FILE_NOT_FOUND)?;
        in_context()?.links.get_mut(link)?.add(&content);
        Ok(())
    }

    fn cuLinkComplete(link: usize, image: *mut *const c_void, bytes: *mut usize) {
        let mut device = in_context()?;
        let linked = device.links.get_mut(link)?.complete()?;
        put(image, linked.as_ptr().cast())?;
        offer(bytes, linked.as_bytes_with_nul().len());
        Ok(())
    }

    fn cuLinkDestroy(link: usize) {
        in_context()?.links.remove(link).map(drop)
    }
}
