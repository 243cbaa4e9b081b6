//! Executes PTX on a CPU: Hopper tensor cores, bulk copies and mbarriers included.
//!
//! The stages, each a module with one job:
//!
//! 1. [`front`] reads PTX text into a syntax tree that remembers lines and inlining.
//! 2. [`lower`] checks the tree and turns it into the predecoded program of [`op`].
//! 3. [`exec`] runs warps of that program; [`tensor`] and [`numeric`] hold the arithmetic.
//! 4. [`launch`] is the door for callers; [`fault`] and [`counters`] are what comes back.

pub mod counters;
pub mod exec;
pub mod fault;
pub mod front;
pub mod launch;
pub mod lower;
pub mod memory;
pub mod numeric;
pub mod op;
pub mod tensor;
