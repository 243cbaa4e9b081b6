//! Kernels that are correct only where a simple check would look, in the emulator.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::sweep::{Sweep, ended};

const FIXTURES: &str = "tests/fixtures/variants";

fn round(contenders: &[&str], shape: &str) -> Sweep {
    let names: Vec<String> = contenders
        .iter()
        .map(|name| format!("\"{name}\""))
        .collect();
    Sweep::new(&format!(
        "question = \"Who is found?\"\ncontenders = [{}]\nbaseline = \"plain\"\nyardstick = false\n\
         shapes = [{shape}]\n[validate]\nseed = 1\ntimeout = 60\n",
        names.join(", ")
    ))
}

/// The lines of this type, of the only contender or of this one.
fn lines(sweep: &Sweep, kind: &str, contender: &str) -> Vec<Value> {
    let file = sweep.run_file().expect("a run file");
    let text = fs::read_to_string(file).expect("its text");
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    lines
        .filter(|line| line["type"] == kind && (kind == "header" || line["contender"] == contender))
        .collect()
}

#[test]
fn corners_of_the_formats_and_later_calls_are_looked_at() {
    let wrong = [
        "c-overflow-zero",
        "saturated-products",
        "nan-scale-finite",
        "nan-in-both-scales",
        "nan-in-last-block",
        "scale-sign-dropped",
        "tiny-to-zero",
        "deep-denormal-to-zero",
        "least-normal-to-zero",
        "nan-for-empty-token",
        "one-scale-looked-at",
        "right-twice",
    ];
    let sweep = round(
        &[&["plain"], &wrong[..]].concat(),
        "{ m = 40, n = 128, k = 256 }",
    );
    // Each is declared wrong, so all are if the exit code is 0. One looks at a
    // single scale, which of many secrets makes some harmless.
    let of_seed = ["--variants", FIXTURES, "--data-seed", "7"];
    sweep.run(&[&[sweep.round().as_str()], &of_seed[..]].concat(), 0);
    let reason = |name: &str| lines(&sweep, "verdict", name)[0]["reason"].to_string();
    for (name, word) in [
        ("c-overflow-zero", "finite where C is beyond fp16"),
        ("nan-scale-finite", "where a scale that goes in is NaN"),
        ("tiny-to-zero", "below the normal numbers of fp16"),
        ("least-normal-to-zero", "zero where C is small"),
        ("right-twice", "zero"),
    ] {
        let said = reason(name);
        assert!(said.contains(word), "{name}: {said}");
    }
}

/// Prints what it is called with.
const TELLTALE: &str = "/*dgx
summary = \"Says what its data are\"
arch    = \"sm_90a\"
[const]
THREADS = 128
[[launch]]
kernel = \"dual_gemm\"
grid   = [\"cdiv(most(m * n), THREADS)\", \"groups\"]
block  = \"THREADS\"
*/
#include <dgx/plain.cuh>
using namespace dgx;
extern \"C\" __global__ void dual_gemm(const __grid_constant__ Args args) {
  plain::each_element(args, [](const Group& g, u32 row, u32 column) {
    if (row == 0 && column == 0) printf(\"%08x\\n\", *reinterpret_cast<const u32*>(g.b1));
    plain::store(g, row, column, silu(plain::gate(g, row, column)) * plain::up(g, row, column));
  });
}
";

#[test]
fn data_cannot_be_known_beforehand_and_are_on_record() {
    let sweep = || {
        let sweep = round(&["plain"], "{ m = 16, n = 128, k = 256 }");
        let folder = sweep.folder.path().join("variants");
        fs::create_dir(&folder).expect("a folder");
        fs::write(folder.join("plain.cu"), TELLTALE).expect("a file");
        sweep
    };
    let swept = |flags: &[&str]| {
        let sweep = sweep();
        let variants = sweep.folder.path().join("variants").display().to_string();
        let round = sweep.round();
        let words = [&[round.as_str(), "--variants", &variants], flags].concat();
        let said = sweep.run(&words, 0);
        let printed = lines(&sweep, "verdict", "plain")[0]["printed"].clone();
        let printed = printed.as_str().expect("it printed").to_owned();
        assert!(printed.lines().count() >= 3, "{printed}");
        (sweep, printed, said, variants)
    };
    let (one, printed, said, variants) = swept(&[]);
    assert!(!said.contains("beforehand"), "{said}");
    assert_ne!(printed, swept(&[]).1, "the round has a seed");
    // What looks into the run afterwards finds the same.
    let file = one.run_file().expect("a run file").display().to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("NO_COLOR", "1")
        .args([
            "debug",
            "plain",
            &file,
            "--variants",
            &variants,
            "--backend",
            "emu",
        ]);
    let told = ended(&mut command, 0);
    let last = printed.lines().last().expect("a line");
    assert!(told.contains(last), "{last}:\n{told}");
    // A test may fix them, and the run says so.
    let (fixed, printed, said, _) = swept(&["--data-seed", "7"]);
    assert_eq!(printed, swept(&["--data-seed", "7"]).1);
    assert!(said.contains("The data were predictable"), "{said}");
    assert_eq!(
        lines(&fixed, "header", "")[0]["settings"]["secret_given"],
        true
    );
}

#[test]
fn a_kernel_that_is_slow_where_it_is_not_expected_to_be_watched_gains_nothing() {
    // Both kernels load from where the run's data send them, each its own way: 24 runs had gains of
    // 0.92 to 1.05. Zeros send both everywhere alike.
    for (flags, most) in [(&[][..], 1.1), (&["--time-only"], 1.05)] {
        let names = ["plain", "slow-where-unwatched", "slow-everywhere"];
        let sweep = round(&names, "{ m = 128, n = 256, k = 256 }");
        let file = sweep.round();
        let words = [&[file.as_str(), "--variants", FIXTURES], flags].concat();
        sweep.run(&words, 0);
        let micros = |name: &str| -> Vec<f64> {
            let told = lines(&sweep, "estimate", name).into_iter();
            told.map(|line| line["micros"].as_f64().expect("a number"))
                .collect()
        };
        let honest = micros("slow-everywhere")[0];
        // None at all, if the drawn CTAs take more than twice as long.
        let slow = micros("slow-where-unwatched");
        let gained = |slow: &f64| honest / slow;
        assert!(
            slow.iter().all(|slow| gained(slow) < most),
            "{slow:?} for {honest}"
        );
        let reason = lines(&sweep, "verdict", "slow-where-unwatched")[0]["reason"].to_string();
        let word = "CTAs outside the fixed sample take longer";
        assert!(reason.contains(word), "{reason}");
    }
}
