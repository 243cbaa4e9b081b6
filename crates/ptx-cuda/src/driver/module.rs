//! Modules and libraries.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::Arc;

use super::jit::Options;
use crate::c::{offer, put, text};
use crate::call::driver;
use crate::context::in_context;
use crate::error::{Error, Result};
use crate::module::Loaded;
use crate::state::device;

/// Loads an image, and returns errors through the options that request them.
///
/// # Safety
/// The image and the options must be whole.
unsafe fn load(image: *const c_void, options: &Options) -> Result<Arc<Loaded>> {
    // SAFETY: by this function's contract.
    unsafe {
        let loaded = Loaded::of_image(image);
        options.answer(loaded.as_ref().err().map_or("", |refusal| &refusal.text))?;
        Ok(loaded?)
    }
}

driver! {
    fn cuModuleLoadData(module: *mut usize, image: *const c_void) {
        in_context()?;
        let loaded = Loaded::of_image(image)?;
        put(module, in_context()?.modules.add(loaded))
    }

    fn cuModuleLoadDataEx(
        module: *mut usize,
        image: *const c_void,
        count: c_uint,
        names: *const c_int,
        values: *mut *mut c_void,
    ) {
        in_context()?;
        let loaded = load(image, &Options { count, names, values })?;
        put(module, in_context()?.modules.add(loaded))
    }

    fn cuModuleLoadFatBinary(module: *mut usize, image: *const c_void) {
        in_context()?;
        let loaded = Loaded::of_image(image)?;
        put(module, in_context()?.modules.add(loaded))
    }

    fn cuModuleLoad(module: *mut usize, path: *const c_char) {
        in_context()?;
        let loaded = Loaded::of_file(text(path)?.as_ref())?;
        put(module, in_context()?.modules.add(loaded))
    }

    fn cuModuleUnload(module: usize) {
        in_context()?.unload(module)
    }

    fn cuModuleGetLoadingMode(mode: *mut c_int) {
        put(mode, 2)
    }

    fn cuModuleGetFunction(function: *mut usize, module: usize, name: *const c_char) {
        put(function, in_context()?.module_function(module, text(name)?)?)
    }

    fn cuModuleGetFunctionCount(count: *mut c_uint, module: usize) {
        put(count, in_context()?.modules.get(module)?.emu.kernels().count() as c_uint)
    }

    fn cuModuleEnumerateFunctions(functions: *mut usize, count: c_uint, module: usize) {
        let mut device = in_context()?;
        let loaded = device.modules.get(module)?.clone();
        for (index, kernel) in loaded.emu.kernels().take(count as usize).enumerate() {
            put(functions.add(index), device.module_function(module, kernel.name)?)?;
        }
        Ok(())
    }

    fn cuLibraryLoadData(
        library: *mut usize,
        image: *const c_void,
        names: *const c_int,
        values: *mut *mut c_void,
        count: c_uint,
        _library_options: *mut c_int,
        _library_values: *mut *mut c_void,
        _library_count: c_uint,
    ) {
        let loaded = load(image, &Options { count, names, values })?;
        put(library, device()?.modules.add(loaded))
    }

    fn cuLibraryLoadFromFile(
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
        put(library, device()?.modules.add(loaded))
    }

    fn cuLibraryUnload(library: usize) {
        device()?.unload(library)
    }

    fn cuLibraryGetModule(module: *mut usize, library: usize) {
        in_context()?.modules.get(library)?;
        put(module, library)
    }

    fn cuLibraryGetKernel(kernel: *mut usize, library: usize, name: *const c_char) {
        put(kernel, device()?.module_function(library, text(name)?)?)
    }

    fn cuLibraryGetKernelCount(count: *mut c_uint, library: usize) {
        put(count, device()?.modules.get(library)?.emu.kernels().count() as c_uint)
    }

    fn cuModuleGetGlobal_v2 | cuLibraryGetGlobal | cuLibraryGetManaged(
        ptr: *mut u64,
        bytes: *mut usize,
        library: usize,
        name: *const c_char,
    ) {
        let (at, long) = in_context()?.module_variable(library, text(name)?)?;
        offer(ptr, at);
        offer(bytes, long as usize);
        Ok(())
    }

    fn cuKernelGetFunction(function: *mut usize, kernel: usize) {
        in_context()?.functions.get(kernel)?;
        put(function, kernel)
    }

    fn cuKernelGetLibrary(library: *mut usize, kernel: usize) {
        let device = device()?;
        let module = &device.functions.get(kernel)?.module;
        let found = device.modules.find(|other| std::sync::Arc::ptr_eq(other, module));
        put(library, found.ok_or(Error::INVALID_HANDLE)?)
    }
}
