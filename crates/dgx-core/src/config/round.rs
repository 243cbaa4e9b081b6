use std::collections::BTreeMap;
use std::ops::Range;

use super::Slurm;
use crate::diagnostic::SourceFile;
use crate::domain::{Bytes, Counter, Shape};

pub(super) use crate::domain::Distribution;

/// A round file, resolved: defaults filled in, shapes expanded.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// The file's stem unless the file says otherwise.
    pub name: String,
    pub question: String,
    pub file: SourceFile,
    pub contenders: Vec<Selection>,
    /// Names and patterns of those that were asked for; empty for all.
    pub only: Vec<String>,
    pub baseline: Baseline,
    /// Whether the cuBLAS yardstick is timed along.
    pub yardstick: bool,
    pub shapes: Vec<Shape>,
    /// Where each shape stands in the file, for errors about it.
    pub shape_spans: Vec<Range<usize>>,
    pub validation: Validation,
    pub measurement: Measurement,
    /// How its shards are submitted, where it says.
    pub slurm: Slurm,
    pub gate: Option<Gate>,
    pub jury: Option<Jury>,
    /// Designs pitched in this round, built or not.
    pub pitches: Vec<Pitch>,
}

impl Round {
    /// Leaves out the shapes that are not to be kept.
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
    /// Parameters that are fixed; the others take every value.
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

#[derive(Clone, Debug, PartialEq)]
pub struct Validation {
    pub rtol: f64,
    pub atol: f64,
    pub distributions: Vec<Distribution>,
    /// Fixed by the file or drawn afresh for each run.
    pub seed: Option<u64>,
    /// Seconds after which a contender counts as hung.
    pub timeout: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Blocks per shape before any pair may count as decided.
    pub min_blocks: u32,
    /// Time limit per shape.
    pub max_seconds: f64,
    /// Fresh processes the blocks are spread over.
    pub processes: u32,
    /// Untimed calls of each contender before its first block.
    pub warmup: u32,
    pub cold_l2: bool,
    /// Distribution of the timed inputs.
    pub distribution: Distribution,
}

/// What a run must show. A rule that is absent is not asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gate {
    /// Contenders the rules are about; all but the baseline when empty.
    pub contenders: Vec<String>,
    /// Contender or run file compared against; the round's baseline by default.
    pub over: Option<String>,
    pub min_geomean: Option<f64>,
    /// Least speedup on every single shape.
    pub min_shape: Option<f64>,
    /// Not slower by more than can be told, in the mean and on every shape.
    pub not_slower: bool,
    /// Every cell must be `ok`; over an earlier run, every one that was.
    pub correct: bool,
    pub max_smem: Option<Bytes>,
    pub max_registers: Option<u32>,
    /// Share of an SM's warps that must be resident, 0 to 1.
    pub min_occupancy: Option<f64>,
    /// Occupancy may not fall below that of `over`.
    pub occupancy_not_worse: bool,
    /// Spilled bytes may not exceed those of `over`.
    pub spills_not_worse: bool,
    /// Every claim of a gated contender must be met.
    pub claims_met: bool,
    /// The most a counter may be, as a multiple of its value for `over`.
    pub counters: Vec<(Counter, f64)>,
}

/// Scores given before anything was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Jury {
    /// Who was pitched, in the order of every score list; names may be
    /// contenders, or designs that were never built.
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
    /// Totals as they were announced, where they were.
    pub announced: Vec<Option<f64>>,
    /// Candidate the juror voted for, where it is on record.
    pub vote: Option<String>,
}

/// A design as it was proposed, and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pitch {
    pub design: String,
    /// The variant or contender that was built from it, where its name differs.
    pub contender: Option<String>,
    /// Least and most speedup promised.
    pub claim: Option<(f64, f64)>,
    pub idea: String,
    pub outcome: Option<String>,
}
