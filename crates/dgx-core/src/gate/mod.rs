//! Rules a run is held against. Every rule ends in one of four rulings, and
//! none passes for want of data: what cannot be judged is said to be so, and half a
//! run is neither passed nor failed. Findings are numbers; `present` has the words.

mod completeness;
mod counters;
mod gap;
mod judge;
mod resources;
mod ruling;
mod speed;
#[cfg(test)]
mod tests;

pub use completeness::{gaps, holes, impossible};
pub use gap::{Gap, Impossible};
pub use judge::{GateError, Over, judge, loose, unheld};
pub use ruling::{Finding, GateReport, Note, Rule, Ruling, Whose};
