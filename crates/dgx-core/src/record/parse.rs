//! Parses one line into one event. Most lines are blocks, so these have a fast path that copies no
//! text and keeps names as numbers.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Deserialize;

use super::edge;
use super::names::Names;
use super::schema::Line;
use crate::clean;
use crate::decode::plain_in_line;
use crate::domain::{Block, Micros, bounds};
use crate::stats::Sampled;

/// A parsed line.
pub(super) enum ParsedLine {
    Block(Timed),
    /// Anything but a block.
    Other(Line),
}

/// A block with its names resolved and its times as logarithms.
pub(super) struct Timed {
    pub shape: usize,
    pub process: u32,
    pub block: u32,
    pub card: Option<String>,
    pub samples: Vec<Sampled>,
    /// A hash of its times that ignores their order.
    pub print: u64,
}

/// Why a line was refused.
pub(super) enum LineError {
    /// It is not JSON of the schema, and may be only half a line.
    Unreadable(String),
    /// Its contents are impossible.
    Impossible(String),
}

pub(super) fn parse(line: &[u8], names: &Names) -> Result<ParsedLine, LineError> {
    const BLOCK: &[u8] = b"{\"type\":\"block\",";
    if !line.trim_ascii_start().starts_with(b"{") {
        return Err(LineError::Unreadable("the line is damaged".to_owned()));
    }
    let unreadable = |e: serde_json::Error| LineError::Unreadable(plain_in_line(&e));
    if line.starts_with(BLOCK) && clean::plain(line) {
        let block: BlockLine = serde_json::from_slice(line).map_err(unreadable)?;
        return block
            .timed(names)
            .map_err(LineError::Impossible)
            .map(ParsedLine::Block);
    }
    match clean::parse(line).map_err(unreadable)? {
        Line::Block(block) => {
            let block = BlockLine::of(&block);
            block
                .timed(names)
                .map_err(LineError::Impossible)
                .map(ParsedLine::Block)
        }
        other => Ok(ParsedLine::Other(other)),
    }
}

/// [`Block`] and its samples, with text borrowed from the line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockLine<'a> {
    #[serde(rename = "type")]
    _type: Option<&'a str>,
    shape: &'a str,
    process: u32,
    block: u32,
    card: Option<&'a str>,
    #[serde(borrow)]
    samples: Vec<SampleLine<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SampleLine<'a> {
    contender: &'a str,
    arm: u32,
    micros: f64,
    clock_mhz: Option<f64>,
}

impl<'a> BlockLine<'a> {
    fn of(block: &'a Block) -> Self {
        let samples = block.samples.iter().map(|sample| SampleLine {
            contender: sample.contender.as_str(),
            arm: sample.arm,
            micros: sample.micros.0,
            clock_mhz: sample.clock_mhz,
        });
        Self {
            _type: None,
            shape: &block.shape,
            process: block.process,
            block: block.block,
            card: block.card.as_deref(),
            samples: samples.collect(),
        }
    }

    fn timed(&self, names: &Names) -> Result<Timed, String> {
        let samples = self.samples.iter().map(|sample| sample.sampled(names));
        let samples = samples.collect::<Result<Vec<_>, _>>()?;
        let timed = Timed {
            print: samples.iter().map(print).fold(0, u64::wrapping_add),
            shape: shape(names, self.shape)?,
            process: self.process,
            block: self.block,
            card: self.card.map(str::to_owned),
            samples,
        };
        if let Some(card) = self.card {
            bounds::name("card", card)?;
        }
        match timed.samples.is_empty() {
            true => Err("a block without samples".to_owned()),
            false => Ok(timed),
        }
    }
}

impl SampleLine<'_> {
    fn sampled(&self, names: &Names) -> Result<Sampled, String> {
        let entrant = contender(names, self.contender)?;
        edge::time(Micros(self.micros))?;
        edge::clock(self.clock_mhz)?;
        let arm = match self.arm {
            0 => entrant,
            1 if names.is_baseline(entrant) => names.control(),
            arm => {
                let name = self.contender;
                return Err(format!(
                    "arm {arm} of `{name}`: arms are 0, and 1 for the baseline's second entry"
                ));
            }
        };
        Ok(Sampled {
            arm,
            log: self.micros.ln(),
            clock_mhz: self.clock_mhz,
        })
    }
}

fn print(sample: &Sampled) -> u64 {
    let mut hasher = DefaultHasher::new();
    (sample.arm, sample.log.to_bits()).hash(&mut hasher);
    hasher.finish()
}

pub(super) fn contender(names: &Names, name: &str) -> Result<usize, String> {
    let unknown = || format!("contender `{name}` is not in the header");
    names.entrant(name).ok_or_else(unknown)
}

pub(super) fn shape(names: &Names, name: &str) -> Result<usize, String> {
    let unknown = || format!("shape `{name}` is not in the header");
    names.shape(name).ok_or_else(unknown)
}
