use std::fmt;

use super::gap::Gap;
use crate::domain::{ContenderId, Counter, Exit, Interval, Status};
use crate::rank::Mismatch;

/// The rules of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    MinGeomean,
    MinShape,
    NotSlower,
    Correct,
    MaxSmem,
    MaxRegisters,
    MinOccupancy,
    OccupancyNotWorse,
    SpillsNotWorse,
    ClaimsMet,
    /// Named after the counter.
    MaxCounter(Counter),
    /// The run has every shape and contender of a baseline run.
    Complete,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::MinGeomean => "min-geomean",
            Self::MinShape => "min-shape",
            Self::NotSlower => "not-slower",
            Self::Correct => "correct",
            Self::MaxSmem => "max-smem",
            Self::MaxRegisters => "max-registers",
            Self::MinOccupancy => "min-occupancy",
            Self::OccupancyNotWorse => "occupancy-not-worse",
            Self::SpillsNotWorse => "spills-not-worse",
            Self::ClaimsMet => "claims-met",
            Self::MaxCounter(counter) => counter.as_str(),
            Self::Complete => "complete",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    Passed,
    Failed,
    /// The answer depends on a smaller difference than the run can detect.
    Refused,
    /// The interval contains the threshold, or the record lacks the data.
    Undecided,
}

/// One rule applied to one contender, or to one of its shapes.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub rule: Rule,
    pub contender: ContenderId,
    /// `None` if the rule is about all shapes together.
    pub shape: Option<String>,
    pub ruling: Ruling,
    pub wanted: String,
    /// The run's value.
    pub found: String,
    /// The judged speedup, if the rule is about one.
    pub speedup: Option<Interval>,
    /// By how much it failed, or why it cannot be judged.
    pub reason: Option<String>,
}

impl Finding {
    /// A rule that is met, as far as it was judged.
    pub fn passed(rule: Rule, contender: &ContenderId, shape: Option<&str>) -> Self {
        Self {
            rule,
            contender: contender.clone(),
            shape: shape.map(str::to_owned),
            ruling: Ruling::Passed,
            wanted: "ok".to_owned(),
            found: "ok".to_owned(),
            speedup: None,
            reason: None,
        }
    }
}

/// Further facts that a reader must know.
#[derive(Clone, Debug, PartialEq)]
pub enum GateNote {
    /// The runs come from two cards of one kind.
    OtherCard,
    /// The baseline run lacks this contender.
    New(ContenderId),
    /// Not judged, since it declares that it fails.
    Exempt {
        contender: ContenderId,
        declared: Status,
    },
    /// The settings in which the run was validated less strictly than by default.
    Loose(Vec<String>),
    /// Times are modelled for this device, with this median error as far as they were compared.
    Modelled {
        device: String,
        error: Option<f64>,
        /// The operators that were compared, if this run's is not among them.
        others: Option<String>,
    },
    /// Another tool timed it, in this many processes; 0 if it kept no samples.
    Foreign {
        whose: RunRole,
        tool: String,
        processes: usize,
    },
}

/// The run that lacks something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunRole {
    Run,
    Baseline,
}

/// Everything a gate found.
#[derive(Clone, Debug, PartialEq)]
pub struct GateReport {
    pub run: String,
    pub over: String,
    /// Set if the two sides come from different devices.
    pub across_devices: Option<Mismatch>,
    /// Why the run cannot be judged as a whole: half a run neither passes nor fails.
    pub incomplete: Vec<(RunRole, Gap)>,
    pub findings: Vec<Finding>,
    pub notes: Vec<GateNote>,
}

impl GateReport {
    pub fn count(&self, ruling: Ruling) -> usize {
        self.findings.iter().filter(|f| f.ruling == ruling).count()
    }

    /// The number of contenders that are not judged because they declare that they fail.
    pub fn exempt(&self) -> usize {
        let exempt = |note: &&GateNote| matches!(note, GateNote::Exempt { .. });
        self.notes.iter().filter(exempt).count()
    }

    /// A failure outweighs doubt, and doubt is never a pass.
    pub fn exit(&self) -> Exit {
        if !self.incomplete.is_empty() {
            Exit::Inconclusive
        } else if self.count(Ruling::Failed) > 0 {
            Exit::GateFailed
        } else if self.count(Ruling::Passed) < self.findings.len() || self.findings.is_empty() {
            Exit::Inconclusive
        } else {
            Exit::Done
        }
    }
}
