//! Printed commands work when pasted, and refer to what was shown.

use std::fs;

use crate::workspace::Workspace;

const MEASURED: &str = include_str!("../fixtures/runs/round4.jsonl");
const MODELLED: &str = include_str!("../../results/baselines/smoke-emu.jsonl");

/// The commands behind `next:`, which may go on over several lines.
fn steps(text: &str) -> Vec<String> {
    let (_, after) = text
        .rsplit_once("next: ")
        .unwrap_or_else(|| panic!("{text}"));
    let more = |line: &&str| line.starts_with("      ");
    let lines: Vec<&str> = after.lines().collect();
    let words = lines[1..].iter().copied().take_while(more);
    let all = std::iter::once(lines[0]).chain(words).map(str::trim);
    let all = all.collect::<Vec<_>>().join(" ");
    all.split(" · ").map(str::to_owned).collect()
}

/// A command line as a shell takes it.
fn pasted(workspace: &Workspace, line: &str) -> String {
    let words = line
        .strip_prefix("dgx ")
        .unwrap_or_else(|| panic!("{line}"));
    let words: Vec<String> = words
        .split(' ')
        .map(|word| word.trim_matches('\'').to_owned())
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let text = workspace.run(&words);
    assert!(text.ends_with("[exit 0]"), "{line}: {text}");
    text
}

#[test]
fn the_run_is_named_unless_it_is_the_one_taken_anyway() {
    let workspace = Workspace::empty();
    workspace.write("kept/measured.jsonl", MEASURED);
    workspace.write("results/modelled.jsonl", MODELLED);
    let shown = workspace.run(&["show", "kept/measured.jsonl"]);
    let named = steps(&shown);
    // There are no variants here to be explained.
    assert_eq!(named.len(), 2, "{named:?}");
    for step in &named {
        let said = pasted(&workspace, step);
        assert!(step.ends_with(" kept/measured.jsonl"), "{step}");
        assert!(said.contains("kept/measured"), "{said}");
    }
    for step in steps(&workspace.run(&["show"])) {
        assert!(!step.contains("jsonl"), "{step}");
        let said = pasted(&workspace, &step);
        assert!(said.contains("results/modelled"), "{said}");
    }
}

#[test]
fn another_tools_run_is_led_to_what_can_read_it() {
    let workspace = Workspace::empty();
    workspace.write("results/modelled.jsonl", MODELLED);
    workspace.write(
        "times.json",
        r#"{"context": {}, "benchmarks": [
{"name": "a/1", "run_type": "iteration", "real_time": 1.0, "cpu_time": 1.0, "time_unit": "us", "iterations": 9},
{"name": "b/1", "run_type": "iteration", "real_time": 2.0, "cpu_time": 2.0, "time_unit": "us", "iterations": 9}]}"#,
    );
    let shown = workspace.run(&["show", "times.json"]);
    assert!(shown.ends_with("[exit 0]"), "{shown}");
    if shown.contains("next: ") {
        for step in steps(&shown) {
            pasted(&workspace, &step);
        }
    }
}

/// A round's name means its newest run, whoever made it, and what `watch`
/// prints to be pasted finds what it wrote.
#[test]
fn what_watch_wrote_is_found_until_there_is_something_newer() {
    let workspace = Workspace::begun("mine");
    let text = workspace.run(&["watch", "mine", "--runs", "1", "--", "--backend", "emu"]);
    assert!(text.ends_with("[exit 0]"), "{text}");
    for step in steps(&text) {
        pasted(&workspace, &step);
    }
    for line in [
        "dgx show",
        "dgx show mine",
        "dgx report mine",
        "dgx report mine",
        "dgx debug mine --backend emu",
    ] {
        pasted(&workspace, line);
    }
    let watched = workspace.path().join("results/watch/mine.jsonl");
    for (copy, name) in [
        (
            "results/mine-20990101-0000.jsonl",
            "results/mine-20990101-0000.jsonl",
        ),
        (
            "results/mine-20000101-0000.jsonl",
            "results/watch/mine.jsonl",
        ),
    ] {
        let copy = workspace.path().join(copy);
        fs::copy(&watched, &copy).expect("a copy");
        for words in [&["show"][..], &["show", "mine"]] {
            let text = workspace.run(words);
            assert!(text.contains(name), "{name}: {text}");
        }
        fs::remove_file(copy).expect("the copy");
    }
}

/// Without a word about where, a contender is looked into where it is: in the
/// newest run, if that has it, or else in its own round.
#[test]
fn a_new_variant_is_looked_into_on_its_own_round() {
    let workspace = Workspace::begun("mine");
    workspace.write("results/other.jsonl", MEASURED);
    let text = workspace.run(&["debug", "mine", "--backend", "emu"]);
    assert!(text.contains("of configs/mine.toml"), "{text}");
    assert!(text.contains("debug 1/"), "progress in a pipe: {text}");
    let text = workspace.run(&["explain", "mine"]);
    assert!(
        text.contains("mine as in configs/mine.toml, its own round"),
        "{text}"
    );
    assert!(text.contains("explain 1/1: what binds mine"), "{text}");
    let text = workspace.run(&["profile", "mine", "--backend", "emu"]);
    assert!(text.ends_with("[exit 0]"), "{text}");
    let text = workspace.run(&[
        "sanitize",
        "mine",
        "--schedules",
        "1",
        "--shape",
        "5x128x256",
    ]);
    assert!(text.contains("sanitize: 1 cell of 1 contender"), "{text}");
    assert!(!text.contains("sanitize 1/"), "progress in a pipe: {text}");
}

/// A shape has a name in a round: in the one that is named, or in the
/// contender's own.
#[test]
fn a_contender_is_sanitized_on_shapes_by_name() {
    let workspace = Workspace::new();
    let round = crate::workspace::ROUND.replace("m = 256", "name = \"tiny\"\nm = 4");
    workspace.write("configs/one.toml", &round);
    workspace.write("configs/other.toml", &round.replace("tiny", "small"));
    for (words, shape) in [
        ("sanitize one:STAGES=1 --shape tiny", "tiny"),
        ("sanitize one:STAGES=1 other --shape small", "small"),
        ("sanitize one:STAGES=1 other --round-shapes", "small"),
        ("sanitize one:STAGES=1 --shape 4x128x512", "4x128x512"),
    ] {
        let words: Vec<&str> = words.split(' ').chain(["--schedules", "1"]).collect();
        let text = workspace.run(&words);
        assert!(text.contains(&format!("on {shape}")), "{text}");
        assert!(text.ends_with("[exit 3]"), "{text}");
    }
    let text = workspace.run(&["sanitize", "one", "--shape", "tyni"]);
    assert!(text.contains("did you mean `tiny`?"), "{text}");
}

/// What helps stands last, and helps with that very failure; what cannot be
/// written is refused before anything runs.
#[test]
fn what_debug_leads_to_is_for_that_failure() {
    let workspace = Workspace::begun("mine");
    let debug = |more: &[&str]| {
        let words = ["debug", "mine", "--backend", "emu", "--shape", "8x*"];
        workspace.run(&[&words, more].concat())
    };
    let last = |text: &str| {
        // What stands on standard error comes behind it here.
        let mut lines = text.lines().rev().skip(1);
        let said = |line: &&str| !line.starts_with("debug ") && !line.ends_with("its own round");
        let line = lines.find(said);
        line.unwrap_or_default().to_owned()
    };
    let text = debug(&["--dump", "maps", "dump"]);
    assert!(text.contains("the variant has no maps"), "{text}");
    let text = debug(&["--emit", "ptx", "configs/mine.toml"]);
    assert!(text.contains("cannot write configs/mine.toml"), "{text}");
    assert!(!text.contains("mine on 8x"), "before anything ran: {text}");

    workspace.edit("variants/mine.cu", " dual_gemm(", " dual_gem(");
    let text = debug(&[]);
    assert!(text.contains("did you mean `dual_gem`?"), "{text}");
    assert_eq!(last(&text), "next: dgx check configs/mine.toml", "{text}");
    workspace.edit("variants/mine.cu", " dual_gem(", " dual_gemm(");
    let store = "group.c[static_cast<unsigned long long>(row)";
    workspace.edit("variants/mine.cu", store, "group.c[(1ull << 40) + row");
    let text = debug(&[]);
    assert!(text.contains("no allocation is within a GiB"), "{text}");
    assert!(
        last(&text).starts_with("next: dgx debug mine configs/mine.toml"),
        "{text}"
    );
    assert!(last(&text).ends_with("--emit ptx out"), "{text}");
}

#[test]
fn a_name_for_several_is_answered_with_words_that_can_be_typed() {
    let workspace = Workspace::new();
    workspace.run(&["sweep", "round.toml", "--backend", "emu"]);
    for words in [
        &["debug", "one", "round.toml"][..],
        &["profile", "one", "round.toml", "--backend", "emu"],
        &["compare", "one", "one"],
        &["compare", "one:STAGES=7", "one:STAGES=1"],
    ] {
        let text = workspace.run(words);
        assert!(text.contains("one:STAGES=1"), "{text}");
        assert!(!text.contains("one[STAGES"), "{text}");
    }
}

/// A run file does not say where a folder outside of the project is; whoever
/// was told does.
#[test]
fn variants_that_lie_elsewhere_are_named() {
    let workspace = Workspace::begun("mine");
    let elsewhere = tempfile::tempdir().expect("a folder");
    let folder = elsewhere.path().join("my variants");
    crate::workspace::copy(&workspace.path().join("variants"), &folder);
    fs::remove_dir_all(workspace.path().join("variants")).expect("a folder");
    let named = folder.to_str().expect("a plain path");
    let swept = workspace.run(&["sweep", "mine", "--backend", "emu", "--variants", named]);
    let flags = format!(" --variants '{named}'");
    let explain = steps(&swept).pop().expect("a command");
    assert!(explain.starts_with("dgx explain mine"), "{explain}");
    assert!(explain.ends_with(&flags), "{explain}");
    let words = ["explain", "mine", "--variants", named];
    let said = workspace.run(&words);
    assert!(said.ends_with("[exit 0]"), "{said}");
    // The same of a run that says less.
    let told = steps(&workspace.run(&["show", "--variants", named]));
    assert!(told.contains(&explain), "{told:?}");
    let shown = steps(&workspace.run(&["show"]));
    assert_eq!(shown, told[..told.len() - 1], "nobody says where it is");
    // What fails is led on by a command that can be filled in.
    let source = folder.join("mine.cu");
    let text = fs::read_to_string(&source).expect("a source");
    fs::write(&source, format!("{text}\nmistake\n")).expect("a source");
    let round = elsewhere.path().join("mine.toml");
    fs::copy(workspace.path().join("configs/mine.toml"), &round).expect("a round");
    let round = round.to_str().expect("a plain path");
    let words = ["sweep", round, "--backend", "emu", "--variants", named];
    let swept = workspace.run(&words);
    let check = format!("next: dgx check {round}{flags}\n");
    assert!(swept.contains(&check), "{swept}");
    let shown = workspace.run(&["show"]);
    let check = "next: dgx check ROUND --variants FOLDER\n";
    assert!(shown.contains(check), "{shown}");
}
