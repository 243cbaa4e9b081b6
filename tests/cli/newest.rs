//! Which run a name means if the newest file of that name is not a whole run: skipped files are
//! named, and a gate judges no older run instead.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, Mode, mkfifoat};

use crate::workspace::Workspace;

const MODELLED: &str = include_str!("../../results/baselines/smoke-emu.jsonl");
const OLD: &str = "results/smoke-20260101-0000.jsonl";
const NEW: &str = "results/smoke-20260102-0000.jsonl";

/// A whole run of an hour ago.
fn workspace() -> Workspace {
    let workspace = Workspace::empty();
    workspace.write(OLD, MODELLED);
    let then = SystemTime::now() - Duration::from_secs(3600);
    let file = File::options()
        .append(true)
        .open(workspace.path().join(OLD));
    file.expect("a run").set_modified(then).expect("a time");
    workspace
}

/// All but its last line: a sweep that was stopped.
fn cut() -> &'static str {
    let whole = MODELLED.trim_end();
    &whole[..=whole.rfind('\n').expect("lines")]
}

/// As one line, without the bar that marks a message's further lines.
fn flat(text: &str) -> String {
    let words = text.split_whitespace().filter(|word| *word != "|");
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_newer_and_no_whole_run_is_named() {
    type Make = fn(&Workspace);
    let makes: [(&str, Make, &str); 6] = [
        ("empty", |w| w.write(NEW, ""), "it is empty"),
        ("garbage", |w| w.write(NEW, "hello\n"), "not a dgx run file"),
        (
            "FIFO",
            |w| mkfifoat(CWD, w.path().join(NEW), Mode::RUSR | Mode::WUSR).expect("a FIFO"),
            "it is not a regular file",
        ),
        (
            "folder",
            |w| fs::create_dir(w.path().join(NEW)).expect("a folder"),
            "it is a folder",
        ),
        (
            "cut",
            |w| w.write(NEW, cut()),
            "it is incomplete: its sweep was stopped, or still runs",
        ),
        (
            "partial",
            |w| {
                let end = r#"{"type":"end","complete":false,"reason":"shape x is in no file","seconds":{},"decision":null}"#;
                w.write(NEW, &format!("{}{end}\n", cut()));
            },
            "it is incomplete (shape x is in no file)",
        ),
    ];
    for (what, make, why) in makes {
        let workspace = workspace();
        make(&workspace);
        for words in [&["show", "smoke"][..], &["show"]] {
            let said = flat(&workspace.run(words));
            assert!(said.ends_with("[exit 0]"), "{what}: {said}");
            assert!(said.contains("warning: passed over: "), "{what}: {said}");
            assert!(said.contains(NEW) && said.contains(why), "{what}: {said}");
            assert!(said.contains(&format!("reading {OLD}")), "{what}: {said}");
        }
        // What is judged is what was swept last, or nothing.
        for words in [
            &["gate", "smoke"][..],
            &["gate"],
            &["gate", "--baseline", OLD],
        ] {
            let said = flat(&workspace.run(words));
            assert!(said.ends_with("[exit 4]"), "{what}: {said}");
            assert!(said.contains(NEW) && said.contains(why), "{what}: {said}");
            assert!(said.contains(&format!("dgx gate {OLD}")), "{what}: {said}");
        }
        // A file that is named is the file that is meant.
        let said = workspace.run(&["show", OLD]);
        assert!(!said.contains("passed over"), "{what}: {said}");
    }
}

#[test]
fn a_partial_run_is_meant_where_there_is_no_other() {
    let workspace = Workspace::empty();
    workspace.write(NEW, cut());
    let said = workspace.run(&["show", "smoke"]);
    assert!(!said.contains("passed over"), "{said}");
    assert!(said.ends_with("[exit 0]"), "{said}");
    let said = workspace.run(&["gate", "smoke"]);
    assert!(said.ends_with("[exit 5]"), "{said}");
}

#[test]
fn a_broken_file_of_another_round_concerns_no_one() {
    let workspace = workspace();
    workspace.write("results/other-20260102-0000.jsonl", "");
    let said = workspace.run(&["show", "smoke"]);
    assert!(!said.contains("passed over"), "{said}");
    let said = workspace.run(&["show"]);
    assert!(said.contains("passed over"), "{said}");
}
