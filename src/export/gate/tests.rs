use super::*;
use crate::present::{Style, gate_report};
use dgx_core::config::Gate;
use dgx_core::domain::{Bytes, Counter, Exit, Timing};
use dgx_core::gate::{ComparedWith, judge};
use dgx_core::rank::Ranking;
use dgx_core::record::synthetic::{Synthetic, SyntheticContender, shapes};
use dgx_core::record::{Run, read_text};

fn text(report: &GateReport) -> String {
    gate_report(report, &Style::PLAIN)
}

fn over_baseline(run: &Run, gate: &Gate) -> GateReport {
    let over = ComparedWith::Contender(&run.header.baseline);
    judge(run, &Ranking::of(run), gate, over, false).unwrap()
}

fn over_run(run: &Run, base: &Run, gate: &Gate) -> GateReport {
    let (ranking, base_ranking) = (Ranking::of(run), Ranking::of(base));
    judge(
        run,
        &ranking,
        gate,
        ComparedWith::Run(base, &base_ranking),
        true,
    )
    .unwrap()
}

fn at_least(min_geomean: f64) -> Gate {
    Gate {
        min_geomean: Some(min_geomean),
        ..Gate::default()
    }
}

/// The B200 numbers of round 1, by their ratios.
fn round1() -> Run {
    let text = Synthetic {
        entries: vec![
            SyntheticContender::ok("pipelined[STAGES=1]", 1.0),
            SyntheticContender::ok("pipelined[STAGES=3]", 1.0),
        ],
        shapes: shapes().split_off(4),
        timing: Timing::Recorded,
        yardstick: None,
        ..Synthetic::round4()
    }
    .text();
    let times = [373.0, 372.0, 173.0, 156.0, 488.0, 462.0, 249.0, 228.0];
    let mut next = times.iter();
    let mut lines = Vec::new();
    for line in text.lines().filter(|l| !l.contains("\"verdict\"")) {
        let Some((before, rest)) = line.split_once("\"micros\":") else {
            lines.push(line.to_owned());
            continue;
        };
        let (_, after) = rest.split_once(',').unwrap();
        lines.push(format!(
            "{before}\"micros\":{},{after}",
            next.next().unwrap()
        ));
    }
    let text = lines.join("\n") + "\n";
    read_text("results/baselines/round1.jsonl".as_ref(), text.as_bytes()).unwrap()
}

#[test]
fn round_1_on_record_is_rejected() {
    let run = round1();
    for threshold in [1.4, 1.0] {
        let report = over_baseline(&run, &at_least(threshold));
        assert_eq!(report.exit(), Exit::GateFailed);
        assert_eq!(report.findings[0].found, "0.735×");
    }
    insta::assert_snapshot!(text(&over_baseline(&run, &at_least(1.4))));
}

#[test]
fn every_rule_in_every_format() {
    let gate = Gate {
        min_geomean: Some(1.4),
        min_shape: Some(1.0),
        correct: true,
        max_smem: Some(Bytes(100 << 10)),
        max_registers: Some(160),
        min_occupancy: Some(0.1),
        occupancy_not_worse: true,
        spills_not_worse: true,
        claims_met: true,
        ..Gate::default()
    };
    let run = Synthetic::round4().run();
    let report = over_baseline(&run, &gate);
    assert_eq!(report.exit(), Exit::GateFailed);
    insta::assert_snapshot!("text", text(&report));
    insta::assert_snapshot!("json", json(&report));
    insta::assert_snapshot!("junit", junit(&report));
    insta::assert_snapshot!("markdown", markdown(&report));
}

#[test]
fn a_rule_finer_than_the_run_can_see_is_refused() {
    let mut near = Synthetic::round4();
    near.noise = 0.05;
    near.entries[2].time = near.entries[0].time;
    let report = over_baseline(&near.run(), &at_least(1.001));
    insta::assert_snapshot!(text(&report));
}

#[test]
fn a_counter_the_baseline_has_none_of_must_stay_at_none() {
    let emulated = |change: fn(String) -> String| {
        let text = std::fs::read_to_string("results/baselines/smoke-emu.jsonl").unwrap();
        read_text("run.jsonl".as_ref(), change(text).as_bytes()).unwrap()
    };
    let run = emulated(|text| text);
    let worse = emulated(|text| text.replace("\"atomics\":0.0", "\"atomics\":1.0"));
    let gate = Gate {
        contenders: vec!["interleaved".to_owned()],
        counters: vec![(Counter::named("atomics").unwrap(), 100.0)],
        ..Gate::default()
    };
    let mut report = over_run(&worse, &run, &gate);
    (report.run, report.over) = ("later.jsonl".to_owned(), "earlier.jsonl".to_owned());
    // The model's error changes with every calibration.
    report.notes.clear();
    insta::assert_snapshot!(text(&report));
}

/// Half a run is an error for test collectors, and the last line gives the reason.
#[test]
fn half_a_run_is_told() {
    let whole = Synthetic::round4();
    let all = whole.text();
    let lines: Vec<&str> = all.lines().collect();
    let half = lines[..lines.len() - 1].join("\n") + "\n";
    let half = read_text("results/x.jsonl".as_ref(), half.as_bytes()).unwrap();
    for (report, told) in [
        (over_baseline(&half, &at_least(1.1)), "it did not end"),
        (
            over_run(&whole.run(), &half, &at_least(1.1)),
            "of the baseline run, it did not end",
        ),
    ] {
        assert_eq!(gate_outcome(&report), format!("gate incomplete: {told}"));
        assert!(junit(&report).contains("name=\"complete\""));
    }
    let of_one_process =
        |line: &&str| !line.starts_with("{\"type\":\"block\"") || line.contains("\"process\":0,");
    let kept: Vec<&str> = lines.iter().copied().filter(of_one_process).collect();
    let thin = read_text("results/x.jsonl".as_ref(), kept.join("\n").as_bytes()).unwrap();
    let said = gate_outcome(&over_baseline(&thin, &at_least(1.1)));
    let expected = "needed 3 processes of 2 blocks or more; these had fewer: 256x4096x7168 (1)";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn other_devices_are_labelled() {
    let (base, run) = (
        Synthetic::round4().modelled().run(),
        Synthetic::round4().run(),
    );
    let report = over_run(&run, &base, &at_least(0.9));
    assert!(text(&report).contains("ACROSS DEVICES"));
    assert!(markdown(&report).contains("**Across devices:**"));
}

#[test]
fn text_from_a_run_file_stays_text() {
    let mut field = Synthetic::round4().modelled();
    field.entries[1].name = "<img src=x onerror=alert(1)>|`\u{1b}[31m";
    let report = over_baseline(&field.run(), &at_least(2.0));
    assert!(!text(&report).contains('\u{1b}'));
    assert!(junit(&report).contains("&lt;img"));
    assert!(markdown(&report).contains("&lt;img") && !markdown(&report).contains("<img"));
}
