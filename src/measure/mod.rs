//! Times contenders side by side in randomised blocks. Only those with a
//! [`Passed`](crate::validate::Passed) get in: timing a wrong kernel does not type-check.

mod blocks;

pub use blocks::{Lane, Outcome, Schedule, Stopwatch, run};
