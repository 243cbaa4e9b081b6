//! The shared library, and what a program gives it. Each test uses a part.

#![allow(dead_code)]

mod textures;

use std::ffi::{c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use libloading::Library;

/// Adds one to the first `n` numbers at `p`.
pub(crate) const PTX: &str = "
.version 8.0
.target sm_90
.address_size 64
.visible .entry add_one(.param .u64 p, .param .u32 n)
{
    .reg .u32 %r<4>;
    .reg .u64 %d<3>;
    .reg .pred %q;
    ld.param.u64 %d0, [p];
    ld.param.u32 %r0, [n];
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %q, %r1, %r0;
    @%q ret;
    mul.wide.u32 %d1, %r1, 4;
    add.u64 %d2, %d0, %d1;
    ld.global.u32 %r2, [%d2];
    add.u32 %r2, %r2, 1;
    st.global.u32 [%d2], %r2;
    ret;
}
";

/// `dim3`
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Dim3(u32, u32, u32);

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
                #[allow(non_camel_case_types, dead_code)]
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
}

impl Cuda {
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
        let image = Box::leak(wrapper(container).into_boxed_slice());
        let shadow = Box::leak(Box::new(0u64));
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
        let shadow: *const u64 = shadow;
        // SAFETY: what nvcc's host code does, with memory that lives on.
        unsafe {
            let handle = register(image.as_ptr().cast());
            let name = c"add_one".as_ptr().cast();
            function(handle, shadow, shadow, name, -1, 0, 0, 0, 0, 0);
        }
        shadow.addr()
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
