//! Executes PTX on a CPU: Hopper's and Blackwell's tensor cores, bulk copies and mbarriers included.
//!
#![doc = concat!("```\n", include_str!("../examples/square.rs"), "```")]
//!
//! This page is the whole interface:
//!
//! - a [`Module`] is PTX text made ready to run; what cannot run is refused by name and line;
//! - [`Memory`] holds allocations, which kernels know by [`DevicePtr`]s; [`TensorMap`]s describe
//!   tensors in it;
//! - a [`Launch`] runs one kernel with [`Params`] as a [`Config`] says, on the device of a
//!   [`DeviceLimits`];
//! - a [`Report`] with [`Counters`] comes back, or a [`LaunchError`]; a [`Fault`] is the kernel's;
//! - [`Launch::run_traced`] also says what warps did, in the words of [`trace`];
//! - [`Launch::run_sanitized`] also says what was right by luck: [`Findings`] of [`Hazard`]s;
//! - [`Launch::run_watched`], who touched the bytes of [`Watchpoint`]s.
//!
//! Behind it, each room with one job: `front` reads PTX into a syntax tree that remembers lines
//! and inlining; `lower` checks the tree and turns it into the predecoded program of `op`; `exec`
//! runs warps of that program; `tensor` and `numeric` hold the arithmetic.

/// The example of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(feature = "bench")]
#[doc(hidden)]
pub mod bench;
#[cfg(target_arch = "x86_64")]
mod code;
mod config;
mod counters;
mod evidence;
mod exec;
mod fault;
mod front;
mod hazard;
mod launch;
mod limits;
mod lower;
mod memory;
#[doc(hidden)]
pub mod mixed;
mod module;
mod name;
mod numeric;
mod op;
mod report;
mod tensor;
mod texture;
pub mod trace;
mod watchpoint;

pub use config::{Config, Engine};
pub use counters::{CLASSES, Class, Counters};
pub use evidence::Evidence;
pub use fault::{EarlyRead, Fault, FaultKind, Frame, Place, Wait};
pub use front::{ParseError, Position};
pub use hazard::{Finding, Findings, Hazard, Region, Sanitize, Site, Spot, Wake};
pub use launch::{Launch, LaunchError, Params};
pub use limits::DeviceLimits;
pub use lower::{CompileError, LowerError, Problem, WrongTarget};
pub use memory::{Allocation, DevicePtr, Memory, MemoryError, Value};
pub use module::{Kernel, Module, Param};
pub use name::source_name;
pub use numeric::simd::Level;
pub use report::{Busiest, Most, Print, Report, ended_ctas};
pub use tensor::tensormap::{Fill, Im2col, MapElement, TensorMap, TensorMapError, Tiled};
pub use tensor::{Numerics as MmaMode, Swizzle};
pub use texture::{Channel, Edge, Texture};
pub use watchpoint::{Touch, Touches, Watchpoint};
