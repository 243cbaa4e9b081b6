//! A run against an earlier one.

use super::*;

#[test]
fn over_an_earlier_run_only_what_got_worse_fails() {
    let base = Synthetic::round4();
    let again = Synthetic {
        seed: base.seed + 1,
        ..base.clone()
    };
    // All contenders are judged, including the baseline and the declared failure.
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
    // A wrong cell may stay wrong, or become correct.
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

/// A kernel may branch on its data, and every sweep draws new data.
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
    // An explicit threshold is not met, but not failed either.
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
    let over = ComparedWith::Run(&base, &base_ranking);
    let report = judge(&run, &ranking, &at_least(0.9), over, true).unwrap();
    assert_eq!(report.across_devices, mismatch(&base, &run));
    assert!(report.across_devices.is_some());
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

/// With one missing, a rule that names it would always be undecided.
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
    use crate::domain::{Distribution, HazardWatch};
    use crate::record::schema::Settings;
    let mut base = Synthetic::round4().run();
    base.header.settings.hazards = HazardWatch::Some;
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
    // Stricter settings are fine, and every run draws other data.
    assert_eq!(exit(&|s| s.rtol /= 2.0), Exit::Done);
    assert_eq!(exit(&|s| s.hazards = HazardWatch::All), Exit::Done);
    assert_eq!(exit(&|s| s.seed += 1), Exit::Done);
    let corner = |s: &mut Settings| s.distributions.push(Distribution::Corner);
    assert_eq!(exit(&corner), Exit::Done);
    let loose: [&dyn Fn(&mut Settings); 6] = [
        &|s| s.rtol = 0.1,
        &|s| s.atol = 0.1,
        &|s| s.distributions.clear(),
        &|s| s.hazards = HazardWatch::Off,
        &|s| s.secret_given = true,
        &|s| s.cold_l2 = !s.cold_l2,
    ];
    for (place, change) in loose.iter().enumerate() {
        assert_eq!(exit(change), Exit::Inconclusive, "change {place}");
    }
}
