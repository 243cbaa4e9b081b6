//! The first hour of a new user, and the commands for it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::running::Running;
use crate::workspace::{Workspace, wait_for};

#[test]
fn the_first_hour() {
    let workspace = Workspace::empty();
    let ends = |words: &[&str], code: u8| {
        let text = workspace.run(words);
        assert!(text.ends_with(&format!("[exit {code}]")), "{text}");
        text
    };
    let sweep = &["sweep", "mine", "--backend", "emu"];

    let text = ends(&["new", "mine"], 0);
    assert!(text.contains("wrote variants/mine.cu"), "{text}");
    assert!(text.contains("next: dgx sweep configs/mine.toml"), "{text}");
    ends(&["check", "mine"], 0);
    workspace.leave_few_rows("mine");
    let text = ends(sweep, 0);
    assert!(text.contains("validate 3/3 ok"), "{text}");
    let text = ends(&["debug", "mine", "mine", "--backend", "emu"], 0);
    assert!(text.contains("ok emulated as"), "{text}");

    // A second design, from the first, and the gate holds.
    let text = ends(&["new", "faster", "--from", "mine"], 0);
    assert!(text.contains("wrote configs/faster.toml"), "{text}");
    workspace.leave_few_rows("faster");
    let both = &["sweep", "configs/faster.toml", "--backend", "emu"];
    let text = ends(both, 0);
    assert!(text.contains("validate 6/6 ok"), "{text}");

    // Broken: the sweep says where to look, and the look says why.
    let silu = "return x / (1 + exp(-x));";
    workspace.edit("variants/faster.cu", silu, "return x;");
    let text = ends(both, 3);
    let step = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("next: dgx "));
    let step = step.unwrap_or_else(|| panic!("{text}"));
    assert!(text.contains("; first: "), "{text}");
    let words: Vec<&str> = step.split(' ').chain(["--backend", "emu"]).collect();
    assert_eq!(words[..2], ["debug", "faster"], "{text}");
    let text = ends(&words, 3);
    assert!(
        text.contains("is what a known mistake gives: silu is missing (100 %"),
        "{text}"
    );
    assert!(text.contains("variants/faster.cu:"), "{text}");
    ends(&["gate"], 1);

    // Mended.
    workspace.edit("variants/faster.cu", "return x;", silu);
    let text = ends(both, 0);
    assert!(!text.contains("next: dgx debug"), "{text}");
    let text = ends(&["compare", "faster", "mine"], 0);
    assert!(text.contains("faster"), "{text}");
    ends(&["gate"], 0);
    ends(&["report", "-o", "report.html"], 0);
    let page = fs::read_to_string(workspace.path().join("report.html")).expect("a page");
    assert!(page.contains("faster"));
}

#[test]
fn names_that_are_taken_or_cannot_be_are_refused() {
    let workspace = Workspace::begun("mine");
    for (name, why) in [
        ("mine", "there is a variant of that name"),
        ("no/path", "a name is not a path"),
        ("cublas", "a yardstick's name"),
        ("copy", "a yardstick's name"),
        ("a b", "only letters"),
        (".hidden", "is hidden, and passed over"),
        ("", "the name is empty"),
    ] {
        let text = workspace.run(&["new", name]);
        assert!(text.contains(why), "{name}: {text}");
        assert!(text.ends_with("[exit 2]"), "{name}: {text}");
    }
    workspace.write("configs/other.toml", "mine");
    let text = workspace.run(&["new", "other"]);
    assert!(text.contains("there is configs/other.toml"), "{text}");
    assert!(!workspace.path().join("variants/other.cu").exists());
    let text = workspace.run(&["new", "next", "--from", "mina"]);
    assert!(text.contains("did you mean `mine`?"), "{text}");
    assert!(!workspace.path().join("configs/next.toml").exists());
}

/// Every design of the checkout can be begun from: there are shapes that the
/// copy runs, or it would warn.
#[test]
fn every_design_can_be_begun_from() {
    let checkout = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let workspace = Workspace::empty();
    crate::workspace::copy(
        &checkout.join("variants"),
        &workspace.path().join("variants"),
    );
    let names = fs::read_dir(checkout.join("variants")).expect("variants");
    let names = names.map(|entry| entry.expect("an entry").path());
    let designs = names.filter(|path| path.extension().is_some_and(|e| e == "cu"));
    let mut begun = 0;
    for design in designs {
        let stem = design
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let name = format!("new-{stem}");
        let text = workspace.run(&["new", &name, "--from", &stem]);
        if stem == "single-gemm" {
            assert!(text.contains("declared wrong"), "{text}");
            continue;
        }
        assert!(text.ends_with("[exit 0]"), "{text}");
        // Some are for few or for many tokens only, and are told so.
        let small = text.contains("warning: it cannot run the shapes of its round");
        assert!(small || !text.contains("warning"), "{text}");
        assert_eq!(text.contains("it passes"), !small, "{text}");
        begun += usize::from(!small);
    }
    assert!(begun > 10, "{begun}");
}

/// The shapes are not to blame for it.
#[test]
fn a_mistake_in_the_design_that_is_copied_is_shown() {
    let workspace = Workspace::begun("mine");
    workspace.edit("variants/mine.cu", "m * cdiv(n, THREADS)", "m * cdiv(n, 0)");
    let text = workspace.run(&["new", "next", "--from", "mine"]);
    assert!(text.contains("variants/mine.cu"), "{text}");
    assert!(!text.contains("it cannot run the shapes"), "{text}");
    assert!(!text.contains("it passes"), "{text}");
    assert!(text.ends_with("[exit 2]"), "{text}");
}

/// What runs on another chip than the one here says where.
#[test]
fn a_design_for_another_chip_is_begun_with_its_target() {
    let checkout = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let workspace = Workspace::empty();
    crate::workspace::copy(
        &checkout.join("variants"),
        &workspace.path().join("variants"),
    );
    let text = workspace.run(&["new", "mine", "--from", "two-cta"]);
    for line in [
        "dgx sweep configs/mine.toml --target b200    it passes; this times it",
        "dgx watch configs/mine.toml -- --target b200 ",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let words = "check --no-compile configs/mine.toml";
    let text = workspace.run(&words.split(' ').collect::<Vec<_>>());
    assert!(text.contains("--target b200 emulates it"), "{text}");
    let words = "check --no-compile configs/mine.toml --target b200";
    let text = workspace.run(&words.split(' ').collect::<Vec<_>>());
    assert!(
        text.contains("next: dgx sweep configs/mine.toml --target b200"),
        "{text}"
    );
}

#[test]
fn watch_sweeps_what_changed_and_survives_mistakes() {
    let workspace = Workspace::begun("mine");
    let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
    command
        .current_dir(workspace.path())
        .env("NO_COLOR", "1")
        .env("DGX_CACHE", workspace.path().join("cache"))
        .args(["watch", "mine", "--runs", "3", "--", "--backend", "emu"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = Running::start(&mut command);
    let mut lines = BufReader::new(child.stderr.take().expect("its words")).lines();
    let mut until = |word: &str| {
        let mut heard = Vec::new();
        for line in lines.by_ref().map_while(Result::ok) {
            let found = line.contains(word);
            heard.push(line);
            if found {
                return heard.join("\n");
            }
        }
        panic!("never said {word:?}: {}", heard.join("\n"));
    };
    until("sweeping the whole round");
    until("exit 0; waiting for a change in configs/mine.toml, variants");
    workspace.edit("variants/mine.cu", "float gate = 0.0f", "flaot gate = 0.0f");
    until("changed: mine");
    until("exit 3; waiting for a change");
    workspace.edit("variants/mine.cu", "flaot gate", "float gate");
    until("changed: mine");
    wait_for("its end", || child.try_wait().expect("a child").is_some());
    let files = fs::read_dir(workspace.path().join("results/watch")).expect("a folder");
    let runs = files.filter(|f| {
        let path = f.as_ref().expect("an entry").path();
        path.extension().is_some_and(|e| e == "jsonl")
    });
    assert_eq!(runs.count(), 1);
}
