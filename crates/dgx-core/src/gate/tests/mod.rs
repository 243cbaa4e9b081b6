mod earlier;
mod incomplete;

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
        ComparedWith::Contender(&run.header.baseline),
        false,
    )
    .unwrap()
}

fn over_run(run: &Run, base: &Run, gate: &Gate) -> Result<GateReport, GateError> {
    let (ranking, base_ranking) = (Ranking::of(run), Ranking::of(base));
    judge(
        run,
        &ranking,
        gate,
        ComparedWith::Run(base, &base_ranking),
        false,
    )
}

fn at_least(min_geomean: f64) -> Gate {
    Gate {
        min_geomean: Some(min_geomean),
        ..Gate::default()
    }
}

/// The default rules over an earlier run.
fn as_before() -> Gate {
    Gate {
        correct: true,
        not_slower: true,
        ..Gate::default()
    }
}

#[test]
fn wrong_contenders_fail_when_they_did_not_declare_it() {
    // Correct by luck is not correct.
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
    assert_eq!(report.incomplete, [(RunRole::Run, Gap::NotValidated)]);
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
    // Designs far from the threshold are still judged.
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
    // A ratio far from 1 needs no control.
    let mut far = near;
    far.entries[1].time = 0.5;
    let far = without_control(&far);
    assert_eq!(over_baseline(&far, &at_least(1.0)).exit(), Exit::Done);
    assert_eq!(over_baseline(&far, &at_least(1.5)).exit(), Exit::Done);
}

/// A script can contain any times: no gate uses them, for or against.
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
        assert_eq!(report.incomplete, [(RunRole::Run, Gap::Scripted)]);
    }
    let over = |run: &Run, base: &Run, across| {
        let (ranking, base_ranking) = (Ranking::of(run), Ranking::of(base));
        let over = ComparedWith::Run(base, &base_ranking);
        judge(run, &ranking, &as_before(), over, across)
    };
    assert!(over(&measured, &scripted, false).is_err());
    for (run, base) in [(&measured, &scripted), (&scripted, &measured)] {
        let report = over(run, base, true).unwrap();
        assert_eq!(report.exit(), Exit::Inconclusive);
    }
}

/// A sweep would have rejected the contender, so the file is not trusted.
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
fn who_declares_a_failure_is_named_and_not_judged() {
    let mut run = Synthetic::round4().run();
    for contender in &mut run.header.contenders[1..3] {
        contender.expect = Status::Wrong;
    }
    let report = over_baseline(&run, &at_least(0.1));
    for contender in &run.header.contenders[1..3] {
        let note = GateNote::Exempt {
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
