//! What nvcc's host code calls before `main` and around each launch.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};
use std::mem::ManuallyDrop;

use crate::c::{Dim3, offer, text};
use crate::call::{refuse, runtime, shield};
use crate::context::in_runtime;
use crate::error::Error;
use crate::registration::registered;

type Handle = *mut *mut c_void;

/// The configuration of `<<<…>>>`.
struct Configuration {
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: usize,
}

thread_local! {
    /// Configurations of launches that have begun. Never dropped: destructors of a program's
    /// globals run after those of its thread, and may launch.
    static CONFIGURED: ManuallyDrop<RefCell<Vec<Configuration>>> =
        const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

/// A name from generated code, which is always text.
fn name(text_of: *const c_char) -> String {
    // SAFETY: generated code gives text that lives on.
    unsafe { text(text_of) }.unwrap_or_default().to_owned()
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFatBinary(image: *const c_void) -> usize {
    shield("__cudaRegisterFatBinary", || registered().add_binary(image))
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFatBinaryEnd(_binary: Handle) {}

#[unsafe(no_mangle)]
extern "C" fn __cudaUnregisterFatBinary(binary: Handle) {
    shield("__cudaUnregisterFatBinary", || {
        registered().remove_binary(binary.addr())
    });
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFunction(
    binary: Handle,
    shadow: *const c_void,
    _device_function: *mut c_char,
    device_name: *const c_char,
    _threads: c_int,
    _tid: *mut c_void,
    _bid: *mut c_void,
    _block: *mut c_void,
    _grid: *mut c_void,
    _warp: *mut c_int,
) {
    shield("__cudaRegisterFunction", || {
        registered().add_kernel(binary.addr(), shadow.addr(), name(device_name));
    });
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterVar(
    binary: Handle,
    shadow: *mut c_void,
    _device_address: *mut c_char,
    device_name: *const c_char,
    _external: c_int,
    bytes: usize,
    _constant: c_int,
    _global: c_int,
) {
    shield("__cudaRegisterVar", || {
        let (binary, shadow) = (binary.addr(), shadow.addr());
        registered().add_variable(binary, shadow, name(device_name), bytes as u64);
    });
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterManagedVar(
    binary: Handle,
    place: *mut *mut c_void,
    _device_address: *mut c_char,
    device_name: *const c_char,
    _external: c_int,
    bytes: usize,
    _constant: c_int,
    _global: c_int,
) {
    shield("__cudaRegisterManagedVar", || {
        let (binary, place) = (binary.addr(), place.expose_provenance());
        registered().add_managed(binary, place, name(device_name), bytes as u64);
    });
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterTexture() {
    shield("__cudaRegisterTexture", || {
        _ = refuse("a texture reference")
    });
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterSurface() {
    shield("__cudaRegisterSurface", || {
        _ = refuse("a surface reference")
    });
}

/// Loads a module so that its managed variables can be used.
#[unsafe(no_mangle)]
extern "C" fn __cudaInitModule(binary: Handle) -> c_char {
    let loaded = crate::call::answer_runtime("__cudaInitModule", &mut || {
        in_runtime()?.load_registered(binary.addr()).map(drop)
    });
    c_char::from(loaded == 0)
}

runtime! {
    fn __cudaPushCallConfiguration(grid: Dim3, block: Dim3, shared: usize, stream: usize) {
        let configuration = Configuration { grid, block, shared, stream };
        CONFIGURED.with(|all| all.borrow_mut().push(configuration));
        Ok(())
    }

    fn __cudaPopCallConfiguration(
        grid: *mut Dim3,
        block: *mut Dim3,
        shared: *mut usize,
        stream: *mut usize,
    ) {
        let last = CONFIGURED.with(|all| all.borrow_mut().pop());
        let last = last.ok_or(Error::MISSING_CONFIGURATION)?;
        offer(grid, last.grid);
        offer(block, last.block);
        offer(shared, last.shared);
        offer(stream, last.stream);
        Ok(())
    }

    fn __cudaGetKernel(kernel: *mut usize, shadow: usize) {
        crate::c::put(kernel, shadow)
    }
}
