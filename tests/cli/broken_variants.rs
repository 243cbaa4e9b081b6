//! A variant with broken front matter fails only its own row of a round; commands that examine it
//! show the whole diagnostic.

use crate::workspace::{VARIANT, Workspace};

/// A round of `one` and of `two`, which is made from it with one edit.
fn beside(from: &str, to: &str) -> Workspace {
    let workspace = Workspace::new();
    let broken = VARIANT.replacen(from, to, 1);
    assert_ne!(broken, VARIANT, "{from}");
    workspace.write("variants/two.cu", &broken);
    workspace.edit("round.toml", "[\"one\"]", "[\"two\", \"one[STAGES=1]\"]");
    workspace
}

/// Front matter that cannot be read, and an expression that has no value on
/// the round's shape.
const MISTAKES: [(&str, &str, &str); 4] = [
    ("kernel =", "kernle =", "unknown key `kernle`"),
    ("/*dgx", "/*", "does not open with front matter"),
    ("STAGES * BK", "STAGES * (BK", "is missing here"),
    ("STAGES * BK", "BK / (k - 512)", "division by zero"),
];

#[test]
fn check_shows_the_mistake_and_what_is_right_beside_it() {
    for (from, to, expected) in MISTAKES {
        let text = beside(from, to).run(&["check", "round.toml"]);
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("variants/two.cu:"), "{text}");
        assert!(text.contains("one[STAGES=1]"), "{text}");
        assert!(text.ends_with("[exit 2]"), "{text}");
    }
}

#[test]
fn a_sweep_gives_it_a_row_and_goes_on() {
    for (from, to, expected) in MISTAKES {
        let workspace = beside(from, to);
        let text = workspace.run(&["sweep", "round.toml", "--backend", "emu"]);
        let row = |name: &str| text.lines().find(|line| line.contains(name));
        let two = row(" two").unwrap_or_else(|| panic!("{text}"));
        assert!(two.contains("compile-error"), "{text}");
        // Reasons are folded.
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words.join(" ").contains(expected), "{text}");
        assert!(text.contains("validate 0/"), "{text}");
        assert!(text.contains("one[STAGES=1]"), "{text}");
        assert!(text.ends_with("[exit 3]"), "{text}");
    }
}

#[test]
fn a_dry_run_and_a_list_say_it_too() {
    let workspace = beside("kernel =", "kernle =");
    for words in [
        &["sweep", "round.toml", "--dry-run"][..],
        &["list", "round.toml"],
    ] {
        let text = workspace.run(words);
        assert!(text.contains("one[STAGES=1]"), "{text}");
        assert!(text.contains("unknown key `kernle`"), "{text}");
        assert!(text.ends_with("[exit 2]"), "{text}");
    }
}

#[test]
fn nothing_can_be_compared_with_a_broken_baseline() {
    for (from, to, expected) in MISTAKES {
        let workspace = beside(from, to);
        workspace.edit("round.toml", "\"one[STAGES=1]\"\n", "\"two[STAGES=1]\"\n");
        for words in [
            &["check", "round.toml"][..],
            &["sweep", "round.toml", "--backend", "emu"],
        ] {
            let text = workspace.run(words);
            assert!(text.contains(expected), "{text}");
            assert!(text.ends_with("[exit 2]"), "{text}");
        }
        let runs = std::fs::read_dir(workspace.path().join("results")).expect("a folder");
        assert_eq!(runs.count(), 0, "a sweep went ahead");
    }
}

#[test]
fn names_that_mean_no_one_file_are_still_the_rounds_mistake() {
    for name in ["cublas", "two[A B=1]", "two[=1]"] {
        let workspace = beside("kernel =", "kernle =");
        workspace.write("variants/cublas.cu", VARIANT);
        workspace.edit("round.toml", "\"two\"", &format!("{name:?}"));
        let text = workspace.run(&["check", "round.toml"]);
        assert!(
            text.contains("round.toml:2") || text.contains("yardstick"),
            "{text}"
        );
        assert!(text.ends_with("[exit 2]"), "{text}");
    }
}
