//! Whole sweeps in the emulator: every fixture gets its status, and a sweep
//! that was killed is finished by another without doing anything twice.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::workspace::copy;

const FIXTURES: &str = "tests/fixtures/variants";

/// A results folder and a round, for a dgx that runs in the repository.
struct Sweep {
    folder: TempDir,
}

impl Sweep {
    fn new(round: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join("round.toml"), round).expect("a file");
        Self { folder }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
        command
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("NO_COLOR", "1")
            .arg("sweep")
            .args(args)
            .args(["--backend", "emu", "--results"])
            .arg(self.results());
        command
    }

    /// Runs to its end, which must be this exit code; what it printed.
    fn run(&self, args: &[&str], code: i32) -> String {
        ended(&mut self.command(args), code)
    }

    fn round(&self) -> String {
        self.folder.path().join("round.toml").display().to_string()
    }

    fn results(&self) -> PathBuf {
        self.folder.path().join("results")
    }

    fn run_file(&self) -> Option<PathBuf> {
        let mut entries = fs::read_dir(self.results()).ok()?;
        entries.next().map(|e| e.expect("an entry").path())
    }

    fn wait_for_a_verdict(&self) {
        let began = Instant::now();
        let judged = || {
            let text = fs::read_to_string(self.run_file()?).ok()?;
            Some(text.contains("\"type\":\"verdict\""))
        };
        while judged() != Some(true) {
            assert!(began.elapsed() < Duration::from_secs(120), "no verdict yet");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Verdicts on record: how often each cell was judged, and how the last time.
    fn verdicts(&self) -> BTreeMap<(String, String), (usize, String)> {
        let text = fs::read_to_string(self.run_file().expect("a run file")).expect("its text");
        let mut verdicts = BTreeMap::new();
        for line in text.lines() {
            let Ok(line) = serde_json::from_str::<serde_json::Value>(line) else {
                continue;
            };
            if line["type"] == "verdict" {
                let word = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
                let cell = verdicts.entry((word("contender"), word("shape")));
                let (count, status) = cell.or_insert((0, String::new()));
                *count += 1;
                *status = word("status");
            }
        }
        verdicts
    }
}

fn ended(command: &mut Command, code: i32) -> String {
    let output = command.output().expect("dgx runs");
    let said = explain(&output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

fn explain(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn fixture_round() -> String {
    let mut names: Vec<String> = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(FIXTURES))
        .expect("fixtures")
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "cu"))
        .map(|p| format!("{:?}", p.file_stem().unwrap_or_default()))
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

#[test]
fn a_missing_wait_is_wrong_with_its_cause() {
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
    for told in [
        "wrong",
        "read too early",
        ".cuh:",
        "before the copy issued at",
    ] {
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
        "[seed 7]",
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

const ROUND: &str = "question   = \"Is nothing done twice?\"
contenders = [\"two-pass\", \"sequential\", \"interleaved\"]
baseline   = \"two-pass\"
shapes     = [{ m = 64, n = 128, k = 256 }, { m = 40, n = 128, k = 512 }, { m = 129, n = 256, k = 256 }]
[validate]
seed = 1
";

#[test]
fn a_killed_sweep_is_resumed_where_it_stopped() {
    let sweep = Sweep::new(ROUND);
    let mut child = sweep
        .command(&[&sweep.round()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("dgx runs");
    sweep.wait_for_a_verdict();
    child.kill().expect("a child to kill");
    child.wait().expect("a child to bury");

    let file = sweep.run_file().expect("a run file").display().to_string();
    sweep.run(&["--resume", &file], 0);
    let verdicts = sweep.verdicts();
    assert_eq!(verdicts.len(), 9, "{verdicts:?}");
    assert!(
        verdicts.values().all(|(count, _)| *count == 1),
        "{verdicts:?}"
    );

    // A second resume has nothing to go on with, and says so.
    sweep.run(&["--resume", &file], 2);
}

#[test]
fn ctrl_c_keeps_what_is_finished_and_says_how_to_go_on() {
    let sweep = Sweep::new(ROUND);
    let child = sweep
        .command(&[&sweep.round()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("dgx runs");
    sweep.wait_for_a_verdict();
    let signal = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(signal.expect("kill runs").success());
    let output = child.wait_with_output().expect("dgx ends");
    let said = explain(&output);
    assert_eq!(output.status.code(), Some(4), "{said}");
    let file = sweep.run_file().expect("a run file").display().to_string();
    assert!(said.contains("Ctrl-C again ends at once"), "{said}");
    assert!(
        said.contains(&format!("dgx sweep --resume {file}")),
        "{said}"
    );
    let text = fs::read_to_string(&file).expect("its text");
    let last = text.lines().last().expect("a last line");
    assert!(last.contains("\"complete\":false"), "{last}");
    assert!(last.contains("interrupted"), "{last}");
    let before = sweep.verdicts().len();
    assert!((1..9).contains(&before), "{before} cells were judged");

    sweep.run(&["--resume", &file], 0);
    let verdicts = sweep.verdicts();
    assert!(verdicts.len() == 9 && verdicts.values().all(|(count, _)| *count == 1));
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
    let mut command = sweep.command(&[&sweep.round()]);
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
