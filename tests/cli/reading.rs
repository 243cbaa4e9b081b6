//! The commands that only read run files.

use std::path::Path;

use crate::workspace::{Workspace, in_repository};

const ROUND1: &str = include_str!("../../results/baselines/round1-b200.jsonl");
const ROUND4: &str = include_str!("../fixtures/runs/round4.jsonl");

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("results/baselines/round1-b200.jsonl", ROUND1);
    workspace.write("results/round4.jsonl", ROUND4);
    workspace
}

fn code(output: &str) -> &str {
    output.lines().next().unwrap_or_default()
}

#[test]
fn the_gate_rejects_round_1_on_record() {
    let workspace = workspace();
    let file = "results/baselines/round1-b200.jsonl";
    for args in [
        vec!["gate", file],
        vec!["gate", file, "--min-geomean", "1.4"],
        vec!["gate", file, "--min-geomean", "1.0"],
        vec!["gate", "--baseline", file],
        vec!["gate", "--baseline", file, "--min-geomean", "1.0"],
        vec!["gate", file, "--baseline", "pipelined[STAGES=1]"],
    ] {
        let output = workspace.run(&args);
        assert!(code(&output).contains('1'), "{args:?}\n{output}");
        assert!(output.contains("0.735×"), "{args:?}\n{output}");
    }
    insta::assert_snapshot!(workspace.run(&["gate", file, "--min-geomean", "1.0"]));
}

#[test]
fn gates_of_a_measured_run() {
    let workspace = workspace();
    insta::assert_snapshot!(
        "passes",
        workspace.run(&["gate", "--min-geomean", "1.2", "--min-shape", "1.0"])
    );
    let exports = [
        "--export-json",
        "g.json",
        "--export-junit",
        "g.xml",
        "--export-markdown",
        "g.md",
    ];
    let mut args = vec!["gate", "--min-geomean", "1.5"];
    args.extend(exports);
    insta::assert_snapshot!("fails", workspace.run(&args));
    for file in ["g.json", "g.xml", "g.md"] {
        assert!(workspace.path().join(file).is_file(), "{file}");
    }
    insta::assert_snapshot!("clear", workspace.run(&["gate", "--min-geomean", "1.0001"]));
    insta::assert_snapshot!("nonsense", workspace.run(&["gate", "--min-geomean", "nan"]));
}

#[test]
fn compare_two_contenders_of_the_newest_run() {
    let workspace = workspace();
    insta::assert_snapshot!(workspace.run(&["compare", "two-pass", "interleaved"]));
    let args = [
        "compare",
        "sequential",
        "interleaved",
        "--export-json",
        "c.json",
    ];
    workspace.run(&args);
    let json = std::fs::read_to_string(workspace.path().join("c.json")).expect("an export");
    assert!(
        json.contains("\"ranking\"") && json.contains("\"micros\""),
        "{json}"
    );
}

#[test]
fn compare_explains_what_it_cannot_do() {
    let workspace = workspace();
    insta::assert_snapshot!(
        "typo",
        workspace.run(&["compare", "two-pas", "interleaved"])
    );
    insta::assert_snapshot!(
        "wrong design",
        workspace.run(&["compare", "two-pass", "single-gemm"])
    );
    insta::assert_snapshot!(
        "mixed kinds",
        workspace.run(&["compare", "two-pass", "results/round4.jsonl"])
    );
    let text = workspace.run(&["compare", "results/round4.jsonl", "nobody"]);
    let words = "`nobody` is neither a run nor a contender";
    assert!(text.contains(words), "{text}");
    let two = [
        "compare",
        "results/round4.jsonl",
        "results/baselines/round1-b200.jsonl",
    ];
    insta::assert_snapshot!("devices", workspace.run(&two));
    insta::assert_snapshot!(
        "missing file",
        workspace.run(&["compare", "a.jsonl", "b.jsonl"])
    );
}

#[test]
fn compare_a_run_with_itself() {
    let workspace = workspace();
    workspace.write("results/again.jsonl", ROUND4);
    let args = ["compare", "results/round4.jsonl", "results/again.jsonl"];
    insta::assert_snapshot!(workspace.run(&args));
}

/// Runs of two cards are named, and the exports hold both.
#[test]
fn compare_runs_of_two_cards() {
    let workspace = workspace();
    let card = |name: &str| ROUND4.replacen("\"uuid\":null", &format!("\"uuid\":\"{name}\""), 1);
    workspace.write("a.jsonl", &card("GPU-one"));
    workspace.write(
        "b.jsonl",
        &card("GPU-two").replace("\"micros\":1", "\"micros\":2"),
    );
    let exports = [
        "--export-json",
        "c.json",
        "--export-csv",
        "c.csv",
        "--export-markdown",
        "c.md",
    ];
    let text = workspace.run(&[&["compare", "a.jsonl", "b.jsonl"][..], &exports].concat());
    for words in [
        "GPU-one",
        "GPU-two",
        "between two cards",
        "no difference of designs",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    for file in ["c.json", "c.csv", "c.md"] {
        let written = std::fs::read_to_string(workspace.path().join(file)).expect(file);
        for run in ["a.jsonl", "b.jsonl", "measured"] {
            assert!(written.contains(run), "{file} has no {run}: {written}");
        }
    }
}

#[test]
fn tables_can_be_had_again() {
    let shown = workspace().run(&["show", "results/round4.jsonl"]);
    insta::assert_snapshot!(shown);
}

/// The final was swept twice on an H200, in fresh processes.
#[test]
fn a_repeated_sweep_finds_the_same() {
    let [first, second] =
        ["1823", "1827"].map(|at| format!("results/baselines/final-20261115-{at}.jsonl"));
    let text = in_repository(&["compare", &first, &second]);
    for finding in [
        "The tie groups agree: 78 of 78 pairs",
        "The geometric means over two-pass agree: 12 of 12",
    ] {
        assert!(text.contains(finding), "{finding}: {text}");
    }
}

#[test]
fn broken_files_are_errors_with_a_place() {
    let workspace = workspace();
    workspace.write(
        "broken.jsonl",
        &ROUND4.replacen("\"type\":\"build\"", "\"type\":\"bild\"", 1),
    );
    workspace.write(
        "newer.jsonl",
        &ROUND4.replacen("\"schema\":1", "\"schema\":7", 1),
    );
    workspace.write("foreign.jsonl", "{\"hello\": 1}\n");
    for file in ["broken.jsonl", "newer.jsonl", "foreign.jsonl"] {
        insta::assert_snapshot!(file, workspace.run(&["gate", file]));
    }
}

#[test]
fn the_report_is_one_file() {
    let workspace = workspace();
    let args = ["report", "results/round4.jsonl", "-o", "r.html"];
    insta::assert_snapshot!(workspace.run(&args));
    let text = std::fs::read_to_string(workspace.path().join("r.html")).expect("a page");
    assert!(!text.is_empty());
}

#[test]
fn juries_and_rounds() {
    let workspace = workspace();
    for round in ["round1", "round4"] {
        let config = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("configs/{round}.toml"));
        let text = std::fs::read_to_string(config).expect("a round");
        workspace.write(&format!("configs/{round}.toml"), &text);
    }
    insta::assert_snapshot!("jury 1", workspace.run(&["jury", "round1"]));
    insta::assert_snapshot!("jury 4", workspace.run(&["jury", "configs/round4.toml"]));
    insta::assert_snapshot!("rounds", workspace.run(&["rounds"]));
}

/// Where nothing was run, what bounds a contender is said of the round's
/// shapes; where something was, the times stand beside it.
#[test]
fn explain_says_what_bounds_a_contender() {
    let explain = |args: &[&str]| in_repository(&[&["explain"], args].concat());
    // Registers are the compiler's choice, and change with its version.
    insta::with_settings!({filters => vec![(r"dual_gemm +\d+ ", "dual_gemm   NNN ")]}, {
        let text = explain(&["interleaved", "configs/smoke.toml"]);
        // What the model says changes with the target's numbers.
        let (text, modelled) = text.split_once("On 64x128x256").expect("what binds");
        insta::assert_snapshot!("explained", text);
        for word in ["bound by launch", "saves at most µs", "modelled for", "[exit 0]"] {
            assert!(modelled.contains(word), "{word}: {modelled}");
        }
    });
    let run = "results/baselines/final-20261115-1823.jsonl";
    let text = explain(&["pipelined[STAGES=2]", run]);
    for word in ["least", "limited by", "g8-k7168", "[exit 0]"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    // The least time, the time taken, and one over the other; the report has
    // the same share of the same floor.
    let folder = tempfile::tempdir().expect("a folder");
    let report = folder.path().join("report.html");
    in_repository(&["report", run, "-o", report.to_str().expect("a plain path")]);
    let report = std::fs::read_to_string(&report).expect("a report");
    let reported = |shape: &str| -> String {
        let told = format!("pipelined[STAGES=2] on {shape}: ");
        let told = report.split(&told).nth(1).expect("a cell");
        let told = told.split(" of the roofline").next().expect("its share");
        told.rsplit(", ").next().expect("a share").to_owned()
    };
    let rows = text
        .lines()
        .filter(|line| line.trim_end().ends_with('%') && line.contains("gemm"));
    let mut judged = 0;
    for row in rows {
        let words: Vec<&str> = row.split_whitespace().rev().collect();
        let [_, share, micros, ..] = words[..] else {
            continue;
        };
        let number = |word: &str| word.parse::<f64>();
        let (Ok(share), Ok(micros)) = (number(share), number(micros)) else {
            continue;
        };
        let least = words[3..]
            .iter()
            .find_map(|word| number(word).ok())
            .expect("a least time");
        let found = 100.0 * least / micros;
        assert!((found - share).abs() < 1.0, "{found}: {row}");
        let shape = words.last().expect("a shape");
        assert_eq!(format!("{share} %"), reported(shape), "{row}");
        judged += 1;
    }
    assert!(judged >= 8, "{text}");
    insta::assert_snapshot!(
        "explain typo",
        explain(&["interleavd", "configs/smoke.toml"])
    );
    insta::assert_snapshot!(
        "explain choice",
        explain(&["pipelined[STAGES=9]", "configs/smoke.toml"])
    );
    insta::assert_snapshot!(
        "explain nothing",
        explain(&["interleaved", "nowhere.jsonl"])
    );
}

/// The committed final, and a file with its first half.
fn half_a_run(folder: &tempfile::TempDir) -> (&'static str, String) {
    let whole = "results/baselines/final-20261115-1823.jsonl";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(whole);
    let text = std::fs::read_to_string(file).expect("the committed final");
    let half = folder.path().join("half.jsonl");
    std::fs::write(&half, &text[..text.len() / 2]).expect("half a run");
    (whole, half.to_str().expect("a plain path").to_owned())
}

/// A variant that picks the winners of half a run would pick whoever came first.
#[test]
fn a_dispatch_needs_a_whole_run_and_says_what_its_times_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let (whole, half) = half_a_run(&folder);
    let told = in_repository(&["dispatch", &half]);
    assert!(told.ends_with("[exit 5]"), "{told}");
    assert!(told.contains("is incomplete: it did not end"), "{told}");
    for (run, timing) in [
        (
            "results/baselines/round6-20261116-1624.jsonl",
            "by measured times",
        ),
        (
            "results/baselines/blackwell-20261116-2332.jsonl",
            "by modelled times",
        ),
    ] {
        let told = in_repository(&["dispatch", run]);
        assert!(told.ends_with("[exit 0]"), "{told}");
        assert!(told.contains(timing), "{told}");
    }
    // One winner everywhere: a variant would pick it always.
    let file = folder.path().join("table.cu");
    let told = in_repository(&["dispatch", whole, "-o", file.to_str().expect("a path")]);
    assert!(told.ends_with("[exit 0]"), "{told}");
    assert!(
        told.contains("nothing was written: no contender is"),
        "{told}"
    );
    assert!(!file.exists());
}

/// Costs that are made up are worse than fitted ones, and writing these keeps the rest.
#[test]
fn costs_are_fitted_to_runs_and_written() {
    const RUN: &str = "results/baselines/final-20261115-1823.jsonl";
    const OTHER: &str = "results/baselines/final-20261115-1827.jsonl";
    let folder = tempfile::tempdir().expect("a folder");
    let cost = "cost = [\n  { ns = 0, of = \"1000\" },  # fixed\n  \
                { ns = 1.0, of = \"sum(m * n * k) / 1000000\" },\n]\n";
    let pick = |name: &str| format!("[[pick]]\ncontender = \"{name}\"\n{cost}");
    let text = format!(
        "/*dgx\nsummary = \"p\"\narch = \"sm_90a\"\n{}{}*/\n",
        pick("two-pass"),
        pick("interleaved")
    );
    let file = folder.path().join("cheapest.cu");
    std::fs::write(&file, &text).expect("a variant");
    let variants = folder.path().to_str().expect("a plain path");
    let fit = |more: &[&str]| {
        let mut words = vec!["dispatch", "--fit", RUN, "--variant", "cheapest"];
        words.extend(["--variants", "variants", "--variants", variants]);
        words.extend(more);
        in_repository(&words)
    };
    let said = fit(&["--holdout", OTHER]);
    assert!(said.ends_with("[exit 0]"), "{said}");
    for part in [
        "two-pass",
        "interleaved",
        "as written",
        "fitted",
        "held out",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(std::fs::read_to_string(&file).expect("it"), text);
    let said = fit(&["--write"]);
    assert!(said.contains("wrote "), "{said}");
    let written = std::fs::read_to_string(&file).expect("it");
    assert!(written.contains(" of = \"1000\" },  # fixed"), "{written}");
    assert!(!written.contains("ns = 1.0,"), "{written}");
    // As they are written now is as they would be fitted.
    let said = fit(&[]);
    let row = |what: &str| {
        let line = said.lines().find(|line| line.contains(what));
        line.expect(what).replace(what, "").trim().to_owned()
    };
    assert_eq!(row("as written"), row("fitted"), "{said}");
    let said = in_repository(&["dispatch", "--fit", RUN, "--variant", "interleaved"]);
    assert!(
        said.contains("`interleaved` has no picks with a `cost`"),
        "{said}"
    );
    assert!(said.ends_with("[exit 2]"), "{said}");
}

/// Half a run looks like a whole one in every table: it must be said.
#[test]
fn half_a_run_is_said_to_be_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let (whole, half) = half_a_run(&folder);
    let told = in_repository(&["compare", whole, &half]);
    assert!(told.contains("B is not complete: it did not end"), "{told}");
    assert!(!told.contains("A is not complete"), "{told}");
    let told = in_repository(&["compare", "swap-ab", "two-pass", &half]);
    assert!(told.contains("not complete: it did not end"), "{told}");
    let page = folder.path().join("half.html");
    in_repository(&["report", &half, "-o", page.to_str().expect("a plain path")]);
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("This run is not complete: it did not end"));
}

/// `-` is standard output, and nothing but the export is there then.
#[test]
fn an_export_to_standard_output_is_alone_there() {
    let workspace = workspace();
    let run = "results/round4.jsonl";
    let output = |words: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_dgx"));
        command.current_dir(workspace.path()).env("NO_COLOR", "1");
        let output = command.args(words.split_whitespace()).output();
        let output = output.expect("dgx runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (text(output.stdout), text(output.stderr))
    };
    for command in [
        format!("show {run}"),
        format!("show {run} --shape *"),
        format!("compare two-pass interleaved {run}"),
        format!("compare {run} {run}"),
        format!("gate {run}"),
    ] {
        let (json, said) = output(&format!("{command} --export-json -"));
        let value: serde_json::Value = serde_json::from_str(&json).expect("JSON alone");
        assert!(value.is_object() && said.contains("interleaved"), "{said}");
        let (page, said) = output(&format!("{command} --export-markdown -"));
        assert!(page.contains("|---|") && !said.contains("|---|"), "{page}");
        let (_, said) = output(&format!("{command} --export-json - --export-markdown -"));
        assert!(said.contains("two exports go to standard output"), "{said}");
    }
    assert!(!workspace.path().join("-").exists());
    // A file may be called so, and is another place.
    std::fs::copy(workspace.path().join(run), workspace.path().join("-")).expect("a copy");
    let (json, said) = output("gate ./- --export-json -");
    assert!(
        serde_json::from_str::<serde_json::Value>(&json).is_ok(),
        "{said}"
    );
}
