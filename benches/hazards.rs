//! What the search for hazards costs: CPU time of `dgx sweep` without a GPU where nobody listens
//! (`--hazards off`), where a sample of the CTAs is listened to, as it usually is, and where all
//! are (`--hazards all`), of three designs in turn. Compilation and start, which all of them have,
//! are taken off.
//!
//! `cargo bench --bench hazards` takes a few minutes.

mod support;

use std::path::Path;
use std::process::Command;

use support::cpu_time_of;

const CONTENDERS: [&str; 3] = ["sequential", "pipelined", "warp-specialized"];
const SHAPE: &str = "{ m = 512, n = 1024, k = 2048 }";
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
    cpu_time_of(&mut command).as_secs_f64()
}

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    println!("{:>18} {:>10} {:>8} {:>8}", "", "plain, s", "usual", "all");
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
    }
}
