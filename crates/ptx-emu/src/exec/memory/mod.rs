//! Accesses of a cluster to its memory: everything that reads or writes a byte comes by here.

pub(crate) mod access;
pub(crate) mod accounting;
pub(crate) mod atomic;
pub(crate) mod direct;
pub(crate) mod early;
pub(crate) mod gather;
#[cfg(target_arch = "x86_64")]
mod moves;
pub(crate) mod pieces;
pub(crate) mod texture;
pub(crate) mod transfer;
#[cfg(target_arch = "x86_64")]
pub(crate) mod words;
