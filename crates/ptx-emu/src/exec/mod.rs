//! Runs warps of a predecoded program.
//!
//! A module may use only those listed above it, by a path or by a method of
//! [`Cluster`](cluster::Cluster); a test checks this.

mod checked;

pub(crate) mod clock;

mod lanes;

pub(crate) mod origin;

pub(crate) mod listen;

pub(crate) mod storage;

mod warp;

#[cfg(target_arch = "x86_64")]
mod native;

mod alu;

pub(crate) mod trace;

pub(crate) mod cluster;

mod memory;

mod sync;

mod copies;

mod tensor;

mod deeds;

mod units;

pub(crate) mod schedule;
