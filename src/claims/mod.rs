//! What was promised against what was found: each variant's claim, and the
//! jury's scores.

mod claim;

pub use claim::{ClaimResult, ClaimVerdict, judge};
