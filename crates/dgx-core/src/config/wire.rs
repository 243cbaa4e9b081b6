//! A round file as it is written. Numbers are signed and lists unchecked here,
//! so that what is wrong with them is said in our words: see [`super::read`].

use super::limits;
use crate::document::Spanned;
use crate::domain::bounds::GROUPS;
use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

/// A table whose order matters: sort the entries by the place of their key.
pub(super) type Table<T> = BTreeMap<Spanned<String>, T>;

/// A round of dgx: a question, who competes, on which shapes, and how it is
/// judged.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "dgx round")]
#[schemars(extend("anyOf" = [
    { "required": ["shapes"], "properties": { "shapes": { "minItems": 1 } } },
    { "required": ["grid"], "properties": { "grid": { "minItems": 1 } } },
]))]
pub(super) struct RoundFile {
    /// Names the run file; the file's stem where there is none.
    pub name: Option<Spanned<String>>,
    /// One line, printed above the tables.
    pub question: Spanned<String>,
    /// Variants: `pipelined` for every combination of its parameters,
    /// `pipelined:STAGES=2` for one.
    #[schemars(extend("minItems" = 1))]
    pub contenders: Spanned<Vec<Spanned<String>>>,
    /// What speedups are over; competes even if not listed.
    pub baseline: Spanned<Baseline>,
    /// Whether the vendor's library is timed along.
    #[serde(default = "yes")]
    pub yardstick: bool,
    /// Problems, dense or grouped.
    #[serde(default)]
    pub shapes: Vec<Spanned<Shape>>,
    /// Dense problems: every combination of these sizes.
    #[serde(default)]
    pub grid: Vec<Spanned<Grid>>,
    /// What is right.
    #[serde(default)]
    pub validate: Validate,
    /// How long to measure.
    #[serde(default)]
    pub measure: Measure,
    /// How shards become jobs.
    pub slurm: Option<Slurm>,
    /// What a run must show.
    pub gate: Option<Gate>,
    /// Scores given before anything was measured.
    pub jury: Option<Jury>,
    /// Designs as they were proposed.
    #[serde(default)]
    pub pitch: Vec<Pitch>,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [
    { "required": ["groups", "name"], "properties": { "m": false, "n": false, "k": false } },
    { "required": ["m", "n", "k"], "properties": { "groups": false } },
]))]
pub(super) struct Shape {
    /// What tables call it; dense ones are named by their sizes.
    pub name: Option<Spanned<String>>,
    /// 1 or more; a list makes groups.
    #[schemars(with = "Option<limits::Sizes<1>>")]
    pub m: Option<Spanned<Extents>>,
    /// A multiple of 128.
    #[schemars(with = "Option<limits::Sizes<{ limits::N_MULTIPLE }>>")]
    pub n: Option<Spanned<Extents>>,
    /// A multiple of 256.
    #[schemars(with = "Option<limits::Sizes<{ limits::K_MULTIPLE }>>")]
    pub k: Option<Spanned<Extents>>,
    /// Groups, each spelt out, instead of m, n and k.
    #[schemars(extend("minItems" = 1, "maxItems" = GROUPS))]
    pub groups: Option<Spanned<Vec<Spanned<Group>>>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    /// 1 or more.
    #[schemars(with = "limits::Size<1>")]
    pub m: Spanned<i64>,
    /// A multiple of 128.
    #[schemars(with = "limits::Size<{ limits::N_MULTIPLE }>")]
    pub n: Spanned<i64>,
    /// A multiple of 256.
    #[schemars(with = "limits::Size<{ limits::K_MULTIPLE }>")]
    pub k: Spanned<i64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Grid {
    /// 1 or more.
    #[schemars(with = "limits::Sizes<1>")]
    pub m: Spanned<Extents>,
    /// A multiple of 128.
    #[schemars(with = "limits::Sizes<{ limits::N_MULTIPLE }>")]
    pub n: Spanned<Extents>,
    /// A multiple of 256.
    #[schemars(with = "limits::Sizes<{ limits::K_MULTIPLE }>")]
    pub k: Spanned<Extents>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Validate {
    /// An element passes if its error is at most atol + rtol·|expected|.
    #[schemars(extend("minimum" = limits::TOLERANCE.start(), "maximum" = limits::TOLERANCE.end()))]
    pub rtol: Option<Spanned<f64>>,
    /// See rtol.
    #[schemars(extend("minimum" = limits::TOLERANCE.start(), "maximum" = limits::TOLERANCE.end()))]
    pub atol: Option<Spanned<f64>>,
    /// Data it is checked on: benchmark, full; both where there is none.
    #[schemars(with = "Option<Vec<limits::DistributionName>>")]
    #[schemars(extend("minItems" = 1, "uniqueItems" = true))]
    pub distributions: Option<Spanned<Vec<Spanned<String>>>>,
    /// Fixed data; without it every run draws afresh.
    #[schemars(extend("minimum" = 0))]
    pub seed: Option<Spanned<i64>>,
    /// Seconds until a contender counts as hung.
    #[schemars(extend("minimum" = limits::TIMEOUT.start(), "maximum" = limits::TIMEOUT.end()))]
    pub timeout: Option<Spanned<f64>>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Measure {
    /// Blocks per shape before anything may count as decided.
    #[schemars(extend("minimum" = limits::MIN_BLOCKS.start(), "maximum" = limits::MIN_BLOCKS.end()))]
    pub min_blocks: Option<Spanned<i64>>,
    /// Time limit per shape.
    #[schemars(extend("minimum" = limits::MAX_SECONDS.start(), "maximum" = limits::MAX_SECONDS.end()))]
    pub max_seconds: Option<Spanned<f64>>,
    /// Fresh processes the blocks are spread over.
    #[schemars(extend("minimum" = limits::PROCESSES.start(), "maximum" = limits::PROCESSES.end()))]
    pub processes: Option<Spanned<i64>>,
    /// Untimed calls of each contender first.
    #[schemars(extend("minimum" = limits::WARMUP.start(), "maximum" = limits::WARMUP.end()))]
    pub warmup: Option<Spanned<i64>>,
    /// Flush L2 before each sample.
    pub cold_l2: Option<bool>,
    /// Data of the timed calls.
    #[schemars(with = "Option<limits::DistributionName>")]
    pub distribution: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Gate {
    /// Whom the rules are about; all but the baseline where there is none.
    #[serde(default)]
    pub contenders: Vec<String>,
    /// A contender, or a run file; the baseline where there is none.
    pub over: Option<String>,
    /// Least geometric-mean speedup.
    #[schemars(extend("minimum" = limits::FACTOR.start(), "maximum" = limits::FACTOR.end()))]
    pub min_geomean: Option<Spanned<f64>>,
    /// Least speedup on every single shape.
    #[schemars(extend("minimum" = limits::FACTOR.start(), "maximum" = limits::FACTOR.end()))]
    pub min_shape: Option<Spanned<f64>>,
    /// Not slower by more than can be told, in the mean and on every shape.
    #[serde(default)]
    pub not_slower: bool,
    /// Every cell is ok.
    #[serde(default = "yes")]
    pub correct: bool,
    /// Most shared memory of a kernel, bytes.
    #[schemars(extend("minimum" = limits::SMEM.start(), "maximum" = limits::SMEM.end()))]
    pub max_smem: Option<Spanned<i64>>,
    /// Most registers of a thread.
    #[schemars(extend("minimum" = limits::REGISTERS.start(), "maximum" = limits::REGISTERS.end()))]
    pub max_registers: Option<Spanned<i64>>,
    /// Least share of an SM's warps resident, 0 to 1.
    #[schemars(extend("minimum" = limits::OCCUPANCY.start(), "maximum" = limits::OCCUPANCY.end()))]
    pub min_occupancy: Option<Spanned<f64>>,
    /// Occupancy may not fall below that of `over`.
    #[serde(default)]
    pub occupancy_not_worse: bool,
    /// Spilled bytes may not exceed those of `over`.
    #[serde(default)]
    pub spills_not_worse: bool,
    /// Every claim of a gated contender must be met.
    #[serde(default)]
    pub claims_met: bool,
    /// Emulated runs: each counter named is at most this multiple of its value
    /// for `over`, e.g. { bank-conflicts = 1.0 }.
    #[serde(default)]
    #[schemars(with = "limits::Factors")]
    pub counters: Table<Spanned<f64>>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Slurm {
    /// Number of shards, and how many at once: 16, or "16%4".
    #[schemars(with = "Option<NumberOrText>")]
    pub array: Option<Spanned<toml::Value>>,
    /// Partition to submit to.
    pub partition: Option<Spanned<String>>,
    /// What each task gets; empty for none.
    pub gres: Option<Spanned<String>>,
    /// Time limit of a task, as sbatch takes it.
    #[schemars(with = "Option<NumberOrText>")]
    pub time: Option<Spanned<toml::Value>>,
    /// How often a task that failed is submitted again.
    #[schemars(extend("minimum" = limits::RETRIES.start(), "maximum" = limits::RETRIES.end()))]
    pub retries: Option<Spanned<i64>>,
    /// Further words for sbatch.
    #[serde(default)]
    pub sbatch_args: Vec<Spanned<String>>,
}

/// As sbatch takes it.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code, reason = "it is there to be described")]
enum NumberOrText {
    Number(i64),
    Text(String),
}

/// What a user keeps for all rounds.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UserFile {
    pub slurm: Option<Slurm>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Jury {
    /// Who was pitched.
    pub candidates: Spanned<Vec<String>>,
    /// Who scored them.
    pub juror: Spanned<Vec<Juror>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Juror {
    pub name: Spanned<String>,
    /// Weights that add up to 1.
    pub criteria: Spanned<Table<f64>>,
    /// One score per criterion for every candidate, 0 to 10.
    pub scores: Spanned<Table<Spanned<Vec<f64>>>>,
    /// Totals as they were announced.
    #[serde(default)]
    pub announced: Table<f64>,
    /// The candidate voted for.
    pub vote: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Pitch {
    pub design: Spanned<String>,
    /// The variant built from it, where its name differs.
    pub contender: Option<String>,
    /// Least and most speedup promised.
    #[schemars(with = "Option<limits::ClaimedRange>")]
    pub claim: Option<Spanned<Vec<f64>>>,
    pub idea: String,
    pub outcome: Option<String>,
}

/// A contender's name, or the round whose winner is meant.
#[derive(Debug, JsonSchema)]
#[schemars(untagged)]
pub(super) enum Baseline {
    Name(String),
    WinnerOf(WinnerOf),
}

impl<'de> Deserialize<'de> for Baseline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BaselineVisitor)
    }
}

struct BaselineVisitor;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WinnerOf {
    /// A round whose file lies beside this one.
    pub winner_of: String,
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
        Ok(Baseline::WinnerOf(winner))
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
