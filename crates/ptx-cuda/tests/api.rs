//! Both APIs as a program calls them: through C, from the shared library.

mod cuda;

use std::ffi::{CString, c_int, c_void};
use std::ptr::null;

use cuda::{Cuda, PTX, container, wrapper};

/// Copies from the host to the device, and back.
const TO_DEVICE: c_int = 1;
const TO_HOST: c_int = 2;

#[test]
fn a_program_of_the_driver_api_loads_ptx_and_launches_it() {
    let cuda = Cuda::load();
    let (mut context, mut module, mut function) = (0usize, 0usize, 0usize);
    let mut ptr = 0u64;
    let text = CString::new(PTX).expect("no zero");
    let mut numbers = [5u32, 6, 7, 8];
    // SAFETY: as the API asks for.
    unsafe {
        assert_eq!(cuda.f1("cuInit", 0u32), 0);
        assert_eq!(
            cuda.f2("cuMemAlloc_v2", &raw mut ptr, 16usize),
            201,
            "no context"
        );
        assert_eq!(
            cuda.f3("cuCtxCreate_v2", &raw mut context, 0u32, 0 as c_int),
            0
        );
        assert_eq!(
            cuda.f2("cuModuleLoadData", &raw mut module, text.as_ptr()),
            0
        );
        let name = c"add_one".as_ptr();
        assert_eq!(
            cuda.f3("cuModuleGetFunction", &raw mut function, module, name),
            0
        );
        // CUB chooses its kernels by this, which is the architecture and not `.version`.
        let (mut target, attribute) = (0 as c_int, 5 as c_int);
        let of = (&raw mut target, attribute, function);
        assert_eq!(cuda.f3("cuFuncGetAttribute", of.0, of.1, of.2), 0);
        assert_eq!(target, 90);
        let missing = c"none".as_ptr();
        assert_eq!(
            cuda.f3("cuModuleGetFunction", &raw mut context, module, missing),
            500
        );
        assert_eq!(cuda.f2("cuMemAlloc_v2", &raw mut ptr, 16usize), 0);
        assert_eq!(
            cuda.f3("cuMemcpyHtoD_v2", ptr, numbers.as_ptr(), 16usize),
            0
        );
        let count = 3u32;
        let args: [*const c_void; 2] = [(&raw const ptr).cast(), (&raw const count).cast()];
        assert_eq!(cuda.launch_function(function, 32, &args), 0);
        assert_eq!(cuda.launch_function(function, 2048, &args), 1);
        assert_eq!(
            cuda.f3("cuMemcpyDtoH_v2", numbers.as_mut_ptr(), ptr, 16usize),
            0
        );
        assert_eq!(cuda.f1("cuMemFree_v2", ptr), 0);
        assert_eq!(cuda.f1("cuMemFree_v2", ptr), 1, "twice");
        assert_eq!(cuda.f1("cuModuleUnload", module), 0);
        assert_eq!(cuda.launch_function(function, 32, &args), 400);
    }
    assert_eq!(numbers, [6, 7, 8, 8]);
}

#[test]
fn entry_points_are_found_unless_they_are_missing() {
    let cuda = Cuda::load();
    let mut found = null::<c_void>();
    let mut get = |name: &std::ffi::CStr, version: c_int| {
        let mut status = -1;
        let get: unsafe extern "C" fn(
            *const i8,
            *mut *const c_void,
            c_int,
            u64,
            *mut c_int,
        ) -> c_int = cuda.symbol("cuGetProcAddress_v2");
        // SAFETY: as the API asks for.
        let code = unsafe {
            get(
                name.as_ptr().cast(),
                &raw mut found,
                version,
                0,
                &raw mut status,
            )
        };
        (code, status, found)
    };
    let of = |name: &str| cuda.symbol::<*const c_void>(name);
    assert_eq!(get(c"cuMemAlloc", 12_000), (0, 0, of("cuMemAlloc_v2")));
    assert_eq!(get(c"cuCtxCreate", 11_000), (0, 0, of("cuCtxCreate_v2")));
    assert_eq!(get(c"cuCtxCreate", 13_000), (0, 0, of("cuCtxCreate_v4")));
    assert_eq!(get(c"cuMipmappedArrayCreate", 13_000), (0, 1, null()));
    assert_eq!(get(c"cuGraphAddKernelNode", 11_000), (0, 2, null()), "old");
    assert_eq!(get(c"cuserid", 13_000), (0, 1, null()), "of the C library");
    assert_eq!(get(c"cuMemAlloc", 14_000).0, 1, "newer than the driver");
    // SAFETY: it takes what it takes, and looks at nothing.
    assert_eq!(unsafe { cuda.f1("cuMipmappedArrayCreate", 0usize) }, 801);
}

/// `cudaKernelNodeParams`
#[repr(C)]
struct NodeParams {
    kernel: usize,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    args: *const *const c_void,
    extra: usize,
}

impl Default for NodeParams {
    fn default() -> Self {
        Self {
            kernel: 0,
            grid: [0; 3],
            block: [0; 3],
            shared: 0,
            args: null(),
            extra: 0,
        }
    }
}

#[test]
fn a_registered_kernel_is_launched_captured_and_replayed() {
    let cuda = Cuda::load();
    let kernel = cuda.register(&container(1, PTX.as_bytes()));
    let (mut ptr, mut stream, mut graph, mut exec) = (0u64, 0usize, 0usize, 0usize);
    // SAFETY: as the API asks for.
    unsafe {
        assert_eq!(cuda.f3("cudaMallocManaged", &raw mut ptr, 16usize, 1u32), 0);
        let numbers = std::ptr::with_exposed_provenance_mut::<[u32; 4]>(ptr as usize);
        *numbers = [1, 2, 3, 4];
        assert_eq!(cuda.launch(kernel, 1, 32, ptr, 4, 0), 0);
        assert_eq!(*numbers, [2, 3, 4, 5], "managed memory is the host's");
        assert_eq!(cuda.f1("cudaStreamCreate", &raw mut stream), 0);
        assert_eq!(cuda.f2("cudaStreamBeginCapture", stream, 0 as c_int), 0);
        assert_eq!(cuda.launch(kernel, 1, 32, ptr, 2, stream), 0);
        assert_eq!(cuda.launch(kernel, 1, 32, ptr, 1, stream), 0);
        assert_eq!(*numbers, [2, 3, 4, 5], "nothing runs while it is captured");
        assert_eq!(cuda.f2("cudaStreamEndCapture", stream, &raw mut graph), 0);
        assert_eq!(
            cuda.f3("cudaGraphInstantiate", &raw mut exec, graph, 0u64),
            0
        );
        for _ in 0..2 {
            assert_eq!(cuda.f2("cudaGraphLaunch", exec, stream), 0);
        }
        assert_eq!(*numbers, [6, 5, 4, 5]);
        let (mut nodes, mut count) = ([0usize; 2], 2usize);
        let list = (nodes.as_mut_ptr(), &raw mut count);
        assert_eq!(cuda.f3("cudaGraphGetNodes", graph, list.0, list.1), 0);
        assert_eq!(count, 2);
        let mut params = NodeParams::default();
        let get = "cudaGraphKernelNodeGetParams";
        assert_eq!(cuda.f2(get, nodes[1], &raw mut params), 0);
        assert_eq!((params.kernel, params.block[0]), (kernel, 32));
        let args = std::slice::from_raw_parts(params.args, 2);
        assert_eq!(*(args[0] as *const u64), ptr);
        assert_eq!(*(args[1] as *const u32), 1, "of the second launch");
        let other = "cudaGraphMemsetNodeGetParams";
        assert_eq!(cuda.f2(other, nodes[1], &raw mut params), 1, "no memset");
        assert_eq!(cuda.f1("cudaStreamDestroy", stream), 0);
        assert_eq!(
            cuda.launch(kernel, 1, 32, ptr, 4, stream),
            400,
            "a destroyed stream"
        );
        assert_eq!(cuda.f1("cudaFree", ptr), 0);
    }
}

#[test]
fn mistakes_get_the_codes_that_the_runtime_gives() {
    let cuda = Cuda::load();
    let kernel = cuda.register(&container(1, PTX.as_bytes()));
    let mut ptr = 0u64;
    let mut host = [0u32; 4];
    // SAFETY: as the API asks for, or refused.
    unsafe {
        assert_eq!(cuda.f2("cudaMalloc", &raw mut ptr, 1usize << 40), 2);
        assert_eq!(
            cuda.symbol::<unsafe extern "C" fn() -> c_int>("cudaGetLastError")(),
            2
        );
        assert_eq!(
            cuda.symbol::<unsafe extern "C" fn() -> c_int>("cudaGetLastError")(),
            0
        );
        assert_eq!(cuda.f2("cudaMalloc", &raw mut ptr, 16usize), 0);
        assert_eq!(cuda.launch(kernel, 0, 32, ptr, 4, 0), 9, "no blocks");
        assert_eq!(cuda.launch(0x1234, 1, 32, ptr, 4, 0), 98, "no such kernel");
        let copy = |to: u64, from: u64, bytes: usize, kind: c_int| {
            cuda.f4("cudaMemcpy", to, from, bytes, kind)
        };
        let local = host.as_mut_ptr().expose_provenance() as u64;
        assert_eq!(copy(ptr, local, 20, TO_DEVICE), 1, "past its end");
        assert_eq!(copy(local, local, 4, TO_HOST), 1, "from the host");
        assert_eq!(copy(ptr, local, 16, 9), 21, "no direction");
        assert_eq!(copy(local, ptr, 16, TO_HOST), 0);
        assert_eq!(cuda.f0("cudaDeviceReset"), 0);
        assert_eq!(cuda.f1("cudaFree", ptr), 1, "it went with the context");
    }
}

#[test]
fn images_that_cannot_run_are_refused_by_their_own_codes() {
    let cuda = Cuda::load();
    let launch = |image: &[u8]| {
        let kernel = cuda.register(image);
        // SAFETY: the kernel is never found.
        unsafe { cuda.launch(kernel, 1, 1, 0, 0, 0) }
    };
    assert_eq!(launch(&container(2, b"\x7fELF")), 209, "machine code alone");
    assert_eq!(
        launch(&container(1, b".version 8.0\n.target sm_90\n!")),
        218
    );
    assert_eq!(
        launch(&container(1, &PTX.replace("sm_90", "sm_120").into_bytes())),
        209
    );
    let mut cut = container(1, PTX.as_bytes());
    cut[24] = 0xff;
    assert_eq!(launch(&cut), 200, "sizes that contradict each other");
    let image = wrapper(&container(1, PTX.as_bytes()));
    let mut module = 0usize;
    // SAFETY: as the API asks for.
    unsafe {
        assert_eq!(cuda.f1("cuInit", 0u32), 0);
        let mut context = 0usize;
        assert_eq!(
            cuda.f3("cuCtxCreate_v2", &raw mut context, 0u32, 0 as c_int),
            0
        );
        assert_eq!(
            cuda.f2("cuModuleLoadData", &raw mut module, image.as_ptr()),
            0
        );
    }
}

#[test]
fn a_child_made_by_fork_has_no_device() {
    let cuda = Cuda::load();
    let wait: unsafe extern "C" fn() -> c_int = cuda.symbol("cudaDeviceSynchronize");
    // SAFETY: the child calls one function that takes no lock, and ends.
    unsafe {
        assert_eq!(wait(), 0);
        match libc::fork() {
            0 => libc::_exit(wait()),
            child => {
                let mut status = 0;
                assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
                assert_eq!(libc::WEXITSTATUS(status), 3);
            }
        }
    }
}

#[test]
fn threads_may_launch_at_once() {
    const THREADS: u32 = 8;
    const LAUNCHES: u32 = 50;
    let cuda = Cuda::load();
    let kernel = cuda.register(&container(1, PTX.as_bytes()));
    let mut ptr = 0u64;
    // SAFETY: as the API asks for; each thread has numbers of its own.
    unsafe {
        let bytes = 4 * THREADS as usize;
        assert_eq!(cuda.f3("cudaMallocManaged", &raw mut ptr, bytes, 1u32), 0);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let cuda = &cuda;
                scope.spawn(move || {
                    for _ in 0..LAUNCHES {
                        let own = ptr + 4 * u64::from(thread);
                        assert_eq!(cuda.launch(kernel, 1, 1, own, 1, 0), 0);
                    }
                });
            }
        });
        let numbers = &*std::ptr::with_exposed_provenance::<[u32; THREADS as usize]>(ptr as usize);
        assert_eq!(*numbers, [LAUNCHES; THREADS as usize]);
        assert_eq!(cuda.f1("cudaFree", ptr), 0);
    }
}
