//! Where a project names a run: in its rounds, documents and scripts, and in
//! the headers of other runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dgx_core::diagnostic::CommandError;
use dgx_core::{files, record};

/// Larger files are not searched for names of runs.
const LARGEST: u64 = 1 << 20;
/// A folder with more files is not a project.
const MOST: usize = 50_000;
/// Folders of generated files.
const MADE: [&str; 3] = ["target", "node_modules", "__pycache__"];
/// Folders that are searched although their names begin with a dot.
const DOTTED: [&str; 4] = [".ci", ".circleci", ".github", ".gitlab"];

/// For each of these runs the first file that names it.
pub(super) fn mentions(
    runs: &[&Path],
    results: &Path,
) -> Result<BTreeMap<PathBuf, PathBuf>, CommandError> {
    let mut found = BTreeMap::new();
    let mut note = |run: &Path, place: &Path| {
        found
            .entry(run.to_owned())
            .or_insert_with(|| place.to_owned());
    };
    for place in project()? {
        let own =
            |run: &Path| place.file_stem() == run.file_stem() && place.parent() == run.parent();
        let text = match is_run(&place) {
            true => record::header(&place)
                .ok()
                .and_then(|header| serde_json::to_string(&header).ok()),
            false => read(&place),
        };
        let Some(text) = text else { continue };
        for run in runs.iter().filter(|run| !own(run)) {
            let stem = run.file_stem().unwrap_or_default().to_string_lossy();
            if names(&text, &stem) {
                note(run, &place);
            }
        }
    }
    // Runs outside the project may name each other too.
    for place in record::runs_in(results) {
        let header = record::header(&place).ok();
        let parts = header.iter().flat_map(|header| &header.parts);
        for part in parts {
            let named = runs.iter().filter(|run| run.ends_with(&part.file));
            named.for_each(|run| note(run, &place));
        }
    }
    Ok(found)
}

fn is_run(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "jsonl")
}

fn read(path: &Path) -> Option<String> {
    let bytes = files::read(path, LARGEST).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Every file of the project, except generated ones.
fn project() -> Result<Vec<PathBuf>, CommandError> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from(".")];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries {
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let path = match folder == Path::new(".") {
                true => PathBuf::from(&*name),
                false => entry.path(),
            };
            let hidden = name.starts_with('.') && !DOTTED.contains(&&*name);
            let made = MADE.contains(&&*name) || name.ends_with(".cubins");
            match kind.is_dir() {
                true if !hidden && !made => folders.push(path),
                false if kind.is_file() => found.push(path),
                _ => {}
            }
            if found.len() > MOST {
                return Err(CommandError::usage(
                    format!("there are more than {MOST} files here that may name a run"),
                    "run dgx in the folder of the project, where results/ lies",
                ));
            }
        }
    }
    Ok(found)
}

/// Whether a text contains this name as a whole word.
fn names(text: &str, name: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || "-_".contains(c);
    let mut found = text.match_indices(name);
    found.any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !before.is_some_and(inside) && !after.is_some_and(inside)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_whole_word() {
        let name = "smoke-20261117-0312";
        for text in [
            "dgx show smoke-20261117-0312",
            "[run](results/smoke-20261117-0312.jsonl)",
            "\"smoke-20261117-0312\"",
        ] {
            assert!(names(text, name), "{text}");
        }
        for text in ["smoke-20261117-0312-2", "my-smoke-20261117-0312", "smoke"] {
            assert!(!names(text, name), "{text}");
        }
    }
}
