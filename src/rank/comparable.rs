//! Whether the times of two runs may stand in one table at all.

use std::fmt;

use crate::record::Run;
use crate::record::schema::Timing;

/// Why the times of two runs mean different things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    pub base: String,
    pub candidate: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} against {}", self.base, self.candidate)
    }
}

/// `None` where both runs timed the same kind of device in the same way.
pub fn mismatch(base: &Run, candidate: &Run) -> Option<Mismatch> {
    let kind = |run: &Run| {
        let device = &run.header.device;
        (device.backend.clone(), device.timing, device.name.clone())
    };
    (kind(base) != kind(candidate)).then(|| Mismatch {
        base: describe(base),
        candidate: describe(candidate),
    })
}

/// `NVIDIA H200 (cuda, measured)`.
pub fn describe(run: &Run) -> String {
    let device = &run.header.device;
    let timing = match device.timing {
        Timing::Measured => "measured",
        Timing::Modelled => "modelled",
        Timing::Recorded => "recorded",
    };
    format!("{} ({}, {timing})", device.name, device.backend)
}
