//! What a card refuses, and what it keeps apart.

mod cuda;

use std::ffi::{CString, c_int, c_void};
use std::ptr::null;

use cuda::{Attribute, Cuda, Dim3, PTX, container, launch_with, managed, number};

#[test]
fn the_runtime_keeps_the_primary_context() {
    let cuda = Cuda::load();
    let (mut context, mut flags, mut active) = (0usize, 0u32, 0 as c_int);
    // SAFETY: as the API asks for.
    unsafe {
        let ptr = managed(&cuda);
        assert_eq!(cuda.f1("cuInit", 0u32), 0);
        let retained = cuda.f2("cuDevicePrimaryCtxRetain", &raw mut context, 0 as c_int);
        assert_eq!(retained, 0);
        assert_eq!(cuda.f1("cuDevicePrimaryCtxRelease_v2", 0 as c_int), 0);
        let state = (&raw mut flags, &raw mut active);
        let asked = cuda.f3("cuDevicePrimaryCtxGetState", 0 as c_int, state.0, state.1);
        assert_eq!((asked, active), (0, 1));
        assert_eq!(cuda.f1("cudaFree", ptr), 0);
    }
}

#[test]
fn a_context_that_is_destroyed_loses_all() {
    let cuda = Cuda::load();
    let (mut context, mut ptr, mut free) = (0usize, 0u64, [0usize; 2]);
    let mut all = 0usize;
    // SAFETY: as the API asks for.
    unsafe {
        assert_eq!(cuda.f1("cuInit", 0u32), 0);
        let make = |to: *mut usize| cuda.f3("cuCtxCreate_v2", to, 0u32, 0 as c_int);
        assert_eq!(make(&raw mut context), 0);
        for (turn, free) in free.iter_mut().enumerate() {
            let of = (&raw mut *free, &raw mut all);
            assert_eq!(cuda.f2("cuMemGetInfo_v2", of.0, of.1), 0);
            assert_eq!(cuda.f2("cuMemAlloc_v2", &raw mut ptr, 1usize << 30), 0);
            let uses = || {
                assert_eq!(cuda.f1("cuCtxSetCurrent", context), 0);
                assert_eq!(cuda.f1("cuCtxDestroy_v2", context), 0);
                assert_eq!(cuda.f1("cuCtxDestroy_v2", context), 201, "twice");
            };
            std::thread::scope(|scope| scope.spawn(uses).join()).expect("no panic");
            assert_eq!(cuda.f1("cuMemFree_v2", ptr), 709, "turn {turn}");
            assert_eq!(make(&raw mut context), 0);
            assert_eq!(cuda.f1("cuMemFree_v2", ptr), 1, "it went with its context");
        }
        assert_eq!(free[0], free[1]);
        assert_eq!(cuda.f1("cuCtxDestroy_v2", context), 0);
    }
}

#[test]
fn a_library_that_is_gone_leaves_no_kernel() {
    let cuda = Cuda::load();
    let shadow: *const u64 = Box::leak(Box::new(0));
    let twice = PTX.replace("add.u32 %r2, %r2, 1;", "add.u32 %r2, %r2, 2;");
    // SAFETY: as nvcc's host code does.
    unsafe {
        let ptr = managed(&cuda);
        let remove: unsafe extern "C" fn(usize) = cuda.symbol("__cudaUnregisterFatBinary");
        let first = cuda.register_at(&container(1, PTX.as_bytes()), shadow);
        assert_eq!(cuda.launch(shadow.addr(), 1, 1, ptr, 1, 0), 0);
        remove(first);
        assert_eq!(cuda.launch(shadow.addr(), 1, 1, ptr, 1, 0), 98);
        let second = cuda.register_at(&container(1, twice.as_bytes()), shadow);
        assert_eq!(cuda.launch(shadow.addr(), 1, 1, ptr, 1, 0), 0);
        assert_eq!(number(ptr), 3);
        remove(second);
        assert_eq!(cuda.f1("cudaFree", ptr), 0);
    }
}

#[test]
fn addresses_out_of_files_and_null_functions_are_not_followed() {
    let cuda = Cuda::load();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("module");
    std::fs::write(&path, cuda::wrapper(&[])).expect("a file");
    let path = CString::new(path.to_str().expect("text")).expect("no zero");
    let (mut context, mut module, mut graph, mut node) = (0usize, 0usize, 0usize, 0usize);
    let host = [0usize; 2];
    // SAFETY: as the API asks for, or refused.
    unsafe {
        assert_eq!(cuda.f1("cuInit", 0u32), 0);
        let made = cuda.f3("cuCtxCreate_v2", &raw mut context, 0u32, 0 as c_int);
        assert_eq!(made, 0);
        let loaded = cuda.f2("cuModuleLoad", &raw mut module, path.as_ptr());
        assert_eq!(loaded, 200);
        assert_eq!(cuda.f2("cuGraphCreate", &raw mut graph, 0u32), 0);
        let none = null::<usize>();
        let name = "cuGraphAddHostNode";
        let added = cuda.f5(name, &raw mut node, graph, none, 0usize, host.as_ptr());
        assert_eq!(added, 1);
        assert_eq!(cuda.f1("cuGraphDestroy", graph), 0);
        assert_eq!(cuda.f1("cuCtxDestroy_v2", context), 0);
    }
}

/// `CUDA_MEMCPY2D`: rows of 16 bytes in host memory, said to be of a kind, to an array.
fn to_array(kind: usize, from: &[u8], array: usize, width: usize, rows: usize) -> Vec<usize> {
    let address = from.as_ptr().expose_provenance();
    let from = [0, 0, kind, address, address, 0, 16];
    let to = [0, 0, 3, 0, 0, array, 0];
    from.into_iter().chain(to).chain([width, rows]).collect()
}

#[test]
fn copies_stay_inside_arrays() {
    let cuda = Cuda::load();
    let (mut array, host) = (0usize, [0u8; 256]);
    // `cudaChannelFormatDesc`: one float.
    let float = [32 as c_int, 0, 0, 0, 2];
    // SAFETY: as the API asks for, or refused.
    unsafe {
        let none = 0u32;
        let make: unsafe extern "C" fn(*mut usize, *const c_int, usize, usize, u32) -> c_int =
            cuda.symbol("cudaMallocArray");
        assert_eq!(make(&raw mut array, float.as_ptr(), 4, 2, none), 0);
        let copy = |x: usize, y: usize, width: usize, rows: usize| {
            let from = (host.as_ptr(), 64usize);
            let name = "cudaMemcpy2DToArray";
            cuda.f8(name, array, x, y, from.0, from.1, width, rows, 1 as c_int)
        };
        assert_eq!(copy(0, 0, 16, 2), 0);
        assert_eq!(copy(0, 0, 64, 1), 1, "a row has 16 bytes");
        assert_eq!(copy(4, 0, 16, 1), 1);
        assert_eq!(copy(0, 1, 16, 2), 1, "there are two rows");
        assert_eq!(copy(usize::MAX, 0, 16, 1), 1);
        let planar = |kind, width, rows| {
            let copy = to_array(kind, &host, array, width, rows);
            cuda.f1("cuMemcpy2D_v2", copy.as_ptr())
        };
        assert_eq!(planar(1, 16, 2), 0);
        assert_eq!(planar(4, 16, 2), 0, "any address");
        assert_eq!(planar(2, 16, 2), 1, "no address of the device");
        assert_eq!(planar(9, 16, 2), 1, "no such kind");
        assert_eq!(planar(1, 16, 3), 1);
        assert_eq!(cuda.f1("cudaFreeArray", array), 0);
    }
}

#[test]
fn sizes_that_no_address_has_are_refused() {
    let cuda = Cuda::load();
    let (mut ptr, mut pitch) = (0u64, 0usize);
    let mut host = [0u8; 16];
    // SAFETY: refused.
    unsafe {
        let ours = managed(&cuda);
        assert_eq!(cuda.f3("cuMemsetD32_v2", ours, 5u32, 1usize << 62), 1);
        let fill = "cudaMemset2D";
        let filled = cuda.f5(fill, ours, usize::MAX, 0 as c_int, 1usize, 1usize << 63);
        assert_eq!(filled, 1);
        assert_eq!(cuda.f2("cudaMalloc", &raw mut ptr, usize::MAX), 2);
        let place = (&raw mut ptr, &raw mut pitch);
        let made = cuda.f4("cudaMallocPitch", place.0, place.1, usize::MAX, 1usize);
        assert_eq!(made, 2);
        let register = "cudaHostRegister";
        assert_eq!(cuda.f3(register, host.as_mut_ptr(), usize::MAX, 0u32), 1);
        assert_eq!(cuda.f1("cudaFree", ours), 0);
    }
}

#[test]
fn large_clusters_and_shared_memory_are_asked_for_first() {
    let cuda = Cuda::load();
    let kernel = cuda.register(&container(1, PTX.as_bytes()));
    // SAFETY: as the API asks for, or refused.
    unsafe {
        let ptr = managed(&cuda);
        let launch = |blocks, ctas| {
            let size = Attribute::new(4, [ctas, 1, 1]);
            launch_with(&cuda, kernel, blocks, 0, ptr, &[size])
        };
        assert_eq!(launch(16, 8), 0);
        assert_eq!(launch(16, 16), 912);
        assert_eq!(launch(12, 8), 912, "no divisor");
        let set = |attribute: c_int, value: c_int| {
            cuda.f3("cudaFuncSetAttribute", kernel, attribute, value)
        };
        assert_eq!(set(14, 1), 0);
        assert_eq!(launch(16, 16), 0);
        assert_eq!(set(11, 2), 801, "a size of clusters");
        let launch: unsafe extern "C" fn(
            usize,
            Dim3,
            Dim3,
            *const *const c_void,
            usize,
            usize,
        ) -> c_int = cuda.symbol("cudaLaunchKernel");
        let count = 0u32;
        let args: [*const c_void; 2] = [(&raw const ptr).cast(), (&raw const count).cast()];
        let one = Dim3(1, 1, 1);
        assert_eq!(launch(kernel, one, one, args.as_ptr(), 64 << 10, 0), 1);
        assert_eq!(set(8, 64 << 10), 0);
        assert_eq!(launch(kernel, one, one, args.as_ptr(), 64 << 10, 0), 0);
        assert_eq!(cuda.f1("cudaFree", ptr), 0);
    }
}

#[test]
fn the_devices_own_pool_stays() {
    let cuda = Cuda::load();
    let (mut own, mut pool, mut current, mut ptr) = (0usize, 0usize, 0usize, 0u64);
    // `cudaMemPoolProps`: pinned, no handles, of device 0, at most 4096 bytes.
    let mut properties = [1u64, 1, 0, 4096, 0, 0, 0, 0, 0, 0, 0];
    // SAFETY: as the API asks for, or refused.
    unsafe {
        let device = 0 as c_int;
        let get = |name: &str, to: *mut usize| assert_eq!(cuda.f2(name, to, device), 0);
        get("cudaDeviceGetDefaultMemPool", &raw mut own);
        let create = "cudaMemPoolCreate";
        assert_eq!(cuda.f2(create, &raw mut pool, properties.as_ptr()), 0);
        assert_eq!(cuda.f2("cudaDeviceSetMemPool", device, pool), 0);
        get("cudaDeviceGetMemPool", &raw mut current);
        assert_eq!(current, pool);
        get("cudaDeviceGetDefaultMemPool", &raw mut current);
        assert_eq!(current, own);
        let mut allocate = |bytes: usize| cuda.f3("cudaMallocAsync", &raw mut ptr, bytes, 0usize);
        assert_eq!(allocate(8192), 2, "more than it may have");
        assert_eq!(cuda.f1("cudaMemPoolDestroy", pool), 0);
        assert_eq!(cuda.f1("cudaMemPoolDestroy", own), 1);
        assert_eq!(allocate(8192), 0);
        assert_eq!(cuda.f2("cudaFreeAsync", ptr, 0usize), 0);
        // Of the host.
        properties[1] = 2;
        assert_eq!(cuda.f2(create, &raw mut pool, properties.as_ptr()), 801);
    }
}

#[test]
fn the_heap_of_kernels_has_an_end() {
    let cuda = Cuda::load();
    let (heap, mut value) = (2 as c_int, 0usize);
    // SAFETY: as the API asks for, or refused.
    unsafe {
        let mut set = |bytes: usize| {
            let code = cuda.f2("cudaDeviceSetLimit", heap, bytes);
            assert_eq!(cuda.f2("cudaDeviceGetLimit", &raw mut value, heap), 0);
            (code, value)
        };
        assert_eq!(set(128 << 20), (0, 128 << 20));
        assert_eq!(set(129 << 20), (801, 128 << 20));
    }
}

#[test]
fn the_compiler_tells_its_errors_to_the_program() {
    let cuda = Cuda::load();
    let (mut context, mut module, mut log) = (0usize, 0usize, [7u8; 64]);
    let wrong = c".version 8.0\n.target sm_90\n!";
    // Buffers and sizes for words and for errors.
    let names = [3 as c_int, 4, 5, 6];
    let mut words = [7u8; 8];
    let mut values = [
        words.as_mut_ptr().expose_provenance(),
        8,
        log.as_mut_ptr().expose_provenance(),
        64,
    ];
    // SAFETY: as the API asks for.
    unsafe {
        assert_eq!(cuda.f1("cuInit", 0u32), 0);
        let made = cuda.f3("cuCtxCreate_v2", &raw mut context, 0u32, 0 as c_int);
        assert_eq!(made, 0);
        let load = "cuModuleLoadDataEx";
        let given = (names.as_ptr(), values.as_mut_ptr());
        let loaded = cuda.f5(
            load,
            &raw mut module,
            wrong.as_ptr(),
            4u32,
            given.0,
            given.1,
        );
        assert_eq!(loaded, 218);
        assert_eq!(cuda.f1("cuCtxDestroy_v2", context), 0);
    }
    assert_eq!((values[1], words[0]), (0, 0));
    assert!(log.starts_with(b"the PTX cannot be loaded"), "{log:?}");
    assert_eq!((values[3], log[63]), (63, 0), "as far as there is room");
}

#[test]
fn attributes_and_properties_agree() {
    let cuda = Cuda::load();
    let (mut properties, mut value) = ([0i32; 260], 0 as c_int);
    // SAFETY: as the API asks for.
    unsafe {
        let name = "cudaGetDeviceProperties";
        assert_eq!(cuda.f2(name, properties.as_mut_ptr(), 0 as c_int), 0);
        // Gathered textures, and surfaces of two dimensions.
        for attribute in [45 as c_int, 56] {
            let name = "cudaDeviceGetAttribute";
            assert_eq!(cuda.f3(name, &raw mut value, attribute, 0 as c_int), 0);
            assert!(value > 0 && properties.contains(&value), "{attribute}");
        }
    }
}

#[test]
fn what_no_compiler_accepts_is_refused_when_it_is_loaded() {
    let cuda = Cuda::load();
    let (mut context, mut module) = (0usize, 0usize);
    let text = |body: &str| {
        let head = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k()";
        CString::new(format!("{head}{{{body}}}")).expect("no zero")
    };
    let bodies = [
        (".shared .b8 x[49152]; ret;", 0),
        (".shared .b8 x[49168]; ret;", 218),
        ("bra nowhere;", 218),
        ("st.global.u32 [%rd9], 1; ret;", 218),
        (".reg .b32 a; .reg .b64 a; ret;", 218),
        // Others of its module may run.
        ("foo.bar; ret;", 0),
    ];
    // SAFETY: as the API asks for, or refused.
    unsafe {
        assert_eq!(cuda.f1("cuInit", 0u32), 0);
        let made = cuda.f3("cuCtxCreate_v2", &raw mut context, 0u32, 0 as c_int);
        assert_eq!(made, 0);
        for (body, code) in bodies {
            let text = text(body);
            let loaded = cuda.f2("cuModuleLoadData", &raw mut module, text.as_ptr());
            assert_eq!(loaded, code, "{body}");
        }
        // A container that claims more than there is.
        let mut claims = container(1, PTX.as_bytes());
        claims[8..16].copy_from_slice(&(1u64 << 44).to_le_bytes());
        let image = cuda::wrapper(&claims);
        let loaded = cuda.f2("cuModuleLoadData", &raw mut module, image.as_ptr());
        assert_eq!(loaded, 200);
        assert_eq!(cuda.f1("cuCtxDestroy_v2", context), 0);
    }
}

#[test]
fn flags_that_the_api_has_not_are_refused() {
    let cuda = Cuda::load();
    let mut made = 0usize;
    // SAFETY: refused.
    unsafe {
        let to = &raw mut made;
        assert_eq!(cuda.f3("cudaHostAlloc", to, 16usize, 8u32), 1);
        assert_eq!(cuda.f2("cudaStreamCreateWithFlags", to, 2u32), 1);
        assert_eq!(cuda.f2("cudaEventCreateWithFlags", to, 8u32), 1);
        assert_eq!(cuda.f2("cudaEventCreateWithFlags", to, 4u32), 1, "a clock");
        let kernel = cuda.register(&container(1, PTX.as_bytes()));
        let set = |value: c_int| cuda.f3("cudaFuncSetAttribute", kernel, 9 as c_int, value);
        assert_eq!((set(100), set(101)), (0, 1));
    }
}
