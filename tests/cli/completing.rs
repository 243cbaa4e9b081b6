//! Completions at TAB: commands and flags, and the existing rounds, runs, contenders and shapes.

use std::process::Command;

use crate::workspace::Workspace;

const MEASURED: &str = include_str!("../fixtures/runs/round4.jsonl");
const SMALL: &str = "question = \"Which?\"
contenders = [\"one\"]
baseline = \"one:STAGES=1\"
shapes = [{ name = \"ragged\", m = 3, n = 128, k = 512 }, { name = \"round\", m = 4, n = 128, k = 512 }]
";

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("configs/small.toml", SMALL);
    workspace.write("configs/smoke.toml", SMALL);
    workspace.write("results/measured.jsonl", MEASURED);
    workspace
}

/// Lines to complete, what must be offered and what must not.
const LINES: [(&str, &[&str], &[&str]); 9] = [
    ("dgx sw", &["sweep"], &["show"]),
    ("dgx sweep sm", &["small", "smoke"], &["measured"]),
    ("dgx show me", &["measured"], &["small"]),
    ("dgx debug one s", &["small", "smoke"], &["sweep"]),
    ("dgx debug o", &["one", "one:STAGES=1", "one:STAGES=2"], &[]),
    ("dgx debug one small --shape r", &["ragged", "round"], &[]),
    ("dgx sweep small --only one,o", &["one,one:STAGES=2"], &[]),
    ("dgx explain one --target h", &["h200", "h100"], &["b200"]),
    (
        "dgx gate measured --export-j",
        &["--export-json", "--export-junit"],
        &[],
    ),
];

/// The words that a shell offers for a line; none where it is not installed.
fn offered(workspace: &Workspace, shell: &str, flags: &[&str], script: &str) -> Option<String> {
    let output = Command::new(shell)
        .current_dir(workspace.path())
        .env("DGX", env!("CARGO_BIN_EXE_dgx"))
        .args(flags)
        .args(["-c", script])
        .output();
    let Ok(output) = output else {
        eprintln!("skipped: {shell} is not installed");
        return None;
    };
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn holds(shell: &str, flags: &[&str], script: impl Fn(&str) -> String) {
    let workspace = workspace();
    for (line, due, never) in LINES {
        let Some(text) = offered(&workspace, shell, flags, &script(line)) else {
            return;
        };
        let words: Vec<&str> = text.lines().filter_map(|l| l.split('\t').next()).collect();
        for word in due {
            assert!(
                words.contains(word),
                "{shell}: {line}: no {word} in {words:?}"
            );
        }
        for word in never {
            assert!(
                !words.contains(word),
                "{shell}: {line}: {word} in {words:?}"
            );
        }
        assert!(
            !text.contains("worker"),
            "{shell} has what is hidden: {text}"
        );
    }
}

/// As readline calls it: words are parted at blanks, and at `:` and `=`.
fn in_bash(line: &str) -> String {
    format!(
        "source <(\"$DGX\" completions bash); complete -p dgx | grep -q -- '-F _dgx dgx' || exit 1
         COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; COMP_TYPE=9
         COMP_WORDS=($(sed 's/[:=]/ & /g' <<< \"$COMP_LINE\")); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
         _dgx dgx \"${{COMP_WORDS[COMP_CWORD]}}\" 2> /dev/null
         printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
}

#[test]
fn bash_offers_what_is_there() {
    holds("bash", &["--norc"], in_bash);
    // What stands before the last `:` or `=` is on the line already.
    let workspace = workspace();
    for (line, due) in [
        ("dgx debug one:ST", "STAGES=1\nSTAGES=2\n"),
        ("dgx debug one:STAGES=", "1\n2\n"),
        ("dgx debug one small --shape=ra", "ragged\n"),
    ] {
        let text = offered(&workspace, "bash", &["--norc"], &in_bash(line));
        assert_eq!(text.as_deref(), Some(due), "{line}");
    }
}

/// With `_describe`, which draws, replaced by one that prints.
#[test]
fn zsh_offers_what_is_there() {
    holds("zsh", &["-f"], |line| {
        format!(
            "compdef() {{}}
             _describe() {{
               for word in ${{(P)3}}; do
                 word=${{word//\\\\:/%}}; word=${{word%%:*}}; print -r -- ${{word//\\%/:}}
               done
             }}
             source <(\"$DGX\" completions zsh)
             words=({line}); CURRENT=${{#words}}; _clap_dynamic_completer_dgx"
        )
    });
}

#[test]
fn fish_offers_what_is_there() {
    holds("fish", &["--no-config"], |line| {
        format!("$DGX completions fish | source; complete -C '{line}'")
    });
}

#[test]
fn the_shell_is_the_one_that_asks() {
    let workspace = Workspace::empty();
    let said = |shell| workspace.run_with(&["completions"], &[("SHELL", shell)]);
    assert!(said("/usr/bin/fish").contains("complete --keep-order"));
    let none = said("/bin/none");
    assert!(none.contains("`dgx completions bash`"), "{none}");
    assert!(none.ends_with("[exit 2]"), "{none}");
}

/// Designs of other operators lie in folders of their own.
#[test]
fn designs_of_every_operator_are_offered() {
    let said = Command::new(env!("CARGO_BIN_EXE_dgx"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("DGX_COMPLETE", "fish")
        .args(["--", "dgx", "debug", "one-"])
        .output()
        .expect("dgx runs");
    let said = String::from_utf8_lossy(&said.stdout);
    let offered: Vec<&str> = said.split_whitespace().collect();
    assert!(offered.contains(&"one-read"), "{said}");
}
