//! Backends, which run and time compiled contenders. One trait with an implementation for each:
//! `cuda` on a GPU, `emu` on the CPU, and `fake`, which runs nothing and is for tests. The first
//! two execute the same [`OperatorCall`], in memory that is poisoned and guarded by canaries, and
//! return what a validator needs. Nothing here computes expected results.

mod arrays;
mod bench;
pub mod cuda;
pub mod emu;
#[cfg(any(test, feature = "fake"))]
pub mod fake;
mod opening;
mod pieces;
mod salt;
mod tables;
mod zones;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::compile::Image;
use crate::operator::{Operands, Oracle, Written};
use crate::plan::OperatorCall;
use crate::validate::Exhibit;
pub use bench::Bench;
pub use bench::CallData;
pub(crate) use bench::proven;
pub use bench::{BenchSetup, Set, Timed};
use dgx_core::domain::{
    BackendKind, Bytes, ContenderId, Device, Hazard, KernelTime, Micros, Status, Watch,
};
use dgx_core::record::schema::Settings;
pub use opening::Opening;
pub(crate) use salt::Poison;
pub use salt::Salt;

/// Width of the zone before and after every buffer.
pub(crate) const GUARD: u64 = 16 * 1024;

/// A place to run contenders.
pub trait Backend {
    fn kind(&self) -> BackendKind;

    /// What it runs on, or as.
    fn device(&self) -> &Device;

    /// Makes one contender ready for calls on one shape, its module as new.
    fn load<'a>(&'a mut self, job: Job<'a>) -> Result<Box<dyn Loaded + 'a>, RunFailure>;

    /// Whether a device computes answers, quicker than the CPU.
    fn answers(&self) -> bool {
        false
    }

    /// The right answer by that device, or why it has none.
    fn answer(&mut self, _operands: &Operands) -> Result<Oracle, String> {
        Err("there is no device that computes answers".to_owned())
    }

    /// Sets up a stopwatch, where this backend has a clock.
    fn bench<'a>(&'a mut self, _course: &BenchSetup<'_>) -> Result<Box<dyn Bench + 'a>, String> {
        Err(format!("the {} backend has no clock", self.kind()))
    }

    /// cuBLAS's name and version, or why there is none.
    fn yardstick(&self) -> Result<String, String> {
        Err("the yardstick needs a GPU".to_owned())
    }
}

/// A contender that can be called more than once. What its calls leave in the
/// variables of their module stays, as it does for whoever uses a kernel.
pub trait Loaded {
    /// Runs the operator call once and reports everything it did to memory.
    /// All of it is laid out before, and compared after.
    fn call(&mut self, data: &Data<'_>) -> Result<Observation, RunFailure>;

    /// What lies now in the buffers whose names are wanted, byte by byte as
    /// the last call left them; or why nobody can tell.
    fn buffers(&mut self, _wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Buffer>, String> {
        Err("memory cannot be read on this backend".to_owned())
    }

    /// Makes such a call once more to see who does what, where that can be told;
    /// `element` is a group, and the place of an element in its C.
    fn search(
        &mut self,
        _data: &Data<'_>,
        _element: Option<(usize, usize)>,
    ) -> Option<Whereabouts> {
        None
    }
}

/// Who does what in a call, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whereabouts {
    /// Who writes the element that was asked about.
    pub writers: Option<String>,
    /// Reads outside of all buffers.
    pub strays: Vec<String>,
}

/// A buffer's name (`c of group 2`, `scratch half_a of group 0`) and its bytes.
pub(crate) type Buffer = (String, Vec<u8>);

/// One contender on one shape.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    /// Whose it is: a name, which changes nothing about how it runs.
    pub contender: &'a ContenderId,
    pub image: &'a Image,
    pub call: &'a OperatorCall,
}

/// What one call is made with.
#[derive(Clone, Copy)]
pub struct Data<'a> {
    pub operands: &'a Operands,
    /// Names the operands (shape, distribution, seed): a backend may keep what
    /// it uploaded for the next call with the same name.
    pub key: &'a str,
    pub salt: Salt,
    /// How long the call may take. A backend that can stop a kernel does so,
    /// and says where it was; the supervisor ends the others with their process.
    pub time_limit: Duration,
    /// Whether the emulator models how long the call would take.
    pub timed: bool,
    pub emulation: Emulation,
}

/// What the emulator may choose and a GPU may not. None of it changes what a
/// correct kernel computes beyond the rounding of sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Emulation {
    /// Which of the legal orders of warps and copies to take.
    pub schedule: u64,
    /// Sum products as the chip's tensor cores do, bit for bit, not in plain
    /// fp32: slower, and shows what alignment and truncation cost.
    pub exact_sums: bool,
    /// Run only the CTAs that a time is told by; what is computed is worth
    /// nothing.
    pub time_only: bool,
    /// Look for what a result does not show.
    pub watch: Watch,
    /// Run only the CTAs that are watched for that; what is computed is worth
    /// nothing.
    pub alone: bool,
    /// Place buffers in the opposite order, so that no result depends on which
    /// of two lies first. A call that is timed has them in the usual one.
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

/// What a run left behind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Outputs of each group in the shape's order. The answer is that to the
    /// shuffled operands.
    pub outputs: Vec<Written>,
    /// Memory that changed and should not have; empty for a well-behaved run.
    pub trespasses: Vec<Trespass>,
    /// Of a copy, which has no outputs: whether it is like its source.
    pub copied: Option<bool>,
    /// The first thing read before it had arrived, where the backend can tell:
    /// the likely cause if the answer is wrong.
    pub read_early: Option<String>,
    /// What the kernels printed, where the backend has it.
    pub printed: String,
    /// Emulator counters, by name.
    pub counters: BTreeMap<String, f64>,
    /// The emulator's time for this call, or why there is none, where it was
    /// asked for.
    pub modelled: Option<Result<Modelled, String>>,
    /// What was found that the output does not show, where it was looked for.
    pub hazards: Vec<Hazard>,
    /// Global memory that nobody watched meanwhile, for want of memory.
    pub unwatched: Bytes,
}

impl Observation {
    /// What of it is judged.
    pub(crate) fn exhibit(&self) -> Exhibit<'_> {
        Exhibit {
            outputs: &self.outputs,
            trespasses: self.trespasses.iter().map(ToString::to_string).collect(),
            copied: self.copied,
        }
    }
}

/// A time replayed from what warps did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Modelled {
    pub micros: Micros,
    /// What most of the way to its end goes through: `tensor cores`, `issue`, …
    pub bound: String,
    /// Its kernels, in their order.
    pub kernels: Vec<KernelTime>,
    /// What a reader of this time should know.
    pub remark: Option<String>,
}

/// Memory a kernel had no business changing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trespass {
    /// e.g. `c of group 2`.
    pub buffer: String,
    pub kind: TrespassKind,
    /// First changed byte, counted from the buffer's start; negative before it.
    pub offset: i64,
    /// Which instruction of whom did it, where the backend can tell.
    pub by: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrespassKind {
    /// Wrote outside the buffer.
    OutOfBounds,
    /// Changed an input.
    InputChanged,
    /// Left scratch dirty that it promised to leave cleared.
    NotCleared,
}

impl std::fmt::Display for Trespass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { buffer, offset, .. } = self;
        match self.kind {
            TrespassKind::OutOfBounds => {
                write!(f, "wrote out of bounds of {buffer}, at byte {offset}")
            }
            TrespassKind::InputChanged => write!(f, "changed its input {buffer}, at byte {offset}"),
            TrespassKind::NotCleared => {
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
    /// The whole story, where there is more to tell.
    pub detail: Option<String>,
    /// The backend can run nothing more: its process must be replaced.
    pub fatal: bool,
    /// What was found before it failed, where it was looked for.
    #[serde(default)]
    pub hazards: Vec<Hazard>,
    /// What the kernels printed until then, where the backend has it.
    pub printed: Box<str>,
    /// The harness failed, and not the contender.
    #[serde(default)]
    pub harness: bool,
}

impl RunFailure {
    /// One line, and a backend that is still usable.
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

    /// This backend cannot run it, or not fairly.
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

    /// The harness could not do its part: nothing is known of the contender.
    pub fn harness(message: impl Into<String>) -> Self {
        Self {
            harness: true,
            ..Self::crashed(message)
        }
    }
}
