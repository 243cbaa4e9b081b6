//! Runs that other tools timed, compared by `compare` and `gate`.

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

/// What Google Benchmark writes: each benchmark with one set of arguments, in
/// so many repetitions.
fn google(workspace: &Workspace, name: &str, repetitions: usize, nanos: f64) {
    let entry = |benchmark: &str, nanos: f64, i: usize| {
        let time = nanos * (1.0 + 0.001 * ((i * 7 % 11) as f64 - 5.0));
        format!(
            r#"{{"name": "{benchmark}", "run_type": "iteration", "real_time": {time}, "time_unit": "ns"}}"#
        )
    };
    let each = (0..repetitions).flat_map(|i| {
        [
            entry("BM_x/64", nanos, i),
            entry("BM_y/128", 20.0 * nanos, i),
        ]
    });
    let entries: Vec<String> = each.collect();
    let text = format!(
        r#"{{"context": {{"date": "2026-01-01", "host_name": "h"}}, "benchmarks": [{}]}}"#,
        entries.join(",")
    );
    workspace.write(&format!("{name}.json"), &text);
}

/// Whatever `gate` rules, `compare` says, in words and in files: slower where
/// it fails, and that it cannot be told where it passes what is less than can
/// be told.
#[test]
fn compare_and_gate_are_of_one_mind_about_another_tools_runs() {
    let workspace = Workspace::new();
    for (name, factor) in [("old", 1.0), ("near", 1.03), ("fast", 0.97), ("slow", 1.15)] {
        nvbench(&workspace, &format!("n-{name}"), 20e-6 * factor);
        google(
            &workspace,
            &format!("g-{name}"),
            12,
            100.0 * f64::from(factor),
        );
        google(
            &workspace,
            &format!("one-{name}"),
            1,
            100.0 * f64::from(factor),
        );
    }
    for (tool, base) in [("n", "n"), ("g", "g"), ("one", "one"), ("one", "g")] {
        for name in ["near", "fast", "slow"] {
            let files = [format!("{tool}-{name}.json"), format!("{base}-old.json")];
            let ruled = workspace.run(&["gate", &files[0], "--baseline", &files[1]]);
            let said = workspace.run(&[
                "compare",
                &files[1],
                &files[0],
                "--export-json",
                "changes.json",
                "--export-markdown",
                "changes.md",
            ]);
            let slow = name == "slow";
            assert!(
                ruled.ends_with(if slow { "[exit 1]" } else { "[exit 0]" }),
                "{ruled}"
            );
            assert!(said.ends_with("[exit 0]"), "{said}");
            let written = workspace.read("changes.json") + &workspace.read("changes.md");
            for words in [&said, &written] {
                assert_eq!(words.contains("cannot tell"), !slow, "{words}");
                assert_eq!(
                    words.contains("slower") || words.contains("yes"),
                    slow,
                    "{words}"
                );
            }
            // Both say where they draw the line, and draw it there.
            for words in [&said, &ruled] {
                let unfolded = words.split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(
                    unfolded.contains("differences below 5.0 % decide nothing"),
                    "{words}"
                );
            }
            assert!(!said.contains("any difference counts"), "{said}");
            assert!(ruled.contains("within 5.0 %"), "{ruled}");
        }
    }
}

/// Benchmarks of one file are no contenders of one operator: each is compared
/// with itself, and none with another.
#[test]
fn benchmarks_of_another_tool_are_compared_each_with_itself_alone() {
    let workspace = Workspace::new();
    google(&workspace, "old", 12, 100.0);
    google(&workspace, "new", 12, 115.0);
    let said = workspace.run(&["compare", "old.json", "new.json"]);
    let row = |name: &str| said.lines().find(|line| line.contains(name)).unwrap_or("");
    for name in ["BM_x", "BM_y"] {
        assert!(row(name).contains("slower"), "{said}");
    }
    assert_eq!(said.matches("Timed by").count(), 1, "{said}");
    for word in [
        "Without samples",
        "Within each run",
        "rank",
        "can detect",
        "tie groups",
    ] {
        assert!(!said.contains(word), "{word}: {said}");
    }
}

/// Nor does one file rank them.
#[test]
fn benchmarks_of_another_tool_are_shown_unranked() {
    let workspace = Workspace::new();
    google(&workspace, "g", 12, 100.0);
    let said = workspace.run(&["show", "g.json"]);
    let row = |name: &str| said.lines().find(|line| line.contains(name)).unwrap_or("");
    for name in ["BM_x", "BM_y"] {
        assert!(row(name).contains('['), "{said}");
    }
    assert_eq!(said.matches("Timed by").count(), 1, "{said}");
    for word in ["rank", "fastest", "over BM", "next:", "All blocks"] {
        assert!(!said.contains(word), "{word}: {said}");
    }
}

/// A file beside itself is no comparison, whoever wrote it; and without
/// anything to be held against there is no gate.
#[test]
fn another_tools_run_held_against_itself_is_told_so_in_one_line() {
    let workspace = Workspace::new();
    nvbench(&workspace, "n", 20e-6);
    google(&workspace, "g", 12, 100.0);
    google(&workspace, "one", 1, 100.0);
    for name in ["n", "g", "one"] {
        let file = format!("{name}.json");
        let said = workspace.run(&["gate", &file, "--baseline", &file]);
        assert!(said.ends_with("[exit 2]"), "{said}");
        assert!(said.contains("--baseline is the run itself"), "{said}");
        std::fs::copy(
            workspace.path().join(&file),
            workspace.path().join("copy.json"),
        )
        .unwrap();
        let said = workspace.run(&["gate", "copy.json", "--baseline", &file]);
        assert!(said.ends_with("[exit 5]"), "{said}");
        assert!(
            said.contains("a run compared with itself always passes"),
            "{said}"
        );
        assert!(
            !said.contains("FAILED") && !said.contains("unsupported"),
            "{said}"
        );
        let said = workspace.run(&["gate", &file]);
        assert!(said.ends_with("[exit 2]"), "{said}");
        assert!(said.contains("it has no round, so no baseline"), "{said}");
    }
}
