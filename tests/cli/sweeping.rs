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
    fn verdicts(&self) -> Verdicts {
        verdicts_of(&self.run_file().expect("a run file"))
    }
}

/// By contender and shape.
type Verdicts = BTreeMap<(String, String), (usize, String)>;

fn verdicts_of(file: &Path) -> Verdicts {
    let text = fs::read_to_string(file).expect("its text");
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
    for told in ["read too early", ".cuh:", "before the copy issued at"] {
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

/// The lines of a run file, without some.
fn without(file: &str, kinds: &[&str]) {
    let text = fs::read_to_string(file).expect("its text");
    let dropped = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).expect("a line");
        kinds.iter().any(|kind| line["type"] == *kind)
    };
    let kept = text.lines().filter(|line| !dropped(line));
    let kept: String = kept.map(|line| format!("{line}\n")).collect();
    fs::write(file, kept).expect("a file");
}

#[test]
fn a_resumed_sweep_goes_on_with_the_emulator_it_began_with() {
    let round = "question = \"Which?\"\ncontenders = [\"two-pass\"]\nbaseline = \"two-pass\"\n\
        shapes = [{ m = 64, n = 128, k = 1024 }]\n[validate]\nseed = 1\n\
        distributions = [\"benchmark\"]\n";
    let judged = |file: &str| {
        let text = fs::read_to_string(file).expect("its text");
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("a line"))
            .collect();
        let verdict = lines.iter().find(|line| line["type"] == "verdict");
        let verdict = verdict.expect("a verdict").clone();
        let estimates = lines.iter().filter(|line| line["type"] == "estimate");
        (verdict["counters"].clone(), estimates.count())
    };
    let plain = Sweep::new(round);
    plain.run(&[&plain.round()], 0);
    let plain = plain.run_file().expect("a run file").display().to_string();

    let sweep = Sweep::new(round);
    let asked = ["--exact-sums", "--schedule", "7"];
    sweep.run(&[&[sweep.round().as_str()], &asked[..]].concat(), 0);
    let file = sweep.run_file().expect("a run file").display().to_string();
    let before = judged(&file);
    assert_ne!(before.0, judged(&plain).0, "schedules are told apart");

    // As if killed between the cell's two lines.
    without(&file, &["verdict", "end"]);
    for (flag, value) in [("--schedule", "8"), ("--seed", "2"), ("--only", "two-pass")] {
        let said = sweep.run(&["--resume", &file, flag, value], 2);
        assert!(said.contains("did not begin with --"), "{said}");
    }
    sweep.run(&["--resume", &file, "--schedule", "7", "--seed", "1"], 0);
    assert_eq!(judged(&file), before);

    without(&plain, &["verdict", "estimate", "end"]);
    let said = sweep.run(&["--resume", &plain, "--exact-sums"], 2);
    assert!(said.contains("did not begin with --exact-sums"), "{said}");
}

/// A sweep that is told to stop by a signal once it has judged a cell; what it
/// said, and its run file.
fn stopped(sweep: &Sweep, signal: &str) -> (Output, String) {
    let child = sweep
        .command(&[&sweep.round()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("dgx runs");
    sweep.wait_for_a_verdict();
    send(signal, child.id());
    let output = child.wait_with_output().expect("dgx ends");
    (
        output,
        sweep.run_file().expect("a run file").display().to_string(),
    )
}

fn send(signal: &str, pid: u32) {
    let sent = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(sent.expect("kill runs").success());
}

#[test]
fn a_signal_keeps_what_is_finished_and_says_how_to_go_on() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        let sweep = Sweep::new(ROUND);
        let (output, file) = stopped(&sweep, signal);
        let said = explain(&output);
        assert_eq!(output.status.code(), Some(4), "{signal}: {said}");
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

        // Half a run passes no gate and fails none.
        let mut gate = Command::new(env!("CARGO_BIN_EXE_dgx"));
        let said = ended(gate.args(["gate", &file]), 5);
        assert!(said.contains("incomplete"), "{said}");

        sweep.run(&["--resume", &file], 0);
        let verdicts = sweep.verdicts();
        assert!(verdicts.len() == 9 && verdicts.values().all(|(count, _)| *count == 1));
    }
}

#[test]
fn a_sweep_under_nohup_outlives_its_terminal() {
    let sweep = Sweep::new(ROUND);
    let words = sweep.command(&[&sweep.round()]);
    let child = Command::new("nohup")
        .arg(words.get_program())
        .args(words.get_args())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("nohup runs");
    sweep.wait_for_a_verdict();
    send("-HUP", child.id());
    let output = child.wait_with_output().expect("dgx ends");
    assert_eq!(output.status.code(), Some(0), "{}", explain(&output));
    assert_eq!(sweep.verdicts().len(), 9);
}

#[test]
fn a_run_file_has_one_writer() {
    let sweep = Sweep::new(ROUND);
    let mut child = sweep
        .command(&[&sweep.round()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("dgx runs");
    sweep.wait_for_a_verdict();
    // It sleeps while the others try: they meet a writer that is alive.
    send("-STOP", child.id());
    let file = sweep.run_file().expect("a run file").display().to_string();
    let by = format!("is being written by process {}", child.id());
    for args in [vec!["--resume", &file], vec!["--resume"]] {
        let said = sweep.run(&args, 4);
        assert!(said.contains(&by), "{said}");
    }
    let mut show = Command::new(env!("CARGO_BIN_EXE_dgx"));
    let said = ended(show.args(["show", &file]), 0);
    assert!(said.contains("The run is not complete"), "{said}");
    // Another sweep in the same minute takes another file.
    sweep.run(&[&sweep.round()], 0);
    assert_eq!(fs::read_dir(sweep.results()).expect("results").count(), 2);

    // The lock dies with its process, and two who want it do not both get it.
    child.kill().expect("a child to kill");
    child.wait().expect("a child to bury");
    let resume = || {
        let mut command = sweep.command(&["--resume", &file]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("dgx runs")
    };
    let mut codes: Vec<_> = [resume(), resume()]
        .map(|mut child| child.wait().expect("dgx ends").code())
        .to_vec();
    codes.sort();
    assert!(
        codes == [Some(0), Some(4)] || codes == [Some(0), Some(2)],
        "{codes:?}"
    );
    let verdicts = verdicts_of(Path::new(&file));
    assert!(verdicts.len() == 9 && verdicts.values().all(|(count, _)| *count == 1));
}

/// A limit on the size of files stands for a disk that fills up.
#[test]
fn a_full_disk_leaves_a_file_that_can_be_read_and_resumed() {
    let sweep = Sweep::new(ROUND);
    sweep.run(&[&sweep.round()], 0);
    let whole = fs::read(sweep.run_file().expect("a run file")).expect("its text");
    fs::remove_dir_all(sweep.results()).expect("results");
    let words = sweep.command(&[&sweep.round()]);
    let limit = whole.len() / 512 / 2;
    let line = format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" \"$@\"");
    let mut limited = Command::new("sh");
    limited
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["-c", &line])
        .arg(words.get_program())
        .args(words.get_args());
    let said = ended(&mut limited, 4);
    assert!(said.contains("check space"), "{said}");
    let file = sweep.run_file().expect("a run file").display().to_string();
    let text = fs::read(&file).expect("its text");
    assert!(text.ends_with(b"\n") && text.len() > 512 && text.len() < whole.len());
    let mut show = Command::new(env!("CARGO_BIN_EXE_dgx"));
    ended(show.args(["show", &file]), 0);
    sweep.run(&["--resume", &file], 0);
    assert_eq!(sweep.verdicts().len(), 9);
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

/// The processes a process has started and not buried.
fn children(parent: u32) -> Vec<String> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let list = fs::read_to_string(path).unwrap_or_default();
    list.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_worker_killed_from_outside_is_tried_once_more() {
    let sweep = Sweep::new(ROUND);
    let child = sweep
        .command(&[&sweep.round()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("dgx runs");
    sweep.wait_for_a_verdict();
    let workers = children(child.id());
    assert!(!workers.is_empty(), "no worker at work");
    let killed = Command::new("kill").arg("-KILL").args(&workers).status();
    assert!(killed.expect("kill runs").success());
    let before = sweep.verdicts().len();
    assert!(before < 9, "all was judged before the worker was killed");
    let said = explain(&child.wait_with_output().expect("dgx ends"));
    let verdicts = sweep.verdicts();
    let ok = |(count, status): &(usize, String)| *count == 1 && status == "ok";
    assert!(
        verdicts.len() == 9 && verdicts.values().all(ok),
        "{verdicts:?}\n{said}"
    );
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
    assert!(said.contains("its kernels printed"), "{said}");
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
