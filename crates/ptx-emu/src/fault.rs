//! What can end a launch early, and where it happened.

use std::fmt;
use std::time::Duration;

use crate::op::Program;
use crate::report::Print;

pub use crate::op::Frame;

/// A kernel did something a GPU would not forgive.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// Which instruction of which warp.
    pub place: Place,
    /// Scheduler seed of the launch; the same seed gives the same fault.
    pub seed: u64,
    /// What this CTA (or its cluster) read too early before, and may have gone astray by.
    pub early: Option<EarlyRead>,
    /// What was printed by then, CTA after CTA: by all that ended before, and by the faulting
    /// cluster itself.
    pub printed: Vec<Print>,
}

/// Where a fault happened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// Kernel name.
    pub kernel: String,
    /// `%ctaid`
    pub cta: [u32; 3],
    /// Warp within the CTA.
    pub warp: u32,
    /// Lanes concerned.
    pub lanes: u32,
    /// 1-based line in the PTX text.
    pub ptx_line: u32,
    /// Source frames, innermost first; empty if compiled without line information.
    pub source: Vec<Frame>,
}

/// The kinds of fault.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum FaultKind {
    /// Access outside every allocation, or outside a CTA's shared, local or parameter bytes.
    OutOfBounds {
        /// `global`, `shared`, `local`, `param`, or the copy that did it.
        space: &'static str,
        /// First byte.
        address: u64,
        /// Bytes per lane.
        bytes: u64,
        /// Store rather than load.
        write: bool,
        /// The closest valid range, in words.
        nearest: String,
    },
    /// Address not a multiple of the access size.
    Misaligned {
        /// As above.
        space: &'static str,
        /// The address.
        address: u64,
        /// Alignment required.
        align: u64,
    },
    /// No warp can go on and nothing is in flight.
    Deadlock {
        /// Every waiting warp.
        waits: Vec<Wait>,
    },
    /// A CTA (cluster) ran longer than the step limit: an endless loop.
    StepLimit {
        /// Warp instructions allowed.
        limit: u64,
    },
    /// Every CTA polls global memory for something that none of them will write.
    Polling,
    /// As above, while CTAs that have not started wait for room.
    NotResident {
        /// CTAs of the grid.
        ctas: u64,
        /// CTAs the device runs at the same time.
        resident: u64,
        /// CTAs of one multiprocessor.
        per_sm: u32,
        /// What there is no more of.
        limit: String,
    },
    /// The launch ran longer than its wall-clock limit. Unlike every other fault this depends on
    /// the host's speed.
    TimeLimit {
        /// Time allowed.
        limit: Duration,
    },
    /// `trap`
    Trap,
    /// `brkpt`
    Breakpoint,
    /// Device-side assertion.
    Assert {
        /// Asserted expression.
        message: String,
        /// File named by the assertion.
        file: String,
        /// Its line.
        line: u32,
        /// Its function.
        function: String,
    },
    /// An operand no GPU accepts: barrier id, descriptor, tensor map, size, mask, diverged
    /// aligned instruction…
    Illegal {
        /// What and why.
        reason: String,
    },
    /// Something a GPU does and the emulator does not.
    NotEmulated {
        /// What and why.
        reason: String,
    },
    /// Misuse of an mbarrier: not initialised, overwritten, over-arrived.
    Mbarrier {
        /// Shared address.
        address: u32,
        /// What and why.
        reason: String,
    },
}

/// What explains a wrong result: mostly a read of what was not there yet, which got poison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlyRead {
    /// Who did it.
    pub place: Place,
    /// What was done, and what it should have waited for.
    pub what: String,
}

impl fmt::Display for EarlyRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// One warp of a deadlock.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    /// Where it waits.
    pub place: Place,
    /// For what, in words: barrier, phase, what is missing.
    pub on: String,
}

impl FaultKind {
    /// How a [`FaultKind::TimeLimit`] begins to tell that nothing was proved, for those who
    /// have its words alone.
    pub const STILL_RUNNING: &'static str = "still running after";

    /// A short stable name: `out-of-bounds`, `deadlock`, …
    pub fn name(&self) -> &'static str {
        match self {
            FaultKind::OutOfBounds { .. } => "out-of-bounds",
            FaultKind::Misaligned { .. } => "misaligned",
            FaultKind::Deadlock { .. } => "deadlock",
            FaultKind::StepLimit { .. } => "step-limit",
            FaultKind::Polling => "polling",
            FaultKind::NotResident { .. } => "not-resident",
            FaultKind::TimeLimit { .. } => "time-limit",
            FaultKind::Trap => "trap",
            FaultKind::Breakpoint => "breakpoint",
            FaultKind::Assert { .. } => "assert",
            FaultKind::Illegal { .. } => "illegal",
            FaultKind::NotEmulated { .. } => "not-emulated",
            FaultKind::Mbarrier { .. } => "mbarrier",
        }
    }

    /// The kernel would never have returned.
    pub fn is_hang(&self) -> bool {
        matches!(
            self,
            FaultKind::Deadlock { .. }
                | FaultKind::StepLimit { .. }
                | FaultKind::Polling
                | FaultKind::NotResident { .. }
                | FaultKind::TimeLimit { .. }
        )
    }

    pub(crate) fn illegal(reason: impl Into<String>) -> Self {
        FaultKind::Illegal {
            reason: reason.into(),
        }
    }
}

impl Place {
    /// The place of instruction `pc`.
    pub(crate) fn of(program: &Program, pc: u32, cta: [u32; 3], warp: u32, lanes: u32) -> Self {
        let loc = program
            .insts
            .get(pc as usize)
            .and_then(|inst| program.locs.get(inst.loc as usize));
        Self {
            kernel: program.name.clone(),
            cta,
            warp,
            lanes,
            ptx_line: loc.map_or(0, |l| l.ptx_line),
            source: loc.map_or_else(Vec::new, |l| l.frames.clone()),
        }
    }

    /// `file:line` of the innermost frame, or the PTX line.
    pub fn line(&self) -> String {
        match self.source.first() {
            Some(frame) => format!("{}:{}", frame.file, frame.line),
            None => format!("PTX line {}", self.ptx_line),
        }
    }
}

impl Place {
    /// `file:line` of the outermost frame, which is the kernel's own, or the PTX line.
    fn outer_line(&self) -> String {
        match self.source.last() {
            Some(frame) => format!("{}:{}", frame.file, frame.line),
            None => self.line(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.cta;
        write!(
            f,
            "{}: kernel {}, CTA ({x},{y},{z}), warp {}",
            self.line(),
            self.kernel,
            self.warp
        )?;
        if self.lanes != 0 && self.lanes != u32::MAX {
            write!(f, ", lanes {:#010x}", self.lanes)?;
        }
        for frame in self.source.iter().skip(1) {
            write!(f, ", inlined at {}:{}", frame.file, frame.line)?;
        }
        if !self.source.is_empty() {
            write!(f, " (PTX line {})", self.ptx_line)?;
        }
        Ok(())
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::OutOfBounds {
                space,
                address,
                bytes,
                write,
                nearest,
            } => {
                let verb = if *write { "write" } else { "read" };
                write!(
                    f,
                    "{space} {verb} of {bytes} bytes at {address:#x} is out of bounds: {nearest}"
                )
            }
            FaultKind::Misaligned {
                space,
                address,
                align,
            } => write!(
                f,
                "{space} address {address:#x} is not a multiple of {align}"
            ),
            FaultKind::Deadlock { waits } => deadlock(waits, f),
            FaultKind::StepLimit { limit } => {
                write!(
                    f,
                    "hung: more than {limit} warp instructions in one CTA or cluster; the loop is here"
                )
            }
            FaultKind::Polling => f.write_str(
                "hung: all CTAs poll global memory and none of them writes it any more; one polls here",
            ),
            FaultKind::NotResident {
                ctas,
                resident,
                per_sm,
                limit,
            } => write!(
                f,
                "hung: the CTAs that run wait for CTAs that cannot start: {resident} of {ctas} are \
                 resident, {per_sm} on each multiprocessor, limited by {limit}; one waits here"
            ),
            FaultKind::TimeLimit { limit } => write!(
                f,
                "{} {limit:.1?} of wall-clock time; it was here. A slow host can be \
                 the cause: the step limit, which does not depend on it, was not reached",
                Self::STILL_RUNNING
            ),
            FaultKind::Trap => f.write_str("trap executed"),
            FaultKind::Breakpoint => f.write_str("breakpoint executed"),
            FaultKind::Assert {
                message,
                file,
                line,
                function,
            } => write!(
                f,
                "assertion `{message}` failed in {function} ({file}:{line})"
            ),
            FaultKind::Illegal { reason } => f.write_str(reason),
            FaultKind::NotEmulated { reason } => write!(f, "not emulated: {reason}"),
            FaultKind::Mbarrier { address, reason } => {
                write!(f, "mbarrier at shared address {address:#x}: {reason}")
            }
        }
    }
}

/// Which warps wait, where and for what: a sentence about those that wait like the first, and a
/// line for each of the others.
fn deadlock(waits: &[Wait], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let counted = |n: usize| match n {
        1 => "1 warp waits".to_owned(),
        n => format!("{n} warps wait"),
    };
    write!(f, "deadlock: {}", counted(waits.len()))?;
    let Some(first) = waits.first() else {
        return Ok(());
    };
    let line = first.place.outer_line();
    let alike = |wait: &&Wait| wait.place.outer_line() == line && wait.on == first.on;
    match waits.iter().filter(alike).count() {
        all if all == waits.len() => {}
        some => write!(f, ", {some} of them")?,
    }
    write!(f, " at {line} for {}", first.on)?;
    for wait in waits.iter().filter(|wait| !alike(wait)) {
        write!(f, "\n  {}: {}", wait.place, wait.on)?;
    }
    Ok(())
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [seed {}]: {}", self.place, self.seed, self.kind)?;
        match &self.early {
            Some(early) => write!(f, "\n  cause: {early}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Fault {}
