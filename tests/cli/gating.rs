//! The gate over emulated runs: times are exact there, so a variant that got
//! slower is caught without a GPU.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ROUND: &str = "question   = \"Did anything get slower?\"
contenders = [\"two-pass\", \"interleaved\"]
baseline   = \"two-pass\"
yardstick  = false
shapes     = [{ m = 64, n = 128, k = 256 }]

[validate]
seed = 1
distributions = [\"benchmark\"]
";

fn dgx(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
    command.current_dir(folder).env("NO_COLOR", "1").args(args);
    command.output().expect("dgx runs")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).expect("a copy")),
        }
    }
}

/// Sweeps the round in `folder` and returns its run file.
fn sweep(folder: &Path, results: &str) -> PathBuf {
    let args = [
        "sweep",
        "round.toml",
        "--backend",
        "emu",
        "--results",
        results,
    ];
    let output = dgx(folder, &args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let mut entries = fs::read_dir(folder.join(results)).expect("results");
    entries
        .next()
        .expect("a run file")
        .expect("an entry")
        .path()
}

#[test]
fn a_variant_that_does_its_work_twice_fails_the_gate() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    copy(&root.join("variants"), &folder.path().join("variants"));
    fs::write(folder.path().join("round.toml"), ROUND).expect("a round");
    let base = sweep(folder.path(), "before").display().to_string();
    let gate = |run: &Path| {
        let run = run.display().to_string();
        let rules = ["--min-geomean", "0.98", "--min-shape", "0.95"];
        let args = [&["gate", "--baseline", &base, &run], &rules[..]].concat();
        let output = dgx(folder.path(), &args);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text)
    };

    let same = sweep(folder.path(), "same");
    let (code, text) = gate(&same);
    assert_eq!(code, Some(0), "{text}");

    let path = folder.path().join("variants/interleaved.cu");
    let source = fs::read_to_string(&path).expect("the variant");
    let (matter, code_text) = source.split_once("*/").expect("front matter");
    let at = matter.rfind("[[launch]]").expect("a launch");
    let doubled = format!("{matter}\n{}*/{code_text}", &matter[at..]);
    fs::write(&path, doubled).expect("the slowed variant");
    let slowed = sweep(folder.path(), "after");
    let (code, text) = gate(&slowed);
    assert_eq!(code, Some(1), "{text}");
    let guilty = |line: &str| line.contains("FAILED") && line.contains("interleaved");
    assert!(text.lines().any(guilty), "{text}");
    let innocent = |line: &str| line.contains("FAILED") && line.contains("two-pass ");
    assert!(!text.lines().any(innocent), "{text}");
}
