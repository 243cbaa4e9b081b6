use super::*;
use crate::present::{Commands, Folders, Repetition, Style, SummaryOptions, sweep_summary};
use dgx_core::domain::{ContenderId, Status};
use dgx_core::rank::{ComparedSide, Ranking};
use dgx_core::record::Run;
use dgx_core::record::schema::Line;
use dgx_core::record::synthetic::{Synthetic, SyntheticContender, dense};

fn small() -> Synthetic {
    Synthetic {
        shapes: vec![dense(256, 3072, 4096), dense(512, 4096, 7168)],
        ..Synthetic::round4().modelled()
    }
}

#[test]
fn a_run_in_every_format() {
    let run = small().run();
    let document = RunExport::of_run(&run, &Ranking::of(&run));
    insta::assert_snapshot!("json", document.json());
    insta::assert_snapshot!("csv", csv(&document));
    insta::assert_snapshot!("csv summary", csv_summary(&document));
    insta::assert_snapshot!("markdown", markdown(&document));
}

#[test]
fn a_comparison_ranks_the_two() {
    let run = Synthetic::round4().run();
    let ranking = Ranking::of(&run);
    let [a, b] = ["sequential", "interleaved"].map(ContenderId::from_text);
    let comparison = ranking.compare(&run, &a, &b).unwrap();
    let side = |contender| ComparedSide::new(&run, &ranking, contender);
    let document = RunExport::of_comparison(side(&a), side(&b), &comparison);
    let ranks: Vec<_> = document
        .ranking
        .iter()
        .map(|r| (r.contender.as_str(), r.rank))
        .collect();
    assert_eq!(ranks, [("sequential", Some(2)), ("interleaved", Some(1))]);
    let gain = document.ranking[1].geomean_speedup.unwrap();
    assert!(gain.lower.unwrap() < 0.76 / 0.52 && gain.upper.unwrap() > 0.76 / 0.52 - 0.01);
    assert_eq!(document.cells.len(), 16);
    // The table of the screen: both times, the ratio with its interval, the change in time, and the
    // result.
    let page = markdown(&document);
    let mean = &document.changes[0];
    assert_eq!((mean.finding, mean.shape.is_none()), ("faster", true));
    for title in [
        "sequential µs",
        "interleaved over sequential (measured)",
        "time",
        "finding",
    ] {
        assert!(
            page.contains(&format!("| {title} |")),
            "no {title} in {page}"
        );
    }
    for change in &document.changes {
        let (lower, upper) = (change.speedup.lower.unwrap(), change.speedup.upper.unwrap());
        let told = format!("[{lower:.3} {upper:.3}] −");
        assert!(
            words(&page).replace("**", "").contains(&told),
            "{told} {page}"
        );
        assert!(page.contains(" | faster |"), "{page}");
    }
    assert!(csv(&document).lines().any(|line| line.contains(",faster,")));
}

/// The words of a text, however it is split into lines and cells.
fn words(text: &str) -> String {
    let text = text.replace('\\', "").replace('|', " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A run with every sentence of the screen: failures with their first wrong element, claims over
/// others than the reference, outliers, one card.
fn talkative() -> Run {
    let mut field = Synthetic::round4();
    field.entries.extend([
        SyntheticContender::ok("warp-specialized", 0.58).claiming(1.4, "sequential"),
        SyntheticContender::failed("deadlock", Status::Hung, "no progress for 10 s"),
    ]);
    let told = "it is wrong\nfirst: group 0, row 0, column 1: got 2, expected 1\n";
    let lines = field.lines().into_iter().map(|mut line| {
        if let Line::Verdict(verdict) = &mut line
            && verdict.status == Status::Wrong
        {
            verdict.detail = Some(told.to_owned());
        }
        serde_json::to_string(&line).unwrap() + "\n"
    });
    let text: String = lines.collect();
    dgx_core::record::read_text("x.jsonl".as_ref(), text.as_bytes()).expect("a run")
}

/// The exports contain what the screen shows: failures with their first wrong element, notes, and
/// all columns.
#[test]
fn exports_are_the_screen() {
    for run in [
        talkative(),
        small().run(),
        Synthetic::round4().time_only().run(),
    ] {
        let ranking = Ranking::of(&run);
        let folders = Folders::default();
        let options = SummaryOptions {
            counters: false,
            new: true,
            usual: true,
            commands: &Commands::for_run(&run, &folders),
            is_here: &|_| true,
        };
        let screen = sweep_summary(
            &run,
            &options,
            &Style {
                width: 10_000,
                ..Style::PLAIN
            },
        );
        let document = RunExport::of_run(&run, &ranking);
        let (page, json) = (words(&markdown(&document)), document.json());
        let (tables, prose) = screen.split_once("fastest on its shape").unwrap();
        let mut lines = tables.lines().skip_while(|line| !line.starts_with(" rank"));
        for title in lines.next().unwrap().split("  ").map(str::trim) {
            assert!(page.contains(&words(title)), "no {title} in {page}");
        }
        if ranking.reference.is_some() {
            assert!(tables.contains("1.00× baseline") && page.contains("1.00× baseline"));
        }
        assert!(!page.contains("yardstick µs") && !page.contains("over the yardstick"));
        // Sentences: everything below the matrix but the path and the next commands.
        let mut told = 0;
        let below = prose.lines().skip(1).skip_while(|line| !line.is_empty());
        for line in below.filter(|line| !line.trim_start().starts_with("next: ")) {
            let sentence = line.split("  x.jsonl").next().unwrap_or_default();
            let sentence = sentence.replace("  ", " ");
            told += usize::from(!sentence.trim().is_empty());
            assert!(
                page.contains(words(&sentence).as_str()),
                "no {sentence} in {page}"
            );
            let quoted = serde_json::to_string(sentence.trim()).unwrap();
            assert!(
                json.contains(quoted.trim_matches('"')),
                "no {sentence} in the JSON"
            );
        }
        assert!(told > 0, "{screen}");
    }
    let run = talkative();
    let document = RunExport::of_run(&run, &Ranking::of(&run));
    let first = "first: group 0, row 0, column 1: got 2, expected 1";
    for text in [document.json(), csv(&document), markdown(&document)] {
        assert!(text.contains(first), "{text}");
        assert!(text.contains("no progress for 10 s"), "{text}");
    }
    assert!(
        document.runs[0]
            .notes
            .iter()
            .any(|n| n.starts_with("Intervals hold for this card"))
    );
    let claim = "1.40× over sequential, found ";
    assert!(
        markdown(&document).contains(claim),
        "{}",
        markdown(&document)
    );
}

/// Two runs, both of them in the export, and one over the other.
#[test]
fn two_runs_in_every_format() {
    let mut later = small();
    later.entries[2].time = 0.5;
    let (a, b) = (small().run(), later.run());
    let rankings = [Ranking::of(&a), Ranking::of(&b)];
    let ids: Vec<ContenderId> = a.entrants().cloned().collect();
    let side = |index: usize, contender| ComparedSide {
        run: [&a, &b][index],
        ranking: &rankings[index],
        contender,
    };
    let compare = |id| Some((id, dgx_core::rank::compare_runs(side(0, id), side(1, id))?));
    let compared: Vec<_> = ids.iter().filter_map(compare).collect();
    let sides = [(&a, &rankings[0]), (&b, &rankings[1])];
    let agreed = |one| Repetition::of(sides, &compared, one);
    let both = RunExport::of_runs(sides, &compared, None, &agreed(false));
    let value: serde_json::Value = serde_json::from_str(&both.json()).unwrap();
    assert_eq!(value["runs"].as_array().unwrap().len(), 2);
    let rows = value["ranking"].as_array().unwrap();
    assert_eq!(rows.iter().filter(|r| r["run"] == 1).count(), 4);
    let is_mean = |c: &&serde_json::Value| c["contender"] == "interleaved" && c["shape"].is_null();
    let changes = value["changes"].as_array().unwrap();
    let change = changes.iter().find(is_mean).unwrap();
    let gain = change["speedup"]["estimate"].as_f64().unwrap();
    assert!((gain - 1.04).abs() < 1e-9, "{gain}");
    let repeat = agreed(false).repeat.unwrap();
    let screen = words(&agreed(false).table.unwrap().render(&Style::PLAIN));
    let page = words(&markdown(&both));
    assert!(page.contains("Within each run"), "{page}");
    for entry in &repeat.entries {
        let ranks = format!("{}, {}", entry.places[0], entry.places[1]);
        assert!(screen.contains(&ranks) && page.contains(&ranks), "{page}");
    }
    assert_eq!(
        value["agreement"]["contenders"].as_array().unwrap().len(),
        repeat.entries.len()
    );
    for sentence in agreed(false).words {
        assert!(page.contains(&words(&sentence)), "no {sentence} in {page}");
        assert!(
            value["notes"]
                .as_array()
                .unwrap()
                .iter()
                .any(|n| *n == *sentence)
        );
    }
    insta::assert_snapshot!("two runs csv", csv(&both));
    insta::assert_snapshot!("two runs csv summary", csv_summary(&both));
    insta::assert_snapshot!("two runs markdown", markdown(&both));
    let only = RunExport::of_runs(sides, &compared[..1], Some(&ids[0]), &agreed(true));
    assert_eq!((only.ranking.len(), only.cells.len()), (2, 4));
}

/// Every table of an export says whether its times are measured or modelled.
#[test]
fn every_table_says_what_its_times_are() {
    let run = small().run();
    let document = RunExport::of_run(&run, &Ranking::of(&run));
    let headings = |text: &str| -> Vec<String> {
        let lines: Vec<&str> = text.lines().collect();
        let titled = lines.windows(2).filter(|w| w[1].starts_with("|---"));
        titled.map(|w| w[0].to_owned()).collect()
    };
    let titles = headings(&markdown(&document));
    assert_eq!(titles.len(), 3);
    let said = |title: &String| title.contains("modelled") || title.contains("emulated");
    assert!(titles.iter().all(said), "{titles:?}");
    let lines = csv(&document) + &csv_summary(&document);
    for line in lines.lines().filter(|line| !line.starts_with("contender,")) {
        assert!(
            line.contains(",modelled,") && line.contains("NVIDIA H200"),
            "{line}"
        );
    }
}

/// Summing up a column counts every cell once.
#[test]
fn cells_and_summaries_are_in_files_of_their_own() {
    let run = small().run();
    let document = RunExport::of_run(&run, &Ranking::of(&run));
    let table = |text: &str| -> Vec<Vec<String>> {
        let rows = text
            .lines()
            .map(|l| l.split(',').map(str::to_owned).collect());
        rows.collect()
    };
    let (cells, summary) = (table(&csv(&document)), table(&csv_summary(&document)));
    assert_eq!(cells.len(), 1 + document.cells.len());
    assert_eq!(summary.len(), 1 + document.ranking.len());
    assert!(cells.iter().all(|row| row[1] != "*"));
    assert!(cells[0].contains(&"shape".to_owned()) && !summary[0].contains(&"shape".to_owned()));
    assert!(summary[0].contains(&"rank".to_owned()));
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.json");
    write(&path, "{}\n").unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{}\n");
    let error = write(&dir.path().join("no/such/out.json"), "{}").unwrap_err();
    assert!(error.to_string().contains("cannot write"), "{error}");
}
