//! Rules that a run must meet. Each rule ends in one of four rulings, and none passes for lack of
//! data: a rule that cannot be judged is reported as such, and half a run neither passes nor fails.
//! Findings are numbers; `present` has the words.

mod choice;
mod completeness;
mod counters;
mod gap;
mod judge;
mod resources;
mod ruling;
mod speed;
#[cfg(test)]
mod tests;

pub use choice::{ComparedWith, GateError};
pub use completeness::{gaps, holes, impossible};
pub use gap::{Gap, Impossible};
pub use judge::{judge, loose, nothing_compared};
pub use ruling::{Finding, GateNote, GateReport, Rule, Ruling, RunRole};
