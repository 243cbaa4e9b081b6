//! What samples can and cannot say. Pure functions on numbers: nothing here
//! reads a file, prints, or knows what a kernel is. `docs/methodology.md`
//! explains the choices; the formulas stand beside the code.

mod bootstrap;
mod components;
pub mod decision;
mod detect;
mod estimate;
mod holm;
mod kendall;
mod outliers;
mod paired;
#[cfg(test)]
mod simulation;
mod ties;

pub use bootstrap::{Bootstrap, bootstrap, moments};
pub use detect::{Detectable, detectable};
pub use estimate::{LogEstimate, unpaired};
pub use holm::holm;
pub use kendall::kendall_tau;
pub use outliers::outliers;
pub use paired::{Arm, Contrast, Process, log_ratios, log_times};
pub use ties::{Place, places};

/// The level of every interval and of every verdict: 95 %.
pub const CONFIDENCE: f64 = 0.95;

/// Resamples behind every interval. The standard error they give is itself
/// within 2 % of its limit, far below what a run's own noise allows.
pub const RESAMPLES: usize = 2000;

/// Fixed, so that the same run file always prints the same table.
pub const SEED: u64 = 0x5eed_0fd6;
