//! How long would a kernel take? Replays on a modelled GPU what `ptx-emu` saw warps do.
//!
//! ```no_run
//! # fn example(
//! #     cubin: Vec<u8>,
//! #     trace: ptx_emu::trace::Trace,
//! #     machine: ptx_time::Machine,
//! # ) -> Result<(), Box<dyn std::error::Error>> {
//! use ptx_time::{CallTimes, Code, Launched};
//!
//! let code = Code::read(&cubin, "gemm")?;
//! let launch = Launched {
//!     code: &code,
//!     trace: &trace,
//!     ctas: 128,
//!     cluster: 1,
//!     resident: 1,
//!     dependent: false,
//!     beside: false,
//!     fetched: false,
//! };
//! let call = CallTimes::replay(&machine, &[launch], false)?;
//! println!("{:.1} µs at {:.0} MHz", call.micros, call.clock_mhz);
//! # Ok(())
//! # }
//! ```
//!
//! Results never depend on time: a launch is executed first, and leaves a trace of some of its
//! CTAs. Time is found afterwards, in five steps, each a room:
//!
//! - `cubin` and `sass` read the instructions that the assembler made of the PTX, with the
//!   schedule it wrote into them and the line each came from;
//! - `flow` and `script` tell each warp's trace in those instructions: the compiler moves and
//!   copies code, but not across the points where warps wait for one another;
//! - `sm` replays the warps of the CTAs an SM holds, cycle by cycle: who issues when, which unit
//!   is busy, who waits for which barrier, copy or product;
//! - `call` makes a call of it: how the CTAs fall to the SMs, what their shares of L2 and memory
//!   are, and what starting costs; `classes` tells which CTAs are alike and are replayed only once;
//! - `trust` says when the result means nothing.
//!
//! A [`Machine`] is nothing but numbers; those of tensor memory only where there is any.

mod call;
mod classes;
mod cubin;
mod flow;
mod sass;
mod script;
mod sm;
mod spans;
mod times;
mod trust;

pub use call::{CallTimes, LaunchTimes, Launched, ReplayError};
pub use cubin::{Code, CubinError};
pub use ptx_machine::{Machine, TensorMemory};
pub use sm::{Awaited, Stuck, Waiting};
pub use times::{Activity, Cause, CtaTimes, Epilogue, Span, WarpTimes};
pub use trust::telling;
