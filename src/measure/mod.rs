//! Times contenders side by side in randomised blocks. Only those with a
//! [`Passed`](crate::validate::Passed) get in, and what reads the clock uses it
//! up: timing a wrong kernel does not type-check, nor does timing one on after
//! it was found wrong.

mod audit;
mod blocks;
mod lineup;

pub(crate) use audit::{Audit, Calls, Dealt};
pub(crate) use blocks::{Outcome, Reading, Schedule, Stopwatch, run};
pub(crate) use lineup::Lineup;
