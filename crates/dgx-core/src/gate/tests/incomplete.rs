//! Runs with too little data to decide.

use super::*;

#[test]
fn half_a_run_neither_passes_nor_fails() {
    let whole = Synthetic::round4();
    let mut failing = whole.clone();
    failing.entries[2].status = Status::Wrong;
    let lines =
        |field: &Synthetic| -> Vec<String> { field.text().lines().map(String::from).collect() };
    let is =
        |kind: &'static str| move |l: &String| l.starts_with(&format!("{{\"type\":\"{kind}\""));
    let all = lines(&whole);
    let first = |kind| all.iter().position(is(kind)).unwrap();
    let stopped = "{\"type\":\"end\",\"complete\":false,\"reason\":\"interrupted\",\"seconds\":{},\"decision\":null}";
    let untimed = |gap: &Gap| matches!(gap, Gap::Untimed { .. });
    type Expected = fn(&Gap) -> bool;
    let cases: [(Expected, Vec<String>); 7] = [
        (|gap| *gap == Gap::NotEnded, all[..all.len() - 1].to_vec()),
        (
            |gap| matches!(gap, Gap::Unjudged { .. }),
            all[..first("verdict") + 3].to_vec(),
        ),
        (untimed, all[..first("block")].to_vec()),
        (|gap| *gap == Gap::NotEnded, all[..1].to_vec()),
        (
            |gap| *gap == Gap::Stopped(Some("interrupted".to_owned())),
            [&all[..first("block")], &[stopped.to_owned()]].concat(),
        ),
        (
            untimed,
            all.iter().filter(|l| !is("block")(l)).cloned().collect(),
        ),
        (|gap| *gap == Gap::NotEnded, lines(&failing)[..20].to_vec()),
    ];
    let last = cases.len() - 1;
    for (place, (gap, text)) in cases.into_iter().enumerate() {
        let text = text.join("\n") + "\n";
        let run = crate::record::read_text("results/x.jsonl".as_ref(), text.as_bytes()).unwrap();
        let gate = Gate {
            correct: true,
            ..at_least(1.1)
        };
        for (whose, report) in [
            (RunRole::Run, over_baseline(&run, &gate)),
            (
                RunRole::Run,
                over_run(&run, &whole.run(), &as_before()).unwrap(),
            ),
            (
                RunRole::Baseline,
                over_run(&whole.run(), &run, &as_before()).unwrap(),
            ),
        ] {
            assert_eq!(report.exit(), Exit::Inconclusive);
            // Cells without a verdict have not failed; the last run has a wrong cell.
            let failed = report.count(Ruling::Failed);
            assert!(place == last || failed == 0, "{report:#?}");
            let mut lacks = report.incomplete.iter();
            assert!(
                lacks.any(|(of, lack)| *of == whose && gap(lack)),
                "{report:#?}"
            );
        }
    }
}

#[test]
fn one_block_or_one_contender_cannot_be_judged() {
    let mut field = Synthetic::round4();
    (field.processes, field.blocks) = (1, 1);
    let report = over_baseline(&field.run(), &at_least(1.1));
    assert_eq!(report.exit(), Exit::Inconclusive);
    field.entries.truncate(1);
    let run = field.run();
    let ranking = Ranking::of(&run);
    let alone = judge(
        &run,
        &ranking,
        &at_least(1.0),
        ComparedWith::Contender(&run.header.baseline),
        false,
    );
    assert!(matches!(alone, Err(GateError::Nobody(_))));
}

/// Without the lines of all processes but the first.
fn first_process_only(field: &Synthetic) -> Run {
    let text = field.text();
    let kept =
        |line: &&str| !line.starts_with("{\"type\":\"block\"") || line.contains("\"process\":0,");
    let text: String = text.lines().filter(kept).flat_map(|l| [l, "\n"]).collect();
    crate::record::read_text("results/x.jsonl".as_ref(), text.as_bytes()).unwrap()
}

#[test]
fn fewer_processes_are_not_more_certainty() {
    let field = Synthetic::round4();
    let whole = field.run();
    assert_eq!(over_baseline(&whole, &at_least(1.1)).exit(), Exit::Done);
    let cut = first_process_only(&field);
    for report in [
        over_baseline(&cut, &at_least(1.1)),
        over_run(&cut, &whole, &as_before()).unwrap(),
        over_run(&whole, &cut, &as_before()).unwrap(),
    ] {
        assert_eq!(report.exit(), Exit::Inconclusive);
        let [
            (
                _,
                Gap::Thin {
                    processes, shapes, ..
                },
            ),
        ] = &report.incomplete[..]
        else {
            panic!("{report:#?}");
        };
        assert_eq!(*processes, 3);
        assert_eq!(shapes[0], ("256x4096x7168".to_owned(), 1));
    }
    // A process that was lost half-way is replaced by one of another number.
    let replaced = |from: &str, to: &str| {
        let text = field.text().replace(from, to);
        crate::record::read_text("results/x.jsonl".as_ref(), text.as_bytes()).unwrap()
    };
    let taken_over = replaced("\"process\":1,", "\"process\":4,");
    assert_eq!(
        over_baseline(&taken_over, &at_least(1.1)).exit(),
        Exit::Done
    );
    // A process may end by its time limit before it has its share of blocks.
    let cut_short = replaced("\"min_blocks\":10", "\"min_blocks\":33");
    assert_eq!(over_baseline(&cut_short, &at_least(1.1)).exit(), Exit::Done);
}

#[test]
fn one_process_decides_nothing_about_speed() {
    const ONE_PROCESS: &str =
        "from one process: differences between processes are not in the interval";
    let mut field = Synthetic::round4();
    field.processes = 1;
    let run = field.run();
    let gate = Gate {
        min_shape: Some(1.0),
        not_slower: true,
        claims_met: true,
        ..at_least(1.1)
    };
    for report in [
        over_baseline(&run, &gate),
        over_run(&run, &Synthetic::round4().run(), &gate).unwrap(),
    ] {
        assert!(report.incomplete.is_empty(), "{:?}", report.incomplete);
        assert!(!report.findings.is_empty());
        for finding in &report.findings {
            assert_eq!(finding.ruling, Ruling::Undecided, "{finding:?}");
            assert_eq!(finding.reason, Some(ONE_PROCESS.to_owned()));
        }
    }
}

#[test]
fn deleted_blocks_are_a_gap() {
    use crate::record::schema::Line;
    let lines = Synthetic::round4().lines();
    let read = |keep: &dyn Fn(usize, &Line) -> bool| {
        let kept = lines
            .iter()
            .enumerate()
            .filter(|(at, line)| keep(*at, line));
        let text: Vec<String> = kept
            .map(|(_, line)| serde_json::to_string(line).unwrap() + "\n")
            .collect();
        crate::record::read_text(Path::new("x.jsonl"), text.concat().as_bytes()).unwrap()
    };
    let gaps = |run: &Run| gaps(run, &Ranking::of(run));
    assert_eq!(gaps(&read(&|_, _| true)), []);
    let number = |line: &Line| match line {
        Line::Block(block) => Some(block.block),
        _ => None,
    };
    let shapes = Synthetic::round4().run().header.shapes.len();
    // The last may be missing: a process ends when its time is over.
    let last = lines.iter().filter_map(number).max().unwrap();
    assert_eq!(gaps(&read(&|_, line| number(line) != Some(last))), []);
    for hole in [0, 1] {
        let run = read(&|_, line| number(line) != Some(hole));
        let found = gaps(&run);
        let [Gap::Holes(found)] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(found.len(), shapes);
    }
}
