//! Whether the times of two runs may stand in one table at all.

use std::fmt;

use crate::domain::Timing;
use crate::record::Run;

/// Why the times of two runs mean different things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    pub base: String,
    pub candidate: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} against {}", self.base, self.candidate)
    }
}

/// `None` where both runs timed the same kind of device in the same way.
pub(crate) fn mismatch(base: &Run, candidate: &Run) -> Option<Mismatch> {
    let kind = |run: &Run| {
        let device = &run.header.device;
        (device.backend, device.timing, device.name.clone())
    };
    (kind(base) != kind(candidate)).then(|| Mismatch {
        base: describe(base),
        candidate: describe(candidate),
    })
}

/// `NVIDIA H200 (cuda, measured)`.
pub(crate) fn describe(run: &Run) -> String {
    let device = &run.header.device;
    let timing = device.timing.as_str();
    format!("{} ({}, {timing})", device.name, device.backend)
}

/// Whether two runs timed the very same cards; `None` where it is not on
/// record, or nothing was timed.
pub(crate) fn same_card(base: &Run, candidate: &Run) -> Option<bool> {
    let cards = |run: &Run| {
        let timed = run.timing() == Timing::Measured;
        let cards: Vec<String> = run.cards().into_iter().map(str::to_owned).collect();
        (timed && !cards.is_empty()).then_some(cards)
    };
    Some(cards(base)? == cards(candidate)?)
}
