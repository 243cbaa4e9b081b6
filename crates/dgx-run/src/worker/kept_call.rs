//! Keeps the state after a call for debugging: its buffers as files, and a description of them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use dgx_core::operator::Operator;
use serde::{Deserialize, Serialize};

use super::protocol::KeepRequest;
use crate::backend::{AccessSites, Buffer, CallSeed, Loaded};
use dgx_core::clean;
use dgx_core::domain::Distribution;

/// The note's name in its folder.
const NOTE: &str = "kept.json";

/// A call, and its memory afterwards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptCall {
    /// Which call of its validation, from 0.
    pub call: usize,
    pub distribution: Distribution,
    pub call_seed: CallSeed,
    /// The same for the call before it.
    pub before: Option<(Distribution, CallSeed)>,
    /// The kernels' output, if the backend has it by call.
    pub printed: String,
    /// Which instructions wrote the first wrong element, and which read outside all buffers.
    pub search: Option<AccessSites>,
    pub buffers: Vec<KeptBuffer>,
    /// Why there are none, if so.
    pub missing: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptBuffer {
    /// As requested.
    pub name: String,
    /// Its group; `None` for buffers of a whole call.
    pub group: Option<usize>,
    file: PathBuf,
}

impl KeptCall {
    /// Reads the note of a worker in `folder`; `None` if there is none.
    pub fn read(folder: &Path) -> Option<Self> {
        let text = fs::read(folder.join(NOTE)).ok()?;
        clean::parse(&text).ok()
    }

    /// The bytes of every buffer of this name.
    pub fn bytes(&self, name: &str) -> io::Result<Vec<(Option<usize>, Vec<u8>)>> {
        let named = self.buffers.iter().filter(|b| b.name == name);
        named
            .map(|buffer| Ok((buffer.group, fs::read(&buffer.file)?)))
            .collect()
    }
}

/// Keeps the buffers of a call. The note lists what could not be kept; if the note itself cannot be
/// written, it is absent.
pub(super) fn keep(
    request: &KeepRequest,
    operator: &Operator,
    loaded: &mut dyn Loaded,
    mut note: KeptCall,
    search: impl FnOnce(&mut dyn Loaded) -> Option<AccessSites>,
) {
    let is_output = |name: &str| operator.outputs.iter().any(|o| o.tensor.name == name);
    let wanted = |zone: &str| {
        let (name, _) = parts(zone);
        is_output(name) || request.buffers.iter().any(|buffer| buffer == name)
    };
    let written = loaded.buffers(&wanted).and_then(|buffers| {
        let files = buffers.into_iter().enumerate();
        let written = files.map(|(number, buffer)| write(&request.folder, number, buffer));
        written
            .collect::<io::Result<Vec<_>>>()
            .map_err(|e| e.to_string())
    });
    match written {
        Ok(buffers) => note.buffers = buffers,
        Err(why) => note.missing = Some(why),
    }
    // Last: the search changes memory.
    note.search = search(loaded);
    let text = serde_json::to_string(&note).unwrap_or_default();
    let _ = fs::write(request.folder.join(NOTE), text);
}

fn write(folder: &Path, number: usize, (zone, bytes): Buffer) -> io::Result<KeptBuffer> {
    let file = folder.join(format!("{number}.bin"));
    fs::write(&file, bytes)?;
    let (name, group) = parts(&zone);
    Ok(KeptBuffer {
        name: name.to_owned(),
        group,
        file,
    })
}

/// `scratch half_a of group 2` is buffer `half_a` of group 2.
fn parts(zone: &str) -> (&str, Option<usize>) {
    let (name, group) = match zone.rsplit_once(" of group ") {
        Some((name, group)) => (name, group.parse().ok()),
        None => (zone, None),
    };
    (name.strip_prefix("scratch ").unwrap_or(name), group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_have_the_names_their_author_gave_them() {
        assert_eq!(parts("c of group 12"), ("c", Some(12)));
        assert_eq!(parts("scratch half_a of group 2"), ("half_a", Some(2)));
        assert_eq!(parts("scratch tickets"), ("tickets", None));
        assert_eq!(parts("maps"), ("maps", None));
    }
}
