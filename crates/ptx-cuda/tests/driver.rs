//! What the driver API has and the runtime API has not: virtual memory and the linker.

mod cuda;

use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};

use cuda::{Cuda, PTX};

const PIECE: usize = 2 << 20;

/// Makes a context and loads `add_one` by way of the linker.
///
/// # Safety
/// The library must be there.
unsafe fn linked(cuda: &Cuda) -> usize {
    let (mut context, mut link, mut module, mut function) = (0usize, 0usize, 0usize, 0usize);
    let (mut image, mut bytes) = (null::<c_void>(), 0usize);
    let add: unsafe extern "C" fn(
        usize,
        c_int,
        *const u8,
        usize,
        *const i8,
        u32,
        *mut c_int,
        *mut c_void,
    ) -> c_int = cuda.symbol("cuLinkAddData_v2");
    // SAFETY: as the API asks for.
    unsafe {
        assert_eq!(cuda.f1("cuInit", 0u32), 0);
        let flags = (0u32, 0 as c_int);
        assert_eq!(
            cuda.f3("cuCtxCreate_v2", &raw mut context, flags.0, flags.1),
            0
        );
        let (none, nothing) = (null_mut::<c_int>(), null_mut::<c_void>());
        assert_eq!(
            cuda.f4("cuLinkCreate_v2", 0u32, none, nothing, &raw mut link),
            0
        );
        let text = PTX.as_bytes();
        let give = |kind| {
            add(
                link,
                kind,
                text.as_ptr(),
                text.len(),
                null(),
                0,
                none,
                nothing,
            )
        };
        assert_eq!(give(0), 801, "machine code");
        assert_eq!(give(1), 0);
        assert_eq!(
            cuda.f3("cuLinkComplete", link, &raw mut image, &raw mut bytes),
            0
        );
        assert_eq!(cuda.f2("cuModuleLoadData", &raw mut module, image), 0);
        assert_eq!(cuda.f1("cuLinkDestroy", link), 0);
        let name = c"add_one".as_ptr();
        assert_eq!(
            cuda.f3("cuModuleGetFunction", &raw mut function, module, name),
            0
        );
    }
    function
}

/// Launches `add_one` on one number.
///
/// # Safety
/// The number must be there.
unsafe fn add_one(cuda: &Cuda, function: usize, ptr: u64) -> c_int {
    let count = 1u32;
    let args: [*const c_void; 2] = [(&raw const ptr).cast(), (&raw const count).cast()];
    // SAFETY: by this function's contract.
    unsafe { cuda.launch_function(function, 32, &args) }
}

#[test]
fn memory_is_mapped_where_addresses_were_reserved() {
    let cuda = Cuda::load();
    let reserve: unsafe extern "C" fn(*mut u64, usize, usize, u64, u64) -> c_int =
        cuda.symbol("cuMemAddressReserve");
    let map: unsafe extern "C" fn(u64, usize, usize, usize, u64) -> c_int = cuda.symbol("cuMemMap");
    let (mut ptr, mut memory) = (0u64, [0usize; 2]);
    // Pinned memory of device 0, with no way to give it to others.
    let prop = [1u32, 0, 1, 0, 0, 0, 0, 0];
    let access = [1 as c_int, 0, 3];
    // SAFETY: as the API asks for.
    unsafe {
        let function = linked(&cuda);
        assert_eq!(reserve(&raw mut ptr, PIECE + 1, 0, 0, 0), 1, "no multiple");
        assert_eq!(reserve(&raw mut ptr, 3 * PIECE, 0, 0, 0), 0);
        let create =
            |to: *mut usize, bytes: usize| cuda.f4("cuMemCreate", to, bytes, prop.as_ptr(), 0u64);
        assert_eq!(create(&raw mut memory[0], 1 << 40), 2, "too much");
        assert_eq!(create(&raw mut memory[0], PIECE), 0);
        assert_eq!(create(&raw mut memory[1], PIECE), 0);
        assert_eq!(map(ptr, PIECE, 0, memory[0], 0), 0);
        assert_eq!(map(ptr, PIECE, 0, memory[1], 0), 1, "mapped already");
        assert_eq!(map(ptr + PIECE as u64, PIECE, 0, memory[1], 0), 0);
        let set =
            |at: u64, bytes: usize| cuda.f4("cuMemSetAccess", at, bytes, access.as_ptr(), 1usize);
        assert_eq!(set(ptr, 3 * PIECE), 1, "a piece without memory");
        assert_eq!(set(ptr, 2 * PIECE), 0);
        assert_eq!(
            cuda.f3("cuMemsetD8_v2", ptr, 1u8, 2 * PIECE),
            0,
            "over both pieces"
        );
        let last = ptr + 2 * PIECE as u64 - 4;
        assert_eq!(add_one(&cuda, function, last), 0);
        let mut number = 0u32;
        assert_eq!(cuda.f3("cuMemcpyDtoH_v2", &raw mut number, last, 4usize), 0);
        assert_eq!(number, 0x0101_0102);
        // The same memory at another address.
        assert_eq!(map(ptr + 2 * PIECE as u64, PIECE, 0, memory[1], 0), 0);
        assert_eq!(set(ptr + 2 * PIECE as u64, PIECE), 0);
        let again = ptr + 3 * PIECE as u64 - 4;
        assert_eq!(
            cuda.f3("cuMemcpyDtoH_v2", &raw mut number, again, 4usize),
            0
        );
        assert_eq!(number, 0x0101_0102);
        assert_eq!(cuda.f2("cuMemAddressFree", ptr, 3 * PIECE), 1, "in use");
        assert_eq!(cuda.f2("cuMemUnmap", ptr, 3 * PIECE), 0);
        assert_eq!(cuda.f3("cuMemcpyDtoH_v2", &raw mut number, last, 4usize), 1);
        assert_eq!(cuda.f1("cuMemRelease", memory[0]), 0);
        assert_eq!(map(ptr, PIECE, 0, memory[1], 0), 0);
        for code in [0, 1] {
            assert_eq!(cuda.f1("cuMemRelease", memory[1]), code, "mapped");
        }
        assert_eq!(cuda.f2("cuMemUnmap", ptr, PIECE), 0);
        for memory in memory {
            assert_eq!(cuda.f1("cuMemRelease", memory), 1, "twice");
        }
        assert_eq!(cuda.f2("cuMemAddressFree", ptr, 3 * PIECE), 0);
        // What is left goes with the context.
        assert_eq!(create(&raw mut memory[0], PIECE), 0);
        assert_eq!(cuda.f1("cuDevicePrimaryCtxReset_v2", 0 as c_int), 0);
        assert_eq!(cuda.f1("cuMemRelease", memory[0]), 1);
    }
}

#[test]
fn all_memory_of_the_device_counts() {
    let cuda = Cuda::load();
    let prop = [1u32, 0, 1, 0, 0, 0, 0, 0];
    let (mut context, mut free, mut all) = (0usize, 0usize, 0usize);
    let (mut memory, mut ptr) = (0usize, 0u64);
    // SAFETY: as the API asks for, or refused.
    unsafe {
        assert_eq!(cuda.f1("cuInit", 0u32), 0);
        let made = cuda.f3("cuCtxCreate_v2", &raw mut context, 0u32, 0 as c_int);
        assert_eq!(made, 0);
        let info = cuda.f2("cuMemGetInfo_v2", &raw mut free, &raw mut all);
        assert_eq!(info, 0);
        let nearly = free / PIECE * PIECE;
        let create = "cuMemCreate";
        let made = cuda.f4(create, &raw mut memory, nearly, prop.as_ptr(), 0u64);
        assert_eq!(made, 0);
        let mut allocate = || cuda.f2("cuMemAlloc_v2", &raw mut ptr, PIECE);
        assert_eq!(allocate(), 2, "all is taken");
        assert_eq!(cuda.f1("cuMemRelease", memory), 0);
        assert_eq!(allocate(), 0);
        assert_eq!(cuda.f1("cuMemFree_v2", ptr), 0);
        assert_eq!(cuda.f1("cuCtxDestroy_v2", context), 0);
    }
}

#[test]
fn fills_of_rows_wait_for_their_stream() {
    let cuda = Cuda::load();
    // SAFETY: as the API asks for.
    unsafe {
        let ptr = cuda::managed(&cuda);
        let (mut stream, mut graph) = (0usize, 0usize);
        assert_eq!(cuda.f1("cudaStreamCreate", &raw mut stream), 0);
        let fill = |name: &str, value: u32, stream: usize| {
            cuda.f6(name, ptr, 16usize, value, 2usize, 2usize, stream)
        };
        assert_eq!(fill("cuMemsetD2D8Async", 3, 0), 0);
        assert_eq!((cuda::number(ptr), cuda::number(ptr + 16)), (0x303, 0x303));
        assert_eq!(fill("cuMemsetD2D16Async", 5, 0), 0);
        assert_eq!(cuda::number(ptr + 16), 0x5_0005);
        assert_eq!(cuda.f2("cudaStreamBeginCapture", stream, 0 as c_int), 0);
        assert_eq!(fill("cuMemsetD2D32Async", 7, stream), 0);
        assert_eq!(cuda::number(ptr), 0x5_0005, "captured");
        assert_eq!(cuda.f2("cudaStreamEndCapture", stream, &raw mut graph), 0);
        assert_eq!(cuda.f1("cudaGraphDestroy", graph), 0);
        assert_eq!(fill("cuMemsetD2D32Async_ptsz", 7, 0), 0);
        assert_eq!((cuda::number(ptr + 4), cuda::number(ptr + 20)), (7, 7));
        assert_eq!(cuda.f1("cudaStreamDestroy", stream), 0);
        assert_eq!(cuda.f1("cudaFree", ptr), 0);
    }
}
