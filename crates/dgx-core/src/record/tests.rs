//! Files that no sweep writes: they are refused with their lines, and never make a reader panic,
//! hang or print something that is not a number.

use std::path::Path;

use serde_json::{Value, json};

use super::synthetic::{Synthetic, dense};
use super::{Run, read_text, runs_in};
use crate::domain::{Shape, Timing};

fn small() -> Synthetic {
    Synthetic {
        shapes: vec![dense(256, 3072, 4096), dense(512, 4096, 7168)],
        processes: 2,
        blocks: 3,
        ..Synthetic::round4()
    }
}

fn lines(field: &Synthetic) -> Vec<Value> {
    let text = field.text();
    let parse = |line| serde_json::from_str(line).unwrap();
    text.lines().map(parse).collect()
}

fn read(text: &str) -> Result<Run, String> {
    read_text(Path::new("x.jsonl"), text.as_bytes()).map_err(|e| e.to_string())
}

/// The error after a change to the run's lines.
fn refused(change: impl Fn(&mut Vec<Value>)) -> String {
    let mut lines = lines(&small());
    change(&mut lines);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    read(&text).unwrap_err()
}

/// The place of the first line of a type, from 0.
fn first(lines: &[Value], kind: &str) -> usize {
    lines.iter().position(|line| line["type"] == kind).unwrap()
}

#[test]
fn a_block_that_was_copied_is_refused_with_both_lines() {
    let said = refused(|lines| {
        let block = first(lines, "block");
        let copy = lines[block].clone();
        lines.insert(block + 4, copy);
    });
    let at = first(&lines(&small()), "block") + 1;
    let (second, first) = (
        format!("x.jsonl:{}: block 0 of", at + 4),
        format!("line {at} already"),
    );
    assert!(said.starts_with(&second) && said.contains(&first), "{said}");
}

#[test]
fn kernels_of_measured_calls_are_read_and_held_to_what_can_be() {
    let kernel = |micros: f64| json!({ "name": "gemm", "start": 0.0, "micros": micros });
    let line = |micros: f64| {
        json!({ "type": "kernels", "contender": "two-pass", "shape": "256x3072x4096",
                "kernels": [kernel(micros)] })
    };
    let with = |added: Vec<Value>| {
        let mut lines = lines(&small());
        let end = lines.len() - 1;
        lines.splice(end..end, added);
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        read(&text)
    };
    let two_pass = crate::domain::ContenderId::from_text("two-pass");
    let mut run = with(vec![line(7.5)]).unwrap();
    assert_eq!(run.kernels(&two_pass, "256x3072x4096")[0].micros.0, 7.5);
    assert!(run.kernels(&two_pass, "512x4096x7168").is_empty());
    run.keep_shapes(|name| name == "512x4096x7168");
    assert!(run.kernels(&two_pass, "512x4096x7168").is_empty());
    for (added, why) in [
        (vec![line(7.5), line(7.5)], "are there already"),
        (vec![line(-1.0)], "a kernel's time"),
    ] {
        let said = with(added).unwrap_err();
        assert!(said.contains(why), "{said}");
    }
    let mut modelled = lines(&small().modelled());
    let end = modelled.len() - 1;
    modelled.insert(end, line(7.5));
    let text: String = modelled.iter().map(|line| format!("{line}\n")).collect();
    assert!(read(&text).unwrap_err().contains("in a modelled run"));
}

#[test]
fn nothing_is_written_twice_by_one_sweep() {
    let arm_twice = refused(|lines| {
        let block = first(lines, "block");
        let samples = lines[block]["samples"].as_array_mut().unwrap();
        samples.push(samples[0].clone());
    });
    assert!(
        arm_twice.contains("same arm of `two-pass` twice"),
        "{arm_twice}"
    );
    for (kind, said) in [
        ("verdict", "two sweeps wrote this file"),
        ("build", "was built for"),
        ("header", "two run files were joined"),
        ("end", "the run ended on line"),
    ] {
        let again = refused(|lines| {
            let line = lines[first(lines, kind)].clone();
            lines.insert(lines.len() - usize::from(kind != "end"), line);
        });
        assert!(again.contains(said), "{kind}: {again}");
    }
}

/// The yardstick's tuning for a shape of [`small`].
fn tuning(shape: &str) -> Value {
    let algorithm = json!({
        "code": "42".repeat(64), "text": "id 66, tile 20", "micros": 47.1, "candidates": 16
    });
    json!({ "type": "tuning", "shape": shape, "library": "cuBLASLt 13.0.2", "gemms": [algorithm] })
}

#[test]
fn a_tuning_is_kept_for_its_shape() {
    let mut lines = lines(&small());
    lines.insert(first(&lines, "block"), tuning("512x4096x7168"));
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let run = read(&text).unwrap();
    let kept = run.tuning("512x4096x7168").unwrap();
    assert_eq!(kept.gemms[0].code, "42".repeat(64));
    assert_eq!(run.tuning("256x3072x4096"), None, "as in every older file");
}

#[test]
fn a_tuning_that_no_sweep_found_is_refused() {
    let refused = |change: &dyn Fn(&mut Vec<Value>, &mut Value)| {
        refused(|lines| {
            let mut line = tuning("512x4096x7168");
            change(lines, &mut line);
            lines.insert(first(lines, "block"), line);
        })
    };
    let gemms =
        |value: Value| move |_: &mut Vec<Value>, line: &mut Value| line["gemms"] = value.clone();
    let code = |code: String| {
        move |_: &mut Vec<Value>, line: &mut Value| {
            line["gemms"][0]["code"] = json!(code.clone());
        }
    };
    type Change<'a> = &'a dyn Fn(&mut Vec<Value>, &mut Value);
    let cases: [(Change, &str); 7] = [
        (
            &|_, line| line["shape"] = json!("s"),
            "shape `s` is not in the header",
        ),
        (
            &|lines, line| lines.insert(first(lines, "block"), line.clone()),
            "was tuned for `512x4096x7168` on line",
        ),
        (
            &|lines, _| {
                lines[0]["yardstick"] = Value::Null;
                lines.retain(|line| line["contender"] != "cublas");
            },
            "names no yardstick",
        ),
        (
            &gemms(json!([])),
            "a tuning of 0 GEMMs for `512x4096x7168`, which has 1 groups",
        ),
        (&code("42".repeat(63)), "not 128 hexadecimal digits"),
        (&code("4g".repeat(64)), "not 128 hexadecimal digits"),
        (
            &|_, line| line["gemms"][0]["micros"] = json!(0.0),
            "a time of 0.0 µs is impossible",
        ),
    ];
    for (change, why) in cases {
        let said = refused(change);
        assert!(said.contains(why), "{why}: {said}");
    }
}

#[test]
fn a_process_copied_under_another_number_is_refused() {
    let copied = |process: u64, turned: bool| {
        refused(move |lines| {
            let of_first = |line: &&Value| line["type"] == "block" && line["process"] == 0;
            let mut copies: Vec<Value> = lines.iter().filter(of_first).cloned().collect();
            for copy in &mut copies {
                copy["process"] = json!(process);
                if turned {
                    copy["block"] = json!(9 - copy["block"].as_u64().unwrap());
                    copy["samples"].as_array_mut().unwrap().reverse();
                }
            }
            let at = lines.len() - 1;
            lines.splice(at..at, copies);
        })
    };
    let at = first(&lines(&small()), "block") + 1;
    for (process, turned) in [(7, false), (2, true)] {
        let said = copied(process, turned);
        let word = format!("process {process} has the very times");
        let from = format!("that process 0 has from line {at} on");
        assert!(said.contains(&word) && said.contains(&from), "{said}");
    }
}

#[test]
fn times_are_samples_or_estimates_as_the_device_says() {
    let among = |into: Synthetic, from: Synthetic, kind: &str| {
        let (mut into, from) = (lines(&into), lines(&from));
        into.insert(into.len() - 1, from[first(&from, kind)].clone());
        let text: String = into.iter().map(|line| format!("{line}\n")).collect();
        read(&text).map(|_| ()).unwrap_err()
    };
    let said = among(small(), small().modelled(), "estimate");
    assert!(said.contains("an estimate in a measured run"), "{said}");
    let mut clockless = small();
    clockless.timing = Timing::Modelled;
    let said = among(clockless, small(), "block");
    assert!(said.contains("a block in a modelled run"), "{said}");
    let said = among(scripted(), small().modelled(), "estimate");
    assert!(said.contains("an estimate in a scripted run"), "{said}");
}

fn scripted() -> Synthetic {
    Synthetic {
        timing: Timing::Scripted,
        ..small()
    }
}

/// A file cannot change the kind of a backend's times.
#[test]
fn a_scripted_run_cannot_call_itself_measured() {
    let headed = |run: &Synthetic, key: &str, word: &str| {
        let mut lines = lines(run);
        lines[0]["device"][key] = json!(word);
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        read(&text)
    };
    assert!(headed(&scripted(), "timing", "scripted").is_ok());
    let said = headed(&scripted(), "timing", "measured").unwrap_err();
    assert!(
        said.contains("backend `fake` measured: they are scripted"),
        "{said}"
    );
    assert!(headed(&small(), "backend", "fake").is_err());
    let said = headed(&small(), "backend", "gpu").unwrap_err();
    assert!(said.contains("unknown value `gpu`"), "{said}");
}

/// A run in which a contender's first cell gets these verdicts one after the other, the first at
/// its place and the others before the end; the result, and the line of the first.
fn judged(contender: &str, statuses: &[&str]) -> (Result<Run, String>, usize) {
    let mut lines = lines(&small());
    let at = first(&lines, "verdict");
    let mut verdict = lines[at].clone();
    verdict["contender"] = json!(contender);
    let of_cell = |line: &Value| {
        let same = |key: &str| line[key] == verdict[key];
        same("type") && same("contender") && same("shape")
    };
    lines.retain(|line| !of_cell(line));
    for (index, status) in statuses.iter().enumerate() {
        verdict["status"] = json!(status);
        let place = if index == 0 { at } else { lines.len() - 1 };
        lines.insert(place, verdict.clone());
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    (read(&text), at + 1)
}

/// A sweep can only find that an `ok` is wrong while timing; a cell that becomes correct, or is
/// judged a third time, is refused.
#[test]
fn a_verdict_changes_once_and_only_from_right() {
    for allowed in [vec!["ok"], vec!["ok", "wrong"], vec!["ok", "crashed"]] {
        let (run, _) = judged("two-pass", &allowed);
        assert!(run.is_ok(), "{allowed:?}: {:?}", run.err());
    }
    for forbidden in [
        ["ok", "ok"],
        ["wrong", "ok"],
        ["wrong", "wrong"],
        ["wrong", "hung"],
        ["unsupported", "ok"],
        ["compile-error", "ok"],
    ] {
        let (run, line) = judged("two-pass", &forbidden);
        let said = run.expect_err(&format!("{forbidden:?}"));
        let [then, now] = forbidden;
        let told = format!("is {then} on `256x3072x4096` on line {line}, and cannot be {now}");
        assert!(said.contains(&told), "{forbidden:?}: {said}");
        assert!(!said.starts_with(&format!("x.jsonl:{line}:")), "{said}");
    }
    for third in ["ok", "wrong"] {
        assert!(judged("two-pass", &["ok", "wrong", third]).0.is_err());
    }
}

/// The yardstick is timed in every process, and may be found wrong in each.
#[test]
fn the_yardstick_may_be_wrong_twice_and_never_right_after_that() {
    assert!(judged("cublas", &["wrong", "wrong", "wrong"]).0.is_ok());
    assert!(judged("cublas", &["wrong", "ok"]).0.is_err());
    assert!(judged("cublas", &["ok", "ok"]).0.is_err());
}

#[test]
fn an_estimate_that_is_there_already_is_refused_with_both_lines() {
    let mut lines = lines(&small().modelled());
    let at = first(&lines, "estimate");
    let mut again = lines[at].clone();
    again["micros"] = json!(1.0);
    lines.insert(at + 1, again);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let said = read(&text).unwrap_err();
    let told = format!("is on line {} already", at + 1);
    assert!(said.starts_with(&format!("x.jsonl:{}: ", at + 2)), "{said}");
    assert!(said.contains(&told), "{said}");
}

#[test]
fn every_committed_run_loads() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let folders = [
        root.join("results/baselines"),
        root.join("tests/fixtures/runs"),
    ];
    let runs: Vec<_> = folders.iter().flat_map(|dir| runs_in(dir)).collect();
    assert!(runs.len() > 10, "{runs:?}");
    for path in runs {
        let run = super::read(&path);
        assert!(run.is_ok(), "{:?}", run.err());
    }
}

#[test]
fn a_run_that_was_stopped_goes_on_after_its_end() {
    let mut lines = lines(&small());
    let mut stopped = lines.last().unwrap().clone();
    stopped["complete"] = json!(false);
    let at = first(&lines, "block");
    lines.insert(at, stopped);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    assert!(read(&text).unwrap().end.unwrap().complete);
}

#[test]
fn numbers_nobody_can_mean_are_refused() {
    let sample = |key: &'static str, value: Value| {
        move |lines: &mut Vec<Value>| {
            let block = first(lines, "block");
            lines[block]["samples"][1][key] = value.clone();
        }
    };
    for micros in [5e-324, 1e308, 0.0, -1.0, 9e-4, 1.1e9] {
        let said = refused(sample("micros", json!(micros)));
        assert!(said.contains("impossible"), "{micros}: {said}");
    }
    for clock in [0.0, -5.0, 1e12, 5e-324] {
        let said = refused(sample("clock_mhz", json!(clock)));
        assert!(said.contains("an SM clock"), "{clock}: {said}");
    }
    for arm in [1, 2, 4_294_967_295u32] {
        let said = refused(sample("arm", json!(arm)));
        assert!(said.contains("arms are 0"), "{arm}: {said}");
    }
    let header = |path: &'static str, value: Value| {
        refused(move |lines| *lines[0].pointer_mut(path).unwrap() = value.clone())
    };
    for (path, value, word) in [
        ("/contenders/1/claim/geomean", json!(0.0), "the claim of"),
        ("/contenders/1/claim/geomean", json!(-2.0), "the claim of"),
        ("/contenders/1/claim/geomean", json!(1e300), "the claim of"),
        ("/shapes/0/groups", json!([]), "0 groups"),
        ("/shapes/0/groups/0/m", json!(0), "sizes are"),
        ("/shapes/0/groups/0/k", json!(4_294_967_295u32), "sizes are"),
        ("/shapes/1/name", json!("256x3072x4096"), "listed twice"),
        ("/shapes/1/name", json!("two\nlines"), "is not a name"),
        ("/contenders/1/id", json!(""), "is not a name"),
        ("/yardstick", json!("two-pass"), "a contender as well"),
        ("/baseline", json!("nobody"), "not a contender"),
        ("/contenders", json!([]), "no contenders"),
        ("/device/clock_mhz", json!(-1.0), "clock_mhz"),
        ("/device/bandwidth", json!(1e300), "bandwidth"),
    ] {
        let said = header(path, value);
        assert!(
            said.starts_with("x.jsonl:1: ") && said.contains(word),
            "{path}: {said}"
        );
    }
    let huge = json!({"m": 1 << 30, "n": 1 << 30, "k": 1 << 30});
    let said = header("/shapes/0/groups", json!([huge]));
    assert!(said.contains("fits into no memory"), "{said}");
    let modelled = small().modelled().text();
    let said = read(&modelled.replacen("\"micros\":", "\"micros\":1e3", 1)).unwrap_err();
    assert!(
        said.contains("impossible") || said.contains("out of range"),
        "{said}"
    );
}

#[test]
fn sizes_that_would_take_any_memory_are_refused() {
    let many = refused(|lines| {
        let contender = lines[0]["contenders"][0].clone();
        let all = lines[0]["contenders"].as_array_mut().unwrap();
        all.extend((0..2000).map(|i| {
            let mut one = contender.clone();
            one["id"] = json!(format!("x{i}"));
            one
        }));
    });
    assert!(many.contains("at most 2000 contenders"), "{many}");
    let crowd = refused(|lines| {
        let block = lines[first(lines, "block")].clone();
        let at = lines.len() - 1;
        for process in 10..1100 {
            let mut one = block.clone();
            one["process"] = json!(process);
            lines.insert(at, one);
        }
    });
    assert!(crowd.contains("more than 1024 processes"), "{crowd}");
    let nested = format!("{{\"type\":\"verdict\",\"detail\":{}", "[".repeat(100_000));
    let deep = format!("{}{nested}\n", small().text());
    assert!(
        read(&deep).unwrap_err().contains("recursion"),
        "deep nesting"
    );
}

/// Run files of earlier releases and of this one have the same form of shape.
#[test]
fn a_shape_on_record_is_a_map_of_sizes() {
    let shape = super::synthetic::grouped("g2", &[80, 176], 4096, 7168);
    let text = r#"{"name":"g2","groups":[{"m":80,"n":4096,"k":7168},{"m":176,"n":4096,"k":7168}]}"#;
    assert_eq!(serde_json::to_string(&shape).unwrap(), text);
    assert_eq!(serde_json::from_str::<Shape>(text).unwrap(), shape);
}

#[test]
fn what_contradicts_itself_is_refused_with_its_line() {
    let verdict = |key: &'static str, value: Value| {
        move |lines: &mut Vec<Value>| {
            let at = first(lines, "verdict");
            assert_eq!(lines[at]["status"], "ok");
            lines[at][key] = value.clone();
        }
    };
    let place = first(&lines(&small()), "verdict") + 1;
    for (key, value, why) in [
        ("worst", json!(1.5), "its largest error is 1.5 times"),
        ("detail", json!("5 of 9 elements are wrong"), "describes"),
    ] {
        let said = refused(verdict(key, value));
        assert!(said.starts_with(&format!("x.jsonl:{place}: ")), "{said}");
        assert!(said.contains(why), "{said}");
    }
    let said = refused(|lines| lines[0]["settings"]["time_only"] = json!(true));
    assert!(said.contains("--time-only"), "{said}");
    let said = refused(|lines| {
        let end = lines.last_mut().unwrap();
        assert_eq!(end["complete"], true);
        end["reason"] = json!("killed");
    });
    assert!(said.contains("complete, and stopped early"), "{said}");
}

#[test]
fn settings_unlike_the_round_on_record_are_refused() {
    let with =
        |text: &'static str| move |lines: &mut Vec<Value>| lines[0]["config"]["text"] = json!(text);
    for (text, key) in [
        ("[validate]\nrtol = 0.1\n", "rtol"),
        ("[validate]\natol = 0.1\n", "atol"),
        (
            "[validate]\ndistributions = [\"corner\"]\n",
            "distributions",
        ),
        ("[measure]\ncold_l2 = false\n", "cold_l2"),
    ] {
        let said = refused(with(text));
        assert!(said.starts_with("x.jsonl:1: "), "{said}");
        assert!(said.contains(key), "{said}");
    }
    // Flags may change these, and text that is not TOML is ignored.
    for text in [
        "[measure]\nmin_blocks = 7\n[validate]\nseed = 9\n",
        "rubbish [",
    ] {
        let mut lines = lines(&small());
        with(text)(&mut lines);
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        assert!(read(&text).is_ok(), "{text}");
    }
}

#[test]
fn a_modelled_time_is_not_shorter_than_its_kernels() {
    let field = Synthetic {
        timing: Timing::Modelled,
        ..small()
    };
    let with = |micros: f64| {
        let mut lines = lines(&field);
        let at = first(&lines, "estimate");
        lines[at]["micros"] = json!(micros);
        lines[at]["kernels"] = json!([
            { "name": "one", "start": 0.0, "micros": 6.0 },
            { "name": "two", "start": 4.0, "micros": 6.0 },
        ]);
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        (at + 1, read(&text))
    };
    assert!(with(10.0).1.is_ok());
    let (line, said) = with(9.0);
    let said = said.unwrap_err();
    assert!(said.starts_with(&format!("x.jsonl:{line}: ")), "{said}");
    assert!(said.contains("its kernels end after 10 µs"), "{said}");
}

#[test]
fn a_copy_is_the_same_run() {
    let run = small().run();
    let copy = Run {
        path: "elsewhere.jsonl".into(),
        ..run.clone()
    };
    assert!(copy.is_same_as(&run));
    let again = |change: &dyn Fn(&mut super::schema::Header)| {
        let mut other = copy.clone();
        change(&mut other.header);
        other.is_same_as(&run)
    };
    assert!(!again(&|h| h.started.push('1')));
    assert!(!again(&|h| h.settings.secret = Some(1)));
    // A drawn secret is drawn once; a given one may be given again.
    let [mut one, mut two] = [run.clone(), run.clone()];
    for run in [&mut one, &mut two] {
        run.header.settings.secret = Some(7);
    }
    two.header.started.push('1');
    assert!(one.is_same_as(&two));
    one.header.settings.secret_given = true;
    two.header.settings.secret_given = true;
    assert!(!one.is_same_as(&two));
}
