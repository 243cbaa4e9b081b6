//! Files that documents name exist, and every kept run file is named in one.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::workspace::in_repository;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).unwrap_or_else(|e| panic!("{folder}: {e}"));
    entries
        .map(|entry| entry.expect("an entry").path())
        .collect()
}

/// The files in a folder and in those below it.
fn files_below(folder: &str) -> Vec<PathBuf> {
    let (folders, mut found): (Vec<PathBuf>, Vec<PathBuf>) =
        files(folder).into_iter().partition(|path| path.is_dir());
    for folder in folders {
        found.extend(files_below(&folder.display().to_string()));
    }
    found
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The run files and answers that a text names with their folder.
fn named(text: &str) -> BTreeSet<&str> {
    let within = |c: char| c.is_ascii_alphanumeric() || "/-._".contains(c);
    let words = text.split(|c| !within(c));
    let kept =
        |word: &&str| word.contains("results/baselines/") || word.contains("results/calibration/");
    let words = words.filter(kept).filter(|word| word.ends_with(".jsonl"));
    words.map(|word| word.trim_start_matches("../")).collect()
}

#[test]
fn run_files_that_documents_name_are_here() {
    let documents = files_below("docs")
        .into_iter()
        .chain([root().join("README.md")]);
    let documents = documents.chain(files("configs/targets"));
    let mut found = 0;
    for document in documents {
        for file in named(&text(&document)) {
            assert!(
                root().join(file).is_file(),
                "{} names {file}",
                document.display()
            );
            found += 1;
        }
    }
    assert!(found > 5, "{found} are named");
}

#[test]
fn every_run_file_that_is_kept_is_told_of_and_no_other() {
    let about = text(&root().join("results/README.md"));
    let rows = about.lines().filter_map(|line| line.strip_prefix("| `"));
    let first = rows.filter_map(|row| row.split(" |").next());
    let told: BTreeSet<String> = (first.flat_map(|cell| cell.split(", ")))
        .map(|name| name.trim_matches('`').to_owned())
        .collect();
    let folders = [
        "baselines",
        "baselines/b200",
        "baselines/dispatch",
        "baselines/operators",
        "calibration",
    ];
    let kept = folders
        .into_iter()
        .flat_map(|folder| files(&format!("results/{folder}")));
    let lines = kept.filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let kept: BTreeSet<String> = lines
        .map(|path| {
            let path = path.with_extension("");
            let name = path
                .strip_prefix(root().join("results"))
                .expect("within it");
            let name = name.display().to_string();
            let (_, name) = name.split_once('/').expect("a folder");
            name.to_owned()
        })
        .collect();
    assert_eq!(told, kept);
}

/// The table that the README begins with is part of what dgx prints.
#[test]
fn the_first_table_of_the_readme_is_what_dgx_prints() {
    let said = in_repository(&["show", "results/baselines/final-20261119-1440.jsonl"]);
    let printed: BTreeSet<&str> = said.lines().collect();
    let readme = text(&root().join("README.md"));
    let (_, after) = readme
        .split_once("    $ dgx sweep final\n\n")
        .expect("the command");
    let (table, _) = after.split_once("\n\n").expect("the end of its table");
    let rows = table.lines().filter_map(|line| line.strip_prefix("    "));
    let rows: Vec<&str> = rows.filter(|row| row.trim() != "…").collect();
    assert!(rows.len() >= 8 && table.contains("µs"), "{table}");
    for row in rows {
        assert!(printed.contains(row), "dgx does not print {row}");
    }
}
