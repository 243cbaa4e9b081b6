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

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.json");
    write(&path, "{}\n").unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{}\n");
    let error = write(&dir.path().join("no/such/out.json"), "{}").unwrap_err();
    assert!(error.to_string().contains("cannot write"), "{error}");
}
