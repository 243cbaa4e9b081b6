//! Whole sweeps in the emulator: the status of every fixture, and the output and files of a sweep.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::sweep::{ROUND, Sweep, ended};
use crate::workspace::{Workspace, copy};

const FIXTURES: &str = "tests/fixtures/variants";

/// All fixtures but those that only a card tells anything about. The one that never ends would take
/// a minute to the step limit, which the emulator's own tests reach.
fn fixture_round() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let on_a_card = fs::read_to_string(root.join("tests/fixtures/gpu.toml")).expect("a round");
    let mut names: Vec<String> = fs::read_dir(root.join(FIXTURES))
        .expect("fixtures")
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "cu"))
        .map(|p| format!("{:?}", p.file_stem().unwrap_or_default()))
        .filter(|name| name == "\"plain\"" || !on_a_card.contains(name.as_str()))
        .collect();
    names.sort();
    format!(
        "question   = \"Is every failure told apart?\"
contenders = [{}]
baseline   = \"plain\"
shapes     = [{{ name = \"ragged\", groups = [
  {{ m = 40, n = 128, k = 256 }}, {{ m = 7, n = 256, k = 512 }}, {{ m = 130, n = 128, k = 256 }},
] }}]
[validate]
seed = 1
timeout = 10
",
        names.join(", ")
    )
}

#[test]
fn every_fixture_gets_the_status_it_declares() {
    let sweep = Sweep::new(&fixture_round());
    sweep.run(&[&sweep.round(), "--variants", FIXTURES], 0);
    let verdicts = sweep.verdicts();
    let statuses: Vec<&str> = verdicts.values().map(|(_, s)| s.as_str()).collect();
    for expected in ["ok", "wrong", "compile-error", "launch-error", "hung"] {
        assert!(statuses.contains(&expected), "no {expected}: {verdicts:?}");
    }
}

/// The kernel that docs/variants.md shows whole.
#[test]
fn the_kernel_of_the_docs_is_ok() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = fs::read_to_string(root.join("docs/variants.md")).expect("docs");
    let (_, after) = docs
        .split_once("## A complete kernel")
        .expect("the section");
    let (_, code) = after.split_once("```c++\n").expect("its code");
    let (code, _) = code.split_once("```").expect("its end");
    let sweep = Sweep::new(
        "question   = \"Is it right?\"
contenders = [\"first\"]
baseline   = \"first\"
shapes     = [{ name = \"ragged\", groups = [{ m = 3, n = 128, k = 256 }, { m = 1, n = 256, k = 256 }] }]
[validate]
seed = 1
",
    );
    let variants = sweep.folder.path().join("variants");
    copy(&root.join("variants/include"), &variants.join("include"));
    fs::write(variants.join("first.cu"), code).expect("a file");
    let folder = variants.display().to_string();
    sweep.run(&[&sweep.round(), "--variants", &folder], 0);
    let verdicts = sweep.verdicts();
    assert!(verdicts.values().all(|(_, s)| s == "ok"), "{verdicts:?}");
    assert_eq!(verdicts.len(), 1);
}

/// What the designs for few tokens do where tiles follow one another on an SM: a
/// short K is one team's, a long one is shared; experts of one octet of tokens to three.
#[test]
fn few_tokens_come_out_right_where_tiles_follow_one_another() {
    let sweep = Sweep::new(
        "question   = \"Are few tokens right?\"
contenders = [\"decode\", \"stream\", \"experts\"]
baseline   = \"auto\"
shapes     = [
  { m = 5, n = 256, k = 768 },
  { name = \"short\", m = [3, 17, 8, 1], n = [128, 256, 128, 128], k = [256, 512, 256, 768] },
  { name = \"long\", m = [1, 9], n = 128, k = 2304 },
]
[validate]
seed = 1
",
    );
    sweep.run(&[&sweep.round(), "--target", "h200,sms=2"], 0);
    let verdicts = sweep.verdicts();
    let ok = verdicts.values().filter(|(_, s)| s == "ok").count();
    let unsupported = verdicts
        .values()
        .filter(|(_, s)| s == "unsupported")
        .count();
    assert_eq!((ok, unsupported), (9, 3), "{verdicts:?}");
}

/// Contenders whose `[const]` has this value, among the lines of a run file.
fn counted(text: &str, constant: &str) -> usize {
    let wanted = format!("{constant},");
    text.lines().filter(|line| line.contains(&wanted)).count()
}

/// More tiles than SMs, and no whole wave of them: CTAs share the K of all tiles, or those without
/// a tile in the last wave help the others.
#[test]
fn sums_that_others_left_come_out_right() {
    let sweep = Sweep::new(
        "question   = \"Are sums that CTAs leave one another right?\"
contenders = [\"swap-ab\", \"token-major\"]
baseline   = \"swap-ab\"
shapes     = [
  { m = 20, n = 640, k = 4096 },
  { m = 600, n = 128, k = 5120 },
  { name = \"groups\", m = [9, 3, 20, 1, 5], n = 128, k = 4096 },
]
[validate]
seed = 1
",
    );
    sweep.run(&[&sweep.round(), "--target", "h200,sms=4"], 0);
    let verdicts = sweep.verdicts();
    let ok = verdicts.values().filter(|(_, s)| s == "ok").count();
    assert_eq!(ok, 4, "{verdicts:?}");
    let run = sweep.run_file().expect("a run file");
    let text = fs::read_to_string(run).expect("its text");
    assert_eq!(counted(&text, "\"EVEN\":1"), 2);
    assert_eq!(counted(&text, "\"HELP\":1"), 1);
}

/// Few tiles and a long K: three or four CTAs of a cluster share it, in bands.
#[test]
fn shares_of_k_of_a_cluster_come_out_right() {
    let sweep = Sweep::new(
        "question   = \"Are the sums of a cluster right?\"
contenders = [\"swap-ab\"]
baseline   = \"swap-ab\"
shapes     = [
  { m = 64, n = 128, k = 2304 },
  { m = 100, n = 128, k = 3328 },
]
[validate]
seed = 1
",
    );
    sweep.run(&[&sweep.round(), "--target", "h200"], 0);
    let verdicts = sweep.verdicts();
    let ok = verdicts.values().filter(|(_, s)| s == "ok").count();
    assert_eq!(ok, 2, "{verdicts:?}");
    let run = sweep.run_file().expect("a run file");
    let text = fs::read_to_string(run).expect("its text");
    for split in [3, 4] {
        assert_eq!(counted(&text, &format!("\"SPLIT\":{split}")), 1, "{split}");
    }
}

#[test]
fn the_machine_code_that_was_run_is_kept_beside_the_run() {
    let round = ROUND.replacen(
        "[\"two-pass\", \"sequential\", \"interleaved\"]",
        "[\"two-pass\"]",
        1,
    );
    let sweep = Sweep::new(&round);
    sweep.run(&[&sweep.round()], 0);
    let run = sweep.run_file().expect("a run file");
    let text = fs::read_to_string(&run).expect("its text");
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines[0]["contenders"][0]["arch"], "sm_90a");
    let builds: Vec<_> = lines.iter().filter(|l| l["type"] == "build").collect();
    assert!(!builds.is_empty());
    for build in builds {
        let image = build["image"].as_str().expect("an image");
        let code = run.with_extension("cubins").join(format!("{image}.cubin"));
        assert!(
            fs::read(code)
                .expect("machine code")
                .starts_with(b"\x7fELF")
        );
    }
}

#[test]
fn a_missing_wait_fails_with_its_cause() {
    let sweep = Sweep::new(
        "question   = \"What was missing?\"
contenders = [\"interleaved\"]
baseline   = \"interleaved\"
shapes     = [{ m = 64, n = 128, k = 256 }]
[validate]
seed = 1
",
    );
    let variants = sweep.folder.path().join("variants");
    copy(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("variants"),
        &variants,
    );
    let header = variants.join("include/dgx/mainloop.cuh");
    let text = fs::read_to_string(&header).expect("a header");
    let wait = "ptx::mbarrier_wait(shared.full[slot]";
    assert_eq!(text.matches(wait).count(), 1, "{text}");
    fs::write(&header, text.replace(wait, "// ptx::mbarrier_wait(")).expect("a header");
    let folder = variants.display().to_string();
    let said = sweep.run(&[&sweep.round(), "--variants", &folder], 3);
    // The terminal's lines are folded.
    let text = said.split_whitespace().collect::<Vec<_>>().join(" ");
    // A consumer that does not wait also lets the producer arm the barrier of a phase that is not
    // over. Which comes first, that fault or a wrong result, is the schedule's choice; the cause is
    // told with either.
    let failed = ["wrong", "crashed"].iter().any(|s| text.contains(s));
    assert!(failed, "{text}");
    for told in ["cause: ", ".cuh:", "before the copy issued at"] {
        assert!(text.contains(told), "no {told}: {text}");
    }
}

#[test]
fn the_rounds_timeout_ends_an_emulated_kernel_too() {
    let sweep = Sweep::new(
        "question   = \"Does it end?\"
contenders = [\"endless-loop\"]
baseline   = \"endless-loop\"
shapes     = [{ m = 64, n = 128, k = 256 }]
[validate]
seed = 1
",
    );
    let mut args = vec![sweep.round()];
    let more = "--variants tests/fixtures/variants --timeout 0.05 --schedule 7";
    args.extend(more.split(' ').map(str::to_owned));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    sweep.run(&args, 0);
    let text = fs::read_to_string(sweep.run_file().expect("a run file")).expect("its text");
    for told in [
        "\"hung\"",
        "after 50.0ms of wall-clock",
        "[seed ",
        "\"tests/fixtures/variants/endless-loop.cu:2",
    ] {
        assert!(text.contains(told), "no {told}:\n{text}");
    }
}

#[test]
fn contenders_are_right_with_hoppers_rounding_too() {
    let sweep = Sweep::new(
        "question   = \"What does rounding cost?\"
contenders = [\"interleaved\", \"swap-ab\"]
baseline   = \"interleaved\"
shapes     = [{ m = 40, n = 128, k = 1024 }]
",
    );
    sweep.run(&[&sweep.round(), "--exact-sums"], 0);
}

#[test]
fn a_header_says_nothing_of_where_things_lie() {
    let sweep = Sweep::new(
        "question   = \"Where?\"
contenders = [\"two-pass\", \"interleaved\"]
baseline   = \"two-pass\"
shapes     = [{ m = 64, n = 128, k = 256 }]
[validate]
seed = 1
",
    );
    let variants = Path::new(env!("CARGO_MANIFEST_DIR")).join("variants");
    let variants = format!("--variants={}", variants.display());
    sweep.run(&[&sweep.round(), &variants, "--only", "interleaved"], 0);
    let text = fs::read_to_string(sweep.run_file().expect("a run file")).expect("its text");
    let header: serde_json::Value =
        serde_json::from_str(text.lines().next().expect("a header")).expect("JSON");
    let argv = [
        "dgx",
        "sweep",
        "…/round.toml",
        "--variants=variants",
        "--only",
        "interleaved",
        "--backend",
        "emu",
        "--results",
        "…/results",
    ];
    assert_eq!(header["argv"], serde_json::json!(argv));
    assert_eq!(header["config"]["path"], "…/round.toml");
    assert_eq!(
        header["departures"],
        serde_json::json!(["--only interleaved"])
    );
    for secret in [
        env!("CARGO_MANIFEST_DIR"),
        &sweep.folder.path().display().to_string(),
    ] {
        assert!(!text.contains(secret), "{secret} is told:\n{text}");
    }
}

#[test]
fn what_kernels_print_is_kept_and_never_believed() {
    let sweep = Sweep::new(
        "question   = \"Who is believed?\"
contenders = [\"plain\", \"verdict-printed\", \"talkative\"]
baseline   = \"plain\"
shapes     = [{ name = \"ragged\", groups = [{ m = 40, n = 128, k = 256 }, { m = 7, n = 256, k = 512 }] }]
[validate]
seed = 1
",
    );
    let said = sweep.run(&[&sweep.round(), "--variants", FIXTURES], 0);
    // Reasons are folded.
    let words: Vec<&str> = said.split_whitespace().collect();
    assert!(words.join(" ").contains("its kernels printed"), "{said}");
    let text = fs::read_to_string(sweep.run_file().expect("a run file")).expect("its text");
    let verdict = |contender: &str| -> serde_json::Value {
        let name = format!("\"type\":\"verdict\",\"contender\":\"{contender}\"");
        let line = text.lines().find(|l| l.contains(&name)).expect(contender);
        serde_json::from_str(line).expect("JSON")
    };
    assert!(verdict("plain").get("printed").is_none());
    let forged = verdict("verdict-printed");
    assert_eq!(forged["status"], "wrong");
    let words = forged["printed"].as_str().expect("words");
    assert!(words.contains("\"status\":\"ok\""), "{words}");
    let honest = verdict("talkative");
    assert_eq!(honest["status"], "ok");
    let words = honest["printed"].as_str().expect("words");
    assert!(words.contains("group 1 has 7 rows"), "{words}");
}

#[test]
fn counters_stand_in_the_tables_of_sweep_compare_and_explain() {
    let sweep = Sweep::new(
        "question   = \"What was counted?\"
contenders = [\"two-pass\", \"interleaved\", \"single-gemm\"]
baseline   = \"two-pass\"
shapes     = [{ m = 64, n = 128, k = 256 }]
[validate]
seed = 1
",
    );
    let mut command = sweep.command(&[&sweep.round(), "--counters"]);
    let said = ended(command.env("COLUMNS", "100"), 0);
    let file = sweep.run_file().expect("a run file").display().to_string();
    let dgx = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
        command
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("NO_COLOR", "1")
            .env("COLUMNS", "80")
            .args(args);
        ended(&mut command, 0)
    };
    let told = [
        (100, said),
        (80, dgx(&["compare", "two-pass", "interleaved", &file])),
        (80, dgx(&["explain", "interleaved", &file])),
    ];
    for (width, text) in &told {
        let from = text.find("emulated, one call").expect(text);
        let tables = &text[from..];
        for word in [
            "launches", "useful", "waits", "distinct", "convert", "tensor",
        ] {
            assert!(tables.contains(word), "no {word}:\n{text}");
        }
        for line in tables.lines().take_while(|l| !l.contains(".jsonl")) {
            assert!(line.chars().count() <= *width, "{line}");
        }
    }
    // A wrong design is counted too: it issues half the work.
    let counted = |name: &str| {
        let row = |l: &&str| l.trim_start().starts_with(name) && l.contains(" M ");
        told[0].1.lines().filter(row).count()
    };
    assert!(counted("single-gemm") > 0, "{}", told[0].1);
}

#[test]
fn a_results_folder_that_cannot_be_written_stops_the_sweep_at_once() {
    let sweep = Sweep::new(ROUND);
    fs::write(sweep.results(), "a file").expect("a file");
    let said = sweep.run(&[&sweep.round()], 2);
    assert!(said.contains("cannot write"), "{said}");
}

/// Nothing was tested then, and a CI that stays green would hide it.
#[test]
fn a_candidate_that_runs_on_no_shape_fails_the_sweep() {
    let workspace = Workspace::new();
    workspace.edit("round.toml", "k = 512", "k = 256");
    let sweep = ["sweep", "round.toml", "--backend", "emu"];
    let said = workspace.run(&sweep);
    assert!(said.contains("unsupported"), "{said}");
    assert!(said.ends_with("[exit 3]"), "{said}");
    assert!(
        workspace
            .run(&["check", "round.toml"])
            .ends_with("[exit 2]")
    );
    // A variant may declare that it is so.
    workspace.edit(
        "variants/one.cu",
        "arch ",
        "expect = \"unsupported\"\narch ",
    );
    let said = workspace.run(&sweep);
    assert!(said.ends_with("[exit 0]"), "{said}");
}
