//! The shared library, and what a program gives it. Each test uses a part.

#![allow(dead_code)]

mod ptx;
mod textures;

use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use libloading::Library;

pub(crate) use ptx::PTX;

/// `dim3`
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Dim3(pub(crate) u32, pub(crate) u32, pub(crate) u32);

/// One test at a time has the library, whose device is the process's.
pub(crate) struct Cuda {
    library: Library,
    _turn: MutexGuard<'static, ()>,
}

macro_rules! callers {
    ($($caller:ident($($arg:ident: $type:ident),+);)+) => {
        impl Cuda {
            $(
                /// Calls a function of the API.
                ///
                /// # Safety
                /// It must take these arguments.
                #[allow(clippy::too_many_arguments)]
                pub(crate) unsafe fn $caller<$($type),+>(&self, name: &str, $($arg: $type),+) -> c_int {
                    let function: unsafe extern "C" fn($($type),+) -> c_int = self.symbol(name);
                    // SAFETY: by this function's contract.
                    unsafe { function($($arg),+) }
                }
            )+
        }
    };
}

callers! {
    f1(a: A);
    f2(a: A, b: B);
    f3(a: A, b: B, c: C);
    f4(a: A, b: B, c: C, d: D);
    f5(a: A, b: B, c: C, d: D, e: E);
    f6(a: A, b: B, c: C, d: D, e: E, f: F);
    f8(a: A, b: B, c: C, d: D, e: E, f: F, g: G, h: H);
}

impl Cuda {
    /// Calls a function of the API that takes nothing.
    pub(crate) fn f0(&self, name: &str) -> c_int {
        let function: unsafe extern "C" fn() -> c_int = self.symbol(name);
        // SAFETY: those that take nothing may always be called.
        unsafe { function() }
    }

    /// Launches one CTA of a driver's function.
    ///
    /// # Safety
    /// The function must take these arguments.
    pub(crate) unsafe fn launch_function(
        &self,
        function: usize,
        threads: u32,
        args: &[*const c_void],
    ) -> c_int {
        let launch: unsafe extern "C" fn(
            usize,
            u32,
            u32,
            u32,
            u32,
            u32,
            u32,
            u32,
            usize,
            *const *const c_void,
            *const c_void,
        ) -> c_int = self.symbol("cuLaunchKernel");
        let (args, none) = (args.as_ptr(), std::ptr::null());
        // SAFETY: by this function's contract.
        unsafe { launch(function, 1, 1, 1, threads, 1, 1, 0, 0, args, none) }
    }

    /// Loads the library that was built beside this test.
    pub(crate) fn load() -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let here = std::env::current_exe().expect("a test has a path");
        let path = here.with_file_name("libptx_cuda.so");
        // SAFETY: the library does nothing when it is loaded.
        let library = unsafe { Library::new(&path) };
        Self {
            library: library.unwrap_or_else(|e| panic!("{}: {e}", path.display())),
            _turn: turn,
        }
    }

    /// A function, as the pointer it is.
    pub(crate) fn symbol<T: Copy>(&self, name: &str) -> T {
        // SAFETY: the caller names the type that the API has.
        *unsafe { self.library.get::<T>(name) }.expect(name)
    }

    /// Registers a container as nvcc's host code does; the address of its kernel `add_one`.
    pub(crate) fn register(&self, container: &[u8]) -> usize {
        let shadow: *const u64 = Box::leak(Box::new(0u64));
        self.register_at(container, shadow);
        shadow.addr()
    }

    /// Registers one whose kernel has this address; the handle of the container.
    pub(crate) fn register_at(&self, container: &[u8], shadow: *const u64) -> usize {
        let image = Box::leak(wrapper(container).into_boxed_slice());
        let register: unsafe extern "C" fn(*const c_void) -> usize =
            self.symbol("__cudaRegisterFatBinary");
        let function: unsafe extern "C" fn(
            usize,
            *const u64,
            *const u64,
            *const i8,
            c_int,
            usize,
            usize,
            usize,
            usize,
            usize,
        ) = self.symbol("__cudaRegisterFunction");
        // SAFETY: what nvcc's host code does, with memory that lives on.
        unsafe {
            let handle = register(image.as_ptr().cast());
            let name = c"add_one".as_ptr().cast();
            function(handle, shadow, shadow, name, -1, 0, 0, 0, 0, 0);
            handle
        }
    }

    /// Launches `add_one`.
    ///
    /// # Safety
    /// As the kernel asks for.
    pub(crate) unsafe fn launch(
        &self,
        kernel: usize,
        blocks: u32,
        threads: u32,
        ptr: u64,
        count: u32,
        stream: usize,
    ) -> c_int {
        let launch: unsafe extern "C" fn(
            usize,
            Dim3,
            Dim3,
            *const *const c_void,
            usize,
            usize,
        ) -> c_int = self.symbol("cudaLaunchKernel");
        let args: [*const c_void; 2] = [(&raw const ptr).cast(), (&raw const count).cast()];
        let (grid, block) = (Dim3(blocks, 1, 1), Dim3(threads, 1, 1));
        // SAFETY: by this function's contract.
        unsafe { launch(kernel, grid, block, args.as_ptr(), 0, stream) }
    }
}

/// A container with one entry: 1 for PTX, 2 for machine code.
pub(crate) fn container(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut entry = vec![0; 64];
    entry[0..2].copy_from_slice(&kind.to_le_bytes());
    entry[4] = 64;
    entry[8..16].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    entry[28] = 90;
    entry.extend(payload);
    let mut all = vec![0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0];
    all.extend((entry.len() as u64).to_le_bytes());
    all.extend(entry);
    all
}

/// The struct that nvcc's host code registers, with a container that lives on.
pub(crate) fn wrapper(container: &[u8]) -> Vec<u8> {
    let container = Box::leak(container.to_vec().into_boxed_slice());
    let mut wrapper = vec![0xb1, 0x43, 0x62, 0x46, 1, 0, 0, 0];
    wrapper.extend(container.as_ptr().expose_provenance().to_le_bytes());
    wrapper.extend([0; 8]);
    wrapper
}

/// Managed memory for some numbers, which are 0.
///
/// # Safety
/// The library must be there.
pub(crate) unsafe fn managed(cuda: &Cuda) -> u64 {
    let mut ptr = 0u64;
    // SAFETY: as the API asks for.
    unsafe {
        assert_eq!(cuda.f3("cudaMallocManaged", &raw mut ptr, 64usize, 1u32), 0);
        assert_eq!(cuda.f3("cudaMemset", ptr, 0 as c_int, 64usize), 0);
    }
    ptr
}

/// The number at an address of managed memory.
///
/// # Safety
/// There must be one.
pub(crate) unsafe fn number(ptr: u64) -> u32 {
    // SAFETY: managed memory is the host's.
    unsafe { *std::ptr::with_exposed_provenance::<u32>(ptr as usize) }
}

/// `cudaLaunchAttribute`
#[repr(C)]
pub(crate) struct Attribute {
    id: u32,
    padding: u32,
    value: [u32; 16],
}

impl Attribute {
    /// One whose value begins with these numbers.
    pub(crate) fn new(id: u32, [a, b, c]: [u32; 3]) -> Self {
        let mut value = [0; 16];
        value[..3].copy_from_slice(&[a, b, c]);
        let padding = 0;
        Self { id, padding, value }
    }
}

/// `cudaLaunchConfig_t`
#[repr(C)]
struct Config {
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: usize,
    attributes: *const Attribute,
    count: u32,
}

/// Launches `add_one` with attributes.
///
/// # Safety
/// As the kernel asks for.
pub(crate) unsafe fn launch_with(
    cuda: &Cuda,
    kernel: usize,
    blocks: u32,
    stream: usize,
    ptr: u64,
    attributes: &[Attribute],
) -> c_int {
    let count = 1u32;
    let args: [*const c_void; 2] = [(&raw const ptr).cast(), (&raw const count).cast()];
    let config = Config {
        grid: Dim3(blocks, 1, 1),
        block: Dim3(1, 1, 1),
        shared: 0,
        stream,
        attributes: attributes.as_ptr(),
        count: attributes.len() as u32,
    };
    let name = "cudaLaunchKernelExC";
    // SAFETY: by this function's contract.
    unsafe { cuda.f3(name, &raw const config, kernel, args.as_ptr()) }
}
