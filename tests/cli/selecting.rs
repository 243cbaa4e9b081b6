//! Picking contenders, shapes and files by short names and patterns.

use crate::workspace::{VARIANT, Workspace};

const MEASURED: &str = include_str!("../fixtures/runs/round4.jsonl");

/// A round of two variants, five contenders and three shapes, by its name.
fn workspace() -> Workspace {
    let workspace = Workspace::new();
    let stages = VARIANT.replace("[1, 2]", "[1, 2, 3]");
    workspace.write("variants/pipelined.cu", &stages);
    workspace.write(
        "configs/tiny.toml",
        "question = \"Which?\"
contenders = [\"one\", \"pipelined\"]
baseline = \"one:STAGES=1\"
shapes = [
  { m = 256, n = 128, k = 512 }, { m = 256, n = 256, k = 512 },
  { name = \"g2\", m = [8, 9], n = 128, k = 512 },
]
[gate]
contenders = [\"pipelined:STAGES=2\"]
",
    );
    workspace
}

/// The cells a dry run lists: contender and shape.
fn cells(workspace: &Workspace, words: &str) -> Vec<(String, String)> {
    let words = ["sweep tiny --dry-run", words].join(" ");
    let words: Vec<&str> = words.split_whitespace().collect();
    let said = workspace.run(&words);
    assert!(said.ends_with("[exit 0]"), "{said}");
    let lines = said.lines().filter_map(|line| line.strip_prefix("  "));
    let cells = lines.filter_map(|line| line.split_once(": ")?.0.split_once(" on "));
    cells.map(|(c, s)| (c.to_owned(), s.to_owned())).collect()
}

#[test]
fn contenders_and_shapes_are_picked_by_name_list_and_pattern() {
    let workspace = workspace();
    let count = |words: &str| cells(&workspace, words).len();
    assert_eq!(count(""), 15);
    // The baseline competes always.
    assert_eq!(count("--only pipelined:STAGES=3 --shape g2"), 2);
    assert_eq!(count("--only pipelined[STAGES=3] --shape g2"), 2);
    assert_eq!(count("--only pipe* --shape g2"), 4);
    assert_eq!(
        count("--only *:STAGES=2,pipelined:STAGES=3 --shape 256x*"),
        8
    );
    assert_eq!(count("--only one --only *:STAGES=? --shape g2,*x256x*"), 10);
    let picked = cells(&workspace, "--only one:STAGES=2 --shape *x256x*");
    let names: Vec<&str> = picked.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["one[STAGES=2]", "one[STAGES=1]"]);
    for (words, why) in [
        ("--only pipeline", "did you mean `pipelined`?"),
        ("--only x*", "no contender of the round matches `x*`"),
        ("--only pipelined:STAGES=4", "`pipelined` has no STAGES = 4"),
        ("--only pipelined:STAGES", "`STAGES` is not KEY=integer"),
        ("--shape 256", "there is no shape `256`"),
        ("--shape 257*", "no shape matches `257*`"),
        ("--shape g2,,", "a name in the list is empty"),
    ] {
        let all = ["sweep tiny --dry-run ", words].concat();
        let said = workspace.run(&all.split_whitespace().collect::<Vec<_>>());
        assert!(said.contains(why), "{said}");
        assert!(said.ends_with("[exit 2]"), "{said}");
    }
}

#[test]
fn a_round_goes_by_its_name() {
    let workspace = workspace();
    for words in [
        "list tiny",
        "check --no-compile tiny",
        "check --no-compile configs/tiny.toml",
    ] {
        let said = workspace.run(&words.split(' ').collect::<Vec<_>>());
        assert!(said.ends_with("[exit 0]"), "{said}");
    }
    let said = workspace.run(&["list", "tinny"]);
    assert!(said.contains("no round of this name in configs/"), "{said}");
    assert!(said.contains("did you mean `tiny`?"), "{said}");
    assert!(said.ends_with("[exit 2]"), "{said}");
    let said = workspace.run(&["watch", "quite-another"]);
    assert!(said.contains("help: there are tiny"), "{said}");
    let said = workspace.run(&["debug", "one", "quite-another"]);
    let words: Vec<&str> = said
        .split([' ', '\n', '|'])
        .filter(|w| !w.is_empty())
        .collect();
    let both = "no round of this name in configs/ and no run of this name in results/ help: there";
    assert!(words.join(" ").contains(both), "{said}");
    let said = Workspace::new().run(&["show", "any"]);
    assert!(said.contains("`dgx sweep ROUND` makes one"), "{said}");
}

#[test]
fn a_run_goes_by_its_name_or_its_round() {
    let workspace = workspace();
    workspace.write("results/old/first.jsonl", MEASURED);
    let later = MEASURED.replacen("2026-11-15T09:12:00Z", "2026-11-15T09:13:00Z", 1);
    workspace.write("results/round4-1.jsonl", &later);
    let other = MEASURED.replace("\"name\":\"round4\"", "\"name\":\"interleaved\"");
    assert_ne!(other, MEASURED);
    workspace.write("results/other.jsonl", &other);
    for (words, shown) in [
        ("show round4-1", "results/round4-1.jsonl"),
        ("show round4", "results/round4-1.jsonl"),
        ("show first", "results/old/first.jsonl"),
        ("compare first round4", "B  results/round4-1.jsonl"),
        (
            "compare two-pass interleaved first",
            "results/old/first.jsonl",
        ),
        // Who is a contender is not taken for a run.
        (
            "compare two-pass interleaved round4",
            "interleaved over two-pass",
        ),
        (
            "gate round4 --baseline first",
            "gate  results/round4-1.jsonl over results/old",
        ),
        (
            "gate round4 --baseline two-pass --contender *leaved,seq*",
            "over two-pass",
        ),
        (
            "show round4 --shape 256x*",
            "1 of 2 shapes were chosen (--shape)",
        ),
        ("compare first round4 --shape 256x3072*", "interleaved"),
    ] {
        let said = workspace.run(&words.split(' ').collect::<Vec<_>>());
        assert!(said.contains(shown), "{shown}: {said}");
        assert!(!said.contains("[exit 2]"), "{said}");
    }
    let said = workspace.run(&["show", "round5"]);
    assert!(said.contains("no run of this name in results/"), "{said}");
    let said = workspace.run(&["gate", "round4", "--contender", "no*"]);
    assert!(
        said.contains("no contender `no*`") || said.contains("`no*`"),
        "{said}"
    );
    assert!(said.ends_with("[exit 2]"), "{said}");
}

#[test]
fn a_target_goes_by_the_name_of_its_file() {
    let workspace = workspace();
    let known = include_str!("../../configs/targets/h200.toml");
    workspace.write("configs/targets/mine.toml", known);
    let said = workspace.run(&["check", "--no-compile", "--target", "mine", "tiny"]);
    assert!(said.ends_with("[exit 0]"), "{said}");
    let said = workspace.run(&["check", "--no-compile", "--target", "yours", "tiny"]);
    assert!(said.contains("configs/targets/"), "{said}");
    assert!(said.ends_with("[exit 2]"), "{said}");
}

/// Without a round, all four take that of the newest run and say so; none has
/// one of its own.
#[test]
fn commands_agree_on_the_round_they_take() {
    let workspace = workspace();
    let round = workspace.read("configs/tiny.toml");
    workspace.write("configs/round4.toml", &round);
    for verb in ["explain", "profile", "debug"] {
        let said = workspace.run(&[verb, "one:STAGES=1"]);
        assert!(said.contains("no round is named"), "{said}");
        assert!(said.contains("name one of round4, tiny"), "{said}");
        assert!(said.ends_with("[exit 2]"), "{said}");
        let said = workspace.run(&[verb, "nobody"]);
        assert!(said.contains("there is no variant `nobody`"), "{said}");
        assert!(said.ends_with("[exit 2]"), "{said}");
    }
    let sweep = "sweep tiny --backend emu --only one --shape 256x128x512";
    workspace.run(&sweep.split(' ').collect::<Vec<_>>());
    let sanitize = "sanitize one:STAGES=1 --schedules 1 --shape 256x128x512";
    for words in [
        "explain one:STAGES=1",
        "profile one:STAGES=1",
        "debug one:STAGES=1",
        sanitize,
    ] {
        let said = workspace.run(&words.split(' ').collect::<Vec<_>>());
        assert!(said.contains(" as in results/tiny-"), "{said}");
        assert!(said.contains(".jsonl, the newest run\n"), "{said}");
        assert!(!said.contains("[exit 2]"), "{said}");
    }
    // It is in no run, and has no round of its own.
    let said = workspace.run(&["profile", "pipelined:STAGES=1"]);
    assert!(said.contains(" on the shapes of results/tiny-"), "{said}");
    let told = ".jsonl, the newest run, which does not contain it\n";
    assert!(said.contains(told), "{said}");
    let own = round.replacen("[\"one\", ", "[", 1);
    let own = own.replacen("\"one:STAGES=1\"", "\"pipelined:STAGES=1\"", 1);
    workspace.write("configs/pipelined.toml", &own);
    let said = workspace.run(&["profile", "pipelined:STAGES=1"]);
    let told = "pipelined:STAGES=1 as in configs/pipelined.toml, its own round";
    assert!(said.contains(told), "{said}");
}
