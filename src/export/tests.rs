use super::*;
use crate::domain::ContenderId;
use crate::rank::{Ranking, Side};
use crate::record::synthetic::{Synthetic, dense};

fn small() -> Synthetic {
    Synthetic {
        shapes: vec![dense(256, 3072, 4096), dense(512, 4096, 7168)],
        ..Synthetic::round4().modelled()
    }
}

#[test]
fn a_run_in_every_format() {
    let run = small().run();
    let document = Document::of_run(&run, &Ranking::of(&run));
    insta::assert_snapshot!("json", document.json());
    insta::assert_snapshot!("csv", csv(&document));
    insta::assert_snapshot!("markdown", markdown(&document));
}

#[test]
fn a_comparison_ranks_the_two() {
    let run = Synthetic::round4().run();
    let ranking = Ranking::of(&run);
    let [a, b] = ["sequential", "interleaved"].map(ContenderId::from_text);
    let comparison = ranking.compare(&run, &a, &b).unwrap();
    let side = |contender| Side {
        run: &run,
        ranking: &ranking,
        contender,
    };
    let document = Document::of_comparison(side(&a), side(&b), &comparison);
    let ranks: Vec<_> = document
        .ranking
        .iter()
        .map(|r| (r.contender.as_str(), r.rank))
        .collect();
    assert_eq!(ranks, [("sequential", Some(2)), ("interleaved", Some(1))]);
    let gain = document.ranking[1].geomean_speedup.unwrap();
    assert!(gain.lower.unwrap() < 0.76 / 0.52 && gain.upper.unwrap() > 0.76 / 0.52 - 0.01);
    assert_eq!(document.cells.len(), 16);
}

/// Two runs, both of them in the export, and one over the other.
#[test]
fn two_runs_in_every_format() {
    let mut later = small();
    later.entries[2].time = 0.5;
    let (a, b) = (small().run(), later.run());
    let rankings = [Ranking::of(&a), Ranking::of(&b)];
    let ids: Vec<ContenderId> = a.entrants().cloned().collect();
    let side = |index: usize, contender| Side {
        run: [&a, &b][index],
        ranking: &rankings[index],
        contender,
    };
    let compare = |id| Some((id, crate::rank::compare_runs(side(0, id), side(1, id))?));
    let compared: Vec<_> = ids.iter().filter_map(compare).collect();
    let sides = [(&a, &rankings[0]), (&b, &rankings[1])];
    let both = Document::of_runs(sides, &compared, None);
    let value: serde_json::Value = serde_json::from_str(&both.json()).unwrap();
    assert_eq!(value["runs"].as_array().unwrap().len(), 2);
    let rows = value["ranking"].as_array().unwrap();
    assert_eq!(rows.iter().filter(|r| r["run"] == 1).count(), 4);
    let is_mean = |c: &&serde_json::Value| c["contender"] == "interleaved" && c["shape"].is_null();
    let changes = value["changes"].as_array().unwrap();
    let change = changes.iter().find(is_mean).unwrap();
    let gain = change["speedup"]["estimate"].as_f64().unwrap();
    assert!((gain - 1.04).abs() < 1e-9, "{gain}");
    insta::assert_snapshot!("two runs csv", csv(&both));
    insta::assert_snapshot!("two runs markdown", markdown(&both));
    let only = Document::of_runs(sides, &compared[..1], Some(&ids[0]));
    assert_eq!((only.ranking.len(), only.cells.len()), (2, 4));
}

/// Whatever table is taken out of an export, its times are called what they are.
#[test]
fn every_table_says_what_its_times_are() {
    let run = small().run();
    let document = Document::of_run(&run, &Ranking::of(&run));
    let headings = |text: &str| -> Vec<String> {
        let lines: Vec<&str> = text.lines().collect();
        let titled = lines.windows(2).filter(|w| w[1].starts_with("|---"));
        titled.map(|w| w[0].to_owned()).collect()
    };
    let titles = headings(&markdown(&document));
    assert_eq!(titles.len(), 3);
    let said = |title: &String| title.contains("modelled") || title.contains("emulated");
    assert!(titles.iter().all(said), "{titles:?}");
    for line in csv(&document).lines().skip(1) {
        assert!(
            line.contains(",modelled,") && line.contains("NVIDIA H200"),
            "{line}"
        );
    }
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
