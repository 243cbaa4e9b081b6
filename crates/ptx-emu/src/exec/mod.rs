//! Runs warps of a predecoded program.
//!
//! [`grid`] spreads clusters over cores, [`cluster`] schedules the warps of one, [`interp`] is the
//! loop over instructions; the rest is what instructions do.

mod access;
mod atomic;
mod banks;
pub(crate) mod bytes;
pub(crate) mod classes;
mod cluster;
mod convert;
mod copy;
pub(crate) mod env;
mod float;
mod frames;
pub(crate) mod grid;
mod integer;
mod interp;
mod matrix;
mod mbarrier;
mod sources;
mod sync;
mod tensor_copy;
mod warp;
mod wgmma;
