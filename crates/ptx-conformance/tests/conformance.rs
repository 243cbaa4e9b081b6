//! Every case, replayed in the emulator and held against what an H200 answered.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use ptx_conformance::golden::{Answer, Golden, Goldens, Provenance};
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

/// What a B200 would leave if it did what the emulator does: a file of the group as `record`
/// writes it, read back.
fn recorded(folder: &Path, change: impl Fn(usize, &mut Golden)) -> HashMap<String, Golden> {
    let family = families::find("tcgen05").expect("a family");
    let golden = |(index, case): (usize, Case)| {
        let mut golden = Golden {
            name: case.name.clone(),
            fingerprint: case.fingerprint(),
            answer: match replay::emulate(&case, MmaMode::Exact) {
                Ok(outputs) => Answer::Outputs(outputs),
                Err(error) => Answer::Failed(error.to_string()),
            },
        };
        change(index, &mut golden);
        golden
    };
    let cases = (family.cases)().into_iter().enumerate();
    let goldens = Goldens {
        provenance: Provenance {
            gpu: "a test".into(),
            driver: "13.0".into(),
            date: "2026-01-01".into(),
        },
        cases: cases.map(golden).collect(),
    };
    let path = folder.join(family.group).with_extension("golden");
    goldens.write(&path).expect("written");
    replay::read_recorded(folder).expect("read")
}

/// Once a B200 has answered, every form of tcgen05 is held against it, and nothing wrong passes.
#[test]
fn goldens_of_a_b200_are_compared_when_they_exist() {
    let folder = std::env::temp_dir().join(format!("ptx-conformance-b200-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let verdicts = |change: &dyn Fn(usize, &mut Golden)| {
        replay::replay_recorded(&recorded(&folder, change), "", MmaMode::Exact)
    };
    let right = verdicts(&|_, _| {});
    let cases = (families::find("tcgen05").expect("a family").cases)().len();
    assert_eq!(right.len(), cases, "every case of the group, and no other");
    for (case, verdict) in &right {
        let exact = matches!(verdict, Verdict::Agrees { exact: true });
        assert!(exact, "{}: {verdict}", case.name);
    }
    // One mistake each, in cases of their own.
    let wrong = verdicts(&|index, golden| match (index, &mut golden.answer) {
        // A float's sign.
        (0 | 40 | 120, Answer::Outputs(outputs)) => outputs[0][3] ^= 0x80,
        (1, Answer::Outputs(outputs)) => outputs.clear(),
        (2, answer) => *answer = Answer::Failed("CUDA_ERROR_ILLEGAL_INSTRUCTION".into()),
        (3, _) => golden.fingerprint.push('0'),
        (4, _) => golden.name.push('?'),
        _ => {}
    });
    let bad: Vec<usize> = (0..)
        .zip(&wrong)
        .filter(|(_, (_, verdict))| verdict.fails())
        .map(|(index, _)| index)
        .collect();
    assert_eq!(bad, [0, 1, 2, 3, 4, 40, 120]);
    assert!(matches!(wrong[0].1, Verdict::Differs(_)), "{}", wrong[0].1);
    assert!(matches!(wrong[2].1, Verdict::NotRefused(_)));
    assert!(matches!(wrong[4].1, Verdict::Missing));
    std::fs::remove_dir_all(&folder).expect("removed");
}
