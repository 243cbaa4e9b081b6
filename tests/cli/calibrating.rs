use assert_cmd::Command;

use crate::workspace::{Workspace, in_repository};

/// Without a GPU nothing is asked, and nothing written.
#[test]
fn a_card_must_be_there_to_be_asked() {
    let workspace = Workspace::new();
    let program = std::process::Command::new(env!("CARGO_BIN_EXE_dgx"));
    let output = Command::from_std(program)
        .current_dir(workspace.path())
        // Hides the cards of a machine that has some.
        .env("CUDA_VISIBLE_DEVICES", "")
        .env("DGX_CACHE", workspace.path().join("cache"))
        .args(["calibrate", "--measure", "answers.jsonl"])
        .output()
        .expect("dgx runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("no GPU to ask"), "{said}");
    assert!(!workspace.path().join("answers.jsonl").exists());
}

#[test]
fn what_cannot_be_asked_or_shown_is_said() {
    let workspace = Workspace::new();
    workspace.write("broken.jsonl", "{}\n");
    for (args, expected) in [
        (
            vec!["--measure", "no/where.jsonl"],
            "cannot write no/where.jsonl",
        ),
        (vec!["--show", "broken.jsonl"], "broken.jsonl: line 1"),
        (
            vec!["--show", "nowhere.jsonl"],
            "cannot read answers nowhere.jsonl",
        ),
        (vec!["-o", "x.toml"], "--measure <FILE>"),
        (vec!["--plot", "x.svg"], "--measure <FILE>"),
        (vec!["--list", "--measure", "x"], "cannot be used with"),
    ] {
        let said = workspace.run(&[&["calibrate"], &args[..]].concat());
        assert!(said.contains(expected), "{said}");
        assert!(said.ends_with("[exit 2]"), "{said}");
    }
}

/// Without a run or a flag it says what is known already.
#[test]
fn alone_it_says_how_far_off_each_target_is() {
    let said = Workspace::empty().run(&["calibrate"]);
    assert!(said.ends_with("[exit 0]"), "{said}");
    for word in [
        "h200",
        "NVIDIA H200",
        "448",
        "b200",
        "uncalibrated",
        "next: dgx calibrate RUN",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn what_would_be_asked_is_listed() {
    let said = Workspace::new().run(&["calibrate", "--list", "--only", "wgmma/rs/n256"]);
    assert!(said.contains("wgmma  How long does a wgmma take"), "{said}");
    assert!(said.contains("  wgmma/rs/n256/1-group\n"), "{said}");
    assert!(!said.contains("wgmma/rs/n64"), "{said}");
}

/// The committed answers are read as the format is now.
#[test]
fn committed_answers_are_shown() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/results/calibration");
    for entry in std::fs::read_dir(folder).expect("there are answers") {
        let path = entry.expect("an entry").path();
        let said = in_repository(&["calibrate", "--show", &path.display().to_string()]);
        assert!(said.contains("NVIDIA H200"), "{said}");
        // Only its own probes were asked for code that is far.
        let case = match path.ends_with("h200-20261119-1113.jsonl") {
            true => "code/far/2048/driven-out-cold",
            false => "wgmma/rs/n256/1-group",
        };
        assert!(said.contains(case), "{said}");
    }
}

/// Its cells would count twice, in the table and in what `-o` writes.
#[test]
fn a_run_that_is_named_twice_is_refused() {
    let run = "results/baselines/round5-20261116-1623.jsonl";
    let said = in_repository(&["calibrate", run, run]);
    assert!(said.contains("is named twice"), "{said}");
    assert!(said.ends_with("[exit 2]"), "{said}");
}
