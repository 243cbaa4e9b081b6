//! The files that dgx keeps, and that it removes only its own when asked to.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::workspace::Workspace;

const MODELLED: &str = include_str!("../../results/baselines/smoke-emu.jsonl");

#[test]
fn cleaning_removes_only_what_the_cache_wrote() {
    let workspace = Workspace::empty();
    let key = "ab".repeat(32);
    for name in ["report.json", "image.ptx", "image.cubin"] {
        workspace.write(&format!("cache/images/{key}/{name}"), "x");
        workspace.write(&format!("cache/images/mine/{name}"), "x");
    }
    let answer = "cache/oracles/0123456789abcdef01234567.oracle";
    workspace.write(answer, "x");
    let other = "cd".repeat(32);
    let foreign = [
        "cache/images/notes.txt",
        "cache/images/mine/deep/er",
        "cache/oracles/thesis/chapter.tex",
        "cache/oracles/mine.oracle",
        &format!("cache/images/{other}/diary"),
        "cache/images/.hidden",
    ];
    for file in foreign {
        workspace.write(file, "mine");
    }
    let said = workspace.run(&["cache", "clean"]);
    assert!(said.ends_with("[exit 0]"), "{said}");
    let there = |name: &str| workspace.path().join(name).exists();
    assert!(!there(&format!("cache/images/{key}")) && !there(answer));
    for file in foreign {
        assert!(there(file), "{file} is gone");
    }
    for name in ["images/notes.txt", "images/mine", "oracles/thesis", "diary"] {
        let folder = name.strip_suffix("diary").map(|_| other.as_str());
        assert!(said.contains(folder.unwrap_or(name)), "{name}: {said}");
    }
}

#[test]
fn cleaning_follows_no_link() {
    for part in ["cache/images", "cache/oracles", "cache"] {
        let workspace = Workspace::empty();
        let key = "ab".repeat(32);
        let kept = [
            format!("elsewhere/{key}/report.json"),
            "elsewhere/0123456789abcdef01234567.oracle".to_owned(),
            format!("elsewhere/images/{key}/report.json"),
        ];
        for file in &kept {
            workspace.write(file, "x");
        }
        let link = workspace.path().join(part);
        fs::create_dir_all(link.parent().expect("a folder")).expect("a folder");
        symlink(workspace.path().join("elsewhere"), &link).expect("a link");
        let said = workspace.run(&["cache", "clean"]);
        assert!(said.ends_with("[exit 4]"), "{part}: {said}");
        assert!(said.contains("is a link to"), "{part}: {said}");
        for file in &kept {
            assert!(workspace.path().join(file).exists(), "{part}: {file}");
        }
    }
}

/// Makes a file as old as so many days.
fn age(path: &Path, days: u64) {
    let file = File::options().append(true).open(path).expect("a file");
    let then = SystemTime::now() - Duration::from_secs(86_400 * days);
    file.set_modified(then).expect("a time");
}

/// Runs of `smoke` and another round, the first the newest.
fn shelf() -> Workspace {
    let workspace = Workspace::empty();
    let other = MODELLED.replacen("\"name\":\"smoke\"", "\"name\":\"other\"", 1);
    assert_ne!(other, MODELLED);
    for day in 1..=6 {
        let file = format!("results/smoke-2026010{}-0000.jsonl", 7 - day);
        workspace.write(&file, MODELLED);
        age(&workspace.path().join(file), day);
    }
    workspace.write("results/other-20260101-0000.jsonl", &other);
    workspace.write("results/baselines/smoke-20250101-0000.jsonl", MODELLED);
    workspace.write("results/broken.jsonl", "hello");
    workspace
}

#[test]
fn runs_are_listed() {
    let workspace = shelf();
    let whole = MODELLED.trim_end();
    let cut = &whole[..=whole.rfind('\n').expect("lines")];
    workspace.write("results/smoke-20260108-0000.jsonl", cut);
    let said = workspace.run(&["results", "--export-json", "list.json"]);
    assert!(said.ends_with("[exit 0]"), "{said}");
    let line = |name: &str| {
        let mut lines = said.lines();
        lines.find(|line| line.contains(name)).unwrap_or_default()
    };
    assert!(line("smoke-20260106-0000").contains("complete"), "{said}");
    assert!(line("smoke-20260108-0000").contains("incomplete"), "{said}");
    assert!(line("broken").contains("unreadable"), "{said}");
    let emulated = line("smoke-20260106-0000");
    assert!(emulated.contains("NVIDIA H200, emulated"), "{said}");
    assert!(!said.contains("smoke-20250101-0000"), "{said}");
    let list: serde_json::Value = serde_json::from_str(&workspace.read("list.json")).expect("JSON");
    let list = list.as_array().expect("a list");
    assert_eq!(list.len(), 9);
    let states: Vec<&str> = list.iter().filter_map(|e| e["state"].as_str()).collect();
    assert_eq!(states.iter().filter(|s| **s == "complete").count(), 7);
}

#[test]
fn pruning_keeps_what_is_new_or_named_or_being_written() {
    let workspace = shelf();
    let files = |workspace: &Workspace| -> Vec<String> {
        let entries = fs::read_dir(workspace.path().join("results")).expect("results");
        let names = entries.map(|e| e.expect("an entry").file_name());
        let mut names: Vec<String> = names.map(|n| n.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    let before = files(&workspace);
    workspace.write(
        "docs/story.md",
        "see [it](../results/smoke-20260102-0000.jsonl)\n",
    );
    workspace.write("results/smoke-20260103-0000.cubins/k.cubin", "code");
    workspace.write("results/smoke-20260101-0000.cubins/mine.txt", "mine");
    let held = File::options()
        .append(true)
        .open(workspace.path().join("results/smoke-20260104-0000.jsonl"));
    let held = held.expect("a run");
    held.lock().expect("a lock");
    // Without --yes nothing goes.
    let said = workspace.run(&["results", "prune", "--keep", "2"]);
    assert!(said.ends_with("[exit 0]"), "{said}");
    assert!(said.contains("would be removed"), "{said}");
    assert!(said.contains("docs/story.md names it"), "{said}");
    assert!(said.contains("a sweep is writing it"), "{said}");
    let unreadable = "cannot be read, and stay: results/broken.jsonl";
    assert!(said.contains(unreadable), "{said}");
    for file in &before {
        assert!(files(&workspace).contains(file), "{file}");
    }
    let said = workspace.run(&["results", "prune", "--keep", "2", "--yes"]);
    assert!(said.contains("removed 2 runs"), "{said}");
    let after = files(&workspace);
    let gone: Vec<&String> = before.iter().filter(|f| !after.contains(f)).collect();
    assert_eq!(
        gone,
        ["smoke-20260101-0000.jsonl", "smoke-20260103-0000.jsonl"]
    );
    assert!(!after.contains(&"smoke-20260103-0000.cubins".to_owned()));
    assert!(after.contains(&"smoke-20260101-0000.cubins".to_owned()));
    let baseline = "results/baselines/smoke-20250101-0000.jsonl";
    assert!(workspace.path().join(baseline).exists());
    // What the round's name means stays, whatever is asked for.
    drop(held);
    let said = workspace.run(&["results", "prune", "--keep", "0", "--yes"]);
    assert!(said.ends_with("[exit 0]"), "{said}");
    let after = files(&workspace);
    for name in [
        "smoke-20260106-0000.jsonl",
        "other-20260101-0000.jsonl",
        "broken.jsonl",
    ] {
        assert!(after.contains(&name.to_owned()), "{after:?}");
    }
    let said = workspace.run(&["results", "prune", "--keep", "1", "--older-than", "300"]);
    assert!(said.contains("nothing to remove"), "{said}");
}

#[test]
fn pruning_keeps_every_part_of_a_round() {
    let workspace = Workspace::empty();
    let (header, rest) = MODELLED.split_once('\n').expect("a header");
    for number in 1..=4 {
        let mut header: serde_json::Value = serde_json::from_str(header).expect("JSON");
        let shapes = header["shapes"].clone();
        header["shard"] = serde_json::json!({ "number": number, "of": 4, "shapes": shapes });
        let file = format!("results/smoke-2026010{number}-0000.jsonl");
        workspace.write(&file, &format!("{header}\n{rest}"));
    }
    let listed = workspace.run(&["results"]);
    assert!(
        listed.contains("shard 1/4") && listed.contains("shard 4/4"),
        "{listed}"
    );
    let said = workspace.run(&["results", "prune", "--keep", "1", "--yes"]);
    assert!(said.contains("nothing to remove"), "{said}");
}
