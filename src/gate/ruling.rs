use std::fmt;

use serde::{Serialize, Serializer};

use crate::domain::{ContenderId, Counter, Exit, Interval};

/// What can be asked of a run.
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
    /// Goes by the counter's own name.
    MaxCounter(Counter),
    /// Every shape and contender of a baseline run is in the run.
    Complete,
}

impl Rule {
    pub fn as_str(self) -> &'static str {
        match self {
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
        }
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ruling {
    Passed,
    Failed,
    /// The answer hangs on less than the run can see.
    Refused,
    /// The interval holds the threshold, or the record lacks what was asked.
    Undecided,
}

impl Ruling {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "FAILED",
            Self::Refused => "refused",
            Self::Undecided => "undecided",
        }
    }
}

/// One rule applied to one contender, or to one of its shapes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    pub rule: Rule,
    pub contender: ContenderId,
    /// `None` where the rule is about all shapes together.
    pub shape: Option<String>,
    pub ruling: Ruling,
    pub wanted: String,
    pub found: String,
    /// The speedup that was judged, where the rule is about one.
    pub speedup: Option<Interval>,
    /// By how much it failed, or why it cannot be judged.
    pub reason: Option<String>,
}

/// Everything a gate found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GateReport {
    pub run: String,
    pub over: String,
    /// Set where the two sides come from different devices.
    pub across_devices: Option<String>,
    /// What keeps the run from being judged as a whole: half a run neither
    /// passes nor fails.
    pub incomplete: Vec<String>,
    pub findings: Vec<Finding>,
    pub notes: Vec<String>,
}

impl GateReport {
    pub fn count(&self, ruling: Ruling) -> usize {
        self.findings.iter().filter(|f| f.ruling == ruling).count()
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
