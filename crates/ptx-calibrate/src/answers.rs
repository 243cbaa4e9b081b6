//! What a card answered, as JSON lines: a header, then one line for each case.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::probe::{Case, L2, Read};
use dgx_core::record::schema::{DeviceRecord, GitState, Host};

/// Number of the format; one that is unknown is refused.
pub(crate) const SCHEMA: u32 = 1;

/// Nothing that is asked takes as long, in whatever unit it is told: a quarter of an hour in
/// nanoseconds.
const ENDLESS: f64 = 1e12;

/// A whole file.
#[derive(Clone, Debug, PartialEq)]
pub struct Answers {
    pub asked: AnswersHeader,
    pub answers: Vec<Answer>,
}

/// Who was asked, when, by which dgx.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswersHeader {
    pub schema: u32,
    pub started: String,
    pub argv: Vec<String>,
    pub dgx: String,
    pub git: Option<GitState>,
    pub host: Host,
    pub device: DeviceRecord,
    pub compiler: String,
    /// How often each case was called.
    pub times: u32,
    /// How many cases: with fewer, the file was cut. Early files do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cases: Option<usize>,
}

/// One case and what every call of it showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    pub name: String,
    pub read: Read,
    /// Of the clock that answers.
    pub values: Vec<f64>,
    /// Of all clocks that were read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cycles: Vec<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nanos: Vec<f64>,
    pub micros: Vec<f64>,
    /// SM clock: within the kernel where it read both clocks, else around the call.
    pub mhz: Vec<f64>,
    pub(crate) defines: BTreeMap<String, String>,
    pub grid: u32,
    pub block: u32,
    pub cluster: u32,
    pub smem: u32,
    pub launches: u32,
    pub overlap: bool,
    pub l2: L2,
    pub registers: u32,
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Line {
    Header(Box<AnswersHeader>),
    Answer(Box<Answer>),
}

impl Answer {
    /// Of a case, with nothing answered yet.
    pub fn to(case: &Case, registers: u32) -> Self {
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

    /// Whether it is to this very case.
    pub(crate) fn is_to(&self, case: &Case) -> bool {
        let defines: BTreeMap<String, String> = case.defines.iter().cloned().collect();
        self.name == case.name
            && self.read == case.read
            && self.defines == defines
            && [self.grid, self.block, self.cluster, self.smem]
                == [case.grid, case.block, case.cluster, case.smem]
            && (self.launches, self.overlap, self.l2) == (case.launches, case.overlap, case.l2)
    }

    /// Whether every call answered, with a time.
    fn checked(&self, times: u32) -> Result<(), String> {
        let Self { name, values, .. } = self;
        if values.len() != times as usize {
            let found = values.len();
            return Err(format!(
                "{name} was called {times} times, and {found} answers are there"
            ));
        }
        let readings = [values, &self.cycles, &self.nanos, &self.micros, &self.mhz];
        let time = |value: &f64| *value > 0.0 && *value < ENDLESS;
        match readings.into_iter().flatten().all(time) {
            true => Ok(()),
            false => Err(format!("the answer to {name} is no time")),
        }
    }

    /// The middle one of the answers.
    pub fn median(&self) -> f64 {
        middle(&self.values).unwrap_or(f64::NAN)
    }

    /// The middle one of the clocks, where any was read.
    pub(crate) fn median_mhz(&self) -> Option<f64> {
        middle(&self.mhz)
    }
}

fn middle(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

impl Answers {
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
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
    pub fn from_text(text: &str) -> Result<Self, String> {
        let mut lines = (1..).zip(text.lines());
        let (_, header) = lines.next().ok_or("there is no header")?;
        let asked = header_of(header).map_err(|why| format!("line 1: {why}"))?;
        let mut answers: Vec<Answer> = Vec::new();
        for (number, line) in lines {
            let wrong = |why: String| format!("line {number}: {why}");
            let answer = match serde_json::from_str(line).map_err(|e| wrong(e.to_string()))? {
                Line::Answer(answer) => *answer,
                Line::Header(_) => return Err(wrong("a second header".to_owned())),
            };
            answer.checked(asked.times).map_err(wrong)?;
            if answers.iter().any(|other| other.name == answer.name) {
                return Err(wrong(format!(
                    "the answer to {} is there twice",
                    answer.name
                )));
            }
            answers.push(answer);
        }
        let found = answers.len();
        match asked.cases {
            Some(cases) if cases != found => Err(format!(
                "it was cut: {cases} cases were asked, and {found} answers are there"
            )),
            _ if !text.ends_with('\n') => Err("it was cut: its last line does not end".to_owned()),
            _ => Ok(Self { asked, answers }),
        }
    }
}

/// The first line. Its format is looked at before anything in it: of another
/// one, nothing else can be said.
fn header_of(line: &str) -> Result<AnswersHeader, String> {
    #[derive(Deserialize)]
    struct Format {
        #[serde(rename = "type")]
        kind: String,
        schema: Option<u32>,
    }
    let format: Format = serde_json::from_str(line).map_err(|e| e.to_string())?;
    match (format.kind.as_str(), format.schema) {
        ("header", Some(SCHEMA)) => {}
        ("header", Some(schema)) => {
            return Err(format!("schema {schema} is not known here ({SCHEMA} is)"));
        }
        ("header", None) => return Err("the header has no schema".to_owned()),
        _ => return Err("no header before it".to_owned()),
    }
    match serde_json::from_str(line).map_err(|e| e.to_string())? {
        Line::Header(asked) => Ok(*asked),
        Line::Answer(_) => Err("no header before it".to_owned()),
    }
}
