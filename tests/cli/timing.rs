//! Sweeps in the emulator for their times: with no validation, and for other devices.

use std::fs;
use std::process::Command;

use super::sweep::{ROUND, Sweep, ended};

fn dgx(args: &[&str], code: i32) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dgx"));
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .args(args);
    ended(&mut command, code)
}

#[test]
fn times_alone_are_labelled_everywhere_and_pass_no_gate() {
    let sweep = Sweep::new(ROUND);
    let export = |name: &str| sweep.folder.path().join(name).display().to_string();
    let (json, csv, markdown) = (export("a.json"), export("a.csv"), export("a.md"));
    let said = sweep.run(
        &[
            &sweep.round(),
            "--time-only",
            "--export-json",
            &json,
            "--export-csv",
            &csv,
            "--export-markdown",
            &markdown,
        ],
        0,
    );
    for word in [
        "model 9/9 not validated",
        "All times are modelled for NVIDIA H200, not measured: off by",
        "Nothing was validated (--time-only)",
        "modelled µs for NVIDIA H200 (±",
    ] {
        assert!(said.contains(word), "{word}:\n{said}");
    }
    let verdicts = sweep.verdicts();
    assert_eq!(verdicts.len(), 9);
    assert!(
        verdicts
            .values()
            .all(|(_, status)| status == "not-validated")
    );

    let read = |path: &str| fs::read_to_string(path).expect("an export");
    let (json, csv, markdown) = (read(&json), read(&csv), read(&markdown));
    assert!(json.contains("\"validated\": false") && json.contains("\"calibrated\": true"));
    for line in csv.lines().skip(1) {
        assert!(line.contains(",not-validated,modelled,"), "{line}");
        assert!(line.contains(",yes,"), "{line}");
    }
    assert!(
        markdown.contains("All times are modelled for NVIDIA H200"),
        "{markdown}"
    );
    assert!(
        markdown.contains("(modelled for NVIDIA H200, ±"),
        "{markdown}"
    );

    let file = sweep.run_file().expect("a run file").display().to_string();
    let gated = dgx(&["gate", &file], 5);
    assert!(
        gated.contains("nothing in it was validated (--time-only)"),
        "{gated}"
    );
    // Also where what it is to be held against needs a GPU.
    let gated = dgx(&["gate", &file, "--baseline", "cublas"], 5);
    assert!(gated.contains("was validated (--time-only)"), "{gated}");
    let shown = dgx(&["show", &file], 0);
    assert!(shown.contains("Nothing was validated"), "{shown}");
    let compared = dgx(&["compare", "two-pass", "interleaved", &file], 0);
    assert!(
        compared.contains("All times are modelled for NVIDIA H200"),
        "{compared}"
    );
    assert!(compared.contains("Nothing was validated"), "{compared}");
    let page = export("a.html");
    dgx(&["report", &file, "-o", &page], 0);
    let page = read(&page);
    assert!(page.contains("not-validated") && page.contains("All times are modelled for"));
}

/// What is watched alone tells the same time as what is watched along.
#[test]
fn times_alone_are_the_times_of_a_whole_sweep() {
    let round = ROUND.replace(
        "\"two-pass\", \"sequential\", \"interleaved\"",
        "\"two-pass\"",
    );
    let times = |args: &[&str]| {
        let sweep = Sweep::new(&round);
        let file = sweep.round();
        sweep.run(&[&[file.as_str()], args].concat(), 0);
        let text = fs::read_to_string(sweep.run_file().expect("a run file")).expect("text");
        let estimates = text.lines().filter(|l| l.contains("\"type\":\"estimate\""));
        let mut estimates: Vec<String> = estimates.map(str::to_owned).collect();
        estimates.sort();
        estimates
    };
    let whole = times(&[]);
    assert_eq!(whole.len(), 3);
    assert_eq!(times(&["--time-only"]), whole);
}

#[test]
fn another_machine_is_called_by_its_changes_and_makes_other_times() {
    let sweep = Sweep::new(ROUND);
    let asked = [
        &sweep.round(),
        "--time-only",
        "--target",
        "h200,sms=66,clock=0.9",
    ];
    let said = sweep.run(&asked, 0);
    assert!(
        said.contains("NVIDIA H200 with sms=66, clock=0.9"),
        "{said}"
    );
    assert!(said.contains("uncalibrated"), "{said}");
    let text = fs::read_to_string(sweep.run_file().expect("a run file")).expect("its text");
    let header: serde_json::Value =
        serde_json::from_str(text.lines().next().expect("a header")).expect("JSON");
    let name = &header["device"]["name"];
    assert_eq!(name, "NVIDIA H200 with sms=66, clock=0.9");
    assert_eq!(header["settings"]["target"], "h200,sms=66,clock=0.9");
    let departures = serde_json::json!(["--time-only", "--target h200,sms=66,clock=0.9"]);
    assert_eq!(header["departures"], departures);
}

#[test]
fn a_machine_nobody_can_mean_is_refused_before_anything_is_written() {
    let sweep = Sweep::new(ROUND);
    let cases = [
        ("h200,clok=1.5", "did you mean `clock`?"),
        ("h200,sms=0", "sms = 0 is out of range"),
        ("h300", "h200, h100, b200"),
    ];
    for (target, told) in cases {
        let said = sweep.run(&[&sweep.round(), "--target", target], 2);
        assert!(said.contains(told), "{said}");
    }
    assert_eq!(sweep.run_file(), None);
}
