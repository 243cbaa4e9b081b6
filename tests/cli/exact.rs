//! Data that reveal a dropped or rounded term.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::sweep::{Verdicts, ended, verdicts_of};
use crate::workspace::{Workspace, copy};

/// The fixtures, in a folder of their own.
fn fixtures() -> Workspace {
    let workspace = Workspace::empty();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/exact");
    copy(&own, workspace.path());
    workspace
}

/// Sweeps a round on these data alone, always the same.
fn swept(workspace: &Workspace, round: &str, data: &str, code: i32) -> Verdicts {
    let text = workspace.read(&format!("{round}.toml"));
    assert!(text.contains("[\"exact\"]"), "{text}");
    workspace.write("round.toml", &text.replace("[\"exact\"]", data));
    let results = workspace.path().join("results");
    let _ = fs::remove_dir_all(&results);
    let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
    let words = "sweep round.toml --backend emu --data-seed 1 --results results";
    command
        .current_dir(workspace.path())
        .env("NO_COLOR", "1")
        .env("DGX_CACHE", workspace.path().join("cache"))
        .args(words.split(' '));
    ended(&mut command, code);
    let mut files = fs::read_dir(results).expect("results");
    let run = files.find_map(|file| {
        let path = file.expect("an entry").path();
        path.extension()
            .is_some_and(|e| e == "jsonl")
            .then_some(path)
    });
    verdicts_of(&run.expect("a run"))
}

/// Sums in fp16 over a part of K, the smallest products left out, TF32 for fp32
/// and scales rounded on a part of K: right on other data, wrong on these.
#[test]
fn sums_that_are_nearly_right_are_wrong_on_exact_data() {
    let workspace = fixtures();
    for round in ["f16-gemm", "f32-gemm", "nvfp4-gemm-e4m3"] {
        let others = swept(&workspace, round, "[\"benchmark\", \"full\"]", 3);
        let all = others.values().all(|(_, status)| status == "ok");
        assert!(all, "{round}: {others:?}");
        for ((name, _), (_, status)) in swept(&workspace, round, "[\"exact\"]", 0) {
            let wanted = if name == "right" { "ok" } else { "wrong" };
            assert_eq!(status, wanted, "{round}: {name}");
        }
    }
}

/// Where an operator has exact data, its rounds use them unless they name others.
#[test]
fn exact_data_are_among_the_usual_where_there_are_any() {
    let workspace = Workspace::empty();
    let data = |round: &str| {
        let text = workspace.run(&["sweep", round, "--backend", "emu", "--quiet"]);
        assert!(text.ends_with("[exit 0]"), "{text}");
        let files = fs::read_dir(workspace.path().join("results")).expect("results");
        let paths = files.map(|file| file.expect("an entry").path());
        let mut runs = paths.filter(|path| {
            let name = path.file_name().expect("a name").to_string_lossy();
            name.starts_with(&format!("{round}-")) && name.ends_with(".jsonl")
        });
        let text = fs::read_to_string(runs.next().expect("a run")).expect("its text");
        text.contains("\"distributions\":[\"benchmark\",\"exact\",\"full\",\"corner\"]")
    };
    workspace.run(&["new", "soft", "--operator", "softmax"]);
    assert!(data("soft"));
    workspace.run(&["new", "--operator", "my-norm"]);
    assert!(!data("my-norm"));
    let round = "configs/my-norm.toml";
    workspace.edit(round, "seed = 1", "seed = 1\ndistributions = [\"exact\"]");
    let text = workspace.run(&["check", round]);
    assert!(text.contains("my-norm has no exact data"), "{text}");
    assert!(text.contains("configs/my-norm.toml:"), "{text}");
    assert!(text.ends_with("[exit 2]"), "{text}");
}
