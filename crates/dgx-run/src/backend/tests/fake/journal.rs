use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::script::CallStage;

/// The record of one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// The process it was made in.
    pub worker: u32,
    pub act: CallStage,
    pub contender: String,
    pub shape: String,
    pub process: u32,
    /// The data set it got; `None` in validation.
    pub set: Option<usize>,
    pub call_seed: u64,
    /// Whether the host looked at its output afterwards.
    #[serde(default)]
    pub observed: bool,
    /// Events that have happened and need not happen again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub once: Vec<usize>,
    /// The script's card that made it.
    #[serde(default)]
    pub card: u32,
    /// A card that is gone from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<u32>,
}

/// The record of all calls by all workers of a script, one JSON object a line.
#[derive(Debug)]
pub(super) struct Journal(Option<File>);

impl Journal {
    pub(super) fn open(path: Option<&Path>) -> std::io::Result<Self> {
        let file = path.map(|path| OpenOptions::new().append(true).create(true).open(path));
        Ok(Self(file.transpose()?))
    }

    /// Written before the call: a worker that dies has recorded it.
    pub(super) fn note(&mut self, note: &JournalEntry) {
        if let Some(file) = &mut self.0 {
            let mut line = serde_json::to_vec(note).unwrap_or_default();
            line.push(b'\n');
            // The test that looks for a call notices a missing record.
            let _ = file.write_all(&line);
        }
    }
}

/// The records so far.
pub fn notes(path: &Path) -> Vec<JournalEntry> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines();
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}
