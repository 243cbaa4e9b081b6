//! Runs warps of a predecoded program.
//!
//! `grid` spreads clusters over cores, `cluster` schedules the warps of one, `interp` is the
//! loop over instructions; the rest is what instructions do.

mod absent;
mod access;
mod adversary;
mod atomic;
mod banks;
mod bits;
mod blame;
mod bulk;
pub(crate) mod bytes;
mod cancel;
mod carry;
pub(crate) mod clock;
mod cluster;
mod compare;
mod convert;
pub(crate) mod copy;
mod deeds;
mod deliver;
mod direct;
pub(crate) mod door;
mod draft;
mod early;
pub(crate) mod env;
mod exchange;
mod float;
mod frames;
mod gather;
pub(crate) mod grid;
mod integer;
mod interp;
mod joint;
mod lane_copy;
mod matrix;
mod mbarrier;
pub(crate) mod overlap;
pub(crate) mod paths;
pub(crate) mod plan;
mod pointers;
pub(crate) mod print;
#[cfg(target_arch = "x86_64")]
mod quick;
pub(crate) mod record;
pub(crate) mod residency;
pub(crate) mod signal;
mod sources;
mod span;
mod spares;
mod sync;
mod tape;
mod tcgen05;
mod tensor_copy;
mod texture;
mod touched;
mod transfer;
mod units;
mod unset;
mod warp;
mod wgmma;
mod wmma;
