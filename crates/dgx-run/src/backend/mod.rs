//! Backends, which run and time compiled contenders. One trait with an implementation for each:
//! `cuda` on a GPU, `emu` on the CPU, and `fake`, which runs nothing and is for tests. The first
//! two execute the same [`OperatorCall`], in memory that is poisoned and guarded by canaries, and
//! return what a validator needs. Nothing here computes expected results.

mod arrays;
mod bench;
mod call_seed;
pub mod cuda;
pub mod emu;
#[cfg(any(test, feature = "fake"))]
#[path = "tests/fake/mod.rs"]
pub mod fake;
mod opening;
mod pieces;
mod tables;
mod zones;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::compile::Image;
use crate::operator::{Operands, Oracle, OutputValues};
use crate::plan::OperatorCall;
use crate::validate::CallEffects;
pub use bench::Bench;
pub use bench::CallData;
pub(crate) use bench::proven;
pub use bench::{BenchSetup, OperandSet, Timed};
pub use call_seed::CallSeed;
pub(crate) use call_seed::Poison;
use dgx_core::domain::{
    BackendKind, Bytes, ContenderId, Device, Hazard, HazardWatch, KernelTime, Micros, Status,
    Verdict,
};
use dgx_core::record::schema::Settings;
pub use opening::Opening;

/// Width of the zone before and after every buffer.
pub(crate) const GUARD: u64 = 16 * 1024;

/// Runs contenders.
pub trait Backend {
    fn kind(&self) -> BackendKind;

    /// The device it runs on or emulates.
    fn device(&self) -> &Device;

    /// Prepares one contender for calls on one shape, with its module freshly loaded.
    fn load<'a>(&'a mut self, job: Job<'a>) -> Result<Box<dyn Loaded + 'a>, RunFailure>;

    /// Whether the device computes expected results, faster than the CPU.
    fn answers(&self) -> bool {
        false
    }

    /// The expected result from that device, or the reason why it has none.
    fn answer(&mut self, _operands: &Operands) -> Result<Oracle, String> {
        Err("there is no device that computes answers".to_owned())
    }

    /// Sets up timing, if this backend has a clock.
    fn bench<'a>(&'a mut self, _course: &BenchSetup<'_>) -> Result<Box<dyn Bench + 'a>, String> {
        Err(format!("the {} backend has no clock", self.kind()))
    }

    /// cuBLAS's name and version, or the reason why it is missing.
    fn yardstick(&self) -> Result<String, String> {
        Err("the yardstick needs a GPU".to_owned())
    }
}

/// A contender that can be called more than once. Values that its calls leave in the module's
/// variables stay, as for any user of a kernel.
pub trait Loaded {
    /// Runs the operator call once and reports everything it did to memory, which is prepared
    /// before and compared after.
    fn call(&mut self, data: &CallInput<'_>) -> Result<Observation, RunFailure>;

    /// The contents of the wanted buffers after the last call, byte by byte; or the reason why they
    /// are not known.
    fn buffers(&mut self, _wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Buffer>, String> {
        Err("memory cannot be read on this backend".to_owned())
    }

    /// Repeats such a call to find out which instructions touch what, if the backend can; `element`
    /// is a group, and the index of an element in its C.
    fn search(
        &mut self,
        _data: &CallInput<'_>,
        _element: Option<(usize, usize)>,
    ) -> Option<AccessSites> {
        None
    }
}

/// Which instructions touch what in a call, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessSites {
    /// The instructions that write the given element.
    pub writers: Option<String>,
    /// Reads outside of all buffers.
    pub strays: Vec<String>,
}

/// A buffer's name (`c of group 2`, `scratch half_a of group 0`) and its bytes.
pub(crate) type Buffer = (String, Vec<u8>);

/// One contender on one shape.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// A name, which does not affect how it runs.
    pub contender: &'a ContenderId,
    pub image: &'a Image,
    pub call: &'a OperatorCall,
}

/// The data and settings of one call.
#[derive(Clone, Copy)]
pub struct CallInput<'a> {
    pub operands: &'a Operands,
    /// Names the operands (shape, distribution, seed): a backend may keep its copy of them for the
    /// next call with the same name.
    pub key: &'a str,
    pub call_seed: CallSeed,
    /// Time limit of the call. A backend that can stop a kernel does so, and reports where it was;
    /// the supervisor ends the others with their process.
    pub time_limit: Duration,
    /// Whether the emulator models the time of the call.
    pub timed: bool,
    pub emulation: Emulation,
}

/// Options of the emulator that a GPU does not have. None of them changes a correct kernel's result
/// beyond the rounding of sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Emulation {
    /// Which of the legal orders of warps and copies to use.
    pub schedule: u64,
    /// Sums products as the chip's tensor cores do, bit for bit, not in plain fp32: slower, and
    /// shows the effect of alignment and truncation.
    pub exact_sums: bool,
    /// Runs only the CTAs that a time is modelled from; the results are incomplete.
    pub time_only: bool,
    /// Looks for hazards, which results do not show.
    pub watch: HazardWatch,
    /// Runs only the CTAs that are watched for hazards; the results are incomplete.
    pub alone: bool,
    /// Places buffers in the opposite order, so that no result depends on which of two lies first.
    /// A timed call uses the usual order.
    pub mirrored: bool,
}

impl From<&Settings> for Emulation {
    fn from(settings: &Settings) -> Self {
        Self {
            schedule: settings.schedule,
            exact_sums: settings.exact_sums,
            time_only: settings.time_only,
            watch: settings.hazards,
            alone: false,
            mirrored: false,
        }
    }
}

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Outputs of each group in the shape's order. The expected result is that for the shuffled
    /// operands.
    pub outputs: Vec<OutputValues>,
    /// Memory that changed and should not have; empty for a correct kernel.
    pub trespasses: Vec<ForbiddenWrite>,
    /// For a copy, which has no outputs: whether it equals its source.
    pub copied: Option<bool>,
    /// The first value read before it had arrived, if the backend detects that: the likely cause of
    /// a wrong result.
    pub read_early: Option<String>,
    /// The kernels' output, if the backend has it.
    pub printed: String,
    /// Emulator counters, by name.
    pub counters: BTreeMap<String, f64>,
    /// The emulator's time for this call, or the reason why there is none, if it was wanted.
    pub modelled: Option<Result<Modelled, String>>,
    /// Hazards that the output does not show, if they were looked for.
    pub hazards: Vec<Hazard>,
    /// Global memory that was not watched, for lack of memory.
    pub unwatched: Bytes,
}

impl Observation {
    /// The part of it that is judged.
    pub(crate) fn exhibit(&self) -> CallEffects<'_> {
        CallEffects {
            outputs: &self.outputs,
            trespasses: self.trespasses.iter().map(ToString::to_string).collect(),
            copied: self.copied,
        }
    }
}

/// A time replayed from the warps' traces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Modelled {
    pub micros: Micros,
    /// The cause of most of the critical path: `tensor cores`, `issue`, …
    pub bound: String,
    /// Its kernels, in their order.
    pub kernels: Vec<KernelTime>,
    /// A remark for readers of this time.
    pub remark: Option<String>,
}

/// A forbidden change of memory by a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForbiddenWrite {
    /// e.g. `c of group 2`.
    pub buffer: String,
    pub kind: ForbiddenWriteKind,
    /// First changed byte, counted from the buffer's start; negative before it.
    pub offset: i64,
    /// The instruction and the thread that did it, if the backend knows.
    pub by: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForbiddenWriteKind {
    /// Wrote outside the buffer.
    OutOfBounds,
    /// Changed an input.
    InputChanged,
    /// Left scratch dirty that it should have left cleared.
    NotCleared,
}

impl std::fmt::Display for ForbiddenWrite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { buffer, offset, .. } = self;
        match self.kind {
            ForbiddenWriteKind::OutOfBounds => {
                write!(f, "wrote out of bounds of {buffer}, at byte {offset}")
            }
            ForbiddenWriteKind::InputChanged => {
                write!(f, "changed its input {buffer}, at byte {offset}")
            }
            ForbiddenWriteKind::NotCleared => {
                write!(f, "left {buffer} uncleared, at byte {offset}")
            }
        }?;
        match &self.by {
            Some(by) => write!(f, "; written at {by}"),
            None => Ok(()),
        }
    }
}

/// Why a call did not run to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct RunFailure {
    /// `launch-error`, `crashed`, `hung` or `unsupported`.
    pub status: Status,
    /// One line: the call that failed and the device's name for the error.
    pub message: String,
    /// All details, if there are more.
    pub detail: Option<String>,
    /// The backend can run nothing more: its process must be replaced.
    pub fatal: bool,
    /// The hazards found before it failed, if they were looked for.
    #[serde(default)]
    pub hazards: Vec<Hazard>,
    /// The kernels' output until then, if the backend has it.
    pub printed: Box<str>,
    /// The harness failed, not the contender.
    #[serde(default)]
    pub harness: bool,
}

impl RunFailure {
    /// A failure with one line, after which the backend is still usable.
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            detail: None,
            fatal: false,
            hazards: Vec::new(),
            printed: Box::default(),
            harness: false,
        }
    }

    /// The device refused the launch; it is still usable.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(Status::LaunchError, message)
    }

    /// This backend cannot run it, or cannot time it fairly.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(Status::Unsupported, message)
    }

    /// The kernel died and took the device's context with it.
    pub fn crashed(message: impl Into<String>) -> Self {
        Self {
            fatal: true,
            ..Self::new(Status::Crashed, message)
        }
    }

    /// The kernel did not return in time and may still be running.
    pub fn hung(message: impl Into<String>) -> Self {
        Self {
            fatal: true,
            ..Self::new(Status::Hung, message)
        }
    }

    /// The verdict of a cell that ends so.
    pub(crate) fn verdict(self, contender: &ContenderId, shape: &str) -> Verdict {
        Verdict {
            reason: Some(self.message),
            detail: self.detail,
            ..Verdict::new(contender, shape, self.status)
        }
    }

    /// The harness failed: nothing is known of the contender.
    pub fn harness(message: impl Into<String>) -> Self {
        Self {
            harness: true,
            ..Self::crashed(message)
        }
    }
}
