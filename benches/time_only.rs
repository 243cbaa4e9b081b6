//! What a modelled time costs against the size of its shape: CPU time of `dgx sweep --time-only`
//! on shapes that are made of the same tiles, each eight times the one before, less that of one
//! that takes next to nothing. It should hardly grow: CTAs that do the same are replayed once.
//!
//! `cargo bench --bench time_only` takes less than a minute.

mod support;

use std::path::Path;
use std::process::Command;

use support::observed;

const CONTENDERS: [&str; 2] = ["interleaved", "sequential"];
/// Tokens; a tile is 128 of them.
const TOKENS: [u32; 3] = [256, 2048, 16384];

/// Seconds of CPU that the times of all contenders on one shape take.
fn sweep(folder: &Path, [m, n, k]: [u32; 3]) -> f64 {
    let round = folder.join(format!("m{m}.toml"));
    let text = format!(
        "question = \"What does a time cost?\"\ncontenders = {CONTENDERS:?}\n\
         baseline = \"sequential\"\nshapes = [{{ m = {m}, n = {n}, k = {k} }}]\n"
    );
    std::fs::write(&round, text).expect("a temporary folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
    command
        .arg("sweep")
        .arg(&round)
        .args(["--backend", "emu", "--time-only", "--variants", "variants"])
        .arg("--results")
        .arg(folder);
    observed(&mut command).0.as_secs_f64()
}

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let least = [128, 128, 512];
    // The first one compiles.
    sweep(folder.path(), least);
    let base = sweep(folder.path(), least);
    println!("start, plan and the smallest shape: {base:.2} s of CPU");
    let mut before: Option<f64> = None;
    for m in TOKENS {
        let cost = (sweep(folder.path(), [m, 4096, 7168]) - base).max(0.01);
        let ratio = before.map_or(String::new(), |before| format!(", {:.2} x", cost / before));
        println!("{m} x 4096 x 7168: {cost:.2} s{ratio}");
        before = Some(cost);
    }
}
