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

pub(crate) use completeness::gaps;
pub(crate) use gap::Gap;
pub(crate) use judge::{GateError, Over, judge, unheld};
pub(crate) use ruling::{Finding, Found, GateReport, Note, Reason, Rule, Ruling, Wanted, Whose};
