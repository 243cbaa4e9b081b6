//! What a listener hears of a launch: accesses, and what orders them.

pub(crate) mod agent;
pub(crate) mod signal;
pub(crate) mod visit;
