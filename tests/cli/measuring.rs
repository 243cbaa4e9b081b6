//! The whole measuring path without a GPU: a scripted sweep on the fake backend, with its worker
//! processes, run file and tables.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::running::Running;
use crate::stage::{CONTENDERS, ROUND, SCRIPT, SHAPES, SHARE, Stage, is_timed, order, share_of};
use crate::sweep::{ended, explain, send};
use crate::workspace::wait_for;

#[test]
fn every_process_times_every_shape_in_its_own_order() {
    let stage = Stage::new("");
    let said = stage.sweep(0);
    assert!(
        said.contains("measure 2 shapes, 40 blocks · decided"),
        "{said}"
    );
    stage.blocks_are_sound();
    let all = stage.blocks();
    for shape in SHAPES {
        assert_eq!(share_of(&all, shape), [(0, SHARE), (1, SHARE)]);
    }
    let blocks = stage.lines("block");
    let whole: BTreeSet<(String, u64)> = [("plain", 0), ("plain", 1), ("quick", 0), ("odd", 0)]
        .map(|(name, arm)| (name.to_owned(), arm))
        .into();
    let as_set = |block: &Value| order(block).into_iter().collect::<BTreeSet<_>>();
    assert!(blocks.iter().all(|block| as_set(block) == whole));
    // What is on record is what was called, in that order.
    let journal = stage.journal();
    let called = journal.iter().filter(|c| is_timed(c));
    let called: Vec<&str> = called.filter_map(|c| c["contender"].as_str()).collect();
    let visit = CONTENDERS.len() + 4 * SHARE;
    let recorded: Vec<(String, u64)> = blocks.iter().flat_map(order).collect();
    for (calls, samples) in called.chunks(visit).zip(recorded.chunks(4 * SHARE)) {
        let samples: Vec<&str> = samples.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(calls[CONTENDERS.len()..], samples);
    }
    // Another process, another order; a fresh worker for each.
    let of = |process: u64| -> Vec<Vec<(String, u64)>> {
        let mine = |b: &&Value| b["process"] == process && b["shape"] == "small";
        blocks.iter().filter(mine).map(order).collect()
    };
    assert_ne!(of(0), of(1));
    let other = Stage::with(&ROUND.replace("seed = 1", "seed = 2"), SCRIPT);
    other.sweep(0);
    let others: Vec<_> = other.lines("block").iter().take(SHARE).map(order).collect();
    assert_ne!(others, of(0), "another seed, another order");
    let workers = |process: u64| -> BTreeSet<u64> {
        let mine = |c: &&Value| is_timed(c) && c["process"] == process;
        let calls = journal.iter().filter(mine);
        calls.filter_map(|c| c["worker"].as_u64()).collect()
    };
    assert_eq!((workers(0).len(), workers(1).len()), (1, 1));
    assert_ne!(workers(0), workers(1));
}

/// Each cell once, however many processes time it; shown, and ranked by nobody.
#[test]
fn kernels_of_a_call_are_told_once() {
    let stage = Stage::new("");
    stage.sweep(0);
    let lines = stage.lines("kernels");
    assert_eq!(lines.len(), CONTENDERS.len() * SHAPES.len(), "{lines:?}");
    let twice = |line: &Value| (line["contender"].to_string(), line["shape"].to_string());
    let cells: BTreeSet<_> = lines.iter().map(twice).collect();
    assert_eq!(cells.len(), lines.len());
    assert!(
        lines
            .iter()
            .all(|line| line["kernels"][0]["micros"].as_f64() > Some(1.0))
    );
    stage.tell(&["report", "-o", "page.html"], 0);
}

#[test]
fn a_scripted_run_is_called_so_wherever_it_is_shown() {
    let stage = Stage::new("");
    let said = stage.sweep(0);
    assert!(said.contains("(fake, scripted: nothing runs)"), "{said}");
    let header = &stage.lines("header")[0];
    assert_eq!(header["device"]["backend"], "fake");
    assert_eq!(header["device"]["timing"], "scripted");
    let show = stage.tell(&["show"], 0);
    for text in [&said, &show] {
        assert!(text.contains("times and outputs are scripted"), "{text}");
        assert!(
            text.contains("scripted µs, * fastest on its shape"),
            "{text}"
        );
        assert!(!text.contains("measured"), "{text}");
    }
    // A gate that every time would pass is not passed.
    let gate = stage.tell(&["gate"], 5);
    assert!(gate.contains("its times are scripted"), "{gate}");
    let page = stage.path("page.html");
    stage.tell(&["report", "-o", &page.display().to_string()], 0);
    let page = fs::read_to_string(page).expect("a page");
    assert!(
        page.contains("Times and outputs are scripted"),
        "it says so"
    );
    let compared = stage.tell(&["compare", "plain", "quick"], 0);
    assert!(compared.contains("scripted"), "{compared}");
    // What bounds a contender is not explained by times nobody measured.
    let explained = stage.tell(&["explain", "plain"], 0);
    assert!(explained.contains("least µs"), "{explained}");
    assert!(!explained.contains("of least"), "{explained}");
}

#[test]
fn only_contested_pairs_are_timed_after_the_minimum() {
    let script = "noise = 0.03\ntimes = { plain = 100, quick = 99, odd = 300 }\n";
    let stage = Stage::with(&ROUND.replace("processes = 2", "processes = 1"), script);
    stage.sweep(0);
    // By the script's noise the other shape is decided at once.
    let of = |b: &Value| b["shape"] == "large";
    let blocks: Vec<Value> = stage.lines("block").into_iter().filter(of).collect();
    let blocks: Vec<_> = blocks.iter().map(order).collect();
    assert!(blocks.len() > 20, "decided at once");
    assert!(blocks[..20].iter().all(|block| block.len() == 4));
    let rest: BTreeSet<_> = blocks[20..].iter().flatten().cloned().collect();
    let contested = [("plain", 0), ("plain", 1), ("quick", 0)];
    let contested = contested.map(|(name, arm)| (name.to_owned(), arm));
    assert_eq!(rest, BTreeSet::from(contested));
}

#[test]
fn a_sample_at_a_dropped_clock_is_taken_again() {
    let stage = Stage::new(
        "[[on]]\ncontender = \"quick\"\nshape = \"small\"\nprocess = 1\ncall = 6\n\
         clock_mhz = 900\nmicros = 160\n",
    );
    let said = stage.sweep(0);
    let warning = "warning: 1 samples were taken again: the clock had dropped";
    assert!(said.contains(warning), "{said}");
    for block in stage.lines("block") {
        for sample in block["samples"].as_array().expect("samples") {
            assert_eq!(sample["clock_mhz"], 1700.0);
            assert!(sample["micros"].as_f64() < Some(130.0), "{sample}");
        }
    }
    assert_eq!(stage.timed("quick"), 4 * (SHARE + 1) + 1);
}

#[test]
fn time_that_is_up_ends_a_shape_undecided() {
    let round = ROUND
        .replace("max_seconds = 60", "max_seconds = 1")
        .replace("min_blocks = 20", "min_blocks = 100000");
    let script = "journal = \"calls.jsonl\"\nnoise = 0.05\n[[on]]\nsleeps = 0.02\n";
    let stage = Stage::with(&round, script);
    let said = stage.sweep(0);
    assert!(said.contains("unresolved: "), "{said}");
    let end = &stage.lines("end")[0];
    assert_eq!(end["complete"], true);
    let all = stage.blocks();
    for shape in SHAPES {
        let share = share_of(&all, shape);
        let processes: Vec<u64> = share.iter().map(|(process, _)| *process).collect();
        assert_eq!(processes, [0, 1]);
        // Half the time each, and 4 × 20 ms a block at the least.
        let few = |(_, blocks): &(u64, usize)| (2..=7).contains(blocks);
        assert!(share.iter().all(few), "{share:?}");
    }
}

#[test]
fn a_timed_output_that_is_wrong_takes_its_ok_back() {
    for (happens, most) in [
        ("call = 5\noutput = \"wrong\"", 5),
        ("from = 2\noutput = \"stale\"", 2),
        // What the device's judge overlooks, the host's finds in a process's share.
        ("from = 1\noutput = \"wrong\"\nunnoticed = true", SHARE + 1),
    ] {
        let stage = Stage::new(&format!(
            "[[on]]\ncontender = \"quick\"\nshape = \"small\"\n{happens}\n"
        ));
        let said = stage.sweep(3);
        let (status, reason, verdicts) = stage.verdict("quick", "small");
        assert_eq!(
            (status.as_str(), verdicts),
            ("wrong", 2),
            "{happens}\n{said}"
        );
        assert!(reason.starts_with("when called again: "), "{reason}");
        assert_eq!(stage.verdict("quick", "large").0, "ok");
        // Not once more, in this process or the next.
        let calls = stage.journal();
        let of = |c: &&Value| c["contender"] == "quick" && c["shape"] == "small";
        let timed = calls.iter().filter(|c| is_timed(c)).filter(of).count();
        assert!(timed <= most, "{timed} calls: {happens}");
        assert_eq!(share_of(&stage.blocks(), "small"), [(0, SHARE), (1, SHARE)]);
    }
}

#[test]
fn who_is_wrong_at_first_is_never_timed() {
    for act in ["validation", "rehearsal"] {
        let stage = Stage::new(&format!(
            "[[on]]\nin = \"{act}\"\ncontender = \"odd\"\noutput = \"wrong\"\n"
        ));
        stage.sweep(3);
        assert_eq!(stage.timed("odd"), 0, "{act}");
        // Three to six calls each, and one more at most where the first is wrong.
        let calls = stage.journal();
        let judged = |name: &str| {
            let of = |c: &&Value| c["act"] == "validation" && c["contender"] == name;
            calls.iter().filter(of).count()
        };
        let each = |name: &str| judged(name) / SHAPES.len();
        assert!((3..=6).contains(&each("quick")), "{}", judged("quick"));
        assert_eq!(each("odd") <= 2, act == "validation");
        assert!(stage.timed("quick") > 0);
        assert_eq!(stage.verdict("odd", "small").0, "wrong");
    }
}

#[test]
fn a_call_that_does_not_return_is_hung_and_the_others_go_on() {
    let stage = Stage::with(
        // Nothing that works takes seconds, also on a slow machine.
        &ROUND.replace("timeout = 600", "timeout = 10"),
        &format!(
            "{SCRIPT}[[on]]\nin = \"validation\"\ncontender = \"odd\"\nshape = \"small\"\nsleeps = 3600\n"
        ),
    );
    stage.sweep(3);
    let (status, reason, _) = stage.verdict("odd", "small");
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("hung", "did not return within 10 s")
    );
    assert_eq!(stage.verdict("odd", "large").0, "ok");
    assert_eq!(share_of(&stage.blocks(), "small"), [(0, SHARE), (1, SHARE)]);
}

/// The first call of a block, so that the worker dies between two.
fn first_call_of_block(block: usize) -> usize {
    CONTENDERS.len() + 4 * block + 1
}

#[test]
fn a_worker_that_dies_between_blocks_is_replaced_by_another_process() {
    let call = first_call_of_block(6);
    let stage = Stage::new(&format!(
        "[[on]]\nshape = \"small\"\nprocess = 0\ncall = {call}\nonce = true\ndies = true\n"
    ));
    let said = stage.sweep(0);
    let warning = "while timing small, the worker was ended by signal 9; it is timed once more";
    assert!(said.contains(warning), "{said}");
    stage.blocks_are_sound();
    // What it took is kept, under its own number; process 2 took its place.
    let all = stage.blocks();
    assert_eq!(share_of(&all, "small"), [(0, 6), (1, SHARE), (2, SHARE)]);
    assert_eq!(share_of(&all, "large"), [(0, SHARE), (1, SHARE)]);
    for contender in CONTENDERS {
        for shape in SHAPES {
            let (status, _, verdicts) = stage.verdict(contender, shape);
            assert_eq!((status.as_str(), verdicts), ("ok", 1), "nobody's fault");
        }
    }
    let gate = stage.tell(&["gate"], 5);
    assert!(
        !gate.contains("processes of"),
        "it was timed in all: {gate}"
    );
}

#[test]
fn who_loses_two_workers_is_crashed_and_the_others_are_timed() {
    let stage =
        Stage::new("[[on]]\ncontender = \"odd\"\nshape = \"large\"\ncall = 4\ndies = true\n");
    let said = stage.sweep(3);
    assert!(said.contains("it is timed once more"), "{said}");
    let (status, reason, verdicts) = stage.verdict("odd", "large");
    assert_eq!((status.as_str(), verdicts), ("crashed", 2));
    assert_eq!(
        reason,
        "lost twice while it was timed: the worker was ended by signal 9"
    );
    for contender in ["plain", "quick"] {
        assert_eq!(stage.verdict(contender, "large").0, "ok");
    }
    stage.blocks_are_sound();
    let all = stage.blocks();
    let whole = |shape| {
        share_of(&all, shape)
            .iter()
            .filter(|s| s.1 == SHARE)
            .count()
    };
    assert_eq!((whole("small"), whole("large")), (2, 2));
    assert_eq!(stage.verdict("odd", "small").0, "ok");
}

/// That one contender lost two workers is held against nobody else: who loses
/// one after it may have been hit from outside, as everybody.
#[test]
fn a_worker_lost_after_somebody_was_crashed_is_nobodys_fault_again() {
    let stage = Stage::new(
        "[[on]]\ncontender = \"odd\"\nshape = \"large\"\ncall = 4\ndies = true\n\
         [[on]]\ncontender = \"quick\"\nshape = \"large\"\nprocess = 4\ncall = 4\ndies = true\n",
    );
    let said = stage.sweep(3);
    assert_eq!(said.matches("it is timed once more").count(), 2, "{said}");
    assert_eq!(stage.verdict("odd", "large").0, "crashed");
    assert_eq!(stage.verdict("quick", "large").0, "ok");
    stage.blocks_are_sound();
}

#[test]
fn a_failure_under_timing_costs_its_contender_a_verdict() {
    for (status, process) in [("crashed", 2), ("launch-error", 2)] {
        let stage = Stage::new(&format!(
            "[[on]]\ncontender = \"odd\"\nshape = \"small\"\ncall = 5\nfails = \"{status}\"\n"
        ));
        let said = stage.sweep(3);
        assert!(!said.contains("once more"), "nobody was lost: {said}");
        let (found, reason, _) = stage.verdict("odd", "small");
        assert_eq!(found, status);
        assert_eq!(
            reason,
            format!("while it was timed: the script says {status}")
        );
        stage.blocks_are_sound();
        // The blocks before it are kept, and the others timed anew.
        let share = share_of(&stage.blocks(), "small");
        assert_eq!(share[1..], [(1, SHARE), (process, SHARE)], "{share:?}");
        assert_eq!(share[0].0, 0);
        assert!((2..=4).contains(&share[0].1), "{share:?}");
        assert_eq!(stage.verdict("odd", "large").0, "ok");
    }
}

/// A sweep that is in the call which waits.
fn waiting(stage: &Stage) -> Running {
    // The blocks before it may still be on their way to the run file.
    stage.begun(|| share_of(&stage.blocks(), "large") == [(0, 4)])
}

/// Long enough to be stopped in, in the middle of the second shape.
fn waits_in_the_middle() -> Stage {
    let call = first_call_of_block(4) + 2;
    Stage::new(&format!(
        "[[on]]\nshape = \"large\"\nprocess = 0\ncall = {call}\nonce = true\nsleeps = 3600\n"
    ))
}

fn went_on(stage: &Stage, before: &str) {
    stage.resume(0);
    let text = fs::read_to_string(stage.run_file()).expect("its text");
    assert!(text.starts_with(before), "what was on record is as it was");
    stage.blocks_are_sound();
    let all = stage.blocks();
    // Half a process is kept, and never continued by another.
    assert_eq!(share_of(&all, "small"), [(0, SHARE), (1, SHARE)]);
    assert_eq!(share_of(&all, "large"), [(0, 4), (1, SHARE), (2, SHARE)]);
    for contender in CONTENDERS {
        for shape in SHAPES {
            assert_eq!(stage.verdict(contender, shape).2, 1, "judged once");
        }
    }
    assert_eq!(stage.lines("end").last().expect("an end")["complete"], true);
    let gate = stage.tell(&["gate"], 5);
    assert!(
        gate.contains("scripted") && !gate.contains("processes of"),
        "{gate}"
    );
}

#[test]
fn a_sweep_killed_in_the_middle_of_a_shape_goes_on_there() {
    let stage = waits_in_the_middle();
    let child = waiting(&stage);
    let worker = stage.waiting_worker().expect("a call");
    child.kill();
    // Its worker, in the middle of a call, does not outlive it.
    let code = PathBuf::from(format!("/proc/{worker}/exe"));
    wait_for("the worker's end", || !code.exists());
    let before = fs::read_to_string(stage.run_file()).expect("its text");
    let all = stage.blocks();
    assert_eq!(share_of(&all, "small"), [(0, SHARE)]);
    assert_eq!(share_of(&all, "large"), [(0, 4)]);
    let shown = stage.tell(&["show"], 0);
    assert!(shown.contains("The run is not complete"), "{shown}");
    went_on(&stage, &before);
}

#[test]
fn a_sweep_told_to_stop_while_it_times_goes_on_later() {
    let stage = waits_in_the_middle();
    let child = waiting(&stage);
    send(Signal::SIGINT, child.id());
    let output = child.output();
    assert_eq!(output.status.code(), Some(4), "{}", explain(&output));
    let end = &stage.lines("end")[0];
    assert_eq!(
        (end["complete"].as_bool(), end["reason"].as_str()),
        (Some(false), Some("interrupted"))
    );
    let before = fs::read_to_string(stage.run_file()).expect("its text");
    went_on(&stage, &before);
}

#[test]
fn a_run_is_not_resumed_on_another_backend() {
    let stage = waits_in_the_middle();
    let child = waiting(&stage);
    child.kill();
    let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command
        .args(["sweep", "--backend", "emu", "--resume"])
        .arg(stage.run_file());
    command.arg("--variants").arg(stage.path("variants"));
    let said = ended(&mut command, 2);
    assert!(said.contains("(fake), and this is"), "{said}");
}

#[test]
fn the_yardstick_is_tuned_once_for_all_processes() {
    let round = ROUND.replace("yardstick = false", "yardstick = true");
    let script = format!("yardstick = \"scripted 1.0\"\n{SCRIPT}");
    let stage = Stage::with(&round, &script);
    let said = stage.sweep(0);
    assert!(said.contains("cublas"), "{said}");
    let tuned: Vec<Value> = stage.lines("tuning");
    let shapes: Vec<&str> = tuned.iter().filter_map(|t| t["shape"].as_str()).collect();
    assert_eq!(shapes, SHAPES);
    assert_eq!(stage.timed("cublas"), 4 * (SHARE + 1));
    // Wrong on a shape, it is not timed there again, and costs nobody else.
    let event = "[[on]]\ncontender = \"cublas\"\nshape = \"small\"\ncall = 3\noutput = \"wrong\"\n";
    let stage = Stage::with(&round, &format!("{script}{event}"));
    stage.sweep(0);
    assert_eq!(stage.verdict("cublas", "small").0, "wrong");
    assert_eq!(stage.timed("cublas"), 3 + 2 * (SHARE + 1));
    assert_eq!(share_of(&stage.blocks(), "small"), [(0, SHARE), (1, SHARE)]);
}

#[test]
fn a_script_that_makes_no_sense_is_the_users_mistake() {
    let stage = Stage::with(ROUND, "tmes = { plain = 1 }\n");
    let said = stage.sweep(2);
    assert!(
        said.contains("script.toml: ") && said.contains("tmes"),
        "{said}"
    );
    assert!(!stage.path("results").join("round.jsonl").exists());
    let mut unnamed = Command::new(env!("CARGO_BIN_EXE_dgx"));
    unnamed.args(["sweep", "round.toml", "--backend", "fake"]);
    let said = ended(&mut unnamed, 2);
    assert!(said.contains("--script"), "{said}");
    let mut help = Command::new(env!("CARGO_BIN_EXE_dgx"));
    let said = ended(help.args(["sweep", "--help"]), 0);
    assert!(
        !said.contains("fake") && !said.contains("script"),
        "not offered: {said}"
    );
}
