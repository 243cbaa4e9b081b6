//! Profiles in virtual time, their files, and the errors for profiles that cannot be made.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

use super::sweep::ended;
use super::workspace::Workspace;

fn dgx(args: &[&str], code: i32) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("NO_COLOR", "1")
        .env("COLUMNS", "80")
        .args(args);
    ended(&mut command, code)
}

#[test]
fn a_profile_says_where_modelled_time_goes() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (json, trace, html) = (file("p.json"), file("t.json"), file("p.html"));
    let said = dgx(
        &[
            "profile",
            "interleaved",
            "configs/final.toml",
            "--shape",
            "g2-k1536",
            "--over",
            "results/baselines/final-20261115-1823.jsonl",
            "--json",
            &json,
            "--trace",
            &trace,
            "--html",
            &html,
        ],
        0,
    );
    for word in [
        "interleaved on g2-k1536",
        "modelled for NVIDIA H200",
        "off by 2.8 % in the median",
        "launch",
        "fill",
        "computing",
        "waiting",
        "The epilogue is",
        "the 5.0 % from which it is worth hiding",
        "the model is off by",
        "mbarriers",
    ] {
        let folded = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(folded.contains(word), "{word}:\n{said}");
    }
    for line in said.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }

    let read = |path: &str| std::fs::read_to_string(path).expect("a file");
    let shares: Value = serde_json::from_str(&read(&json)).expect("JSON");
    let shares = &shares["profiles"][0];
    assert_eq!(shares["timing"], "modelled");
    let number = |value: &Value| value.as_f64().expect("a number");
    let stages = shares["stages"].as_array().expect("stages");
    let sum: f64 = stages.iter().map(|stage| number(&stage["micros"])).sum();
    assert!((sum - number(&shares["micros"])).abs() < 1e-6, "{shares}");

    let trace: Value = serde_json::from_str(&read(&trace)).expect("JSON");
    let mut tracks: BTreeMap<(u64, u64), Vec<(f64, f64)>> = BTreeMap::new();
    let mut lines = 0;
    for event in trace["traceEvents"].as_array().expect("events") {
        if event["ph"] != "X" {
            continue;
        }
        let (from, long) = (number(&event["ts"]), number(&event["dur"]));
        assert!(from >= 0.0 && long >= 0.0, "{event}");
        let part = |key: &str| event[key].as_u64().expect("a number");
        let track = tracks.entry((part("pid"), part("tid"))).or_default();
        track.push((from, from + long));
        lines += u64::from(event["name"].as_str().is_some_and(|n| n.contains(".cu")));
    }
    assert!(tracks.len() > 4, "{} tracks", tracks.len());
    assert!(lines > 100, "{lines} spans name a line");
    for track in tracks.values() {
        for pair in track.windows(2) {
            assert!(pair[0].1 <= pair[1].0 + 1e-6, "{pair:?}");
        }
    }
    let html = read(&html);
    assert!(html.contains("<svg") && html.contains("modelled") && !html.contains("NaN"));
}

#[test]
fn what_cannot_be_profiled_is_said_and_nothing_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("p.json").display().to_string();
    let smoke = "configs/smoke.toml";
    let run = "results/baselines/final-20261115-1823.jsonl";
    let other = folder.path().join("other.json").display().to_string();
    let empty = r#"{"profiles":[]}"#;
    let wrong = r#"{"profiles":[{"contender":"two-pass","shape":"s","timing":"measured",
        "target":"t","micros":1.0,"stages":[]}]}"#;
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let (empty, wrong) = (file("empty.json", empty), file("wrong.json", wrong));
    let cases: [(&[&str], &str); 14] = [
        (&["interleaved", smoke, "--backend", "fake"], "no warps"),
        (
            &[
                "interleaved",
                smoke,
                "--backend",
                "cuda",
                "--target",
                "h200",
            ],
            "--target is for the model",
        ),
        (&["interleaved", smoke, "--over", &other], "other.json"),
        (&["interleaved", smoke, "--over", &empty], "no profiles"),
        (
            &["interleaved", smoke, "--over", &wrong],
            "it is of two-pass on s, not of interleaved on",
        ),
        (
            &["interleaved", smoke, "--trace", "/nowhere/at/all.json"],
            "/nowhere/at/all.json",
        ),
        (&["interleavd", smoke], "interleaved"),
        (
            &["interleaved", smoke, "--shape", "raged"],
            "did you mean `ragged`?",
        ),
        (
            &["interleaved", smoke, "--shape", "?"],
            "no shape matches `?`",
        ),
        (&["pipelined", smoke], "name one of pipelined:STAGES="),
        (&["interleaved", "nowhere.toml"], "nowhere.toml"),
        (&["interleaved", smoke, "--target", "h300"], "h300"),
        (
            &["interleaved", smoke, "--over", "nowhere.jsonl"],
            "nowhere.jsonl",
        ),
        (&["interleaved", smoke, "--over", run], "there is no shape"),
    ];
    for (args, word) in cases {
        let said = dgx(&[&["profile"], args, &["--json", &json]].concat(), 2);
        assert!(said.contains(word), "{args:?}: {said}");
        assert!(!std::path::Path::new(&json).exists(), "{args:?}");
    }
}

#[test]
fn profiles_can_be_laid_over_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("p.json").display().to_string();
    let cell = [
        "profile",
        "interleaved",
        "configs/smoke.toml",
        "--backend",
        "emu",
    ];
    dgx(&[&cell[..], &["--json", &json]].concat(), 0);
    // As a card might have had it.
    let written = std::fs::read_to_string(&json).expect("a file");
    let mut document: Value = serde_json::from_str(&written).expect("JSON");
    document["profiles"][0]["timing"] = "measured".into();
    std::fs::write(&json, document.to_string()).expect("a file");
    let said = dgx(&[&cell[..], &["--over", &json]].concat(), 0);
    for word in [
        "modelled µs",
        "measured µs",
        "differs µs",
        "+0.00",
        "whole",
        "the model is off",
    ] {
        assert!(said.contains(word), "{word}:\n{said}");
    }
}

#[test]
fn help_teaches_by_example() {
    let said = dgx(&["profile", "--help"], 0);
    for word in ["Examples:", "--over", "perfetto", "docs/profile.md"] {
        assert!(said.contains(word), "{word}:\n{said}");
    }
}

#[test]
fn a_kernel_that_does_not_end_or_compile_has_no_time() {
    let workspace = Workspace::new();
    let kernel = "void go(const __grid_constant__ Args args) {}";
    let waits = r#"void go(const __grid_constant__ Args args) {
  if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;");
}"#;
    let args = ["profile", "one[STAGES=1]", "round.toml", "--json", "p.json"];
    workspace.edit("variants/one.cu", kernel, waits);
    let said = workspace.run(&args);
    let words = "no time can be modelled of one[STAGES=1] on";
    assert!(said.contains(words) && said.contains("[exit 4]"), "{said}");
    workspace.edit("variants/one.cu", "bar.sync 1", "bar.nonsense 1");
    let said = workspace.run(&args);
    let words = "one[STAGES=1] does not compile";
    assert!(said.contains(words) && said.contains("[exit 2]"), "{said}");
    assert!(!workspace.path().join("p.json").exists());
}
