//! What the search for hazards costs: CPU time of `dgx sweep` without a GPU where nobody listens
//! (`--hazards off`), where a sample of the CTAs is listened to, as it usually is, and where all
//! are (`--hazards all`), of three designs in turn. Compilation and start, which all of them have,
//! are taken off.
//!
//! `cargo bench --bench hazards` takes a few minutes.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

const CONTENDERS: [&str; 3] = ["sequential", "pipelined", "warp-specialized"];
const SHAPE: &str = "{ m = 512, n = 1024, k = 2048 }";
const LEAST: &str = "{ m = 64, n = 128, k = 512 }";

/// CPU time of the children waited for so far.
fn cpu_time() -> Duration {
    // SAFETY: all-zero is a valid rusage, and the call fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let told = libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        assert_eq!(told, 0, "a known `who`");
        usage
    };
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, 1000 * t.tv_usec as u32);
    time(usage.ru_utime)
}

/// Seconds of user time of one contender on one shape.
fn sweep(folder: &Path, contender: &str, shape: &str, hazards: Option<&str>) -> f64 {
    let round = folder.join("round.toml");
    let text = format!(
        "question = \"What does listening cost?\"\ncontenders = [{contender:?}]\n\
         baseline = {contender:?}\nshapes = [{shape}]\n"
    );
    std::fs::write(&round, text).expect("a temporary folder");
    let before = cpu_time();
    let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
    command
        .arg("sweep")
        .arg(&round)
        .args(["--backend", "emu", "--variants", "variants", "--results"])
        .arg(folder);
    if let Some(hazards) = hazards {
        command.args(["--hazards", hazards]);
    }
    let output = command.output().expect("dgx starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}", output.status);
    (cpu_time() - before).as_secs_f64()
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
