use super::*;
use crate::domain::{ContenderId, Status};
use crate::rank::{ComparedSide, Ranking, compare_runs};
use crate::stats::CONFIDENCE;

/// A state of NVBench's, and the file of its samples.
fn state(file: &str, size: usize, mean: f64) -> String {
    format!(
        r#"{{"name": "Device=0 N=2^20", "device": 0, "is_skipped": false,
            "axis_values": [{{"name": "N", "type": "int64", "value": "1048576"}}],
            "summaries": [
              {{"tag": "nv/cold/time/gpu/mean", "name": "GPU Time", "hint": "duration",
                "data": [{{"name": "value", "type": "float64", "value": "{mean}"}}]}},
              {{"tag": "nv/json/bin:nv/cold/sample_times", "hint": "file/sample_times",
                "data": [{{"name": "filename", "type": "string", "value": "{file}"}},
                         {{"name": "size", "type": "int64", "value": "{size}"}}]}}]}}"#
    )
}

fn nvbench(states: &str) -> String {
    format!(
        r#"{{"meta": {{"argv": ["bench"], "version": {{"json": {{"major": 1, "string": "1.0.0"}},
             "nvbench": {{"major": 0, "string": "0.2.0"}}}}}},
            "devices": [{{"id": 0, "name": "NVIDIA H200", "number_of_sms": 132}}],
            "benchmarks": [{{"name": "copy", "states": [{states}]}},
              {{"name": "reduce", "states": [{{"device": 0, "is_skipped": true, "skip_reason": "too large"}}]}}]}}"#
    )
}

/// Samples around a time in seconds, as bytes.
fn samples(seconds: f32, count: usize) -> Vec<u8> {
    let sample = |i: usize| seconds * (1.0 + 0.002 * ((i * 7 % 11) as f32 - 5.0));
    (0..count).flat_map(|i| sample(i).to_le_bytes()).collect()
}

/// A folder with an NVBench file and its samples.
fn folder(seconds: f32, count: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("a.json-bin")).unwrap();
    std::fs::write(
        folder.path().join("a.json-bin/0.bin"),
        samples(seconds, count),
    )
    .unwrap();
    let text = nvbench(&state("a.json-bin/0.bin", count, f64::from(seconds)));
    std::fs::write(folder.path().join("a.json"), text).unwrap();
    folder
}

fn why(folder: &tempfile::TempDir) -> String {
    read(&folder.path().join("a.json")).unwrap_err().to_string()
}

#[test]
fn samples_of_nvbench_are_read_beside_their_file() {
    let folder = folder(20e-6, 100);
    let run = read(&folder.path().join("a.json")).unwrap();
    assert_eq!(run.tool.as_deref(), Some("NVBench 0.2.0"));
    assert_eq!(run.header.device.name, "NVIDIA H200");
    let ranking = Ranking::of(&run);
    let copy = ContenderId::from_text("copy");
    let cell = ranking.cell(&copy, "N=1048576").unwrap();
    let time = cell.time.as_ref().unwrap();
    assert_eq!((cell.status, time.samples), (None, 100));
    assert!((time.estimate().0 - 20.0).abs() < 0.1, "{time:?}");
    let reduce = ContenderId::from_text("reduce");
    let skipped = ranking.cell(&reduce, "all").unwrap();
    assert_eq!(skipped.status, Some(Status::Unsupported));
    assert_eq!(skipped.reason.as_deref(), Some("too large"));
}

#[test]
fn two_files_are_told_apart_by_their_intervals() {
    let (before, after) = (folder(20e-6, 100), folder(18e-6, 100));
    let runs = [before, after].map(|f| read(&f.path().join("a.json")).unwrap());
    let rankings = [Ranking::of(&runs[0]), Ranking::of(&runs[1])];
    let copy = ContenderId::from_text("copy");
    let side = |i: usize| ComparedSide::new(&runs[i], &rankings[i], &copy);
    let found = compare_runs(side(0), side(1)).unwrap();
    let ratio = found.geomean.ratio(CONFIDENCE);
    assert!((ratio.estimate - 20.0 / 18.0).abs() < 1e-3, "{ratio:?}");
    let (lower, upper) = (ratio.lower.unwrap(), ratio.upper.unwrap());
    assert!(1.10 < lower && upper < 1.13, "{ratio:?}");
}

#[test]
fn files_of_a_folder_are_processes() {
    let one = folder(20e-6, 50);
    for (name, seconds) in [("b", 20.2e-6), ("c", 19.9e-6), ("d", 20.1e-6)] {
        std::fs::create_dir(one.path().join(format!("{name}.json-bin"))).unwrap();
        let bin = format!("{name}.json-bin/0.bin");
        std::fs::write(one.path().join(&bin), samples(seconds, 50)).unwrap();
        let text = nvbench(&state(&bin, 50, f64::from(seconds)));
        std::fs::write(one.path().join(format!("{name}.json")), text).unwrap();
    }
    assert!(is_foreign(one.path()));
    let run = read(one.path()).unwrap();
    assert_eq!(run.tally.process_count(), 4);
    let ranking = Ranking::of(&run);
    let cell = ranking.cell(&ContenderId::from_text("copy"), "N=1048576");
    let log = cell.unwrap().time.as_ref().unwrap().log;
    assert_eq!(log.processes, 4);
}

/// A file of Google Benchmark for each list of entries, in one folder.
fn google(files: &[&[&str]]) -> Run {
    let folder = tempfile::tempdir().unwrap();
    for (i, entries) in files.iter().enumerate() {
        let entries = entries.join(",");
        let text = format!(r#"{{"context": {{}}, "benchmarks": [{entries}]}}"#);
        std::fs::write(folder.path().join(format!("{i}.json")), text).unwrap();
    }
    read(folder.path()).unwrap()
}

#[test]
fn every_process_is_heard_even_with_a_single_repetition() {
    const FAILED: &str = r#"{"name": "a", "error_occurred": true, "error_message": "no memory"}"#;
    const A: [&str; 4] = [
        r#"{"name": "a", "real_time": 1000}"#,
        r#"{"name": "a", "real_time": 4000}"#,
        r#"{"name": "a", "real_time": 2000}"#,
        r#"{"name": "a", "real_time": 2000.5}"#,
    ];
    let a = ContenderId::from_text("a");
    let time = |run: &Run| {
        let ranking = Ranking::of(run);
        let time = ranking.cell(&a, "all").unwrap().time.clone().unwrap();
        (time.samples, (time.estimate().0 * 10.0).round())
    };
    let two = google(&[&A[..1], &A[1..2]]);
    assert_eq!(time(&two), (0, 20.0), "the mean of both, not the first");
    let four = google(&[&A[..1], &A[1..2], &A[2..3], &A[3..]]);
    assert_eq!(time(&four), (4, 20.0));
    // A failed one does not affect the others.
    let failed = google(&[&[FAILED], &A[2..3]]);
    assert_eq!(time(&failed), (0, 20.0));
    let none = google(&[&[FAILED], &[FAILED]]);
    let reason = none.verdict(&a, "all").unwrap().reason.clone();
    assert_eq!(reason.as_deref(), Some("no memory"));
}

#[test]
fn what_cannot_be_read_says_why() {
    let cut = folder(20e-6, 10);
    std::fs::write(cut.path().join("a.json-bin/0.bin"), [0; 39]).unwrap();
    assert!(
        why(&cut).contains("has 39 bytes, not four for each sample"),
        "{}",
        why(&cut)
    );
    let gone = folder(20e-6, 10);
    std::fs::remove_file(gone.path().join("a.json-bin/0.bin")).unwrap();
    assert!(
        why(&gone).contains("keep that folder beside it"),
        "{}",
        why(&gone)
    );
    let zero = folder(0.0, 10);
    assert!(
        why(&zero).contains("copy [N=1048576] has a time of 0 µs"),
        "{}",
        why(&zero)
    );
    // A count that no memory holds.
    let vast = folder(20e-6, 10);
    let text = nvbench(&state("a.json-bin/0.bin", usize::MAX, 1.0));
    std::fs::write(vast.path().join("a.json"), text).unwrap();
    assert!(why(&vast).contains("has 40 bytes"), "{}", why(&vast));
    // Nothing outside the folder is read.
    let sly = folder(20e-6, 10);
    let text = nvbench(&state("/etc/passwd", 10, 1.0));
    std::fs::write(sly.path().join("a.json"), text).unwrap();
    assert!(
        why(&sly).contains("etc/passwd cannot be read"),
        "{}",
        why(&sly)
    );
    assert!(!why(&sly).contains(" /etc"), "{}", why(&sly));
    for (text, told) in [
        ("{", "a.json:1: the text ends too early"),
        ("{}", "neither NVBench's `devices` nor"),
        (
            r#"{"context": {}, "benchmarks": [{"name": "a", "real_time": 1, "time_unit": "h"}]}"#,
            "time unit `h`",
        ),
        (
            r#"{"context": {}, "benchmarks": [{"name": "a", "real_time": -1.0}]}"#,
            "a time of -0.001 µs",
        ),
        (
            r#"{"context": {}, "benchmarks": []}"#,
            "no benchmark in it was run",
        ),
        (
            r#"{"context": {}, "benchmarks": [{"name": "a_mean", "run_type": "aggregate", "real_time": 1}]}"#,
            "run it without --benchmark_report_aggregates_only",
        ),
        (
            r#"{"meta": {"version": {"json": {"major": 2, "string": "2.0.0"}}}, "devices": [], "benchmarks": []}"#,
            "format 2.0.0",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.json"), text).unwrap();
        assert!(why(&folder).contains(told), "{text}: {}", why(&folder));
    }
}

/// NVBench's default: on every device.
#[test]
fn states_of_several_devices_are_cells_of_their_own() {
    let folder = folder(20e-6, 10);
    let first = state("a.json-bin/0.bin", 10, 20e-6);
    let second = first.replace("\"device\": 0", "\"device\": 1");
    let text = nvbench(&[first, second].join(",")).replace(
        "\"number_of_sms\": 132}]",
        "\"number_of_sms\": 132}, {\"id\": 1, \"name\": \"NVIDIA A100\", \"number_of_sms\": 108}]",
    );
    std::fs::write(folder.path().join("a.json"), text).unwrap();
    let run = read(&folder.path().join("a.json")).unwrap();
    assert_eq!(run.header.device.name, "NVIDIA H200 and NVIDIA A100");
    let copy = ContenderId::from_text("copy");
    for shape in ["Device=0 N=1048576", "Device=1 N=1048576"] {
        assert_eq!(run.samples(&copy, shape).map(|s| s.seen()), Some(10));
    }
}

#[test]
fn what_ran_on_the_cpu_alone_has_its_time() {
    let text = r#"{"meta": {"version": {"json": {"major": 1, "string": "1.0.0"}}}, "devices": null,
        "benchmarks": [{"name": "host", "axes": null, "states": [{"name": "", "is_skipped": false,
          "axis_values": null, "summaries": [{"tag": "nv/cpu_only/time/cpu/mean",
            "data": [{"name": "value", "type": "float64", "value": "0.001"}]}]}]}]}"#;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.json"), text).unwrap();
    let run = read(&folder.path().join("a.json")).unwrap();
    let ranking = Ranking::of(&run);
    let cell = ranking
        .cell(&ContenderId::from_text("host"), "all")
        .unwrap();
    assert!((cell.time.as_ref().unwrap().estimate().0 - 1000.0).abs() < 1e-6);
}

/// Google Benchmark writes a time of 0 for skipped entries, and complexity fits without a time.
#[test]
fn skipped_and_fitted_entries_keep_no_file_from_being_read() {
    let text = r#"{"context": {"date": "d"}, "benchmarks": [
        {"name": "a/1", "run_type": "iteration", "real_time": 2.0, "time_unit": "us"},
        {"name": "b/1", "run_type": "iteration", "skipped": true, "skip_message": "no card",
         "real_time": 0.0, "time_unit": "us"},
        {"name": "a_BigO", "cpu_coefficient": 4.2, "real_coefficient": 6.4, "big_o": "N"},
        {"name": "a_RMS", "rms": 0.004}]}"#;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.json"), text).unwrap();
    let run = read(&folder.path().join("a.json")).unwrap();
    let skipped = run.verdict(&ContenderId::from_text("b"), "1").unwrap();
    assert_eq!(skipped.reason.as_deref(), Some("no card"));
    assert_eq!(run.header.contenders.len(), 2);
}

#[test]
fn a_state_without_a_sample_is_told_and_the_others_are_read() {
    let folder = folder(20e-6, 10);
    std::fs::write(folder.path().join("a.json-bin/1.bin"), []).unwrap();
    let empty = state("a.json-bin/1.bin", 0, 1.0).replace("1048576", "7");
    let states = [state("a.json-bin/0.bin", 10, 20e-6), empty].join(",");
    std::fs::write(folder.path().join("a.json"), nvbench(&states)).unwrap();
    let run = read(&folder.path().join("a.json")).unwrap();
    let copy = ContenderId::from_text("copy");
    let verdict = run.verdict(&copy, "N=7").unwrap();
    assert_eq!(
        verdict.reason.as_deref(),
        Some("its file of samples is empty")
    );
    assert_eq!(run.samples(&copy, "N=1048576").map(|s| s.seen()), Some(10));
}

#[test]
fn more_cells_than_any_table_are_refused() {
    let entries: Vec<String> = (0..2001)
        .map(|i| format!(r#"{{"name": "b{i}/{i}", "real_time": 1000}}"#))
        .collect();
    let text = format!(
        r#"{{"context": {{}}, "benchmarks": [{}]}}"#,
        entries.join(",")
    );
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.json"), text).unwrap();
    assert!(
        why(&folder).contains("has 2001 benchmarks"),
        "{}",
        why(&folder)
    );
}

#[test]
fn repetitions_of_google_benchmark_are_samples() {
    let entry = |kind: &str, time: f64| {
        format!(
            r#"{{"name": "gemm/64/manual_time", "run_type": "{kind}", "real_time": {time}, "time_unit": "us"}}"#
        )
    };
    let entries = [
        entry("iteration", 10.0),
        entry("iteration", 10.2),
        entry("iteration", 9.9),
        entry("aggregate", 50.0),
        r#"{"name": "sort", "real_time": 3000, "time_unit": "ns"}"#.to_owned(),
        r#"{"name": "sort_mean", "real_time": 9000, "time_unit": "ns"}"#.to_owned(),
        r#"{"name": "bad/1", "error_occurred": true, "error_message": "no memory"}"#.to_owned(),
    ];
    let text = format!(
        r#"{{"context": {{"date": "2026-01-01", "host_name": "box"}}, "benchmarks": [{}]}}"#,
        entries.join(",")
    );
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.json"), text).unwrap();
    let run = read(&folder.path().join("a.json")).unwrap();
    let ranking = Ranking::of(&run);
    let time = |contender: &str, shape: &str| {
        let cell = ranking
            .cell(&ContenderId::from_text(contender), shape)
            .unwrap();
        cell.time
            .as_ref()
            .map(|t| (t.samples, (t.estimate().0 * 10.0).round()))
    };
    assert_eq!(time("gemm", "64/manual_time"), Some((3, 100.0)));
    assert_eq!(time("sort", "all"), Some((0, 30.0)));
    assert_eq!(time("bad", "1"), None);
    // Recognised by its name alone, as in old versions.
    assert_eq!(run.header.contenders.len(), 3);
}

/// An implausible time is printed with few digits.
#[test]
fn absurd_times_are_told_shortly() {
    for (time, told) in [
        (1e303, "1e303"),
        (1e-300, "1e-300"),
        (-1e200, "-1e200"),
        (0.0, "0"),
    ] {
        let why = micros(time, "x").unwrap_err();
        assert_eq!(why, format!("x has a time of {told} µs"));
    }
}

/// serde_json's own tree would silently keep the last of them.
#[test]
fn a_key_that_occurs_twice_is_refused_with_its_line() {
    let google = |entry: &str| {
        format!(
            "{{\"context\": {{\"host_name\": \"h\"}},\n\"benchmarks\": [\n{{\"name\": \"a/1\", {entry}}}]}}"
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let refused = |text: &str| {
        std::fs::write(folder.path().join("a.json"), text).unwrap();
        why(&folder)
    };
    let time = r#""time_unit": "ns", "real_time": 10.0"#;
    std::fs::write(folder.path().join("b.json"), google(time)).unwrap();
    assert!(read(&folder.path().join("b.json")).is_ok());
    let twice = refused(&google(&format!("{time}, \"real_time\": 1.0")));
    assert!(
        twice.contains("a.json:3: the key `real_time` occurs twice"),
        "{twice}"
    );
    let whole = google(time).replacen('{', r#"{"benchmarks": [], "#, 1);
    let twice = refused(&whole);
    assert!(
        twice.contains("a.json:2: the key `benchmarks` occurs twice"),
        "{twice}"
    );
    let state = nvbench(&state("a.json-bin/0.bin", 1, 1e-5));
    let twice = refused(&state.replace(
        r#""is_skipped": false,"#,
        r#""is_skipped": false, "is_skipped": true,"#,
    ));
    assert!(
        twice.contains("a.json:") && twice.contains("the key `is_skipped` occurs twice"),
        "{twice}"
    );
}

#[test]
fn a_copy_is_no_process_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    for (name, micros) in [("a", 10.0), ("b", 11.0), ("c", 10.0)] {
        let text = format!(
            r#"{{"context": {{"date": "{name}"}}, "benchmarks": [{{"name": "x", "real_time": {micros}}}]}}"#
        );
        std::fs::write(folder.path().join(format!("{name}.json")), text).unwrap();
    }
    let error = read(folder.path()).unwrap_err();
    let said = error.message();
    assert!(said.contains("c.json has the very times of"), "{said}");
    assert!(said.contains("a.json: one is a copy"), "{said}");
}
