//! What samples can and cannot say. Pure functions on numbers: nothing here
//! reads a file, prints, or knows what a kernel is. `docs/methodology.md`
//! explains the choices; the formulas stand beside the code.

pub(crate) mod decision;
mod detect;
mod estimate;
mod holm;
mod intervals;
mod kendall;
mod moments;
mod outliers;
mod reservoir;
mod tally;
mod ties;

pub(crate) use detect::{Detectable, detectable};
pub(crate) use estimate::{LogEstimate, unpaired};
pub(crate) use holm::holm;
pub(crate) use intervals::{Contrast, Estimates, PROCESSES};
pub(crate) use kendall::kendall_tau;
pub(crate) use moments::Moments;
pub(crate) use outliers::outliers;
pub(crate) use reservoir::{Drawn, Reservoir};
pub(crate) use tally::{Sampled, Tally};
pub(crate) use ties::{Place, places};

/// The level of every interval and of every verdict: 95 %.
pub(crate) const CONFIDENCE: f64 = 0.95;
