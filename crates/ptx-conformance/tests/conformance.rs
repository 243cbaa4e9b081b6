//! Every case, replayed in the emulator and held against what an H200 answered.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use ptx_conformance::golden::{Answer, Golden};
use ptx_conformance::replay::{self, Verdict};
use ptx_conformance::{Case, families};
use ptx_emu::MmaMode;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens")
}

fn goldens() -> HashMap<String, Golden> {
    replay::read_goldens(&folder()).expect("goldens are readable")
}

/// Fails with every case that does not agree, and says how many do.
fn expect_agreement(verdicts: &[(Case, Verdict)]) {
    let bad: Vec<String> = verdicts
        .iter()
        .filter(|(_, verdict)| verdict.fails())
        .map(|(case, verdict)| format!("{}: {verdict}", case.name))
        .collect();
    assert!(
        bad.is_empty(),
        "{} of {} cases disagree with the GPU:\n{}",
        bad.len(),
        verdicts.len(),
        bad.join("\n")
    );
}

#[test]
fn the_emulator_answers_as_the_gpu_did() {
    let verdicts = replay::replay(&goldens(), "", MmaMode::Exact);
    let forms: BTreeSet<&String> = verdicts.iter().flat_map(|(case, _)| &case.forms).collect();
    let exact = verdicts
        .iter()
        .filter(|(_, v)| matches!(v, Verdict::Agrees { exact: true }))
        .count();
    println!(
        "{} cases of {} instruction forms, {exact} bit for bit; {} forms have no golden",
        verdicts.len(),
        forms.len(),
        replay::unanswered_forms(&verdicts)
    );
    assert_eq!(verdicts.len(), families::all().len(), "a case was skipped");
    expect_agreement(&verdicts);
}

/// The fast arithmetic of tensor cores differs only where the order of a sum shows.
#[test]
fn fast_tensor_arithmetic_keeps_to_the_tolerances() {
    let goldens = goldens();
    for part in ["mma.sync", "wgmma", "tcgen05"] {
        expect_agreement(&replay::replay(&goldens, part, MmaMode::Fast));
    }
}

#[test]
fn goldens_cover_the_isa_and_nothing_else() {
    let goldens = goldens();
    let mut forms = BTreeSet::new();
    let mut names = BTreeSet::new();
    let unanswered = replay::unanswered(&goldens);
    for case in families::all() {
        if unanswered.contains(&case.name) {
            continue;
        }
        let golden = goldens.get(&case.name);
        assert!(golden.is_some(), "{} has no golden: record it", case.name);
        if matches!(golden.map(|g| &g.answer), Some(Answer::Outputs(_))) {
            forms.extend(case.forms);
        }
        names.insert(case.name);
    }
    assert!(
        forms.len() >= 150,
        "only {} forms have goldens",
        forms.len()
    );
    for name in goldens.keys() {
        assert!(
            names.contains(name),
            "golden `{name}` belongs to no case: record again"
        );
    }
}
