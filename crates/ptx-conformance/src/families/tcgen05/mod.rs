//! `tcgen05` on Blackwell: tensor memory, what is moved there, and products of every kind.

mod moves;
mod products;
mod stage;

use crate::case::Case;

/// The family's cases.
pub(super) fn cases() -> Vec<Case> {
    [moves::cases(), products::cases()].concat()
}
