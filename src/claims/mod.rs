//! What was promised against what was found: each variant's claim, and the
//! jury's scores.

mod claim;
mod jury;

pub use claim::{ClaimResult, ClaimVerdict, judge, resolve};
pub use jury::{Outcome, Recount, Tally, foresight, outcomes, recount};
