//! Operators as data: one file defines the computation, and its round is planned, validated and
//! ranked like any other.

use std::fs;

use crate::sweep::Sweep;
use crate::workspace::{Workspace, in_repository};

const NORMS: &str = "question   = \"What does it cost to read a row twice?\"
operator   = \"rms-norm\"
contenders = [\"two-reads\", \"one-read\", \"no-weight\"]
baseline   = \"two-reads\"
shapes     = [{ m = 5, n = 256 }, { m = 3, n = 1000 }]
[validate]
seed = 1
";

/// Right designs are right, one that forgets a factor is told by its mistake,
/// and the run file says what was computed.
#[test]
fn a_norm_is_validated_and_ranked_in_the_emulator() {
    let sweep = Sweep::new(NORMS);
    sweep.run(&[&sweep.round()], 0);
    let verdicts = sweep.verdicts();
    let of = |name: &str| -> Vec<&str> {
        let own = verdicts.iter().filter(|((id, _), _)| id == name);
        own.map(|(_, (_, status))| status.as_str()).collect()
    };
    assert_eq!(of("two-reads"), ["ok", "ok"], "{verdicts:?}");
    assert_eq!(of("one-read"), ["ok", "ok"], "{verdicts:?}");
    assert!(of("no-weight").contains(&"wrong"), "{verdicts:?}");
    let run = fs::read_to_string(sweep.run_file().expect("a run")).expect("its text");
    let header = run.lines().next().expect("a header");
    assert!(
        header.contains("\"operator\":{\"name\":\"rms-norm\""),
        "{header}"
    );
    assert!(
        run.contains("is what a known mistake gives: no weight"),
        "{run}"
    );
}

#[test]
fn a_round_names_an_operator_that_there_is() {
    let workspace = Workspace::new();
    workspace.edit("round.toml", "question", "operator = \"rms-nrm\"\nquestion");
    let text = workspace.run(&["check", "--no-compile", "round.toml"]);
    assert!(text.contains("there is no operator `rms-nrm`"), "{text}");
    assert!(text.contains("did you mean `rms-norm`?"), "{text}");
    assert!(text.contains("round.toml:1:"), "{text}");
    assert!(text.ends_with("[exit 2]"), "{text}");
}

#[test]
fn a_design_of_another_operator_does_not_compete() {
    let workspace = Workspace::new();
    workspace.edit(
        "round.toml",
        "question",
        "operator = \"rms-norm\"\nquestion",
    );
    workspace.edit("round.toml", "k = 512\n", "");
    let text = workspace.run(&["check", "--no-compile", "round.toml"]);
    let told = "`one` computes nvfp4-dual-gemm, and the round is of rms-norm";
    assert!(text.contains(told), "{text}");
    assert!(text.ends_with("[exit 2]"), "{text}");
}

/// A file beside the rounds is an operator like one that dgx brings along.
#[test]
fn a_local_file_is_listed_checked_and_found_wrong_with_a_place() {
    let workspace = Workspace::empty();
    let text = "summary = \"twice x\"\nsizes = [\"m\"]\nsmall = [{ m = 8 }]\n[in.x]\ntype = \"f32\"\n\
                size = [\"m\"]\n[out.y]\ntype = \"f32\"\nsize = [\"m\"]\nvalue = \"x + x\"\n";
    workspace.write("operators/twice.toml", text);
    let listed = workspace.run(&["list", "--operators"]);
    assert!(listed.contains("nvfp4-dual-gemm"), "{listed}");
    assert!(listed.contains("twice x"), "{listed}");
    let checked = workspace.run(&["check", "operators/twice.toml"]);
    assert!(checked.contains("twice passes its checks"), "{checked}");
    assert!(checked.ends_with("[exit 0]"), "{checked}");
    workspace.edit("operators/twice.toml", "x + x", "x + z");
    let checked = workspace.run(&["check", "operators/twice.toml"]);
    assert!(checked.contains("operators/twice.toml:10:"), "{checked}");
    assert!(checked.ends_with("[exit 2]"), "{checked}");
}

/// The copy of attention's bytes takes less than its products could.
#[test]
fn a_copy_is_not_compared_with_the_time_of_products() {
    let run = "results/baselines/operators/attention-triton-20261117-1818.jsonl";
    let text = in_repository(&["show", run]);
    assert!(text.contains("yardstick"), "{text}");
    assert!(!text.contains("impossible"), "{text}");
}
