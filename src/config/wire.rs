//! A round file as it is written. Numbers are signed and lists unchecked here,
//! so that what is wrong with them is said in our words: see [`super::read`].

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use toml::Spanned;

/// A table whose order matters: sort the entries by the place of their key.
pub(super) type Table<T> = BTreeMap<Spanned<String>, T>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RoundFile {
    pub name: Option<Spanned<String>>,
    pub question: Spanned<String>,
    pub contenders: Spanned<Vec<Spanned<String>>>,
    pub baseline: Spanned<Baseline>,
    #[serde(default = "yes")]
    pub yardstick: bool,
    #[serde(default)]
    pub shapes: Vec<Spanned<Shape>>,
    #[serde(default)]
    pub grid: Vec<Spanned<Grid>>,
    #[serde(default)]
    pub validate: Validate,
    #[serde(default)]
    pub measure: Measure,
    pub slurm: Option<Slurm>,
    pub gate: Option<Gate>,
    pub jury: Option<Jury>,
    #[serde(default)]
    pub pitch: Vec<Pitch>,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Shape {
    pub name: Option<Spanned<String>>,
    pub m: Option<Spanned<Extents>>,
    pub n: Option<Spanned<Extents>>,
    pub k: Option<Spanned<Extents>>,
    pub groups: Option<Spanned<Vec<Spanned<Group>>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    pub m: Spanned<i64>,
    pub n: Spanned<i64>,
    pub k: Spanned<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Grid {
    pub m: Spanned<Extents>,
    pub n: Spanned<Extents>,
    pub k: Spanned<Extents>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Validate {
    pub rtol: Option<Spanned<f64>>,
    pub atol: Option<Spanned<f64>>,
    pub distributions: Option<Spanned<Vec<Spanned<String>>>>,
    pub seed: Option<Spanned<i64>>,
    pub timeout: Option<Spanned<f64>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Measure {
    pub min_blocks: Option<Spanned<i64>>,
    pub max_seconds: Option<Spanned<f64>>,
    pub processes: Option<Spanned<i64>>,
    pub warmup: Option<Spanned<i64>>,
    pub cold_l2: Option<bool>,
    pub distribution: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Gate {
    #[serde(default)]
    pub contenders: Vec<String>,
    pub over: Option<String>,
    pub min_geomean: Option<Spanned<f64>>,
    pub min_shape: Option<Spanned<f64>>,
    #[serde(default)]
    pub not_slower: bool,
    #[serde(default = "yes")]
    pub correct: bool,
    pub max_smem: Option<Spanned<i64>>,
    pub max_registers: Option<Spanned<i64>>,
    pub min_occupancy: Option<Spanned<f64>>,
    #[serde(default)]
    pub occupancy_not_worse: bool,
    #[serde(default)]
    pub spills_not_worse: bool,
    #[serde(default)]
    pub claims_met: bool,
    #[serde(default)]
    pub counters: Table<Spanned<f64>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Slurm {
    /// A number, or text, as `time` is.
    pub array: Option<Spanned<toml::Value>>,
    pub partition: Option<Spanned<String>>,
    pub gres: Option<Spanned<String>>,
    pub time: Option<Spanned<toml::Value>>,
    pub retries: Option<Spanned<i64>>,
    #[serde(default)]
    pub sbatch_args: Vec<Spanned<String>>,
}

/// What a user keeps for all rounds.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UserFile {
    pub slurm: Option<Slurm>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Jury {
    pub candidates: Spanned<Vec<String>>,
    pub juror: Spanned<Vec<Juror>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Juror {
    pub name: Spanned<String>,
    pub criteria: Spanned<Table<f64>>,
    pub scores: Spanned<Table<Spanned<Vec<f64>>>>,
    #[serde(default)]
    pub announced: Table<f64>,
    pub vote: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pitch {
    pub design: Spanned<String>,
    pub contender: Option<String>,
    pub claim: Option<Spanned<Vec<f64>>>,
    pub idea: String,
    pub outcome: Option<String>,
}

/// A contender's name, or the round whose winner is meant.
#[derive(Debug)]
pub(super) enum Baseline {
    Name(String),
    WinnerOf(String),
}

impl<'de> Deserialize<'de> for Baseline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BaselineVisitor)
    }
}

struct BaselineVisitor;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WinnerOf {
    winner_of: String,
}

impl<'de> Visitor<'de> for BaselineVisitor {
    type Value = Baseline;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a contender's name or { winner_of = \"ROUND\" }")
    }

    fn visit_str<E>(self, value: &str) -> Result<Baseline, E> {
        Ok(Baseline::Name(value.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Baseline, A::Error> {
        let winner = WinnerOf::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Baseline::WinnerOf(winner.winner_of))
    }
}

/// One size, or a list of them.
#[derive(Debug)]
pub(super) enum Extents {
    One(i64),
    Many(Vec<Spanned<i64>>),
}

impl<'de> Deserialize<'de> for Extents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ExtentsVisitor)
    }
}

struct ExtentsVisitor;

impl<'de> Visitor<'de> for ExtentsVisitor {
    type Value = Extents;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer or a list of integers")
    }

    fn visit_i64<E>(self, value: i64) -> Result<Extents, E> {
        Ok(Extents::One(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Extents, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = seq.next_element()? {
            list.push(value);
        }
        Ok(Extents::Many(list))
    }
}
