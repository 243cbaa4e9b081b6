use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::script::Act;

/// One call, as it is written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// The process it was made in.
    pub worker: u32,
    pub act: Act,
    pub contender: String,
    pub shape: String,
    pub process: u32,
    /// The data it was dealt; none in validation.
    pub set: Option<usize>,
    pub salt: u64,
    /// Whether the host looked at its output afterwards.
    #[serde(default)]
    pub observed: bool,
    /// Events that need not happen again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub once: Vec<usize>,
    /// Which of the script's cards made it.
    #[serde(default)]
    pub card: u32,
    /// A card that is there no more from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<u32>,
}

/// Where all workers of a script write down their calls, one JSON object a line.
#[derive(Debug)]
pub(super) struct Journal(Option<File>);

impl Journal {
    pub(super) fn open(path: Option<&Path>) -> std::io::Result<Self> {
        let file = path.map(|path| OpenOptions::new().append(true).create(true).open(path));
        Ok(Self(file.transpose()?))
    }

    /// Written before anything happens: whoever dies has said so.
    pub(super) fn note(&mut self, note: &Note) {
        if let Some(file) = &mut self.0 {
            let mut line = serde_json::to_vec(note).unwrap_or_default();
            line.push(b'\n');
            // A call that cannot be written down is missed by the test that
            // looks for it.
            let _ = file.write_all(&line);
        }
    }
}

/// What is written down so far.
pub fn notes(path: &Path) -> Vec<Note> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines();
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}
