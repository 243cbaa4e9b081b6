//! Incomplete, strange or hostile run files, in every command that reads them: each is judged as
//! far as possible or refused with a reason, and the snapshots are the user's view.

use serde_json::{Value, json};

use crate::workspace::Workspace;

const ROUND4: &str = include_str!("../fixtures/runs/round4.jsonl");

fn lines() -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).expect("a line of the fixture");
    ROUND4.lines().map(parse).collect()
}

fn text(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn header(lines: &mut [Value]) -> &mut Value {
    &mut lines[0]
}

/// Reads `odd.jsonl` with everything, beside a run that is as it should be.
fn read_by_all(odd: &str) -> (Workspace, String) {
    let workspace = Workspace::new();
    // Another run, or the gate would know it again.
    workspace.write("good.jsonl", &ROUND4.replacen("09:12:00", "08:12:00", 1));
    workspace.write("odd.jsonl", odd);
    let commands: [&[&str]; 6] = [
        &["compare", "two-pass", "interleaved", "odd.jsonl"],
        &["compare", "good.jsonl", "odd.jsonl"],
        &["gate", "odd.jsonl", "--min-geomean", "1.2"],
        &[
            "gate",
            "odd.jsonl",
            "--baseline",
            "good.jsonl",
            "--min-geomean",
            "0.9",
        ],
        &["report", "odd.jsonl", "-o", "odd.html"],
        &["report", "good.jsonl", "odd.jsonl", "-o", "both.html"],
    ];
    let said: Vec<String> = commands.iter().map(|args| workspace.run(args)).collect();
    let all = said.join("\n\n");
    for word in ["panicked", "NaN", "inf×", "\u{1b}"] {
        assert!(!all.contains(word), "{word}: {all}");
    }
    (workspace, all)
}

fn keep_shape(lines: &mut Vec<Value>, name: &str) {
    let shapes = header(lines)["shapes"].as_array_mut().expect("shapes");
    shapes.retain(|shape| shape["name"] == name);
    lines.retain(|line| line.get("shape").is_none_or(|shape| shape == name));
    for line in lines.iter_mut().filter(|line| line["type"] == "build") {
        line["shapes"] = json!([name]);
    }
}

#[test]
fn one_block() {
    let mut lines = lines();
    keep_shape(&mut lines, "g2-k1536");
    let mut seen = false;
    lines.retain(|line| line["type"] != "block" || !std::mem::replace(&mut seen, true));
    insta::assert_snapshot!(read_by_all(&text(&lines)).1);
}

#[test]
fn one_shape() {
    let mut lines = lines();
    keep_shape(&mut lines, "g2-k1536");
    insta::assert_snapshot!(read_by_all(&text(&lines)).1);
}

#[test]
fn one_contender() {
    let mut lines = lines();
    let only = |name: &Value| *name == "two-pass" || *name == "cublas";
    let contenders = header(&mut lines)["contenders"].as_array_mut();
    contenders.expect("contenders").retain(|c| only(&c["id"]));
    lines.retain(|line| line.get("contender").is_none_or(only));
    for line in lines.iter_mut().filter(|line| line["type"] == "block") {
        let samples = line["samples"].as_array_mut().expect("samples");
        samples.retain(|sample| only(&sample["contender"]));
    }
    insta::assert_snapshot!(read_by_all(&text(&lines)).1);
}

#[test]
fn nobody_valid() {
    let mut lines = lines();
    for line in lines.iter_mut().filter(|line| line["type"] == "verdict") {
        line["status"] = json!("wrong");
        line["reason"] = json!("every element is wrong");
    }
    lines.retain(|line| line["type"] != "block");
    insta::assert_snapshot!(read_by_all(&text(&lines)).1);
}

/// A sweep would have called the contender wrong.
#[test]
fn times_below_the_roofline() {
    let mut lines = lines();
    let blocks = lines
        .iter_mut()
        .filter(|line| line["type"] == "block" && line["shape"] == "g2-k1536");
    for block in blocks {
        for sample in block["samples"].as_array_mut().expect("samples") {
            if sample["contender"] == "interleaved" {
                sample["micros"] = json!(0.25);
            }
        }
    }
    let workspace = Workspace::new();
    workspace.write("odd.jsonl", &text(&lines));
    let flat = |words: &[&str]| {
        let said = workspace.run(words);
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let told = "interleaved on g2-k1536 took 0.25 µs, where the device needs";
    let shown = flat(&["show", "odd.jsonl"]);
    assert!(
        shown.contains(&format!("Warning: impossible times: {told}")),
        "{shown}"
    );
    let gated = flat(&["gate", "odd.jsonl", "--min-geomean", "1.2"]);
    assert!(gated.contains(told), "{gated}");
    assert!(gated.ends_with("[exit 5]"), "{gated}");
}

#[test]
fn another_gpu() {
    let mut lines = lines();
    header(&mut lines)["device"]["name"] = json!("NVIDIA B200");
    let (workspace, all) = read_by_all(&text(&lines));
    insta::assert_snapshot!(all);
    let across = [
        workspace.run(&["compare", "good.jsonl", "odd.jsonl", "--across-devices"]),
        workspace.run(&[
            "gate",
            "odd.jsonl",
            "--baseline",
            "good.jsonl",
            "--across-devices",
        ]),
    ];
    for text in across {
        assert!(text.contains("ACROSS DEVICES"), "{text}");
    }
    let args = [
        "report",
        "good.jsonl",
        "odd.jsonl",
        "--across-devices",
        "-o",
        "a.html",
    ];
    let text = workspace.run(&args);
    assert!(text.contains("[exit 0]"), "{text}");
    let page = std::fs::read_to_string(workspace.path().join("a.html")).expect("a page");
    assert!(page.contains("Across devices"));
}

#[test]
fn another_schema() {
    let mut lines = lines();
    header(&mut lines)["schema"] = json!(2);
    insta::assert_snapshot!(read_by_all(&text(&lines)).1);
}

#[test]
fn times_that_are_no_times() {
    for (name, time) in [
        ("zero", "0.0"),
        ("negative", "-3.0"),
        ("null", "null"),
        ("not_a_number", "NaN"),
    ] {
        let at = ROUND4.find("\"micros\":").expect("a time") + "\"micros\":".len();
        let end = at + ROUND4[at..].find([',', '}']).expect("its end");
        let odd = format!("{}{time}{}", &ROUND4[..at], &ROUND4[end..]);
        let workspace = Workspace::new();
        workspace.write("good.jsonl", ROUND4);
        workspace.write("odd.jsonl", &odd);
        let said = workspace.run(&["gate", "odd.jsonl"]);
        insta::assert_snapshot!(name, said);
        for args in [
            vec!["compare", "good.jsonl", "odd.jsonl"],
            vec!["report", "odd.jsonl", "-o", "r.html"],
        ] {
            let text = workspace.run(&args);
            assert!(text.contains("[exit 2]"), "{text}");
        }
    }
}

#[test]
fn other_shapes_than_the_baseline() {
    let mut lines = lines();
    keep_shape(&mut lines, "g2-k1536");
    let mut odd = text(&lines).replace("g2-k1536", "other");
    insta::assert_snapshot!("no_shape_in_common", read_by_all(&odd).1);
    odd = text(&lines).replace("\"m\":128", "\"m\":64");
    insta::assert_snapshot!("other_groups_by_the_same_name", read_by_all(&odd).1);
}

#[test]
fn text_that_wants_to_act() {
    let mut lines = lines();
    let nasty = "<script>alert(1)</script>\u{1b}[2J\u{1b}]0;gone\u{7}";
    header(&mut lines)["question"] = json!(nasty);
    header(&mut lines)["device"]["driver"] = json!(nasty);
    for contender in header(&mut lines)["contenders"]
        .as_array_mut()
        .expect("contenders")
    {
        contender["summary"] = json!(nasty);
    }
    for line in lines.iter_mut().filter(|line| line["type"] == "verdict") {
        if line["status"] != "ok" {
            line["reason"] = json!(nasty);
            line["detail"] = json!(nasty);
        }
    }
    let (workspace, all) = read_by_all(&text(&lines));
    insta::assert_snapshot!(all);
    for args in [
        [
            "gate",
            "odd.jsonl",
            "--export-junit",
            "out",
            "--allow-incorrect",
        ],
        [
            "gate",
            "odd.jsonl",
            "--export-markdown",
            "out",
            "--allow-incorrect",
        ],
        ["report", "odd.jsonl", "-o", "out", "--color=never"],
    ] {
        workspace.run(&args);
        let written = std::fs::read_to_string(workspace.path().join("out")).expect("a file");
        assert!(
            !written.contains("<script>alert") && !written.contains('\u{1b}'),
            "{args:?}"
        );
    }
}
