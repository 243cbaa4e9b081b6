//! Rules a run is held against. Every rule ends in one of four rulings, and
//! none passes for want of data: what cannot be judged is said to be so, and half a
//! run is neither passed nor failed.

mod completeness;
mod counters;
mod judge;
mod output;
mod resources;
mod ruling;
mod speed;
#[cfg(test)]
mod tests;

pub use completeness::gaps;
pub use judge::{GateError, Over, judge};
pub use output::{json, junit, markdown, outcome, text};
pub use ruling::{Finding, GateReport, Rule, Ruling};
