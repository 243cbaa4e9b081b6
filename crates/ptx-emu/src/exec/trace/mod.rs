//! What a trace is written to.

pub(crate) mod plan;
pub(crate) mod recorder;
pub(crate) mod tape;
