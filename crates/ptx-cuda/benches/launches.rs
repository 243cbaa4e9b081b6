//! What a launch of an empty kernel costs a program under `dgx run`, which asks for a report: 20 µs at
//! most, over a hundred thousand, of CPU time, which other processes do not change.

use std::ffi::{CString, c_char, c_int, c_void};
use std::hint::black_box;
use std::ptr::null;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use ptx_cuda::report::REPORT;

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

/// CPU time of the process.
fn cpu_time() -> Duration {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a timespec for the call to fill.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut now) };
    assert_eq!(status, 0, "Linux has this clock");
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

fn launch(function: usize) {
    // SAFETY: the kernel has no parameters.
    let code = unsafe { cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, null(), null()) };
    assert_eq!(code, 0);
}

fn launches(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    // SAFETY: no other thread runs yet.
    unsafe { std::env::set_var(REPORT, folder.path()) };
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
    let began = cpu_time();
    (0..MANY).for_each(|_| launch(function));
    // SAFETY: there is a context.
    assert_eq!(unsafe { cuCtxSynchronize() }, 0);
    let each = (cpu_time() - began) / MANY;
    println!("{MANY} launches in a row: {each:.1?} each");
    let written = std::fs::read_dir(folder.path()).expect("a folder").count();
    assert_eq!(written, 1, "one process reports");
    assert!(each <= LIMIT, "more than {LIMIT:?}");
}

criterion_group!(benches, launches);
criterion_main!(benches);
