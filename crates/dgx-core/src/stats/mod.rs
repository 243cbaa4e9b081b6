//! What samples can and cannot show. Pure functions on numbers: nothing here reads a file, prints,
//! or knows kernels. `docs/methodology.md` explains the choices; the formulas stand beside the
//! code.

pub mod decision;
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

pub use detect::Detectable;
pub use detect::detectable;
pub use estimate::LogEstimate;
pub(crate) use estimate::unpaired;
pub(crate) use holm::holm;
pub use intervals::Contrast;
pub(crate) use intervals::{Estimates, PROCESSES};
pub use kendall::kendall_tau;
pub use moments::Moments;
pub use outliers::outliers;
pub use reservoir::KeptSample;
pub use reservoir::Reservoir;
pub use tally::{Sampled, Tally};
pub use ties::{RankPosition, places};

/// The level of every interval and of every verdict: 95 %.
pub const CONFIDENCE: f64 = 0.95;
