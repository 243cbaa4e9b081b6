//! A sweep that was stopped, killed or starved is finished by another without repeating any work,
//! and a run file has one writer.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, DirEntry};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;

use crate::running::Running;
use crate::stage::{CONTENDERS, SHAPES, Stage};
use crate::sweep::{ROUND, Sweep, Verdicts, ended, explain, send, under, verdicts_of};
use crate::workspace::wait_for;

const CELLS: usize = CONTENDERS.len() * SHAPES.len();

/// A sweep stays in its fifth cell, however late whoever is to stop it comes.
fn stays_in_a_cell() -> Stage {
    Stage::new(
        "[[on]]\nin = \"validation\"\ncontender = \"quick\"\nshape = \"large\"\n\
         once = true\nsleeps = 3600\n",
    )
}

fn four_are_judged(stage: &Stage) -> bool {
    stage.verdicts().len() == 4
}

fn begun(stage: &Stage) -> Running {
    stage.begun(|| four_are_judged(stage))
}

fn each_is_judged_once(verdicts: &Verdicts, cells: usize) {
    assert_eq!(verdicts.len(), cells, "{verdicts:?}");
    let once = verdicts.values().all(|(count, _)| *count == 1);
    assert!(once, "{verdicts:?}");
}

#[test]
fn a_killed_sweep_is_resumed_where_it_stopped() {
    let stage = stays_in_a_cell();
    begun(&stage).kill();
    assert!(four_are_judged(&stage));

    let file = stage.run_file().display().to_string();
    ended(&mut stage.command(&["--resume", &file]), 0);
    each_is_judged_once(&stage.verdicts(), CELLS);

    // A second resume has nothing to go on with, and says so.
    ended(&mut stage.command(&["--resume", &file]), 2);
}

/// An emulated call that does not end is ended with its sweep.
#[test]
fn a_sweep_stopped_in_an_emulated_call_is_resumed_there() {
    for (signal, code) in [(Signal::SIGKILL, None), (Signal::SIGINT, Some(4))] {
        let sweep = Sweep::new(
            "question = \"Is nothing done twice?\"\nbaseline = \"two-pass\"\n\
             contenders = [\"two-pass\", \"sequential\", \"endless-loop\"]\n\
             shapes = [{ m = 64, n = 128, k = 256 }]\n[validate]\nseed = 1\ntimeout = 3600\n",
        );
        let folders = ["--variants=variants", "--variants=tests/fixtures/variants"];
        let round = sweep.round();
        let mut command = sweep.command(&[&[round.as_str()], &folders[..]].concat());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = Running::start(&mut command);
        let judged = || Some(verdicts_of(&sweep.run_file()?).len());
        wait_for("two verdicts", || judged() == Some(2));
        send(signal, child.id());
        assert_eq!(child.wait().expect("dgx ends").code(), code, "{signal}");

        let file = sweep.run_file().expect("a run file").display().to_string();
        let resume = ["--resume", &file, "--timeout", "0.1"];
        sweep.run(&[&resume[..], &folders].concat(), 0);
        let verdicts = sweep.verdicts();
        each_is_judged_once(&verdicts, 3);
        let statuses: Vec<&str> = verdicts.values().map(|(_, how)| how.as_str()).collect();
        assert_eq!(statuses, ["hung", "ok", "ok"]);
    }
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

#[test]
fn a_signal_keeps_what_is_finished_and_says_how_to_go_on() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let stage = stays_in_a_cell();
        let round = stage.path("round.toml").display().to_string();
        // Whoever starts the tests may have had them ignore it.
        let heeding = ["env", "--default-signal=HUP"];
        let mut command = under(&heeding, &stage.command(&[&round]));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = Running::start(&mut command);
        stage.wait_for_the_call(|| four_are_judged(&stage));
        send(signal, child.id());
        let output = child.output();
        let said = explain(&output);
        assert_eq!(output.status.code(), Some(4), "{signal}: {said}");
        assert!(said.contains("press Ctrl-C again to end now"), "{said}");
        let file = stage.run_file().display().to_string();
        assert!(
            said.contains(&format!("dgx sweep --resume {file}")),
            "{said}"
        );
        let text = fs::read_to_string(&file).expect("its text");
        let last = text.lines().last().expect("a last line");
        assert!(last.contains("\"complete\":false"), "{last}");
        assert!(last.contains("interrupted"), "{last}");
        assert!(four_are_judged(&stage), "{text}");

        // Half a run passes no gate and fails none.
        let said = stage.tell(&["gate"], 5);
        assert!(said.contains("incomplete"), "{said}");

        ended(&mut stage.command(&["--resume", &file]), 0);
        each_is_judged_once(&stage.verdicts(), CELLS);
    }
}

#[test]
fn a_sweep_under_nohup_outlives_its_terminal() {
    let stage = stays_in_a_cell();
    let round = stage.path("round.toml").display().to_string();
    let mut command = under(&["nohup"], &stage.command(&[&round]));
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let child = Running::start(&mut command);
    stage.wait_for_the_call(|| four_are_judged(&stage));
    send(Signal::SIGHUP, child.id());
    // The call that waits is made again by another, who does not wait.
    send(Signal::SIGKILL, stage.waiting_worker().expect("a worker"));
    let output = child.output();
    assert_eq!(output.status.code(), Some(0), "{}", explain(&output));
    each_is_judged_once(&stage.verdicts(), CELLS);
}

/// Also where that fails while it waits: nobody is left asleep.
#[test]
fn a_sweep_and_its_workers_end_with_the_test_that_began_them() {
    let stage = stays_in_a_cell();
    let fails = || stage.begun(|| panic!("as if it were not so"));
    assert!(catch_unwind(AssertUnwindSafe(fails)).is_err());
    let worker = stage.waiting_worker().expect("a worker");
    let code = PathBuf::from(format!("/proc/{worker}/exe"));
    wait_for("the worker's end", || !code.exists());
}

#[test]
fn a_run_file_has_one_writer() {
    let stage = stays_in_a_cell();
    let child = begun(&stage);
    let file = stage.run_file();
    let named = file.display().to_string();
    let by = format!("is being written by process {}", child.id());
    for args in [vec!["--resume", &named], vec!["--resume"]] {
        let said = ended(&mut stage.command(&args), 4);
        assert!(said.contains(&by), "{said}");
    }
    let said = stage.tell(&["show"], 0);
    assert!(said.contains("The run is not complete"), "{said}");
    // Another sweep in the same minute takes another file.
    stage.sweep(0);
    assert_eq!(stage.run_files().len(), 2);
    assert_eq!(verdicts_of(&file).len(), 4, "the first has gone on");

    // The lock dies with its process, and two who want it do not both get it.
    child.kill();
    let resume = || {
        let mut command = stage.command(&["--resume", &named]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Running::start(&mut command)
    };
    let mut codes: Vec<_> = [resume(), resume()]
        .map(|mut child| child.wait().expect("dgx ends").code())
        .to_vec();
    codes.sort();
    assert!(
        codes == [Some(0), Some(4)] || codes == [Some(0), Some(2)],
        "{codes:?}"
    );
    each_is_judged_once(&verdicts_of(&file), CELLS);
}

/// The files with the machine code of a run, by their names.
fn machine_code(sweep: &Sweep) -> BTreeMap<OsString, Vec<u8>> {
    let run = sweep.run_file().expect("a run file");
    let files = fs::read_dir(run.with_extension("cubins")).expect("a folder");
    let file = |entry: DirEntry| (entry.file_name(), fs::read(entry.path()).expect("code"));
    files.map(|entry| file(entry.expect("an entry"))).collect()
}

/// A limit on the size of files stands for a disk that fills up.
#[test]
fn a_full_disk_leaves_a_file_that_can_be_read_and_resumed() {
    let sweep = Sweep::new(ROUND);
    sweep.run(&[&sweep.round()], 0);
    let whole = fs::read(sweep.run_file().expect("a run file")).expect("its text");
    let code = machine_code(&sweep);
    fs::remove_dir_all(sweep.results()).expect("results");
    let limit = whole.len() / 512 / 2;
    let line = format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" \"$@\"");
    let command = sweep.command(&[&sweep.round()]);
    let said = ended(&mut under(&["sh", "-c", &line], &command), 4);
    assert!(said.contains("check space"), "{said}");
    let file = sweep.run_file().expect("a run file").display().to_string();
    let text = fs::read(&file).expect("its text");
    assert!(text.ends_with(b"\n") && text.len() > 512 && text.len() < whole.len());
    let mut show = Command::new(env!("CARGO_BIN_EXE_dgx"));
    ended(show.args(["show", &file]), 0);
    assert_ne!(machine_code(&sweep), code);
    sweep.run(&["--resume", &file], 0);
    assert_eq!(sweep.verdicts().len(), 9);
    assert_eq!(machine_code(&sweep), code);
}

#[test]
fn a_worker_killed_from_outside_is_tried_once_more() {
    let stage = stays_in_a_cell();
    let child = begun(&stage);
    send(Signal::SIGKILL, stage.waiting_worker().expect("a worker"));
    let said = explain(&child.output());
    let verdicts = stage.verdicts();
    each_is_judged_once(&verdicts, CELLS);
    let ok = verdicts.values().all(|(_, status)| status == "ok");
    assert!(ok, "{verdicts:?}\n{said}");
}

/// Exit 0 means that the file holds what a sweep would find now.
#[test]
fn a_complete_file_is_not_taken_for_a_run_of_other_sources() {
    let round = "question = \"Which?\"\ncontenders = [\"two-pass\"]\nbaseline = \"two-pass\"\n\
        shapes = [{ m = 64, n = 128, k = 256 }]\n[validate]\nseed = 1\n\
        distributions = [\"benchmark\"]\n";
    let sweep = Sweep::new(round);
    let variants = sweep.folder.path().join("variants");
    fs::create_dir(&variants).expect("a folder");
    for entry in fs::read_dir("variants").expect("a folder") {
        let file = entry.expect("an entry").path();
        if file.is_file() {
            let name = file.file_name().expect("a name");
            fs::copy(&file, variants.join(name)).expect("a copy");
        }
    }
    let into = sweep.folder.path().join("run.jsonl").display().to_string();
    let folder = variants.display().to_string();
    let round = sweep.round();
    let asked = [round.as_str(), "--into", &into, "--variants", &folder];
    sweep.run(&[&asked[..], &["--hazards", "off"]].concat(), 0);
    let said = sweep.run(&[&asked[..], &["--hazards", "off"]].concat(), 0);
    assert!(said.contains("is complete"), "{said}");
    let whole = fs::read_to_string(&into).expect("its text");
    let ended = whole.trim_end().rfind('\n').expect("lines");
    fs::write(&into, &whole[..=ended]).expect("a file");
    let said = sweep.run(&[&asked[..], &["--hazards", "off"]].concat(), 0);
    assert!(said.contains("continuing it"), "{said}");
    let said = sweep.run(&asked, 2);
    assert!(said.contains("began with --hazards"), "{said}");
    let source = variants.join("two-pass.cu");
    let text = fs::read_to_string(&source).expect("its text");
    fs::write(&source, text + "// changed\n").expect("a file");
    let said = sweep.run(&[&asked[..], &["--hazards", "off"]].concat(), 2);
    assert!(
        said.contains("out of date: its contenders, or their sources"),
        "{said}"
    );
    assert!(said.contains("remove it, or name another file"), "{said}");
}
