//! Who runs when: the clusters of a grid, the warps of a cluster, and what is in flight.

pub(crate) mod blame;
pub(crate) mod deliver;
pub(crate) mod grid;
pub(crate) mod record;
pub(crate) mod turns;
