//! Runs that other tools timed, held against each other by `compare` and
//! `gate`.

use std::fs;

use crate::workspace::Workspace;

/// What NVBench writes for one benchmark, with its samples beside it.
fn nvbench(workspace: &Workspace, name: &str, seconds: f32) {
    let sample = |i: usize| seconds * (1.0 + 0.004 * ((i * 7 % 11) as f32 - 5.0));
    let bytes: Vec<u8> = (0..200).flat_map(|i| sample(i).to_le_bytes()).collect();
    let bin = workspace.path().join(format!("{name}.json-bin"));
    fs::create_dir_all(&bin).expect("a folder");
    fs::write(bin.join("0.bin"), bytes).expect("samples");
    let text = format!(
        r#"{{"meta": {{"version": {{"json": {{"major": 1, "string": "1.0.0"}}, "nvbench": {{"major": 0, "string": "0.2.0"}}}}}},
            "devices": [{{"id": 0, "name": "NVIDIA H200", "number_of_sms": 132}}],
            "benchmarks": [{{"name": "copy", "states": [{{"device": 0, "is_skipped": false,
              "axis_values": [{{"name": "N", "type": "int64", "value": "1048576"}}],
              "summaries": [{{"tag": "nv/json/bin:nv/cold/sample_times",
                "data": [{{"name": "filename", "type": "string", "value": "{name}.json-bin/0.bin"}},
                         {{"name": "size", "type": "int64", "value": "200"}}]}}]}}]}}]}}"#
    );
    workspace.write(&format!("{name}.json"), &text);
}

#[test]
fn runs_of_nvbench_are_compared_and_gated() {
    let workspace = Workspace::new();
    for (name, seconds) in [("old", 20e-6), ("same", 20.2e-6), ("slow", 23e-6)] {
        nvbench(&workspace, name, seconds);
    }
    let said = workspace.run(&["compare", "old.json", "slow.json"]);
    assert!(said.contains("[exit 0]"), "{said}");
    assert!(said.contains("0.870×"), "{said}");
    assert!(said.contains("Timed by NVBench 0.2.0"), "{said}");
    // Three per cent more is noise between processes, fifteen is not.
    let said = workspace.run(&["gate", "same.json", "--baseline", "old.json"]);
    assert!(said.contains("[exit 0]"), "{said}");
    assert!(said.contains("in one process"), "{said}");
    let said = workspace.run(&["gate", "slow.json", "--baseline", "old.json"]);
    assert!(said.contains("[exit 1]"), "{said}");
    // Neither has anything to run.
    for command in ["explain", "debug"] {
        let said = workspace.run(&[command, "one:STAGES=1", "old.json"]);
        assert!(
            said.contains("was timed by NVBench 0.2.0: it has no round"),
            "{said}"
        );
        assert!(said.ends_with("[exit 2]"), "{said}");
    }
    let said = workspace.run(&["compare", "old.json", "gone.json"]);
    assert!(
        said.contains("[exit 2]") && said.contains("gone.json"),
        "{said}"
    );
}
