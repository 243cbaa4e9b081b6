//! What nvcc's host code calls before `main` and around each launch.

use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_void};

use crate::c::{Dim3, offer, text};
use crate::call::{refuse, runtime};
use crate::context::in_runtime;
use crate::error::Error;
use crate::registration::registered;

type Handle = *mut *mut c_void;

/// What `<<<…>>>` says.
struct Configuration {
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: usize,
}

thread_local! {
    /// Configurations of launches that have begun.
    static CONFIGURED: RefCell<Vec<Configuration>> = const { RefCell::new(Vec::new()) };
}

/// A name from generated code, which is always text.
fn name(text_of: *const c_char) -> String {
    // SAFETY: generated code gives text that lives on.
    unsafe { text(text_of) }.unwrap_or_default().to_owned()
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFatBinary(image: *const c_void) -> Handle {
    std::ptr::with_exposed_provenance_mut(registered().add_binary(image))
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterFatBinaryEnd(_binary: Handle) {}

#[unsafe(no_mangle)]
extern "C" fn __cudaUnregisterFatBinary(binary: Handle) {
    registered().remove_binary(binary.addr());
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
    registered().add_kernel(binary.addr(), shadow.addr(), name(device_name));
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
    registered().add_variable(
        binary.addr(),
        shadow.addr(),
        name(device_name),
        bytes as u64,
    );
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
    let place = place.expose_provenance();
    registered().add_managed(binary.addr(), place, name(device_name), bytes as u64);
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterTexture() {
    refuse("a texture reference");
}

#[unsafe(no_mangle)]
extern "C" fn __cudaRegisterSurface() {
    refuse("a surface reference");
}

/// Loads a module so that its managed variables can be used.
#[unsafe(no_mangle)]
extern "C" fn __cudaInitModule(binary: Handle) -> c_char {
    let loaded = crate::call::answer_runtime("__cudaInitModule", || {
        in_runtime()?.load_registered(binary.addr()).map(drop)
    });
    c_char::from(loaded == 0)
}

#[unsafe(no_mangle)]
extern "C" fn __cudaPushCallConfiguration(
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: usize,
) -> c_int {
    CONFIGURED.with_borrow_mut(|all| {
        all.push(Configuration {
            grid,
            block,
            shared,
            stream,
        });
    });
    0
}

runtime! {
    fn __cudaPopCallConfiguration(
        grid: *mut Dim3,
        block: *mut Dim3,
        shared: *mut usize,
        stream: *mut usize,
    ) {
        let last = CONFIGURED.with_borrow_mut(Vec::pop).ok_or(Error::MISSING_CONFIGURATION)?;
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
