//! Times contenders side by side in randomised blocks. Only those with a
//! [`Passed`](crate::validate::Passed) get in, and what reads the clock uses it
//! up: timing a wrong kernel does not type-check, nor does timing one on after
//! it was found wrong.

mod audit;
mod blocks;
mod lineup;

pub(crate) use audit::{Audit, Calls, Dealt};
pub use blocks::Schedule;
pub use blocks::Stopwatch;
pub use blocks::{Outcome, Reading, run};
pub use lineup::Lineup;
