//! The gate on emulated runs: times are exact there, so a slower variant is caught without a GPU.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::workspace::{Workspace, copy};

const ROUND4: &str = include_str!("../fixtures/runs/round4.jsonl");

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
    let entries = fs::read_dir(folder.join(results)).expect("results");
    let mut paths = entries.map(|entry| entry.expect("an entry").path());
    paths.find(|path| path.is_file()).expect("a run file")
}

/// A folder with the project's variants and the round.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    copy(&root.join("variants"), &folder.path().join("variants"));
    fs::write(folder.path().join("round.toml"), ROUND).expect("a round");
    folder
}

/// Gates a run by the rules of scripts/gate; the exit code and what was said.
fn gate(folder: &Path, base: &Path, run: &Path) -> (Option<i32>, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/gate");
    let script = fs::read_to_string(script).expect("scripts/gate");
    let (_, rules) = script.rsplit_once("\"$baseline\"").expect("its rules");
    let (rules, _) = rules.split_once("\"$run\"").expect("what is judged");
    let words = rules.split_whitespace();
    let rules: Vec<&str> = words.filter(|w| *w != "\\").collect();
    assert!(rules.contains(&"--min-geomean") && rules.contains(&"--counter"));
    let files = [base.to_str().expect("utf-8"), run.to_str().expect("utf-8")];
    let args = [&["gate", files[1], "--baseline", files[0]], &rules[..]].concat();
    let output = dgx(folder, &args);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), text)
}

/// Rules that failed, with the contender each is about.
fn failures(text: &str) -> Vec<(String, String)> {
    let failed = text
        .lines()
        .filter(|line| line.trim_end().ends_with("FAILED"));
    failed
        .map(|line| {
            let mut words = line.split_whitespace().map(str::to_owned);
            let mut next = || words.next().expect("a word");
            (next(), next())
        })
        .collect()
}

fn edit(folder: &Path, file: &str, change: impl Fn(&str) -> String) {
    let path = folder.join("variants").join(file);
    let source = fs::read_to_string(&path).expect("the variant");
    let changed = change(&source);
    assert_ne!(changed, source, "nothing was planted");
    fs::write(&path, changed).expect("the slowed variant");
}

#[test]
fn a_variant_that_does_its_work_twice_fails_the_gate() {
    let folder = folder();
    let folder = folder.path();
    let base = sweep(folder, "before");
    let (code, text) = gate(folder, &base, &sweep(folder, "same"));
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(failures(&text), [], "{text}");

    edit(folder, "interleaved.cu", |source| {
        let launch = "[[launch]]
kernel = \"dual_gemm\"
grid   = \"sum(tiles)\"
block  = \"THREADS\"
smem   = \"SMEM\"
";
        source.replacen("*/", &format!("{launch}{launch}*/"), 1)
    });
    let (code, text) = gate(folder, &base, &sweep(folder, "after"));
    assert_eq!(code, Some(1), "{text}");
    let failures = failures(&text);
    let slower = ("min-geomean".to_owned(), "interleaved".to_owned());
    assert!(failures.contains(&slower), "{text}");
    assert!(
        failures.iter().all(|(_, who)| who == "interleaved"),
        "{text}"
    );
}

/// A few stores by which every lane of a warp wants the same bank: too few to
/// show in the modelled time, which the tensor cores bound.
#[test]
fn a_variant_that_fights_over_banks_fails_the_gate_by_its_counter_alone() {
    let folder = folder();
    let folder = folder.path();
    let base = sweep(folder, "before");
    edit(folder, "include/dgx/interleaved.cuh", |source| {
        source.replace(
            "  open(shared);\n",
            "  __shared__ volatile float planted[32 * 32];\n  \
             planted[threadIdx.x % 32 * 32] = 1.0f;\n  open(shared);\n",
        )
    });
    let (code, text) = gate(folder, &base, &sweep(folder, "after"));
    assert_eq!(code, Some(1), "{text}");
    let planted = ("bank-conflicts".to_owned(), "interleaved".to_owned());
    assert_eq!(failures(&text), [planted], "{text}");
}

#[test]
fn a_counter_nobody_knows_is_an_error_that_names_one() {
    let folder = folder();
    let folder = folder.path();
    let said = |args: &[&str]| {
        let output = dgx(folder, args);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let flag = said(&["gate", "run.jsonl", "--counter", "bank_conflicts=1"]);
    let rule = "[gate]\ncounters = { bank_conflicts = 1.0 }\n";
    fs::write(folder.join("round.toml"), format!("{ROUND}{rule}")).expect("a round");
    let config = said(&["check", "round.toml"]);
    for text in [flag, config] {
        assert!(text.contains("`bank_conflicts` is not a counter"), "{text}");
        assert!(text.contains("did you mean `bank-conflicts`?"), "{text}");
    }
    let far = said(&["gate", "run.jsonl", "--counter", "something-else=1"]);
    assert!(far.contains("mma-flops"), "{far}");
    for wrong in ["bank-conflicts", "bank-conflicts=NaN", "bank-conflicts=0"] {
        said(&["gate", "run.jsonl", "--counter", wrong]);
    }
}

/// A file that is no run is nobody's concern; a broken run of the very round
/// is, for an older one would be judged in its place.
#[test]
fn a_foreign_file_among_the_results_is_passed_over() {
    let workspace = Workspace::new();
    workspace.write("base.jsonl", &ROUND4.replacen("09:12:00", "08:12:00", 1));
    workspace.write("results/good.jsonl", ROUND4);
    workspace.write("results/foreign.jsonl", "{\"type\":\"other\"}\n");
    let args = ["gate", "--baseline", "base.jsonl", "--not-slower"];
    let text = workspace.run(&args);
    assert!(text.ends_with("[exit 0]"), "{text}");
    assert!(text.contains("gate  results/good.jsonl"), "{text}");
    assert!(
        text.contains("warning: passed over: results/foreign.jsonl:1: "),
        "{text}"
    );
    workspace.write("results/good.jsonl", &format!("{ROUND4}nonsense\n"));
    let text = workspace.run(&args);
    assert!(text.ends_with("[exit 2]"), "{text}");
}

/// Two sweeps of the same code, minutes apart, on one card.
fn finals() -> [String; 2] {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/results/baselines");
    ["2313", "2315"].map(|at| format!("{folder}/final-20261116-{at}.jsonl"))
}

#[test]
fn the_same_code_twice_passes_both_ways_round() {
    let [a, b] = finals();
    for (run, base) in [(&a, &b), (&b, &a)] {
        let output = dgx(Path::new("."), &["gate", run, "--baseline", base]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(0), "{text}");
        for contender in ["two-pass", "swap-ab", "sequential", "pipelined[STAGES=4]"] {
            assert!(
                text.contains(contender),
                "{contender} is not judged:\n{text}"
            );
        }
        // The round's thresholds are over cublas, and were not asked for.
        assert!(!text.contains("min-"), "{text}");
    }
}

#[test]
fn a_threshold_over_one_opponent_is_not_asked_over_another() {
    let [run, _] = finals();
    let gate = |more: &[&str]| {
        let output = dgx(Path::new("."), &[&["gate", &run], more].concat());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text)
    };
    let (code, text) = gate(&["--baseline", "tile-tuned"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(!text.contains("1.15×"), "{text}");
    let (code, text) = gate(&["--baseline", "two-pass", "--min-geomean", "1.002"]);
    assert_eq!(code, Some(0), "{text}");
}

/// A contender is listed as it can be typed, whichever flag did not know one.
#[test]
fn a_name_of_neither_a_contender_nor_a_run() {
    let [run, _] = finals();
    for (flag, words) in [
        ("--baseline", "no run of that name"),
        ("--contender", "is not a contender"),
    ] {
        let output = dgx(Path::new("."), &["gate", &run, flag, "nobody"]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        // However long the path of this checkout is.
        let words_of = text
            .split_whitespace()
            .filter(|word| *word != "│" && *word != "|");
        let text = words_of.collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(words), "{text}");
        assert!(text.contains("pipelined:STAGES=1"), "{text}");
    }
}

#[test]
fn a_run_held_against_nothing_does_not_pass() {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/runs/round4.jsonl");
    let run = run.display().to_string();
    let folder = tempfile::tempdir().expect("a folder");
    fs::copy(&run, folder.path().join("copy.jsonl")).expect("a copy");
    for more in [vec![], vec!["copy.jsonl"]] {
        let args = [
            &["gate", "--baseline", &run, "--min-geomean", "1.2"],
            &more[..],
        ]
        .concat();
        let output = dgx(folder.path(), &args);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(5), "{text}");
        assert!(
            text.contains("by its own rules, without another run"),
            "{text}"
        );
    }
    // Nothing asked is nothing passed.
    let output = dgx(folder.path(), &["gate", &run, "--contender", "two-pass"]);
    assert_eq!(output.status.code(), Some(2));
}

/// Its own thresholds are over cublas, and are not asked over anybody else.
#[test]
fn a_run_held_against_itself_is_judged_by_its_own_rules() {
    let [run, _] = finals();
    let folder = tempfile::tempdir().expect("a folder");
    fs::copy(&run, folder.path().join("copy.jsonl")).expect("a copy");
    let copy = folder.path().join("copy.jsonl").display().to_string();
    let output = dgx(Path::new("."), &["gate", &run, "--baseline", &copy]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(5), "{text}");
    assert!(text.contains("over cublas"), "{text}");
    let output = dgx(Path::new("."), &["gate", &run, "--baseline", &run]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("--baseline is the run itself"), "{text}");
}

#[test]
fn nothing_is_written_over_what_is_read_or_written() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/runs/round4.jsonl");
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let whole = fs::read(&fixture).expect("a run");
    fs::write(at("a.jsonl"), &whole).expect("a copy");
    fs::copy(at("a.jsonl"), at("b.jsonl")).expect("a copy");
    fs::copy(at("a.jsonl"), at("c.html")).expect("a copy");
    fs::write(at("round.toml"), ROUND).expect("a round");
    std::os::unix::fs::symlink("a.jsonl", at("link")).expect("a link");
    for line in [
        "gate a.jsonl --export-json a.jsonl",
        "gate a.jsonl --export-junit ./link",
        "gate a.jsonl --baseline b.jsonl --export-markdown b.jsonl",
        "gate a.jsonl --export-json new --export-junit ./new",
        "report a.jsonl -o a.jsonl",
        "report c.html",
        "compare a.jsonl b.jsonl --export-csv b.jsonl",
        "compare two-pass sequential a.jsonl --export-json link",
        "sweep round.toml --backend emu --export-json round.toml",
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let output = dgx(folder.path(), &args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(
            said.contains("would be overwritten") || said.contains("is named by two exports"),
            "{line}: {said}"
        );
    }
    for name in ["a.jsonl", "b.jsonl", "c.html"] {
        assert!(fs::read(at(name)).expect("a file") == whole, "{name}");
    }
    assert!(!at("results").exists() && !at("new").exists());
    // A device is not replaced, and may be written to as often as one likes.
    let twice = "gate a.jsonl --min-geomean 1.2 --export-json /dev/null --export-junit /dev/null";
    let output = dgx(folder.path(), &twice.split(' ').collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn a_limit_on_file_sizes_is_a_write_that_failed() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/runs/round4.jsonl");
    let folder = tempfile::tempdir().expect("a folder");
    let report = format!(
        "ulimit -f 1 && exec {} report {} -o page.html",
        env!("CARGO_BIN_EXE_dgx"),
        fixture.display()
    );
    let mut shell = Command::new("sh");
    shell.current_dir(folder.path()).args(["-c", &report]);
    let output = shell.output().expect("sh runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("cannot write"), "{said}");
}

/// What a gate says of a run that was made from `base` by these changes.
fn gated_over(base: &str, change: impl Fn(&str) -> String) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("base.jsonl"), base).expect("a run");
    fs::write(folder.path().join("run.jsonl"), change(base)).expect("a run");
    let args = ["gate", "run.jsonl", "--baseline", "base.jsonl"];
    let output = dgx(folder.path(), &args);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), text)
}

#[test]
fn a_copy_of_the_baseline_is_not_another_run() {
    let (code, text) = gated_over(ROUND4, str::to_owned);
    assert_eq!(code, Some(5), "{text}");
    assert!(text.contains("without another run"), "{text}");
    let folder = tempfile::tempdir().expect("a folder");
    let entry = r#"{"context": {"date": "now"}, "benchmarks": [{"name": "a", "real_time": 1.5}]}"#;
    for name in ["a.json", "b.json"] {
        fs::write(folder.path().join(name), entry).expect("a file");
    }
    let output = dgx(folder.path(), &["gate", "a.json", "--baseline", "b.json"]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let output = dgx(folder.path(), &["gate", ".", "--baseline", "b.json"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("one is a copy of the other"), "{said}");
}

#[test]
fn a_run_validated_less_strictly_than_its_baseline_does_not_pass() {
    let again = |text: &str| text.replacen("09:12:00", "10:12:00", 1);
    let (code, text) = gated_over(ROUND4, again);
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = gated_over(ROUND4, |text| {
        again(text).replacen("\"rtol\":0.001", "\"rtol\":0.1", 1)
    });
    assert_eq!(code, Some(5), "{text}");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let why = "validated less strictly than the baseline run: rtol = 0.1 instead of 0.001";
    assert!(text.contains(why), "{text}");
    assert!(text.contains("make a new baseline"), "{text}");
}

#[test]
fn deleted_blocks_and_lax_rules_are_shown() {
    let second = "\"process\":0,\"block\":1,";
    let kept = ROUND4.lines().filter(|line| !line.contains(second));
    let holes: String = kept.map(|line| format!("{line}\n")).collect();
    assert_ne!(holes, ROUND4);
    let workspace = Workspace::new();
    workspace.write("holes.jsonl", &holes);
    workspace.write("whole.jsonl", ROUND4);
    let lax = ROUND4.replacen(",\"full\",\"corner\"]", "]", 1);
    workspace.write("lax.jsonl", &lax);
    let shown = workspace.run(&["show", "holes.jsonl"]);
    assert!(shown.contains("Warning: 2 blocks are missing"), "{shown}");
    let shown = workspace.run(&["show", "lax.jsonl"]);
    assert!(shown.contains("no full or corner data"), "{shown}");
    let long = ROUND4.replacen(
        "\"millis\":40.0}",
        "\"millis\":40.0,\"unseen\":[\"full\"]}",
        1,
    );
    workspace.write("long.jsonl", &long);
    let shown = workspace.run(&["show", "long.jsonl"]);
    let fewer = "1 cell was checked with fewer data than the round names";
    assert!(shown.contains(fewer), "{shown}");
    let whole = workspace.run(&["show", "whole.jsonl"]);
    assert!(!whole.contains("Warning"), "{whole}");
    assert!(!whole.contains("less strictly"), "{whole}");
    let gated = workspace.run(&["gate", "lax.jsonl", "--min-geomean", "0.1"]);
    assert!(gated.contains("no full or corner data"), "{gated}");
    let gated = workspace.run(&["gate", "whole.jsonl", "--min-geomean", "0.1"]);
    assert!(
        gated.contains("single-gemm is declared wrong: not judged"),
        "{gated}"
    );
    assert!(gated.contains("1 contender is declared to fail"), "{gated}");
    let gated = workspace.run(&["gate", "holes.jsonl", "--min-geomean", "0.1"]);
    assert!(gated.contains("2 blocks are missing"), "{gated}");
}
