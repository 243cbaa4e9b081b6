//! Entry points by name: `cuGetProcAddress`.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null;

use crate::c::{offer, put, text};
use crate::call::driver;
use crate::entry::find;
use crate::error::Error;
use crate::say::say_once;

driver! {
    fn cuGetProcAddress(
        name: *const c_char,
        function: *mut *const c_void,
        version: c_int,
        flags: u64,
    ) {
        put(function, find(text(name)?, version as u32, flags)?.0)
    }

    fn cuGetProcAddress_v2(
        name: *const c_char,
        function: *mut *const c_void,
        version: c_int,
        flags: u64,
        status: *mut c_int,
    ) {
        let (found, of_search) = find(text(name)?, version as u32, flags)?;
        offer(status, of_search);
        put(function, found)
    }

    fn cuGetExportTable(table: *mut *const c_void, _id: *const c_void) {
        say_once(
            "a CUDA runtime inside the program or one of its libraries asks for private tables of the \
             driver: link with -cudart shared, or do not strip the program",
        );
        put(table, null())?;
        Err(Error::NOT_SUPPORTED)
    }
}
