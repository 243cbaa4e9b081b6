//! A sweep that is stopped, killed or starved is finished by another without
//! doing anything twice, and a run file has one writer.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use nix::sys::signal::Signal;

use crate::sweep::{ROUND, Sweep, ended, explain, send, verdicts_of};

#[test]
fn a_killed_sweep_is_resumed_where_it_stopped() {
    let sweep = Sweep::new(ROUND);
    let mut child = sweep.begun(Stdio::null);
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
fn stopped(sweep: &Sweep, signal: Signal) -> (Output, String) {
    let child = sweep.begun(Stdio::piped);
    send(signal, child.id());
    let output = child.wait_with_output().expect("dgx ends");
    (
        output,
        sweep.run_file().expect("a run file").display().to_string(),
    )
}

#[test]
fn a_signal_keeps_what_is_finished_and_says_how_to_go_on() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
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
    send(Signal::SIGHUP, child.id());
    let output = child.wait_with_output().expect("dgx ends");
    assert_eq!(output.status.code(), Some(0), "{}", explain(&output));
    assert_eq!(sweep.verdicts().len(), 9);
}

#[test]
fn a_run_file_has_one_writer() {
    let sweep = Sweep::new(ROUND);
    let mut child = sweep.begun(Stdio::null);
    // It sleeps while the others try: they meet a writer that is alive.
    send(Signal::SIGSTOP, child.id());
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
    assert_eq!(sweep.run_files().len(), 2);

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

/// The processes a process has started and not buried.
fn children(parent: u32) -> Vec<u32> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let list = fs::read_to_string(path).unwrap_or_default();
    list.split_whitespace().flat_map(str::parse).collect()
}

#[test]
fn a_worker_killed_from_outside_is_tried_once_more() {
    let sweep = Sweep::new(ROUND);
    let child = sweep.begun(Stdio::piped);
    let workers = children(child.id());
    assert!(!workers.is_empty(), "no worker at work");
    for worker in workers {
        send(Signal::SIGKILL, worker);
    }
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
