//! The model's numbers are fitted to probe results, and modelled times are compared with measured
//! ones.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::sweep::ended;

const ANSWERS: &str = "results/calibration/h200-20261115-2056.jsonl";
const MEASURED: &str = "results/baselines/round3-20261116-1623.jsonl";

fn dgx(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command.env("NO_COLOR", "1").env("COLUMNS", "120");
    command.arg("calibrate").args(args);
    command
}

/// The header of the committed answers, and the lines with one of these names.
fn some_answers(names: &[&str]) -> String {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(ANSWERS));
    let text = text.expect("the committed answers");
    let (header, answers) = text.split_once('\n').expect("a header");
    let named = |line: &&str| names.iter().any(|n| line.contains(&format!("{n:?}")));
    let chosen: Vec<&str> = answers.lines().filter(named).collect();
    assert_eq!(chosen.len(), names.len());
    format!("{header}\n{}\n", chosen.join("\n"))
}

fn written(folder: &TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    fs::write(&path, text).expect("a file");
    path.display().to_string()
}

#[test]
fn a_fit_rewrites_what_its_answers_speak_of_and_keeps_the_rest() {
    let folder = tempfile::tempdir().expect("a folder");
    let names = ["pipes/ex2/latency", "pipes/ex2/4-warps", "global/l1"];
    let answers = written(&folder, "answers.jsonl", &some_answers(&names));
    let target = folder.path().join("target.toml").display().to_string();
    let told = ended(&mut dgx(&["--fit", &answers, "-o", &target]), 0);
    assert!(told.contains("no case asks for it"), "{told}");
    let before = fs::read_to_string("configs/targets/h200.toml").expect("a target");
    let after = fs::read_to_string(&target).expect("a target");
    let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    let (before, after) = (lines(&before), lines(&after));
    let new: Vec<&String> = after.iter().filter(|line| !before.contains(line)).collect();
    for line in &new {
        assert!(line.contains("fitted"), "{line}");
    }
    let names = [
        "mufu_interval",
        "mufu_latency",
        "l1_latency",
        "fitted = \"dgx",
    ];
    for name in names {
        assert!(
            after
                .iter()
                .any(|line| line.starts_with(name) && line.contains("fitted"))
        );
    }
    assert!(new.len() <= names.len(), "{new:?}");
    assert!(before.iter().filter(|line| line.starts_with('#')).count() > 0);
    // It is a target, and fits itself.
    let again = ended(&mut dgx(&["--fit", &answers, "--target", &target]), 0);
    assert!(again.contains("3 cases: half of them within"), "{again}");
}

#[test]
fn answers_that_cannot_be_fitted_to_are_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = some_answers(&["global/l2"]);
    let (header, answer) = good.split_once('\n').expect("two lines");
    let other = good.replace("NVIDIA H200", "NVIDIA H100 80GB HBM3");
    let mut value: Value = serde_json::from_str(answer).expect("an answer");
    value["values"] = Value::Array(Vec::new());
    let nothing = format!("{header}\n{value}\n");
    let twice = format!("{good}{answer}");
    let cut = &good[..good.len() - 5];
    let cases = [
        (other.as_str(), "the target is NVIDIA H200"),
        (&format!("{header}\n"), "no answer to a case"),
        (
            &nothing,
            "line 2: global/l2 was called 5 times, and 0 answers",
        ),
        (&twice, "global/l2 is there twice"),
        (cut, "line 2: EOF"),
        ("{}", "line 1"),
        ("", "there is no header"),
    ];
    let target = folder.path().join("target.toml").display().to_string();
    for (text, why) in cases {
        let answers = written(&folder, "answers.jsonl", text);
        let told = ended(&mut dgx(&["--fit", &answers, "-o", &target]), 2);
        assert!(told.contains(why), "{why}:\n{told}");
        assert!(!Path::new(&target).exists());
    }
    let answers = written(&folder, "answers.jsonl", &good);
    let elsewhere = folder.path().join("no/folder.toml").display().to_string();
    for (args, why) in [
        (vec!["--fit", "none.jsonl"], "none.jsonl"),
        (
            vec!["--fit", &answers, "-o", &elsewhere],
            "folder that exists",
        ),
        (
            vec!["--fit", &answers, "-o", &answers],
            "would be overwritten",
        ),
        (
            vec!["--fit", &answers, "--target", "h300"],
            "h200, h100, b200",
        ),
        (vec!["--fit", &answers, "--plot", "x.svg"], "--plot"),
        (vec!["--fit", &answers, "--list"], "--list"),
    ] {
        let told = ended(&mut dgx(&args), 2);
        assert!(told.contains(why), "{why}:\n{told}");
    }
    assert_eq!(fs::read_to_string(&answers).expect("as it was"), good);
}

#[test]
fn a_cell_is_modelled_and_held_against_its_measured_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (json, plot, target) = (file("a.json"), file("a.svg"), file("a.toml"));
    let outputs = ["--export-json", &json, "--plot", &plot, "-o", &target];
    let only = ["--only", "two-pass 256x3072x4096"];
    let args = [[MEASURED].as_slice(), &only, &outputs].concat();
    let told = ended(&mut dgx(&args), 0);
    assert!(
        told.contains("two-pass") && told.contains("seen while"),
        "{told}"
    );
    let found: Value =
        serde_json::from_str(&fs::read_to_string(&json).expect("JSON")).expect("JSON");
    let cell = &found["runs"][0]["cells"][0];
    let (modelled, measured) = (cell["modelled"].as_f64(), cell["measured"].as_f64());
    let ratio = modelled.expect("a time") / measured.expect("a time");
    assert!((0.3..3.0).contains(&ratio), "{cell}");
    assert_eq!(found["runs"][0]["errors"]["cells"], 1);
    assert_eq!(
        fs::read_to_string(plot)
            .expect("a plot")
            .matches("<circle")
            .count(),
        1
    );
    let page = file("page.html");
    let mut report = Command::new(env!("CARGO_BIN_EXE_dgx"));
    report.current_dir(env!("CARGO_MANIFEST_DIR"));
    report.args(["report", MEASURED, "-o", &page, "--modelled"]);
    ended(report.arg(&json), 0);
    let page = fs::read_to_string(page).expect("a page");
    assert!(page.contains("<h2 id=\"modelled\">") && page.contains("two-pass on 256x3072x4096"));
    let target = fs::read_to_string(target).expect("a target");
    assert!(
        target.contains("[calibration]") && target.contains("cells = 1"),
        "{target}"
    );
}

#[test]
fn runs_that_say_nothing_of_the_target_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(MEASURED));
    let text = text.expect("a run");
    let header = text.lines().next().expect("a header");
    let empty = written(&folder, "empty.jsonl", &format!("{header}\n"));
    let stranger = text.replace("two-pass", "no-such");
    let stranger = written(&folder, "stranger.jsonl", &stranger);
    let json = folder.path().join("a.json").display().to_string();
    let cases = [
        (vec!["results/baselines/smoke-emu.jsonl"], "modelled times"),
        (
            vec!["results/baselines/round1-b200.jsonl"],
            "recorded times",
        ),
        (
            vec![MEASURED, "--target", "h100"],
            "was measured on NVIDIA H200",
        ),
        (vec![empty.as_str()], "no measured time"),
        (vec![MEASURED, "--only", "nobody"], "matches `nobody`"),
        (vec![stranger.as_str()], "no-such"),
        (vec![ANSWERS], "h200-20261115-2056.jsonl"),
        (vec!["none.jsonl"], "none.jsonl"),
        (vec![MEASURED, "--fit", ANSWERS], "--fit"),
    ];
    for (mut args, why) in cases {
        args.extend(["--export-json", &json]);
        let told = ended(&mut dgx(&args), 2);
        assert!(told.contains(why), "{args:?}:\n{told}");
        assert!(!Path::new(&json).exists());
    }
}
