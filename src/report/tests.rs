use super::*;
use dgx_core::domain::Status;
use dgx_core::record::schema::Line;
use dgx_core::record::synthetic::{Synthetic, SyntheticContender};

fn ranked(field: &Synthetic) -> RankedRun {
    RankedRun::new(field.run(), "ab".repeat(32))
}

fn sentences(field: &Synthetic) -> String {
    summary::sentences(&ranked(field)).join("\n")
}

#[test]
fn three_sentences() {
    insta::assert_snapshot!("measured", sentences(&Synthetic::round4()));
    insta::assert_snapshot!("modelled", sentences(&Synthetic::round4().modelled()));
    let mut none = Synthetic::round4();
    for entry in &mut none.entries {
        entry.status = Status::Hung;
    }
    insta::assert_snapshot!("nothing valid", sentences(&none));
}

/// The model may lack numbers for a correct design.
#[test]
fn right_and_without_a_time() {
    let field = Synthetic::round4().modelled();
    let text = field.lines().into_iter();
    let text = text.filter(|line| !matches!(line, Line::Estimate(_)));
    let json = text.map(|line| serde_json::to_string(&line).unwrap() + "\n");
    let text: String = json.collect();
    let run = dgx_core::record::read_text("x.jsonl".as_ref(), text.as_bytes()).unwrap();
    let said = summary::sentences(&RankedRun::new(run, "ab".repeat(32))).join("\n");
    for told in [
        "Nothing is ranked: 3 of 4 contenders are right, but none has a time on every shape.",
        "3 of 4 contenders are right on every shape (3 not timed); single-gemm is wrong",
    ] {
        assert!(said.contains(told), "{said}");
    }
}

#[test]
fn every_section_is_there_and_nothing_is_fetched() {
    let text = page(&[ranked(&Synthetic::round4())], None);
    for id in [
        "ranking",
        "shapes",
        "roofline",
        "samples",
        "lineage",
        "claims",
        "pairs",
        "margin",
        "failures",
        "environment",
    ] {
        assert!(text.contains(&format!("<h2 id=\"{id}\">")), "{id}");
    }
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!text.contains(outside), "{outside}");
    }
    assert!(numbers_are_finite(&text));
}

/// Wrong results come first, and an unsupported shape is no failure.
#[test]
fn failures_come_first() {
    let mut field = Synthetic::round4();
    field.entries[1].status = Status::Unsupported;
    let text = page(&[ranked(&field)], None);
    let place = |id: &str| text.find(&format!("<h2 id=\"{id}\">")).expect(id);
    assert!(place("failures") < place("ranking") && place("ranking") < place("unsupported"));
    let failures = &text[place("failures")..place("ranking")];
    assert!(!failures.contains("unsupported") && failures.contains("wrong"));
}

/// Every cell of the matrix is the reverse of the one across the diagonal.
#[test]
fn pairs_mirror_each_other() {
    let ranked = ranked(&Synthetic::round4());
    let text = pairs::section(&ranked).into_string();
    let rows: Vec<Vec<f64>> = text
        .split("<tr data-c")
        .skip(1)
        .map(|row| {
            let cells = row.split("<td").skip(2);
            let text = |c: &str| c.split('>').nth(1).unwrap_or_default().to_owned();
            let number = |t: String| t.split('×').next().unwrap_or_default().parse().ok();
            cells.map(|c| number(text(c)).unwrap_or(1.0)).collect()
        })
        .collect();
    assert!(rows.len() > 2);
    for (i, row) in rows.iter().enumerate() {
        for (j, ratio) in row.iter().enumerate() {
            assert!((ratio * rows[j][i] - 1.0).abs() < 0.01, "{i} {j} {rows:?}");
            // Ranked: an upper row is no slower.
            assert!(i > j || *ratio >= 0.99, "{i} {j} {rows:?}");
        }
    }
}

/// The slowest cell is the warmest, however slow it is.
#[test]
fn heat_does_not_saturate() {
    let mut field = Synthetic::round4();
    field.entries[2].time = 40.0;
    let text = heat::section(&ranked(&field)).into_string();
    let (legend, cells) = text.split_once("<table").expect("a table");
    let ends = legend.matches('×').count();
    assert_eq!(ends, 5, "{legend}");
    let warmest = cells.matches("--h:75%").count();
    assert!((1..=field.shapes.len()).contains(&warmest), "{warmest}");
}

#[test]
fn emulated_runs_show_what_was_counted() {
    let text = page(&[ranked(&Synthetic::round4().modelled())], None);
    assert!(text.contains("<h2 id=\"counters\">"));
    assert!(text.contains("Counted, not modelled: "));
    for title in [
        "launches",
        "mma-flops-useful",
        "barrier-waits",
        "global-bytes-read",
    ] {
        assert!(text.contains(&format!(">{title}</th>")), "{title}");
    }
    assert!(!page(&[ranked(&Synthetic::round4())], None).contains("<h2 id=\"counters\">"));
}

/// For a measured run they come from separate calls, and the page says so.
#[test]
fn kernels_of_a_call_are_drawn_and_named() {
    let of = |kernels: &[&str]| {
        let told = kernels.iter().enumerate().map(|(nth, name)| {
            let start = 10.0 * nth as f64;
            serde_json::json!({ "name": name, "start": start, "micros": 9.0 })
        });
        let line = serde_json::json!({ "type": "kernels", "contender": "two-pass",
            "shape": Synthetic::round4().shapes[0].name, "kernels": told.collect::<Vec<_>>() });
        let text = Synthetic::round4().text();
        let (head, end) = text.trim_end().rsplit_once('\n').expect("lines");
        let text = format!("{head}\n{line}\n{end}\n");
        let run = dgx_core::record::read_text(std::path::Path::new("r.jsonl"), text.as_bytes());
        page(
            &[RankedRun::new(run.expect("a run"), "ab".repeat(32))],
            None,
        )
    };
    let text = of(&["gemm_one", "gemm_two", "gate"]);
    assert!(text.contains("<h2 id=\"kernels\">") && numbers_are_finite(&text));
    assert!(text.contains("Nothing is ranked by this"));
    assert!(text.contains("gemm_two: 9 µs from 10 µs on"), "{text}");
    assert!(text.contains("■</span> gate"));
    assert!(!of(&["all"]).contains("<h2 id=\"kernels\">"));
}

#[test]
fn text_from_run_files_is_escaped() {
    let mut field = Synthetic::round4();
    field.entries[1].name = "<script>alert(1)</script>";
    field.entries[3].reason = Some("<img src=x onerror=alert(2)>\u{1b}[2J");
    let text = page(&[ranked(&field)], None);
    assert!(!text.contains("<script>alert") && !text.contains("<img"));
    assert!(text.contains("&lt;script&gt;alert(1)") && !text.contains('\u{1b}'));
}

#[test]
fn odd_runs_still_make_a_page() {
    let mut one = Synthetic::round4();
    one.entries.truncate(1);
    one.shapes.truncate(1);
    (one.processes, one.blocks, one.yardstick) = (1, 1, None);
    let mut none = Synthetic::round4();
    for entry in &mut none.entries {
        entry.status = Status::Wrong;
    }
    none.yardstick = None;
    for field in [one, none, Synthetic::round4().modelled()] {
        let text = page(&[ranked(&field)], None);
        assert!(text.contains("</html>") && numbers_are_finite(&text));
    }
}

#[test]
fn several_runs_make_a_history() {
    let mut later = Synthetic::round4();
    later.entries[2].time = 0.5;
    later
        .entries
        .push(SyntheticContender::ok("ping-pong", 0.45).child_of("interleaved"));
    let text = page(&[ranked(&Synthetic::round4()), ranked(&later)], None);
    assert!(text.contains("<h2 id=\"history\">"));
    assert!(!text.contains("Across devices"));
    let mixed = page(
        &[ranked(&Synthetic::round4().modelled()), ranked(&later)],
        None,
    );
    assert!(mixed.contains("Across devices"));
}

/// The script at the page's end contains NaN; nothing before it may.
fn numbers_are_finite(text: &str) -> bool {
    let body = text.split("<script>").next().unwrap_or_default();
    !body.contains("NaN") && !body.contains("inf\"")
}

/// A cell that is correct by luck shows the place, once for all its shapes.
#[test]
fn hazards_have_a_section() {
    let access = |deed: &str, line: u32| dgx_core::domain::Access {
        deed: deed.to_owned(),
        lines: vec![format!("variants/x.cu:{line}")],
        ptx_line: 1,
        kernel: "k".to_owned(),
        cta: Some([0; 3]),
        warp: 1,
        lanes: 1,
    };
    let mut field = Synthetic::round4();
    field.entries[1].status = Status::Racy;
    field.entries[1].hazards = vec![dgx_core::domain::Hazard {
        kind: "race".to_owned(),
        at: "shared <tile>".to_owned(),
        here: access("a thread reads", 41),
        there: Some(access("a thread writes", 27)),
        missing: "no barrier".to_owned(),
        remedy: "__syncthreads()".to_owned(),
        times: 3,
    }];
    let ranked = ranked(&field);
    let text = hazards::section(&ranked).into_string();
    assert_eq!(text.matches("shared &lt;tile&gt;").count(), 1, "{text}");
    for words in [
        "x.cu:41",
        "x.cu:27",
        "no barrier",
        "__syncthreads()",
        "lane 0",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(page(&[ranked], None).contains("<h2 id=\"hazards\">"));
    let none = page(
        &[super::RankedRun::new(
            Synthetic::round4().run(),
            "ab".repeat(32),
        )],
        None,
    );
    assert!(!none.contains("<h2 id=\"hazards\">"));
}

/// A failure begins with its reason, whatever else is recorded; the kernels' output takes one line
/// of the page, and the command that helps stands below.
#[test]
fn failures_give_the_reason_and_what_to_do() {
    let mut field = Synthetic::round4();
    field.entries[3] =
        SyntheticContender::failed("stray", Status::Wrong, "wrote out of bounds of c at byte 9");
    let printed = (0..500).map(|i| format!("line {i}\n")).collect::<String>();
    let text = field.lines().into_iter().map(|mut line| {
        // The failure was not declared.
        if let Line::Header(header) = &mut line {
            header.contenders[3].expect = Status::Ok;
        }
        if let Line::Verdict(verdict) = &mut line
            && verdict.contender.as_str() == "stray"
        {
            verdict.detail = Some("written at variants/stray.cu:70".to_owned());
            verdict.printed = Some(printed.clone());
        }
        serde_json::to_string(&line).unwrap() + "\n"
    });
    let text: String = text.collect();
    let run = dgx_core::record::read_text("x.jsonl".as_ref(), text.as_bytes()).unwrap();
    let ranked = RankedRun::new(run, "ab".repeat(32));
    let text = failures::section(&ranked).into_string();
    let place = |words: &str| {
        text.find(words)
            .unwrap_or_else(|| panic!("no {words}: {text}"))
    };
    let reason = place("wrote out of bounds of c at byte 9");
    let detail = place("written at variants/stray.cu:70");
    let printed = place("its kernels printed 500 lines");
    assert!(reason < detail && detail < printed, "{text}");
    // Folded, and not all of it.
    assert!(text[detail..printed].contains("<details>"), "{text}");
    assert!(
        text.contains("line 63") && !text.contains("line 64"),
        "{text}"
    );
    assert!(
        text.contains("<code>dgx debug stray x.jsonl --shape "),
        "{text}"
    );
}

/// A shape has one name even if several are its fastest, and no name covers a point; an entrant
/// drawn twice has one colour.
#[test]
fn the_roofline_names_each_shape_once_and_beside_its_points() {
    let mut tied = Synthetic::round4().modelled();
    tied.entries[1].time = tied.entries[2].time;
    for field in [tied, Synthetic::round4()] {
        let ranked = ranked(&field);
        let text = roofline::section(&ranked).into_string();
        let (overall, bars) = text.split_once("</figure>").expect("two pictures");
        let number = |tag: &str, key: &str| -> f64 {
            let (_, rest) = tag.split_once(&format!("{key}=\"")).expect(key);
            rest.split('"').next().unwrap().parse().unwrap()
        };
        let points: Vec<[f64; 2]> = (overall.split("<circle").skip(1))
            .map(|tag| [number(tag, "cx"), number(tag, "cy")])
            .collect();
        let labels = overall.split("<text class=\"label\" data-s=").skip(1);
        let labels: Vec<&str> = labels.collect();
        let mut seen: Vec<&str> = labels
            .iter()
            .map(|l| l.split('"').nth(1).unwrap())
            .collect();
        seen.sort_unstable();
        let all = seen.len();
        seen.dedup();
        assert_eq!(seen.len(), all, "{seen:?}");
        assert!(all > 4, "{overall}");
        for label in labels {
            let [left, bottom] = [number(label, " x"), number(label, " y")];
            let name = label.split(['>', '<']).nth(1).unwrap();
            let right = left + 7.0 * name.chars().count() as f64;
            let covered = |p: &&[f64; 2]| {
                (left..right).contains(&p[0]) && (bottom - 12.0..bottom).contains(&p[1])
            };
            assert_eq!(
                points.iter().find(covered),
                None,
                "{name} at {left} {bottom}"
            );
        }
        let yard = bars.matches("class=\"yard\"").count();
        assert_eq!(yard > 0, field.yardstick.is_some());
    }
}
