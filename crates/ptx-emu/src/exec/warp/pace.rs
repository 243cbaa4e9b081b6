//! How a slow warp goes on.

/// A warp without one is as fast as it can be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Turns it has been offered since it last waited.
    pub(crate) turns: u32,
    /// Turns it lets pass before these.
    pub(crate) late: u32,
}
