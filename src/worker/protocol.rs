use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::backend::{Emulation, Modelled, RunFailure};
use crate::domain::{ContenderId, Shape};
use crate::operator::Distribution;
use crate::plan::OperatorCall;
use crate::record::schema::{Block, Device, Verdict};

/// What the supervisor asks, one JSON object a line on the worker's stdin.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case")]
pub enum Request {
    Validate(Box<ValidateJob>),
    Measure(Box<MeasureJob>),
    /// Compute an answer and leave it in the cache.
    Answer(Box<ProblemKey>),
}

/// One shape's data, by what it is made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProblemKey {
    pub shape: Shape,
    pub distribution: Distribution,
    pub seed: u64,
}

/// Judge one cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ValidateJob {
    pub contender: ContenderId,
    /// Folder of the compiled image.
    pub image: PathBuf,
    pub call: OperatorCall,
    pub shape: Shape,
    pub distributions: Vec<Distribution>,
    pub seed: u64,
    pub tolerance: Tolerance,
    /// How long one call may take.
    pub time_limit: Duration,
    pub emulation: Emulation,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tolerance {
    pub rtol: f64,
    pub atol: f64,
}

/// Time the contenders of one shape that were found right.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MeasureJob {
    pub problem: ProblemKey,
    pub tolerance: Tolerance,
    /// Verdicts that say ok: without one nothing is timed.
    pub entries: Vec<MeasureEntry>,
    pub baseline: ContenderId,
    /// Name of the yardstick, if it is to be timed along.
    pub yardstick: Option<ContenderId>,
    pub process: u32,
    pub order_seed: u64,
    pub warmup: u32,
    pub min_blocks: u32,
    pub max_seconds: f64,
    pub cold_l2: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MeasureEntry {
    pub verdict: Verdict,
    pub image: PathBuf,
    pub call: OperatorCall,
}

/// What a worker answers, one JSON object a line on its stdout.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "kebab-case")]
pub enum Reply {
    /// The backend is open; sent once, first.
    Ready {
        device: Box<Device>,
        /// cuBLASLt's version, or why there is no yardstick.
        yardstick: Result<String, String>,
    },
    /// A kernel is about to run: from here on the contender's own time counts.
    Running,
    /// The kernel is back.
    Ran,
    /// The answer to [`Request::Validate`].
    Judged {
        verdict: Verdict,
        modelled: Option<Modelled>,
        /// The worker can do nothing more and is ending.
        fatal: bool,
    },
    /// A finished block.
    Block { block: Block },
    /// A contender failed while it was timed; the worker is ending.
    Fault {
        contender: ContenderId,
        failure: RunFailure,
    },
    /// Something the user should know that is nobody's verdict.
    Note { text: String },
    /// The answer to [`Request::Measure`].
    Measured {
        decision: String,
        retaken: u32,
        /// Cells whose timed output or time turned out wrong.
        rejected: Vec<Verdict>,
    },
    /// The answer asked for by [`Request::Answer`] is in the cache.
    Answered,
    /// The worker cannot do what was asked, through no contender's fault.
    Failed { message: String },
}
