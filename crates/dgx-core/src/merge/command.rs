//! The commands that complete a run, ready to be pasted.

use std::path::{Path, PathBuf};

use super::Missing;
use crate::domain::{BackendKind, typed};
use crate::record::ELIDED;
use crate::record::schema::Header;

/// The command that sweeps shard `number` like the one that `argv` swept: a part swept with other
/// flags could not be merged. `None` if `argv` lacks information.
pub(super) fn like(argv: &[String], (number, of): (u32, u32), into: &Path) -> Option<String> {
    let (mut words, mut named) = (Vec::new(), false);
    let mut rest = argv.iter();
    while let Some(word) = rest.next() {
        let (flag, value) = match word.split_once('=') {
            Some((flag, _)) => (flag, true),
            None => (word.as_str(), false),
        };
        match flag {
            "--shard" => {
                words.extend([flag.to_owned(), format!("{number}/{of}")]);
                words.extend(["--into".to_owned(), typed(into)]);
                named = true;
            }
            // These are of the other shard.
            "--into" | "--results" => {}
            "--resume" => return None,
            _ if word.contains(ELIDED) => return None,
            _ => {
                words.push(typed(word));
                continue;
            }
        }
        if !value {
            rest.next();
        }
    }
    named.then(|| words.join(" "))
}

/// The file for a missing shard, beside the merged run.
pub(super) fn shard_file(whole: &Path, (number, of): (u32, u32)) -> PathBuf {
    let stem = whole.file_stem().unwrap_or_default().to_string_lossy();
    whole.with_file_name(format!("{stem}-shard-{number}-of-{of}.jsonl"))
}

/// The command that continues the merged run, which records its settings, but not all paths.
pub(super) fn resume(whole: &Path, header: &Header) -> String {
    let mut lost: Vec<&str> = Vec::new();
    for pair in header.argv.windows(2) {
        let [word, next] = pair else { continue };
        let (flag, value) = next.split_once('=').unwrap_or((word, next));
        if matches!(flag, "--variants" | "--script") && value.contains(ELIDED) {
            lost.push(flag);
        }
    }
    let note = match lost.is_empty() {
        true => String::new(),
        false => format!("  # with {} as before", lost.join(" and ")),
    };
    let backend = match header.device.backend {
        BackendKind::Cuda => String::new(),
        other => format!(" --backend {other}"),
    };
    format!("dgx sweep --resume {}{backend}{note}", typed(whole))
}

/// The command that joins everything once all missing parts are swept.
pub fn then(missing: &[Missing], whole: &Path) -> Option<String> {
    let files: Vec<String> = missing.iter().flat_map(|m| &m.files).map(typed).collect();
    let whole = typed(whole);
    (!files.is_empty()).then(|| format!("dgx merge {} --force -o {whole}", files.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_shard_is_swept_as_the_one() {
        let like = |line: &[&str]| {
            let argv: Vec<String> = line.iter().map(|w| (*w).to_owned()).collect();
            let into = shard_file(Path::new("a b/whole.jsonl"), (2, 2));
            like(&argv, (2, 2), &into)
        };
        let said = like(&[
            "dgx", "sweep", "a.toml", "--quick", "--shard", "1/2", "--into", "1.jsonl", "--only",
            "x[A=1]",
        ]);
        let due = "dgx sweep a.toml --quick --shard 2/2 --into 'a b/whole-shard-2-of-2.jsonl' \
                   --only 'x[A=1]'";
        assert_eq!(said.as_deref(), Some(due));
        let said = like(&[
            "dgx",
            "sweep",
            "--shard=1/2",
            "--into=…/1.jsonl",
            "--results",
            "…/r",
            "a.toml",
        ]);
        let due = "dgx sweep --shard 2/2 --into 'a b/whole-shard-2-of-2.jsonl' a.toml";
        assert_eq!(said.as_deref(), Some(due));
        assert_eq!(like(&["dgx", "sweep", "--resume", "1.jsonl"]), None);
        assert_eq!(like(&["dgx", "sweep", "a.toml"]), None);
        // Its path is not recorded.
        assert_eq!(like(&["dgx", "sweep", "…/a.toml", "--shard=1/2"]), None);
    }
}
