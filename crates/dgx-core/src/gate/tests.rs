use super::*;
use crate::config::Gate;
use std::path::Path;

use crate::domain::{ContenderId, Counter, Exit, Status, Timing};
use crate::rank::{Ranking, mismatch};
use crate::record::Run;
use crate::record::synthetic::{Synthetic, dense};

fn over_baseline(run: &Run, gate: &Gate) -> GateReport {
    let ranking = Ranking::of(run);
    judge(
        run,
        &ranking,
        gate,
        Over::Contender(&run.header.baseline),
        false,
    )
    .unwrap()
}

fn over_run(run: &Run, base: &Run, gate: &Gate) -> Result<GateReport, GateError> {
    let (ranking, base_ranking) = (Ranking::of(run), Ranking::of(base));
    judge(run, &ranking, gate, Over::Run(base, &base_ranking), false)
}

fn at_least(min_geomean: f64) -> Gate {
    Gate {
        min_geomean: Some(min_geomean),
        ..Gate::default()
    }
}

#[test]
fn wrong_contenders_fail_when_they_did_not_declare_it() {
    // Right by luck is not right.
    for status in [Status::Wrong, Status::Racy] {
        let mut field = Synthetic::round4();
        field.entries[2].status = status;
        field.entries[2].reason = Some("rows ≥ 64 of each tile");
        let undeclared = field
            .text()
            .replace(&format!("\"expect\":\"{status}\""), "\"expect\":\"ok\"");
        let path = "results/x.jsonl".as_ref();
        let run = crate::record::read_text(path, undeclared.as_bytes()).unwrap();
        let gate = Gate {
            correct: true,
            contenders: vec!["interleaved".to_owned()],
            ..at_least(1.1)
        };
        let report = over_baseline(&run, &gate);
        assert_eq!(report.count(Ruling::Failed), 2, "{status}");
        assert_eq!(report.exit(), Exit::GateFailed, "{status}");
    }
}

#[test]
fn what_nobody_validated_passes_no_gate() {
    let run = Synthetic::round4().time_only().run();
    let report = over_baseline(&run, &at_least(1.1));
    assert_eq!(report.exit(), Exit::Inconclusive);
    assert_eq!(report.incomplete, [(Whose::Run, Gap::NotValidated)]);
    let gate = Gate {
        correct: true,
        ..Gate::default()
    };
    let report = over_baseline(&run, &gate);
    assert_eq!(report.count(Ruling::Passed), 0);
}

#[test]
fn a_rule_finer_than_the_run_can_see_is_refused() {
    let mut field = Synthetic::round4();
    field.noise = 0.05;
    let run = field.run();
    // Designs far from the threshold are judged all the same.
    let report = over_baseline(&run, &at_least(1.001));
    assert_eq!(report.exit(), Exit::Done);
    let mut near = Synthetic::round4();
    near.noise = 0.05;
    near.entries[2].time = near.entries[0].time;
    let report = over_baseline(&near.run(), &at_least(1.001));
    let refused: Vec<_> = report.findings.iter().map(|f| f.ruling).collect();
    assert_eq!(refused, [Ruling::Passed, Ruling::Refused]);
    assert_eq!(report.exit(), Exit::Inconclusive);
}

/// A run whose baseline was not timed a second time in its blocks.
fn without_control(field: &Synthetic) -> Run {
    use crate::record::schema::Line;
    let mut lines = field.lines();
    for line in &mut lines {
        if let Line::Block(block) = line {
            block.samples.retain(|sample| sample.arm == 0);
        }
    }
    let text: Vec<String> = lines
        .iter()
        .map(|line| serde_json::to_string(line).unwrap() + "\n")
        .collect();
    crate::record::read_text(Path::new("x.jsonl"), text.concat().as_bytes()).unwrap()
}

#[test]
fn without_a_control_nothing_near_equal_is_judged() {
    const NO_CONTROL: &str = "without an A/A arm (the baseline timed twice) the run shows no \
                              difference below 5.0 %";
    let mut near = Synthetic::round4();
    near.noise = 1e-5;
    near.process_noise = 1e-5;
    near.entries.truncate(2);
    near.entries[1].time = near.entries[0].time / 1.0005;
    let sighted = near.run();
    assert_eq!(over_baseline(&sighted, &at_least(1.0)).exit(), Exit::Done);
    let blind = without_control(&near);
    let not_slower = Gate {
        not_slower: true,
        ..Gate::default()
    };
    let floor = Gate {
        min_shape: Some(1.0),
        ..Gate::default()
    };
    for gate in [at_least(1.0), at_least(1.0002), not_slower.clone(), floor] {
        let report = over_baseline(&blind, &gate);
        assert_eq!(report.exit(), Exit::Inconclusive, "{report:#?}");
        for finding in &report.findings {
            assert_eq!(finding.ruling, Ruling::Refused, "{finding:?}");
            assert_eq!(finding.reason, Some(NO_CONTROL.to_owned()));
        }
    }
    let report = over_run(&blind, &sighted, &not_slower).unwrap();
    assert_eq!(report.exit(), Exit::Inconclusive, "{report:#?}");
    // What is far from equal needs no control.
    let mut far = near;
    far.entries[1].time = 0.5;
    let far = without_control(&far);
    assert_eq!(over_baseline(&far, &at_least(1.0)).exit(), Exit::Done);
    assert_eq!(over_baseline(&far, &at_least(1.5)).exit(), Exit::Done);
}

/// What a gate over an earlier run asks where nothing else is written.
fn as_before() -> Gate {
    Gate {
        correct: true,
        not_slower: true,
        ..Gate::default()
    }
}

#[test]
fn over_an_earlier_run_only_what_got_worse_fails() {
    let base = Synthetic::round4();
    let again = Synthetic {
        seed: base.seed + 1,
        ..base.clone()
    };
    // Everybody is judged, the baseline and the declared failure too.
    let report = over_run(&again.run(), &base.run(), &as_before()).unwrap();
    assert_eq!(report.exit(), Exit::Done, "{report:#?}");
    let judged = |name: &str| report.findings.iter().any(|f| f.contender.as_str() == name);
    assert!(
        ["two-pass", "sequential", "interleaved"]
            .into_iter()
            .all(judged)
    );

    let mut slowed = again.clone();
    slowed.entries[2].time *= 1.02;
    let report = over_run(&slowed.run(), &base.run(), &as_before()).unwrap();
    assert_eq!(report.exit(), Exit::GateFailed);
    let guilty = report
        .findings
        .iter()
        .filter(|f| f.ruling == Ruling::Failed);
    assert!(guilty.clone().count() > 0);
    assert!(
        guilty
            .clone()
            .all(|f| f.rule == Rule::NotSlower && f.contender.as_str() == "interleaved")
    );

    let mut broken = again.clone();
    broken.entries[2].status = Status::Wrong;
    let report = over_run(&broken.run(), &base.run(), &as_before()).unwrap();
    assert_eq!(report.exit(), Exit::GateFailed);
    // What was wrong may be wrong, and may have become right.
    let report = over_run(&broken.run(), &broken.run(), &as_before()).unwrap();
    assert_eq!(report.exit(), Exit::Done, "{report:#?}");
    let report = over_run(&base.run(), &broken.run(), &as_before()).unwrap();
    assert_eq!(report.exit(), Exit::Done, "{report:#?}");

    let mut strangers = again.clone();
    strangers.entries.truncate(1);
    strangers.entries[0].name = "somebody";
    let nobody = over_run(&strangers.run(), &base.run(), &as_before());
    assert!(matches!(nobody, Err(GateError::NoCommonContender)));
}

#[test]
fn another_card_is_no_reason_to_fail_and_none_to_pass() {
    let on = |uuid: &str, time: f64| {
        let mut field = Synthetic::round4();
        field.entries[2].time *= time;
        let text = field
            .text()
            .replacen("\"uuid\":null", &format!("\"uuid\":\"{uuid}\""), 1);
        crate::record::read_text("results/x.jsonl".as_ref(), text.as_bytes()).unwrap()
    };
    let ends = |time, uuid| {
        over_run(&on(uuid, time), &on("A", 1.0), &as_before())
            .unwrap()
            .exit()
    };
    assert_eq!(ends(1.0, "B"), Exit::Done);
    assert_eq!(ends(1.03, "A"), Exit::GateFailed);
    assert_eq!(ends(1.03, "B"), Exit::Inconclusive);
    assert_eq!(ends(1.2, "B"), Exit::GateFailed);
}

/// A script can say anything: no gate takes its word, for or against.
#[test]
fn scripted_times_neither_pass_nor_fail() {
    let scripted = Synthetic {
        timing: Timing::Scripted,
        ..Synthetic::round4()
    };
    let (scripted, measured) = (scripted.run(), Synthetic::round4().run());
    for threshold in [1.1, 100.0] {
        let report = over_baseline(&scripted, &at_least(threshold));
        assert_eq!(report.exit(), Exit::Inconclusive);
        assert_eq!(report.incomplete, [(Whose::Run, Gap::Scripted)]);
    }
    let over = |run: &Run, base: &Run, across| {
        let (ranking, base_ranking) = (Ranking::of(run), Ranking::of(base));
        let over = Over::Run(base, &base_ranking);
        judge(run, &ranking, &as_before(), over, across)
    };
    assert!(over(&measured, &scripted, false).is_err());
    for (run, base) in [(&measured, &scripted), (&scripted, &measured)] {
        let report = over(run, base, true).unwrap();
        assert_eq!(report.exit(), Exit::Inconclusive);
    }
}

/// A sweep would have rejected the contender, so the file is not believed.
#[test]
fn times_below_the_roofline_neither_pass_nor_fail() {
    let mut fast = Synthetic::round4();
    fast.entries[2].time = 1e-3;
    let (run, good) = (fast.run(), Synthetic::round4().run());
    let named = |report: &GateReport| match report.incomplete.as_slice() {
        [(_, Gap::Impossible(cells))] => cells.len(),
        other => panic!("{other:?}"),
    };
    let report = over_baseline(&run, &at_least(1.1));
    assert_eq!(report.exit(), Exit::Inconclusive);
    assert_eq!(named(&report), run.header.shapes.len());
    let [(_, Gap::Impossible(cells))] = report.incomplete.as_slice() else {
        unreachable!();
    };
    assert_eq!(cells[0].contender.as_str(), fast.entries[2].name);
    assert!(cells[0].time.0 < cells[0].least.0);
    for report in [
        over_run(&run, &good, &as_before()).unwrap(),
        over_run(&good, &run, &as_before()).unwrap(),
    ] {
        assert_eq!(report.exit(), Exit::Inconclusive);
        assert_eq!(named(&report), run.header.shapes.len());
    }
    assert_eq!(over_baseline(&good, &at_least(1.1)).incomplete, []);
}

#[test]
fn half_a_run_neither_passes_nor_fails() {
    let whole = Synthetic::round4();
    let mut failing = whole.clone();
    failing.entries[2].status = Status::Wrong;
    let lines =
        |field: &Synthetic| -> Vec<String> { field.text().lines().map(String::from).collect() };
    let is =
        |kind: &'static str| move |l: &String| l.starts_with(&format!("{{\"type\":\"{kind}\""));
    let all = lines(&whole);
    let first = |kind| all.iter().position(is(kind)).unwrap();
    let stopped = "{\"type\":\"end\",\"complete\":false,\"reason\":\"interrupted\",\"seconds\":{},\"decision\":null}";
    let untimed = |gap: &Gap| matches!(gap, Gap::Untimed { .. });
    type Expected = fn(&Gap) -> bool;
    let cases: [(Expected, Vec<String>); 7] = [
        (|gap| *gap == Gap::NotEnded, all[..all.len() - 1].to_vec()),
        (
            |gap| matches!(gap, Gap::Unjudged { .. }),
            all[..first("verdict") + 3].to_vec(),
        ),
        (untimed, all[..first("block")].to_vec()),
        (|gap| *gap == Gap::NotEnded, all[..1].to_vec()),
        (
            |gap| *gap == Gap::Stopped(Some("interrupted".to_owned())),
            [&all[..first("block")], &[stopped.to_owned()]].concat(),
        ),
        (
            untimed,
            all.iter().filter(|l| !is("block")(l)).cloned().collect(),
        ),
        (|gap| *gap == Gap::NotEnded, lines(&failing)[..20].to_vec()),
    ];
    let last = cases.len() - 1;
    for (place, (gap, text)) in cases.into_iter().enumerate() {
        let text = text.join("\n") + "\n";
        let run = crate::record::read_text("results/x.jsonl".as_ref(), text.as_bytes()).unwrap();
        let gate = Gate {
            correct: true,
            ..at_least(1.1)
        };
        for (whose, report) in [
            (Whose::Run, over_baseline(&run, &gate)),
            (
                Whose::Run,
                over_run(&run, &whole.run(), &as_before()).unwrap(),
            ),
            (
                Whose::Baseline,
                over_run(&whole.run(), &run, &as_before()).unwrap(),
            ),
        ] {
            assert_eq!(report.exit(), Exit::Inconclusive);
            // What the run did not get to has not failed; the last has a wrong cell.
            let failed = report.count(Ruling::Failed);
            assert!(place == last || failed == 0, "{report:#?}");
            let mut lacks = report.incomplete.iter();
            assert!(
                lacks.any(|(of, lack)| *of == whose && gap(lack)),
                "{report:#?}"
            );
        }
    }
}

#[test]
fn a_baseline_without_times_is_not_the_contenders_fault() {
    let mut field = Synthetic::round4();
    field.entries[0].status = Status::Wrong;
    let gate = Gate {
        min_shape: Some(1.0),
        contenders: vec!["interleaved".to_owned()],
        ..at_least(1.1)
    };
    let report = over_baseline(&field.run(), &gate);
    assert_eq!(report.exit(), Exit::Inconclusive, "{report:#?}");
    assert_eq!(report.count(Ruling::Undecided), 2);
}

#[test]
fn a_slowed_variant_fails_against_its_committed_baseline() {
    let base = Synthetic::round4().modelled();
    let mut slowed = base.clone();
    slowed.entries[2].time *= 1.05;
    let gate = Gate {
        min_shape: Some(0.99),
        correct: true,
        ..at_least(0.99)
    };
    let fine = over_run(&base.run(), &base.run(), &gate).unwrap();
    assert_eq!(fine.exit(), Exit::Done, "{fine:#?}");
    let report = over_run(&slowed.run(), &base.run(), &gate).unwrap();
    assert_eq!(report.exit(), Exit::GateFailed);
    let guilty = |f: &&Finding| f.ruling == Ruling::Failed;
    let names = report.findings.iter().filter(guilty);
    assert!(names.clone().count() > 0);
    assert!(
        names
            .clone()
            .all(|f| f.contender == ContenderId::from_text("interleaved"))
    );
}

/// A kernel may branch on its data, and every sweep draws its own.
#[test]
fn a_modelled_loss_that_other_data_explain_does_not_fail() {
    let base = Synthetic::round4().modelled();
    let exit = |slowdown: f64, other: u64, gate: &Gate| {
        let mut slowed = base.clone();
        slowed.entries[2].time *= slowdown;
        let mut run = slowed.run();
        run.header.settings.seed += other;
        over_run(&run, &base.run(), gate).unwrap()
    };
    assert_eq!(exit(1.003, 1, &as_before()).exit(), Exit::Done);
    assert_eq!(exit(1.003, 0, &as_before()).exit(), Exit::GateFailed);
    assert_eq!(exit(1.02, 1, &as_before()).exit(), Exit::GateFailed);
    let report = exit(1.003, 1, &as_before());
    let wanted = report.findings.iter().map(|f| f.wanted.as_str());
    assert!(wanted.clone().any(|w| w == "within 1.0 % on other data"));
    // A threshold of one's own is not met, but not failed either.
    assert_eq!(exit(1.003, 1, &at_least(1.0)).exit(), Exit::Inconclusive);
    assert_eq!(exit(1.0, 1, &at_least(1.0)).exit(), Exit::Done);
    assert_eq!(exit(1.003, 0, &at_least(1.0)).exit(), Exit::GateFailed);
}

#[test]
fn other_shapes_and_dropped_contenders_are_not_overlooked() {
    let base = Synthetic::round4().modelled();
    let mut fewer = base.clone();
    fewer.shapes.truncate(5);
    fewer.entries.remove(1);
    let report = over_run(&fewer.run(), &base.run(), &at_least(0.9)).unwrap();
    assert_eq!(report.exit(), Exit::Inconclusive);
    assert_eq!(report.count(Ruling::Undecided), 4);
    let mut other = base.clone();
    other.shapes = vec![dense(1, 128, 256)];
    let none = over_run(&other.run(), &base.run(), &at_least(0.9));
    assert!(matches!(none, Err(GateError::NoCommonShape)));
}

#[test]
fn other_devices_are_refused_unless_asked_for_and_then_labelled() {
    let base = Synthetic::round4().modelled().run();
    let run = Synthetic::round4().run();
    let refused = over_run(&run, &base, &at_least(0.9));
    assert!(matches!(refused, Err(GateError::Mismatched(_))));
    let (ranking, base_ranking) = (Ranking::of(&run), Ranking::of(&base));
    let over = Over::Run(&base, &base_ranking);
    let report = judge(&run, &ranking, &at_least(0.9), over, true).unwrap();
    assert_eq!(report.across_devices, mismatch(&base, &run));
    assert!(report.across_devices.is_some());
}

#[test]
fn one_block_or_one_contender_cannot_be_judged() {
    let mut field = Synthetic::round4();
    (field.processes, field.blocks) = (1, 1);
    let report = over_baseline(&field.run(), &at_least(1.1));
    assert_eq!(report.exit(), Exit::Inconclusive);
    field.entries.truncate(1);
    let run = field.run();
    let ranking = Ranking::of(&run);
    let alone = judge(
        &run,
        &ranking,
        &at_least(1.0),
        Over::Contender(&run.header.baseline),
        false,
    );
    assert!(matches!(alone, Err(GateError::Nobody(_))));
}

/// Lines of processes other than the first are gone.
fn first_process_only(field: &Synthetic) -> Run {
    let text = field.text();
    let kept =
        |line: &&str| !line.starts_with("{\"type\":\"block\"") || line.contains("\"process\":0,");
    let text: String = text.lines().filter(kept).flat_map(|l| [l, "\n"]).collect();
    crate::record::read_text("results/x.jsonl".as_ref(), text.as_bytes()).unwrap()
}

#[test]
fn fewer_processes_are_not_more_certainty() {
    let field = Synthetic::round4();
    let whole = field.run();
    assert_eq!(over_baseline(&whole, &at_least(1.1)).exit(), Exit::Done);
    let cut = first_process_only(&field);
    for report in [
        over_baseline(&cut, &at_least(1.1)),
        over_run(&cut, &whole, &as_before()).unwrap(),
        over_run(&whole, &cut, &as_before()).unwrap(),
    ] {
        assert_eq!(report.exit(), Exit::Inconclusive);
        let [
            (
                _,
                Gap::Thin {
                    processes, shapes, ..
                },
            ),
        ] = &report.incomplete[..]
        else {
            panic!("{report:#?}");
        };
        assert_eq!(*processes, 3);
        assert_eq!(shapes[0], ("256x4096x7168".to_owned(), 1));
    }
    // A process that was lost half way is replaced by one of another number.
    let replaced = |from: &str, to: &str| {
        let text = field.text().replace(from, to);
        crate::record::read_text("results/x.jsonl".as_ref(), text.as_bytes()).unwrap()
    };
    let taken_over = replaced("\"process\":1,", "\"process\":4,");
    assert_eq!(
        over_baseline(&taken_over, &at_least(1.1)).exit(),
        Exit::Done
    );
    // A process may end by its time limit before it has its share of blocks.
    let cut_short = replaced("\"min_blocks\":10", "\"min_blocks\":33");
    assert_eq!(over_baseline(&cut_short, &at_least(1.1)).exit(), Exit::Done);
}

#[test]
fn one_process_decides_nothing_about_speed() {
    const ONE_PROCESS: &str =
        "from one process: differences between processes are not in the interval";
    let mut field = Synthetic::round4();
    field.processes = 1;
    let run = field.run();
    let gate = Gate {
        min_shape: Some(1.0),
        not_slower: true,
        claims_met: true,
        ..at_least(1.1)
    };
    for report in [
        over_baseline(&run, &gate),
        over_run(&run, &Synthetic::round4().run(), &gate).unwrap(),
    ] {
        assert!(report.incomplete.is_empty(), "{:?}", report.incomplete);
        assert!(!report.findings.is_empty());
        for finding in &report.findings {
            assert_eq!(finding.ruling, Ruling::Undecided, "{finding:?}");
            assert_eq!(finding.reason, Some(ONE_PROCESS.to_owned()));
        }
    }
}

/// The committed baseline of the project's own gate, its text changed.
fn emulated(change: impl Fn(String) -> String) -> Run {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .join("results/baselines/smoke-emu.jsonl");
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("run.jsonl");
    std::fs::write(&copy, change(std::fs::read_to_string(path).unwrap())).unwrap();
    crate::record::read(&copy).unwrap()
}

/// Without one of them, a rule that names it would be undecided for ever.
#[test]
fn every_counter_is_one_the_emulator_counts() {
    let run = emulated(|text| text);
    let gate = Gate {
        counters: Counter::all().map(|c| (c, 1.0)).collect(),
        ..Gate::default()
    };
    let report = over_run(&run, &run, &gate).unwrap();
    assert!(report.findings.len() >= Counter::all().count());
    assert_eq!(report.exit(), Exit::Done, "{report:#?}");
}

#[test]
fn a_counter_the_baseline_has_none_of_must_stay_at_none() {
    let run = emulated(|text| text);
    let gate = Gate {
        contenders: vec!["interleaved".to_owned()],
        counters: vec![(Counter::named("atomics").unwrap(), 100.0)],
        ..Gate::default()
    };
    let worse = emulated(|text| text.replace("\"atomics\":0.0", "\"atomics\":1.0"));
    let report = over_run(&worse, &run, &gate).unwrap();
    let none = Some("the baseline has none".to_owned());
    assert!(report.findings.iter().any(|f| f.reason == none));
    assert_eq!(report.exit(), Exit::GateFailed);

    let silent = emulated(|text| text.replace("\"atomics\"", "\"other\""));
    let report = over_run(&silent, &run, &gate).unwrap();
    assert_eq!(report.exit(), Exit::Inconclusive);
}

#[test]
fn a_run_judged_more_loosely_than_its_baseline_is_not_decided() {
    use crate::domain::{Distribution, Watch};
    use crate::record::schema::Settings;
    let mut base = Synthetic::round4().run();
    base.header.settings.hazards = Watch::Some;
    let gate = Gate {
        correct: true,
        not_slower: true,
        ..Gate::default()
    };
    let exit = |change: &dyn Fn(&mut Settings)| {
        let mut run = base.clone();
        change(&mut run.header.settings);
        over_run(&run, &base, &gate).unwrap().exit()
    };
    assert_eq!(exit(&|_| ()), Exit::Done);
    // Stricter is no loophole, and other data are drawn for every run.
    assert_eq!(exit(&|s| s.rtol /= 2.0), Exit::Done);
    assert_eq!(exit(&|s| s.hazards = Watch::All), Exit::Done);
    assert_eq!(exit(&|s| s.seed += 1), Exit::Done);
    let corner = |s: &mut Settings| s.distributions.push(Distribution::Corner);
    assert_eq!(exit(&corner), Exit::Done);
    let loose: [&dyn Fn(&mut Settings); 6] = [
        &|s| s.rtol = 0.1,
        &|s| s.atol = 0.1,
        &|s| s.distributions.clear(),
        &|s| s.hazards = Watch::Off,
        &|s| s.secret_given = true,
        &|s| s.cold_l2 = !s.cold_l2,
    ];
    for (place, change) in loose.iter().enumerate() {
        assert_eq!(exit(change), Exit::Inconclusive, "change {place}");
    }
}

#[test]
fn who_declares_a_failure_is_named_and_not_judged() {
    let mut run = Synthetic::round4().run();
    for contender in &mut run.header.contenders[1..3] {
        contender.expect = Status::Wrong;
    }
    let report = over_baseline(&run, &at_least(0.1));
    for contender in &run.header.contenders[1..3] {
        let note = Note::Exempt {
            contender: contender.id.clone(),
            declared: Status::Wrong,
        };
        assert!(report.notes.contains(&note), "{:?}", report.notes);
    }
    for contender in &mut run.header.contenders[1..] {
        contender.expect = Status::Wrong;
    }
    let report = over_baseline(&run, &at_least(0.1));
    assert_eq!(report.exit(), Exit::Inconclusive);
}

#[test]
fn deleted_blocks_are_a_gap() {
    use crate::record::schema::Line;
    let lines = Synthetic::round4().lines();
    let read = |keep: &dyn Fn(usize, &Line) -> bool| {
        let kept = lines
            .iter()
            .enumerate()
            .filter(|(at, line)| keep(*at, line));
        let text: Vec<String> = kept
            .map(|(_, line)| serde_json::to_string(line).unwrap() + "\n")
            .collect();
        crate::record::read_text(Path::new("x.jsonl"), text.concat().as_bytes()).unwrap()
    };
    let gaps = |run: &Run| gaps(run, &Ranking::of(run));
    assert_eq!(gaps(&read(&|_, _| true)), []);
    let number = |line: &Line| match line {
        Line::Block(block) => Some(block.block),
        _ => None,
    };
    let shapes = Synthetic::round4().run().header.shapes.len();
    // The last may be missing: a process ends when its time is over.
    let last = lines.iter().filter_map(number).max().unwrap();
    assert_eq!(gaps(&read(&|_, line| number(line) != Some(last))), []);
    for hole in [0, 1] {
        let run = read(&|_, line| number(line) != Some(hole));
        let found = gaps(&run);
        let [Gap::Holes(found)] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(found.len(), shapes);
    }
}
