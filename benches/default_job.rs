//! The default job without a GPU as one ratio: CPU time of `dgx sweep configs/round4.toml`
//! (emulation, oracle and validation) over that of plain f32 products of the same matrices, one
//! for each product of each call that a validation made, both taken here and now, so that it means
//! the same on every machine. Beside it the same round for a B200, which must not be slower.
//!
//! `cargo bench --bench default_job` takes minutes; `DEFAULT_JOB=cell` takes one shape of each
//! kind, a dense and a ragged one.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use gemm_common::Parallelism;
use serde::Deserialize;
use support::{cpu_time, observed};
use toml::Spanned;

const ROUND: &str = "configs/round4.toml";
const CELL: [&str; 2] = ["256x4096x7168", "g8-k2048"];
/// The matrices A is multiplied with.
const WEIGHTS: u32 = 2;

/// What of the round decides how much is to be computed.
#[derive(Deserialize)]
struct Round {
    shapes: Vec<Spanned<Shape>>,
}

#[derive(Deserialize)]
struct Shape {
    name: Option<String>,
    m: Rows,
    n: usize,
    k: usize,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Rows {
    Dense(usize),
    Groups(Vec<usize>),
}

impl Shape {
    fn rows(&self) -> usize {
        match &self.m {
            Rows::Dense(m) => *m,
            Rows::Groups(all) => all.iter().sum(),
        }
    }

    fn name(&self) -> String {
        let dense = || format!("{}x{}x{}", self.rows(), self.n, self.k);
        self.name.clone().unwrap_or_else(dense)
    }
}

fn read(path: &Path) -> Round {
    let text = std::fs::read_to_string(path).expect("run from the repository");
    toml::from_str(&text).expect("a round")
}

/// CPU time of one f32 product of a shape, the rows of its groups taken together: the best of
/// three.
fn product(shape: &Shape) -> Duration {
    let (m, n, k) = (shape.rows(), shape.n, shape.k);
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

/// A copy of the round with the shapes of [`CELL`] alone.
fn cell_of(round: &Round, folder: &Path) -> PathBuf {
    let mut text = std::fs::read_to_string(ROUND).expect("run from the repository");
    for shape in round.shapes.iter().rev() {
        if !CELL.contains(&shape.get_ref().name().as_str()) {
            let span = shape.span();
            let comma = text[span.end..].find(',').expect("a list of shapes");
            text.replace_range(span.start..=span.end + comma, "");
        }
    }
    let copy = folder.join("cell.toml");
    std::fs::write(&copy, text).expect("a temporary folder");
    copy
}

/// A job's CPU time, and what it printed beside its results.
struct Job {
    seconds: f64,
    log: String,
}

impl Job {
    /// Emulated for a target.
    fn run(round: &Path, target: &str, results: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
        command
            .arg("sweep")
            .arg(round)
            .args(["--backend", "emu", "--target", target, "--results"])
            .arg(results)
            .env("DGX_LOG", "trace");
        let (time, log) = observed(&mut command);
        Self {
            seconds: time.as_secs_f64(),
            log,
        }
    }

    /// The calls of all contenders on a shape: each cell is called as often as its validation
    /// decides, which depends on how long a call takes.
    fn calls(&self, shape: &Shape) -> u32 {
        let ending = format!(" on {}", shape.name());
        let is_call = |line: &&str| line.contains("] call ") && line.ends_with(&ending);
        self.log.lines().filter(is_call).count() as u32
    }

    /// Its CPU time over that of plain products.
    fn report(&self, target: &str, products: &[(&Shape, Duration)]) {
        let calls = products.iter().map(|(shape, _)| self.calls(shape));
        let calls: Vec<u32> = calls.collect();
        let times = calls.iter().zip(products);
        let plain: Duration = times
            .map(|(calls, (_, time))| *time * WEIGHTS * *calls)
            .sum();
        let (job, plain) = (self.seconds, plain.as_secs_f64());
        let calls: u32 = calls.iter().sum();
        println!(
            "{target}: sweep {job:.1} s of CPU, {calls} calls; plain f32 products {plain:.1} s; \
             ratio {:.1}",
            job / plain
        );
    }
}

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut path = PathBuf::from(ROUND);
    let mut round = read(&path);
    if std::env::var("DEFAULT_JOB").is_ok_and(|v| v == "cell") {
        path = cell_of(&round, folder.path());
        round = read(&path);
        assert_eq!(round.shapes.len(), CELL.len());
    }
    let targets = ["h200", "b200"];
    let jobs = targets.map(|target| Job::run(&path, target, folder.path()));
    let shapes = round.shapes.iter().map(Spanned::get_ref);
    let products: Vec<(&Shape, Duration)> = shapes.map(|s| (s, product(s))).collect();
    for (target, job) in targets.iter().zip(&jobs) {
        job.report(target, &products);
    }
}
