//! Rules a run is held against. Every rule ends in one of four rulings, and
//! none passes for want of data: what cannot be judged is said to be so.

mod counters;
mod judge;
mod output;
mod resources;
mod ruling;
mod speed;
#[cfg(test)]
mod tests;

pub use judge::{GateError, Over, judge};
pub use output::{json, junit, markdown, outcome, text};
pub use ruling::{Finding, GateReport, Rule, Ruling};
