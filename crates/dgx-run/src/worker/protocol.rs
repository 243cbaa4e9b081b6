use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::backend::{Job, Modelled, RunFailure};
use crate::compile::{Cache, Image};
use crate::operator::ProblemKey;
use crate::plan::OperatorCall;
use dgx_core::domain::{
    Block, ContenderId, Device, Distribution, Hazard, KernelTime, Shape, Status, Tuning, Verdict,
};
use dgx_core::operator::{self, Operator};
use dgx_core::record::schema::Settings;

/// A request with its number, one JSON object a line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RequestLine {
    pub number: u64,
    /// The line that the worker writes to stdout when it is done: the kernels' output stands
    /// between two marks.
    pub mark: String,
    pub request: Request,
}

/// A reply with the number of its request, one JSON object a line; 0 before the first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ReplyLine {
    pub to: u64,
    pub reply: Reply,
}

/// The supervisor's requests.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case")]
pub(crate) enum Request {
    Validate(Box<CellJob>),
    Measure(Box<MeasureJob>),
    /// Call one cell once and watch it for hazards; its output is not checked.
    Examine(Box<CellJob>),
    /// Compute an expected result and put it in the cache.
    Answer(Box<ProblemKey>),
}

/// The code of one contender for one shape.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CellCode {
    pub contender: ContenderId,
    /// Folder of the compiled image.
    pub image: PathBuf,
    pub call: OperatorCall,
}

impl CellCode {
    pub(super) fn fetch(&self) -> Result<Image, String> {
        let image = Cache::fetch(&self.image).map_err(|e| e.to_string());
        let said = |why| format!("cannot read the image of {}: {why}", self.contender);
        image.and_then(|image| image).map_err(said)
    }

    pub(super) fn job<'a>(&'a self, image: &'a Image) -> Job<'a> {
        Job {
            contender: &self.contender,
            image,
            call: &self.call,
        }
    }
}

/// Judge one cell, or watch it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CellJob {
    pub code: CellCode,
    #[serde(with = "operator::wire")]
    pub operator: Arc<Operator>,
    pub shape: Shape,
    pub settings: Settings,
    /// Time limit of one call.
    pub time_limit: Duration,
    /// Make all calls, however long they take.
    pub thorough: bool,
    /// The status that the contender declares.
    pub expected: Status,
    /// The buffers to keep of the last call, for debugging.
    pub keep: Option<KeepRequest>,
}

impl CellJob {
    /// Data of this cell.
    pub(super) fn problem(&self, distribution: Distribution) -> ProblemKey {
        let seed = self.settings.data_seed();
        ProblemKey::new(&self.operator, &self.shape, distribution, seed)
    }

    /// Why this cannot be the requested verdict, if so.
    pub(crate) fn mismatch(&self, verdict: &Verdict) -> Option<String> {
        let contender = &self.code.contender;
        let fits = verdict.contender == *contender && verdict.shape == self.shape.name;
        (!fits).then(|| {
            format!(
                "asked about {contender} on {}, it replied about {} on {}",
                self.shape.name, verdict.contender, verdict.shape
            )
        })
    }
}

/// The buffers to keep of a call, and the folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeepRequest {
    pub folder: PathBuf,
    /// Names of buffers, as in front matter and `dgx::Group`; C is always kept.
    pub buffers: Vec<String>,
}

/// Time the contenders of one shape that were validated.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MeasureJob {
    pub shape: Shape,
    pub settings: Settings,
    /// Data sets that calls alternate between.
    pub problems: Vec<ProblemKey>,
    /// Contenders that were validated.
    pub cells: Vec<CellCode>,
    pub baseline: ContenderId,
    /// Name of the yardstick, if it is to be timed too.
    pub yardstick: Option<ContenderId>,
    /// The yardstick's algorithms for this shape in this run; chosen now if absent.
    pub tuning: Option<Tuning>,
    pub process: u32,
    pub warmup: u32,
    /// A worker was lost at this job: announce the contender of every call.
    pub watched: bool,
    /// Report the time of each kernel of a call at the end.
    pub kernels: bool,
}

/// A worker's replies.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "kebab-case")]
pub(crate) enum Reply {
    /// The backend is open; sent once, first.
    Ready {
        device: Box<Device>,
        /// cuBLASLt's version, or the reason why there is no yardstick.
        yardstick: Result<String, String>,
    },
    /// A kernel is about to run: from here on the contender's own time counts.
    Running,
    /// The kernel has returned.
    Ran,
    /// The answer to [`Request::Validate`].
    Judged(Judged),
    /// The yardstick's algorithms for this shape, chosen because the job had none.
    Tuned { tuning: Tuning },
    /// A finished block.
    Block { block: Block },
    /// The time of each kernel of a call, separate from all blocks.
    Kernels {
        contender: ContenderId,
        kernels: Vec<KernelTime>,
    },
    /// This contender is about to be loaded or called: if the worker is lost now, it is the
    /// suspect.
    Calling { contender: ContenderId },
    /// A timed output or time turned out wrong.
    Rejected { verdict: Verdict },
    /// A contender failed while it was timed.
    Fault {
        contender: ContenderId,
        failure: RunFailure,
    },
    /// A message for the user that is not a verdict.
    Note { text: String },
    /// The answer to [`Request::Measure`].
    Measured { decision: String, retaken: u32 },
    /// The answer to [`Request::Examine`].
    Examined {
        hazards: Vec<Hazard>,
        /// Why it could not be watched, if so.
        left_out: Option<String>,
    },
    /// The result requested by [`Request::Answer`] is in the cache.
    Answered,
    /// The worker cannot execute the request, through no contender's fault.
    Failed { message: String },
}

/// What a worker found about a cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Judged {
    pub verdict: Verdict,
    pub modelled: Option<Modelled>,
    /// The worker is no longer usable and is ending.
    pub fatal: bool,
}

impl Reply {
    /// Whether it ends the request.
    pub(crate) fn is_last(&self) -> bool {
        match self {
            Self::Judged(_)
            | Self::Fault { .. }
            | Self::Measured { .. }
            | Self::Examined { .. }
            | Self::Answered
            | Self::Failed { .. } => true,
            Self::Ready { .. }
            | Self::Running
            | Self::Ran
            | Self::Tuned { .. }
            | Self::Block { .. }
            | Self::Kernels { .. }
            | Self::Calling { .. }
            | Self::Rejected { .. }
            | Self::Note { .. } => false,
        }
    }
}

impl MeasureJob {
    fn timed(&self, contender: &ContenderId) -> bool {
        let mut cells = self.cells.iter().map(|cell| &cell.contender);
        self.yardstick.as_ref() == Some(contender) || cells.any(|id| id == contender)
    }

    /// Why this cannot be block number `next` of the job, if so.
    pub(crate) fn doubt_block(&self, block: &Block, next: u32) -> Option<String> {
        let stranger = block.samples.iter().find(|s| !self.timed(&s.contender));
        if let Some(sample) = stranger {
            return Some(unrequested(&sample.contender));
        }
        let fits = block.shape == self.shape.name
            && block.process == self.process
            && block.block == next
            && !block.samples.is_empty();
        (!fits).then(|| {
            format!(
                "block {next} of process {} on {} was due, and block {} of process {} on {} came",
                self.process, self.shape.name, block.block, block.process, block.shape
            )
        })
    }

    /// Why this cannot be the yardstick's tuning for the job's shape, if so.
    pub(crate) fn doubt_tuning(&self, tuning: &Tuning) -> Option<String> {
        let open = self.yardstick.is_some() && self.tuning.is_none();
        let fits = tuning.shape == self.shape.name;
        (!open || !fits).then(|| {
            format!(
                "unrequested reply about the yardstick on {} while timing {}",
                tuning.shape, self.shape.name
            )
        })
    }

    /// Why this contender cannot have failed in the job, if so.
    pub(crate) fn doubt_contender(&self, contender: &ContenderId) -> Option<String> {
        (!self.timed(contender)).then(|| unrequested(contender))
    }

    /// Why this verdict cannot come from the job, if so.
    pub(crate) fn doubt_verdict(&self, verdict: &Verdict) -> Option<String> {
        let elsewhere = (verdict.shape != self.shape.name).then(|| {
            format!(
                "a verdict on {} came for {}",
                verdict.shape, self.shape.name
            )
        });
        elsewhere.or_else(|| self.doubt_contender(&verdict.contender))
    }
}

fn unrequested(contender: &ContenderId) -> String {
    format!("unrequested reply about {contender}")
}

#[cfg(test)]
impl MeasureJob {
    /// Without cells, on a shape `s`.
    pub(crate) fn sample() -> Self {
        let group = dgx_core::record::synthetic::group(1, 8, 16);
        Self {
            shape: Shape {
                name: "s".to_owned(),
                groups: vec![group],
            },
            settings: Settings {
                seed: 1,
                rtol: 1e-3,
                atol: 1e-3,
                min_blocks: 20,
                max_seconds: 30.0,
                processes: 1,
                cold_l2: true,
                ..Settings::default()
            },
            problems: Vec::new(),
            cells: Vec::new(),
            baseline: ContenderId::from_text("x"),
            yardstick: Some(ContenderId::from_text("cublas")),
            tuning: None,
            process: 0,
            warmup: 1,
            watched: false,
            kernels: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dgx_core::domain::{Micros, Sample};

    fn job() -> MeasureJob {
        MeasureJob {
            process: 2,
            ..MeasureJob::sample()
        }
    }

    fn block(contender: &str) -> Block {
        Block {
            shape: "s".to_owned(),
            process: 2,
            block: 0,
            card: None,
            samples: vec![Sample {
                contender: ContenderId::from_text(contender),
                arm: 0,
                micros: Micros(1.0),
                clock_mhz: None,
            }],
        }
    }

    #[test]
    fn only_what_was_asked_for_is_believed() {
        let job = job();
        assert_eq!(job.doubt_block(&block("cublas"), 0), None);
        let doubted = [
            (block("x"), 0),
            (block("cublas"), 1),
            (
                Block {
                    process: 3,
                    ..block("cublas")
                },
                0,
            ),
            (
                Block {
                    shape: "t".to_owned(),
                    ..block("cublas")
                },
                0,
            ),
            (
                Block {
                    samples: Vec::new(),
                    ..block("cublas")
                },
                0,
            ),
        ];
        for (block, next) in doubted {
            assert!(job.doubt_block(&block, next).is_some(), "{block:?}");
        }
        assert!(job.doubt_contender(&ContenderId::from_text("x")).is_some());
    }

    #[test]
    fn the_yardstick_is_tuned_once_and_where_asked() {
        let tuning = |shape: &str| Tuning {
            shape: shape.to_owned(),
            library: "cuBLASLt 13.0.0".to_owned(),
            gemms: Vec::new(),
        };
        let open = job();
        assert_eq!(open.doubt_tuning(&tuning("s")), None);
        assert!(open.doubt_tuning(&tuning("t")).is_some());
        let kept = MeasureJob {
            tuning: Some(tuning("s")),
            ..job()
        };
        assert!(kept.doubt_tuning(&tuning("s")).is_some());
        let none = MeasureJob {
            yardstick: None,
            ..job()
        };
        assert!(none.doubt_tuning(&tuning("s")).is_some());
    }
}
