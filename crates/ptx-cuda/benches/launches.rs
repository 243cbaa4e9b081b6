//! What a launch of an empty kernel costs a program: 20 µs at most, over a hundred thousand.

use std::ffi::{CString, c_char, c_int, c_void};
use std::hint::black_box;
use std::ptr::null;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use ptx_cuda as _;

const PTX: &str =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry empty()\n{\nret;\n}\n";

unsafe extern "C" {
    fn cuInit(flags: u32) -> c_int;
    fn cuCtxCreate_v2(context: *mut usize, flags: u32, device: c_int) -> c_int;
    fn cuModuleLoadData(module: *mut usize, image: *const c_char) -> c_int;
    fn cuModuleGetFunction(function: *mut usize, module: usize, name: *const c_char) -> c_int;
    fn cuCtxSynchronize() -> c_int;
    fn cuLaunchKernel(
        function: usize,
        grid_x: u32,
        grid_y: u32,
        grid_z: u32,
        block_x: u32,
        block_y: u32,
        block_z: u32,
        shared: u32,
        stream: usize,
        each: *const *const c_void,
        extra: *const c_void,
    ) -> c_int;
}

/// Launches in a row.
const MANY: u32 = 100_000;

/// What each of them may take.
const LIMIT: Duration = Duration::from_micros(20);

fn launch(function: usize) {
    // SAFETY: the kernel has no parameters.
    let code = unsafe { cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, null(), null()) };
    assert_eq!(code, 0);
}

fn launches(criterion: &mut Criterion) {
    let (mut context, mut module, mut function) = (0, 0, 0);
    let text = CString::new(PTX).expect("no zero");
    // SAFETY: as the API asks for.
    unsafe {
        assert_eq!(cuInit(0), 0);
        assert_eq!(cuCtxCreate_v2(&raw mut context, 0, 0), 0);
        assert_eq!(cuModuleLoadData(&raw mut module, text.as_ptr()), 0);
        let name = c"empty".as_ptr();
        assert_eq!(cuModuleGetFunction(&raw mut function, module, name), 0);
    }
    criterion.bench_function("empty kernel", |bench| {
        bench.iter(|| launch(black_box(function)));
    });
    let began = Instant::now();
    (0..MANY).for_each(|_| launch(function));
    // SAFETY: there is a context.
    assert_eq!(unsafe { cuCtxSynchronize() }, 0);
    let each = began.elapsed() / MANY;
    println!("{MANY} launches in a row: {each:.1?} each");
    assert!(each <= LIMIT, "more than {LIMIT:?}");
}

criterion_group!(benches, launches);
criterion_main!(benches);
