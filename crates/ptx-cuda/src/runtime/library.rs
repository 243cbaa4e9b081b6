//! Libraries of kernels that a program loads itself, and entry points of the driver.

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::c::{offer, put, text};
use crate::call::runtime;
use crate::context::in_runtime;
use crate::entry;
use crate::module::Loaded;
use crate::runtime::device::version;

runtime! {
    fn cudaLibraryLoadData(
        library: *mut usize,
        image: *const c_void,
        _options: *mut c_int,
        _values: *mut *mut c_void,
        _count: c_uint,
        _library_options: *mut c_int,
        _library_values: *mut *mut c_void,
        _library_count: c_uint,
    ) {
        let loaded = Loaded::of_image(image)?;
        put(library, in_runtime()?.modules.add(loaded))
    }

    fn cudaLibraryLoadFromFile(
        library: *mut usize,
        path: *const c_char,
        _options: *mut c_int,
        _values: *mut *mut c_void,
        _count: c_uint,
        _library_options: *mut c_int,
        _library_values: *mut *mut c_void,
        _library_count: c_uint,
    ) {
        let loaded = Loaded::of_file(text(path)?.as_ref())?;
        put(library, in_runtime()?.modules.add(loaded))
    }

    fn cudaLibraryUnload(library: usize) {
        in_runtime()?.unload(library)
    }

    fn cudaLibraryGetKernel(kernel: *mut usize, library: usize, name: *const c_char) {
        put(kernel, in_runtime()?.module_function(library, text(name)?)?)
    }

    fn cudaLibraryGetGlobal | cudaLibraryGetManaged(
        ptr: *mut u64,
        bytes: *mut usize,
        library: usize,
        name: *const c_char,
    ) {
        let (at, long) = in_runtime()?.module_variable(library, text(name)?)?;
        offer(ptr, at);
        offer(bytes, long as usize);
        Ok(())
    }

    fn cudaKernelSetAttributeForDevice(
        kernel: usize,
        attribute: c_int,
        value: c_int,
        _device: c_int,
    ) {
        crate::occupancy::set_attribute(in_runtime()?.function(kernel)?, attribute, value)
    }

    fn cudaGetDriverEntryPoint | cudaGetDriverEntryPoint_ptsz(
        name: *const c_char,
        function: *mut *const c_void,
        flags: u64,
        status: *mut c_int,
    ) {
        let (found, of_search) = entry::find(text(name)?, version() as c_uint, flags)?;
        offer(status, of_search);
        put(function, found)
    }

    fn cudaGetDriverEntryPointByVersion | cudaGetDriverEntryPointByVersion_ptsz(
        name: *const c_char,
        function: *mut *const c_void,
        version: c_uint,
        flags: u64,
        status: *mut c_int,
    ) {
        let (found, of_search) = entry::find(text(name)?, version, flags)?;
        offer(status, of_search);
        put(function, found)
    }
}
