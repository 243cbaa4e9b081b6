//! Times contenders side by side in randomised blocks. Only those with a
//! [`Passed`](crate::validate::Passed) get in, and what reads the clock takes
//! the [`Lane`] that holds it: timing a wrong kernel does not type-check.

mod audit;
mod blocks;
mod lineup;

pub use audit::{Audit, Calls, Dealt};
pub use blocks::{Outcome, Schedule, Stopwatch, run};
pub use lineup::{Lane, Lineup, Timeable, Unproven};
