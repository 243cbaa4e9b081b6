//! The default job without a GPU as one ratio: CPU time of `dgx sweep configs/round4.toml`
//! (emulation, oracle and validation) over that of a plain f32 product of the same matrices, both
//! taken here and now, so that it means the same on every machine.
//!
//! `cargo bench --bench default_job` takes minutes; `DEFAULT_JOB=cell` takes one shape of each
//! kind, a dense and a ragged one.

use std::process::Command;
use std::time::Duration;

use gemm_common::Parallelism;

/// Dense m × n × k, and of ragged groups their m's sum: `configs/round4.toml`.
const SHAPES: [(&str, usize, usize, usize); 8] = [
    ("256x4096x7168", 256, 4096, 7168),
    ("512x4096x7168", 512, 4096, 7168),
    ("256x3072x4096", 256, 3072, 4096),
    ("512x3072x7168", 512, 3072, 7168),
    ("g8-k7168", 1024, 4096, 7168),
    ("g8-k2048", 1024, 7168, 2048),
    ("g2-k4096", 512, 3072, 4096),
    ("g2-k1536", 512, 4096, 1536),
];
const CELL: [&str; 2] = ["256x4096x7168", "g8-k2048"];
const CONTENDERS: u32 = 3;
/// Each contender multiplies two matrices on two distributions of data.
const PRODUCTS: u32 = 2 * 2;

/// CPU time of this process, or of the children it has waited for.
fn cpu_time(who: libc::c_int) -> Duration {
    // SAFETY: all-zero is a valid rusage, and the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        assert_eq!(libc::getrusage(who, &mut usage), 0, "a known `who`");
        usage
    };
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, 1000 * t.tv_usec as u32);
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// CPU time of one f32 product: the best of three.
fn product(m: usize, n: usize, k: usize) -> Duration {
    let (a, b) = (vec![1f32; m * k], vec![0.5f32; n * k]);
    let mut out = vec![0f32; m * n];
    let multiply = gemm_f32::gemm::f32::get_gemm_fn();
    let one = |_| {
        let began = cpu_time(libc::RUSAGE_SELF);
        // SAFETY: the strides describe exactly the three buffers.
        unsafe {
            multiply(
                n,
                m,
                k,
                out.as_mut_ptr(),
                n as isize,
                1,
                false,
                b.as_ptr(),
                1,
                k as isize,
                a.as_ptr(),
                k as isize,
                1,
                0.0,
                1.0,
                false,
                false,
                false,
                Parallelism::Rayon(0),
            );
        }
        cpu_time(libc::RUSAGE_SELF) - began
    };
    let best = (0..3).map(one).min().unwrap_or_default();
    assert_eq!(out[m * n - 1], 0.5 * k as f32, "the product is right");
    best
}

/// The round, or a copy of it with the shapes of [`CELL`] alone.
fn config(cell: bool, folder: &std::path::Path) -> String {
    let path = "configs/round4.toml";
    if !cell {
        return path.to_owned();
    }
    let text = std::fs::read_to_string(path).expect("run from the repository");
    let kept = |line: &str| {
        let shape = line.trim_start().starts_with("{ ") && line.contains("k = ");
        !shape || line.contains("{ m = 256, n = 4096") || line.contains(CELL[1])
    };
    let lines: Vec<&str> = text.lines().filter(|line| kept(line)).collect();
    let copy = folder.join("cell.toml");
    std::fs::write(&copy, lines.join("\n")).expect("a temporary folder");
    copy.display().to_string()
}

fn main() {
    let cell = std::env::var("DEFAULT_JOB").is_ok_and(|v| v == "cell");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let before = cpu_time(libc::RUSAGE_CHILDREN);
    let status = Command::new(env!("CARGO_BIN_EXE_dgx"))
        .args(["sweep", &config(cell, folder.path()), "--backend", "emu"])
        .args(["--results", &folder.path().display().to_string()])
        .status()
        .expect("dgx starts");
    assert!(status.success(), "{status}");
    let job = cpu_time(libc::RUSAGE_CHILDREN) - before;
    let plain: Duration = SHAPES
        .into_iter()
        .filter(|(name, ..)| !cell || CELL.contains(name))
        .map(|(_, m, n, k)| product(m, n, k) * PRODUCTS * CONTENDERS)
        .sum();
    let (job, plain) = (job.as_secs_f64(), plain.as_secs_f64());
    println!("sweep {job:.1} s of CPU, plain f32 products {plain:.1} s");
    println!("ratio {:.1}", job / plain);
}
