//! Golden files: what a GPU answered, one file per group of families.
//!
//! A file is one line of JSON (the `Header`) followed by the packed outputs back to
//! back, so that it stays small and its provenance can still be read with `head -1`.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::packing::{self, UnpackError};

/// The version of the file layout.
const SCHEMA: u32 = 1;

/// Where and when the goldens were recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The GPU's name.
    pub gpu: String,
    /// The driver's CUDA version, `major.minor`.
    pub driver: String,
    /// Date of the recording, `YYYY-MM-DD`.
    pub date: String,
}

/// What became of one case on the GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It ran; the bytes of each output.
    Outputs(Vec<Vec<u8>>),
    /// It did not, and this is what the driver said.
    Failed(String),
}

/// One recorded case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Golden {
    /// The case's name.
    pub name: String,
    /// The case's fingerprint when it was recorded.
    pub fingerprint: String,
    /// What the GPU answered.
    pub answer: Answer,
}

/// A golden file's contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goldens {
    /// Where they come from.
    pub provenance: Provenance,
    /// In the order of the suite.
    pub cases: Vec<Golden>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    schema: u32,
    provenance: Provenance,
    cases: Vec<GoldenCase>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GoldenCase {
    name: String,
    fingerprint: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    failed: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    outputs: Vec<OutputPlace>,
}

/// Where an output lies: its length, word width, and packed offset and length. Forms that
/// give the same answer share one place.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct OutputPlace(usize, usize, usize, usize);

/// The packed outputs of a file under construction.
#[derive(Debug, Default)]
struct Pool {
    bytes: Vec<u8>,
    places: HashMap<Vec<u8>, OutputPlace>,
}

impl Pool {
    fn place(&mut self, output: &[u8]) -> OutputPlace {
        if let Some(place) = self.places.get(output) {
            return *place;
        }
        let packed = packing::pack(output);
        let place = OutputPlace(
            output.len(),
            packed.width,
            self.bytes.len(),
            packed.bytes.len(),
        );
        self.bytes.extend(packed.bytes);
        self.places.insert(output.to_vec(), place);
        place
    }
}

/// A golden file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum GoldenError {
    /// The file system refused.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The golden file.
        path: PathBuf,
        /// The file system's reason.
        source: std::io::Error,
    },
    /// The first line is not a header of this version.
    #[error("{path}: {reason}; record it again", path = path.display())]
    Header {
        /// The golden file.
        path: PathBuf,
        /// What its first line is instead.
        reason: String,
    },
    /// The packed bytes end early or do not unpack.
    #[error("{path}: output of `{case}`: {reason}; record it again", path = path.display())]
    Outputs {
        /// The golden file.
        path: PathBuf,
        /// Whose bytes they would be.
        case: String,
        /// Where they end, or why they do not unpack.
        reason: String,
    },
}

impl Goldens {
    /// Writes the file, through a neighbour that is renamed so that no half file is left.
    pub fn write(&self, path: &Path) -> Result<(), GoldenError> {
        let io = |source| GoldenError::Io {
            path: path.to_owned(),
            source,
        };
        let mut pool = Pool::default();
        let cases = self
            .cases
            .iter()
            .map(|golden| entry(golden, &mut pool))
            .collect();
        let header = Header {
            schema: SCHEMA,
            provenance: self.provenance.clone(),
            cases,
        };
        let mut bytes = serde_json::to_vec(&header).map_err(|e| io(e.into()))?;
        bytes.push(b'\n');
        bytes.extend(pool.bytes);
        let neighbour = path.with_extension("part");
        fs::write(&neighbour, bytes).map_err(io)?;
        fs::rename(&neighbour, path).map_err(io)
    }

    /// Reads a file written by [`Goldens::write`].
    pub fn read(path: &Path) -> Result<Self, GoldenError> {
        let bytes = fs::read(path).map_err(|source| GoldenError::Io {
            path: path.to_owned(),
            source,
        })?;
        let bad = |reason: String| GoldenError::Header {
            path: path.to_owned(),
            reason,
        };
        let end = bytes
            .iter()
            .position(|&b| b == b'\n')
            .ok_or_else(|| bad("no header line".into()))?;
        let header: Header = serde_json::from_slice(&bytes[..end])
            .map_err(|e| bad(format!("header does not parse: {e}")))?;
        if header.schema != SCHEMA {
            return Err(bad(format!(
                "schema {} where {SCHEMA} is known",
                header.schema
            )));
        }
        let packed = &bytes[end + 1..];
        let mut cases = Vec::with_capacity(header.cases.len());
        for entry in header.cases {
            let answer = match entry.failed {
                Some(message) => Answer::Failed(message),
                None => Answer::Outputs(unpack_outputs(&entry.outputs, packed).map_err(|e| {
                    GoldenError::Outputs {
                        path: path.to_owned(),
                        case: entry.name.clone(),
                        reason: e.to_string(),
                    }
                })?),
            };
            cases.push(Golden {
                name: entry.name,
                fingerprint: entry.fingerprint,
                answer,
            });
        }
        Ok(Self {
            provenance: header.provenance,
            cases,
        })
    }
}

fn entry(golden: &Golden, pool: &mut Pool) -> GoldenCase {
    let (failed, outputs) = match &golden.answer {
        Answer::Failed(message) => (Some(message.clone()), Vec::new()),
        Answer::Outputs(outputs) => (None, outputs.iter().map(|o| pool.place(o)).collect()),
    };
    GoldenCase {
        name: golden.name.clone(),
        fingerprint: golden.fingerprint.clone(),
        failed,
        outputs,
    }
}

fn unpack_outputs(places: &[OutputPlace], bytes: &[u8]) -> Result<Vec<Vec<u8>>, UnpackError> {
    let unpack = |&OutputPlace(length, width, offset, packed_length): &OutputPlace| {
        let packed = offset
            .checked_add(packed_length)
            .and_then(|end| bytes.get(offset..end))
            .ok_or(UnpackError::Length {
                expected: packed_length,
                actual: bytes.len(),
            })?;
        packing::unpack(width, packed, length)
    };
    places.iter().map(unpack).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Goldens {
        let golden = |name: &str, answer| Golden {
            name: name.into(),
            fingerprint: "0".into(),
            answer,
        };
        Goldens {
            provenance: Provenance {
                gpu: "G".into(),
                driver: "13.0".into(),
                date: "2026-01-01".into(),
            },
            cases: vec![
                golden("a", Answer::Outputs(vec![vec![1, 2, 3], vec![0; 4096]])),
                golden("b", Answer::Failed("illegal\naddress".into())),
                golden(
                    "c",
                    Answer::Outputs(vec![vec![1, 2, 3], (0..=255).collect()]),
                ),
            ],
        }
    }

    #[test]
    fn a_file_returns_what_was_written() {
        let path =
            std::env::temp_dir().join(format!("ptx-conformance-{}.golden", std::process::id()));
        sample().write(&path).expect("written");
        assert_eq!(Goldens::read(&path).expect("read"), sample());
        let bytes = fs::read(&path).expect("bytes");
        fs::write(&path, &bytes[..bytes.len() - 2]).expect("truncated");
        assert!(matches!(
            Goldens::read(&path),
            Err(GoldenError::Outputs { .. })
        ));
        fs::write(&path, b"{}\n").expect("foreign");
        assert!(matches!(
            Goldens::read(&path),
            Err(GoldenError::Header { .. })
        ));
        fs::remove_file(&path).expect("removed");
    }
}
