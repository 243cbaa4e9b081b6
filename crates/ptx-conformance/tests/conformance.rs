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

#[test]
fn the_forms_that_are_called_recorded_have_goldens() {
    let forms = ptx_conformance::forms::recorded(&families::all(), &goldens());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ptx-emu/src/recorded.txt");
    let listed = std::fs::read_to_string(path).expect("the list is there");
    assert!(
        forms == listed,
        "the list is out of date: \
         cargo run -p ptx-conformance -- forms > crates/ptx-emu/src/recorded.txt"
    );
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

/// The products that the designs are made of.
const PART: &str = "kind::mxf4nvf4.block_scale.block16";

/// What a B200 would leave if it did what the emulator does, of the cases of [`PART`]; the others
/// of their group are there and not looked at.
fn answers() -> Vec<Golden> {
    let family = families::find("tcgen05").expect("a family");
    let golden = |case: Case| Golden {
        name: case.name.clone(),
        fingerprint: case.fingerprint(),
        answer: match case.name.contains(PART) {
            true => Answer::Outputs(replay::emulate(&case, MmaMode::Exact).expect("it runs")),
            false => Answer::Outputs(Vec::new()),
        },
    };
    (family.cases)().into_iter().map(golden).collect()
}

/// How the emulator stands to these, written as `record` writes them and read back.
fn stands(folder: &Path, cases: Vec<Golden>) -> Vec<(Case, Verdict)> {
    let goldens = Goldens {
        provenance: Provenance {
            gpu: "a test".into(),
            driver: "13.0".into(),
            date: "2026-01-01".into(),
        },
        cases,
    };
    let path = folder.join("tcgen05.golden");
    goldens.write(&path).expect("written");
    let goldens = replay::read_recorded(folder).expect("read");
    replay::replay_recorded(&goldens, PART, MmaMode::Exact)
}

/// Once a B200 has answered, tcgen05 is held against it, and nothing wrong passes.
#[test]
fn goldens_of_a_b200_are_compared_when_they_exist() {
    let folder = std::env::temp_dir().join(format!("ptx-conformance-b200-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let right = answers();
    let verdicts = stands(&folder, right.clone());
    assert!(verdicts.len() >= 6, "{} cases", verdicts.len());
    for (case, verdict) in &verdicts {
        let exact = matches!(verdict, Verdict::Agrees { exact: true });
        assert!(exact, "{}: {verdict}", case.name);
    }

    // One mistake each.
    let mut wrong = right;
    let of_part = wrong.iter_mut().filter(|golden| golden.name.contains(PART));
    for (index, golden) in of_part.enumerate() {
        match (index, &mut golden.answer) {
            // A float's sign.
            (0, Answer::Outputs(outputs)) => outputs[0][3] ^= 0x80,
            (1, Answer::Outputs(outputs)) => outputs.clear(),
            (2, answer) => *answer = Answer::Failed("CUDA_ERROR_ILLEGAL_INSTRUCTION".into()),
            (3, _) => golden.fingerprint.push('0'),
            (4, _) => golden.name.push('?'),
            _ => {}
        }
    }
    let verdicts = stands(&folder, wrong);
    let verdict = |index: usize| &verdicts[index].1;
    assert!(matches!(verdict(0), Verdict::Differs(_)), "{}", verdict(0));
    assert!(matches!(verdict(1), Verdict::Stale), "{}", verdict(1));
    assert!(
        matches!(verdict(2), Verdict::NotRefused(_)),
        "{}",
        verdict(2)
    );
    assert!(matches!(verdict(3), Verdict::Stale), "{}", verdict(3));
    assert!(matches!(verdict(4), Verdict::Missing), "{}", verdict(4));
    assert!(verdicts[5..].iter().all(|(_, verdict)| verdict.agrees()));
    std::fs::remove_dir_all(&folder).expect("removed");
}
