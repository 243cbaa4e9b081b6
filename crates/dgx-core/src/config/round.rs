use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::Slurm;
use super::limits::{self, *};
use crate::diagnostic::SourceFile;
use crate::document::{Within, optional, refused};
use crate::domain::{Bytes, ContenderId, Counter, Distribution, Shape, printable, printable_line};

use crate::operator::Operator;

/// A round file, resolved: defaults filled in, shapes expanded.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// The file's stem unless the file gives a name.
    pub name: String,
    pub question: String,
    pub file: SourceFile,
    pub contenders: Vec<Selection>,
    /// Names and patterns of the selected contenders; empty for all.
    pub only: Vec<String>,
    pub baseline: Baseline,
    /// The reference that is timed beside the contenders.
    pub yardstick: Option<Yardstick>,
    /// The computation.
    pub operator: Arc<Operator>,
    pub shapes: Vec<Shape>,
    /// Where each shape stands in the file, for errors about it.
    pub shape_spans: Vec<Range<usize>>,
    pub validation: Validation,
    pub measurement: Measurement,
    /// How its shards are submitted, if it says so.
    pub slurm: Slurm,
    pub gate: Option<Gate>,
    pub jury: Option<Jury>,
    /// Designs pitched in this round, built or not.
    pub pitches: Vec<Pitch>,
}

/// What contenders are compared with on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Yardstick {
    /// The product by cuBLASLt, with its operands converted to 16 bits beforehand.
    Cublas,
    /// A copy that moves as many bytes as the operator must.
    Copy,
}

words!(Yardstick {
    Cublas = "cublas",
    Copy = "copy",
});

impl Yardstick {
    pub fn id(self) -> ContenderId {
        ContenderId::from_text(self.as_str())
    }

    /// The default for an operator.
    pub fn of(operator: &Operator) -> Self {
        match operator.product() {
            Some(_) => Self::Cublas,
            None => Self::Copy,
        }
    }
}

impl Round {
    /// The allowed error of an element, relative and absolute: the round's, or that of its first
    /// output.
    pub fn tolerance(&self) -> (f64, f64) {
        let (rtol, atol) = self.operator.outputs[0].tolerance();
        let Validation { rtol: own, .. } = self.validation;
        (own.unwrap_or(rtol), self.validation.atol.unwrap_or(atol))
    }

    /// Whether it names the data for validation.
    pub fn names_data(&self) -> bool {
        let round = self.file.text.parse::<toml_edit::DocumentMut>();
        let validate = round.ok().and_then(|round| {
            let validate = round.get("validate")?;
            validate.get("distributions").map(|_| ())
        });
        validate.is_some()
    }

    /// Removes the shapes that are not kept.
    pub fn keep(&mut self, kept: impl Fn(&Shape) -> bool) {
        let (shapes, spans) = (&mut self.shapes, &mut self.shape_spans);
        let both = std::mem::take(shapes)
            .into_iter()
            .zip(std::mem::take(spans));
        (*shapes, *spans) = both.filter(|(shape, _)| kept(shape)).unzip();
    }
}

/// `sequential`, `pipelined` (all its parameters) or `pipelined[STAGES=2]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    pub variant: String,
    /// Fixed parameters; the others take every value.
    pub params: BTreeMap<String, i64>,
    pub span: Range<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Baseline {
    Contender(Selection),
    /// The best contender of the named round's latest run that passed its gate.
    WinnerOf {
        round: String,
        span: Range<usize>,
    },
}

/// How results are checked.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Validation {
    /// An element passes if its error is at most atol + rtol·|expected|. Default: the operator's.
    #[serde(deserialize_with = "optional::<Tolerance, _>")]
    #[schemars(with = "Within<Tolerance>")]
    pub rtol: Option<f64>,
    /// See rtol.
    #[serde(deserialize_with = "optional::<Tolerance, _>")]
    #[schemars(with = "Within<Tolerance>")]
    pub atol: Option<f64>,
    /// Data for the check. Default: benchmark, full and corner, and exact for operators other than
    /// nvfp4-dual-gemm that have them.
    #[serde(deserialize_with = "distributions")]
    #[schemars(extend("minItems" = 1, "uniqueItems" = true))]
    pub distributions: Vec<Distribution>,
    /// Seed of the data; without it every run draws its own.
    #[serde(deserialize_with = "seed")]
    pub seed: Option<u64>,
    /// Seconds until a contender counts as hung.
    #[serde(with = "Within::<Timeout>")]
    pub timeout: f64,
}

impl Default for Validation {
    fn default() -> Self {
        Self {
            rtol: None,
            atol: None,
            distributions: Distribution::USUAL.to_vec(),
            seed: None,
            timeout: 120.0,
        }
    }
}

fn distributions<'de, D: Deserializer<'de>>(wire: D) -> Result<Vec<Distribution>, D::Error> {
    let list = Vec::<Distribution>::deserialize(wire)?;
    let again = (1..list.len()).find(|at| list[..*at].contains(&list[*at]));
    match again {
        Some(at) => Err(refused(
            format_args!("`{}` is listed twice", list[at]),
            "remove one",
        )),
        None if list.is_empty() => Err(refused(
            "no distribution: nothing would be validated",
            "leave the key out for all of them",
        )),
        None => Ok(list),
    }
}

fn seed<'de, D: Deserializer<'de>>(wire: D) -> Result<Option<u64>, D::Error> {
    let seed = i64::deserialize(wire)?;
    let remedy = "give 0 or more, or none for a fresh one each run";
    let read = u64::try_from(seed).map_err(|_| refused(format_args!("a seed of {seed}"), remedy));
    read.map(Some)
}

/// How long to measure.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Measurement {
    /// Blocks per shape before a result may count as decided.
    #[serde(with = "Within::<MinBlocks>")]
    pub min_blocks: u32,
    /// Time limit per shape.
    #[serde(with = "Within::<MaxSeconds>")]
    pub max_seconds: f64,
    /// Fresh processes the blocks are spread over.
    #[serde(with = "Within::<Processes>")]
    pub processes: u32,
    /// Untimed calls of each contender first.
    #[serde(with = "Within::<Warmup>")]
    pub warmup: u32,
    /// Flush L2 before each sample.
    pub cold_l2: bool,
    /// Data of the timed calls.
    pub distribution: Distribution,
}

impl Default for Measurement {
    fn default() -> Self {
        Self {
            min_blocks: 30,
            max_seconds: 5.0,
            processes: 5,
            warmup: 3,
            cold_l2: true,
            distribution: Distribution::Benchmark,
        }
    }
}

/// Rules that a run must meet. An absent rule is not checked.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// The contenders that are judged. Default: all but the baseline.
    #[serde(default)]
    pub contenders: Vec<String>,
    /// A contender, or a run file. Default: the baseline.
    pub over: Option<String>,
    /// Minimum geometric-mean speedup.
    #[serde(default, deserialize_with = "optional::<Factor, _>")]
    #[schemars(with = "Within<Factor>")]
    pub min_geomean: Option<f64>,
    /// Minimum speedup on every single shape.
    #[serde(default, deserialize_with = "optional::<Factor, _>")]
    #[schemars(with = "Within<Factor>")]
    pub min_shape: Option<f64>,
    /// Not slower by more than the run can detect, in the mean and on every shape.
    #[serde(default)]
    pub not_slower: bool,
    /// Every cell is ok; over an earlier run, every cell that was ok there.
    #[serde(default = "super::yes")]
    pub correct: bool,
    /// Maximum shared memory of a kernel, bytes.
    #[serde(default, deserialize_with = "bytes")]
    #[schemars(with = "Within<Smem>")]
    pub max_smem: Option<Bytes>,
    /// Maximum number of registers of a thread.
    #[serde(default, deserialize_with = "optional::<Registers, _>")]
    #[schemars(with = "Within<Registers>")]
    pub max_registers: Option<u32>,
    /// Minimum share of an SM's warps that are resident, 0 to 1.
    #[serde(default, deserialize_with = "optional::<Occupancy, _>")]
    #[schemars(with = "Within<Occupancy>")]
    pub min_occupancy: Option<f64>,
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
    #[serde(default, deserialize_with = "limits::factors")]
    #[schemars(schema_with = "limits::factors_schema")]
    pub counters: Vec<(Counter, f64)>,
}

fn bytes<'de, D: Deserializer<'de>>(wire: D) -> Result<Option<Bytes>, D::Error> {
    Within::<Smem>::deserialize(wire).map(|bytes| Some(Bytes(bytes.into())))
}

impl Gate {
    /// With names spelt as in tables and run files.
    pub(super) fn written(self) -> Self {
        Self {
            contenders: self.contenders.iter().map(|name| written(name)).collect(),
            // `over` may also be a run file.
            over: self.over.map(|over| match over.ends_with(".jsonl") {
                true => over,
                false => written(&over),
            }),
            ..self
        }
    }
}

/// A contender's name, spelt as in tables and run files.
fn written(name: &str) -> String {
    printable_line(ContenderId::written(name).as_str())
}

/// Scores given before anything was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Jury {
    /// The pitched designs, in the order of every score list; names may be contenders, or designs
    /// that were never built.
    pub candidates: Vec<String>,
    pub jurors: Vec<Juror>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Juror {
    pub name: String,
    /// Criterion and its weight; weights add up to one.
    pub criteria: Vec<(String, f64)>,
    /// One list of scores (a score per criterion) for each candidate.
    pub scores: Vec<Vec<f64>>,
    /// Totals as announced, if they were.
    pub announced: Vec<Option<f64>>,
    /// The candidate the juror voted for, if it was recorded.
    pub vote: Option<String>,
}

/// A design as it was proposed, and its outcome.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pitch {
    pub design: String,
    /// The variant built from it, if its name differs.
    pub contender: Option<String>,
    /// Lowest and highest speedup promised.
    #[serde(default, deserialize_with = "limits::claimed_range")]
    #[schemars(schema_with = "limits::claimed_range_schema")]
    pub claim: Option<(f64, f64)>,
    pub idea: String,
    pub outcome: Option<String>,
}

impl Pitch {
    /// With harmful characters made visible.
    pub(super) fn printable(self) -> Self {
        Self {
            design: printable_line(&self.design),
            contender: self.contender.as_deref().map(written),
            idea: printable(&self.idea),
            outcome: self.outcome.as_deref().map(printable),
            claim: self.claim,
        }
    }
}
