//! Barriers, and the signals that tell who waited for whom.

pub(crate) mod absent;
pub(crate) mod barriers;
pub(crate) mod signalling;
