//! What a card answered, as JSON lines: a header, then one line for each case.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::probe::{Case, L2, Read};
use crate::record::schema::{DeviceRecord, GitState, Host};

/// Number of the format; one that is unknown is refused.
pub(crate) const SCHEMA: u32 = 1;

/// A whole file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answers {
    pub(crate) asked: Asked,
    pub(crate) answers: Vec<Answer>,
}

/// Who was asked, when, by which dgx.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Asked {
    pub(crate) schema: u32,
    pub(crate) started: String,
    pub(crate) argv: Vec<String>,
    pub(crate) dgx: String,
    pub(crate) git: Option<GitState>,
    pub(crate) host: Host,
    pub(crate) device: DeviceRecord,
    pub(crate) compiler: String,
    /// How often each case was called.
    pub(crate) times: u32,
}

/// One case and what every call of it showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answer {
    pub(crate) name: String,
    pub(crate) read: Read,
    /// Of the clock that answers.
    pub(crate) values: Vec<f64>,
    /// Of all clocks that were read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) cycles: Vec<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) nanos: Vec<f64>,
    pub(crate) micros: Vec<f64>,
    /// SM clock: within the kernel where it read both clocks, else around the call.
    pub(crate) mhz: Vec<f64>,
    pub(crate) defines: BTreeMap<String, String>,
    pub(crate) grid: u32,
    pub(crate) block: u32,
    pub(crate) cluster: u32,
    pub(crate) smem: u32,
    pub(crate) launches: u32,
    pub(crate) overlap: bool,
    pub(crate) l2: L2,
    pub(crate) registers: u32,
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Line {
    Header(Box<Asked>),
    Answer(Box<Answer>),
}

impl Answer {
    /// Of a case, with nothing answered yet.
    pub(crate) fn to(case: &Case, registers: u32) -> Self {
        Self {
            name: case.name.clone(),
            read: case.read,
            values: Vec::new(),
            cycles: Vec::new(),
            nanos: Vec::new(),
            micros: Vec::new(),
            mhz: Vec::new(),
            defines: case.defines.iter().cloned().collect(),
            grid: case.grid,
            block: case.block,
            cluster: case.cluster,
            smem: case.smem,
            launches: case.launches,
            overlap: case.overlap,
            l2: case.l2,
            registers,
        }
    }

    /// The middle one of the answers.
    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

impl Answers {
    pub(crate) fn to_text(&self) -> Result<String, serde_json::Error> {
        let header = Line::Header(Box::new(self.asked.clone()));
        let answers = self.answers.iter().cloned().map(Box::new).map(Line::Answer);
        let mut text = String::new();
        for line in std::iter::once(header).chain(answers) {
            text += &serde_json::to_string(&line)?;
            text.push('\n');
        }
        Ok(text)
    }

    /// Reads a file back; an error names its line.
    pub(crate) fn from_text(text: &str) -> Result<Self, String> {
        let (mut asked, mut answers) = (None, Vec::new());
        for (number, line) in (1..).zip(text.lines()) {
            let line = serde_json::from_str(line).map_err(|e| format!("line {number}: {e}"))?;
            match line {
                Line::Header(header) if header.schema != SCHEMA => {
                    let schema = header.schema;
                    return Err(format!("schema {schema} is not known here ({SCHEMA} is)"));
                }
                Line::Header(header) if asked.is_none() => asked = Some(*header),
                Line::Answer(answer) if asked.is_some() => answers.push(*answer),
                Line::Header(_) => return Err(format!("line {number}: a second header")),
                Line::Answer(_) => return Err(format!("line {number}: no header before it")),
            }
        }
        let asked = asked.ok_or("there is no header")?;
        Ok(Self { asked, answers })
    }
}
