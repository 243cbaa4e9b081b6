use std::fmt;

use super::gap::Gap;
use crate::claims::ClaimVerdict;
use crate::domain::{Bytes, ContenderId, Counter, Exit, Interval, Status};
use crate::rank::Mismatch;

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

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    Passed,
    Failed,
    /// The answer hangs on less than the run can see.
    Refused,
    /// The interval holds the threshold, or the record lacks what was asked.
    Undecided,
}

/// What a rule asks for. Speedups are ratios, and so are factors.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// The status `ok`.
    Ok,
    OkEverywhere,
    /// As on so many shapes of an earlier run.
    OkOn(usize),
    Speedup(f64),
    SpeedupEverywhere(f64),
    /// No slower by more than this share.
    Within(f64),
    Smem(Bytes),
    Registers(u32),
    Occupancy(f64),
    Spills(u32),
    /// No more than so many times what the baseline counts.
    Count {
        factor: f64,
        base: f64,
    },
    CountEverywhere {
        factor: f64,
    },
    Claim {
        speedup: f64,
        over: String,
    },
    /// A figure of the baseline, which has none.
    Known,
    AsInBaseline,
    /// A run other than the baseline itself.
    AnotherRun,
}

/// What the run has of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    Ok,
    Status(Status),
    /// Recorded elsewhere, without a verdict.
    NeverChecked,
    Pending,
    Speedup(Interval),
    /// The least of all shapes, and on which.
    LeastSpeedup {
        speedup: f64,
        shape: String,
    },
    NoSpeedup,
    Untested,
    Smem(Bytes),
    Registers(u32),
    Occupancy(f64),
    Spills(u32),
    Count(f64),
    /// The most of all shapes, and on which.
    MostCount {
        factor: f64,
        shape: String,
    },
    Unknown,
    Absent,
    OtherGroups,
    Itself,
}

/// By how much it failed, or why it cannot be judged.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// In the verdict's own words.
    Said(String),
    /// Somebody is right on too few of the shapes.
    NotValid {
        who: String,
        lacks: usize,
        of: usize,
    },
    /// What differs between processes is not in the interval.
    OneProcess,
    /// One block has no interval.
    OneBlock,
    /// The threshold is nearer to equal than the run can tell.
    TooFine {
        threshold: f64,
        effect: f64,
    },
    /// Without an A/A arm nothing shows that the run sees less than this share.
    NoControl(f64),
    /// The interval holds the threshold.
    Holds(f64),
    /// So much of a speedup is missing.
    Short(f64),
    /// By this share; cards of one kind differ too.
    Slower {
        loss: f64,
        other_card: bool,
    },
    /// A loss of this share cannot be ruled out.
    Open(f64),
    /// The model is off by this share in the median, and this is nearer.
    Model(f64),
    /// Nobody knows how far off the model is.
    Uncalibrated,
    SmemOver(Bytes),
    RegistersOver(u32),
    OccupancyShort(f64),
    SpillsMore(u32),
    NotRecorded,
    /// So many times what the baseline counts.
    Times(f64),
    BaselineHasNone,
    NoCounter,
    Claim(ClaimVerdict),
    /// What is not there cannot be judged.
    NotThere,
    /// No other run was held against it.
    Alone,
}

/// One rule applied to one contender, or to one of its shapes.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub rule: Rule,
    pub contender: ContenderId,
    /// `None` where the rule is about all shapes together.
    pub shape: Option<String>,
    pub ruling: Ruling,
    pub wanted: Wanted,
    pub found: Found,
    /// The speedup that was judged, where the rule is about one.
    pub speedup: Option<Interval>,
    pub reason: Option<Reason>,
}

/// What else a reader must know.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// The runs come from two cards of one kind.
    OtherCard,
    /// The baseline run has nothing to hold it against.
    New(ContenderId),
    /// Not judged, for it declares that it fails.
    Exempt {
        contender: ContenderId,
        declared: Status,
    },
    /// In what the run was validated less strictly than by default.
    Loose(Vec<String>),
    /// Times are modelled for this device, off by this share in the median as
    /// far as anybody compared.
    Modelled { device: String, error: Option<f64> },
    /// Another tool timed it, in so many processes; none where it kept no
    /// samples.
    Foreign {
        whose: Whose,
        tool: String,
        processes: usize,
    },
}

/// Which run lacks something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    Run,
    Baseline,
}

/// Everything a gate found.
#[derive(Clone, Debug, PartialEq)]
pub struct GateReport {
    pub run: String,
    pub over: String,
    /// Set where the two sides come from different devices.
    pub across_devices: Option<Mismatch>,
    /// What keeps the run from being judged as a whole: half a run neither
    /// passes nor fails.
    pub incomplete: Vec<(Whose, Gap)>,
    pub findings: Vec<Finding>,
    pub notes: Vec<Note>,
}

impl GateReport {
    pub fn count(&self, ruling: Ruling) -> usize {
        self.findings.iter().filter(|f| f.ruling == ruling).count()
    }

    /// How many contenders are not judged, for they declare that they fail.
    pub fn exempt(&self) -> usize {
        let exempt = |note: &&Note| matches!(note, Note::Exempt { .. });
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
