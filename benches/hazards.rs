//! What the search for hazards costs: CPU time of `dgx sweep` without a GPU where nobody listens
//! (`--hazards off`), where it is as usual, and where every CTA is listened to for everything
//! (`--hazards all`), of three designs in turn. Compilation and start, which all of them have, are
//! taken off. It fails where the mean ratio is more than the house allows.
//!
//! `cargo bench --bench hazards` takes a few minutes.

mod support;

use std::path::Path;
use std::process::Command;

use support::observed;

const CONTENDERS: [&str; 3] = ["sequential", "interleaved", "warp-specialized"];
const SHAPE: &str = "{ m = 512, n = 4096, k = 4096 }";
const LEAST: &str = "{ m = 64, n = 128, k = 512 }";

/// Seconds of CPU of one contender on one shape.
fn sweep(folder: &Path, contender: &str, shape: &str, hazards: Option<&str>) -> f64 {
    let round = folder.join("round.toml");
    let text = format!(
        "question = \"What does listening cost?\"\ncontenders = [{contender:?}]\n\
         baseline = {contender:?}\nshapes = [{shape}]\n"
    );
    std::fs::write(&round, text).expect("a temporary folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
    command
        .arg("sweep")
        .arg(&round)
        .args(["--backend", "emu", "--variants", "variants", "--results"])
        .arg(folder);
    if let Some(hazards) = hazards {
        command.args(["--hazards", hazards]);
    }
    observed(&mut command).0.as_secs_f64()
}

/// What may be spent: as usual, and on everything.
const MOST: [f64; 2] = [1.15, 10.0];

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    println!("{:>18} {:>10} {:>8} {:>8}", "", "plain, s", "usual", "all");
    let mut logs = [0.0; 2];
    for contender in CONTENDERS {
        // The first one compiles.
        sweep(folder.path(), contender, LEAST, Some("off"));
        let cost = |hazards: Option<&str>| {
            let turn = |shape| sweep(folder.path(), contender, shape, hazards);
            (turn(SHAPE) - turn(LEAST)).max(0.01)
        };
        let (plain, usual, all) = (cost(Some("off")), cost(None), cost(Some("all")));
        let (usual, all) = (usual / plain, all / plain);
        println!("{contender:>18} {plain:10.2} {usual:8.2} {all:8.2}");
        logs[0] += usual.ln();
        logs[1] += all.ln();
    }
    for (log, most) in logs.into_iter().zip(MOST) {
        let mean = (log / CONTENDERS.len() as f64).exp();
        assert!(mean <= most, "{mean:.2} times, more than {most}");
    }
}
