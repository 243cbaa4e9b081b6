//! Executes PTX on a CPU: Hopper tensor cores, bulk copies and mbarriers included.
//!
//! ```no_run
//! use ptx_emu::{Launch, Memory, Module, Params};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let module = Module::load(&std::fs::read_to_string("kernel.ptx")?)?;
//! let mut memory = Memory::new();
//! let out = memory.alloc(4096)?;
//! let params = Params::new().pointer(out).u32(1024);
//! let launch = Launch::new("fill").grid([8, 1, 1]).block([128, 1, 1]).params(params);
//! let report = launch.run(&module, &mut memory)?;
//! println!("{} instructions", report.counters.total_instructions());
//! # Ok(())
//! # }
//! ```
//!
//! This page is the whole door:
//!
//! - a [`Module`] is PTX text made ready to run; what cannot run is refused by name and line;
//! - [`Memory`] holds allocations, which kernels know by [`DevicePtr`]s; [`TensorMap`]s describe
//!   tensors in it;
//! - a [`Launch`] runs one kernel with [`Params`] as a [`Config`] says, on the device of a
//!   [`Profile`];
//! - a [`Report`] with [`Counters`] comes back, or a [`LaunchError`]; a [`Fault`] is the kernel's.
//!
//! Behind it, each room with one job: `front` reads PTX into a syntax tree that remembers lines
//! and inlining; `lower` checks the tree and turns it into the predecoded program of `op`; `exec`
//! runs warps of that program; `tensor` and `numeric` hold the arithmetic.

mod config;
mod counters;
mod exec;
mod fault;
mod front;
mod launch;
mod lower;
mod memory;
mod module;
mod numeric;
mod op;
mod profile;
mod report;
mod tensor;
pub mod trace;

pub use config::Config;
pub use counters::{CLASSES, Class, Counters};
pub use fault::{EarlyRead, Fault, FaultKind, Frame, Place, Wait};
pub use front::{ParseError, Position};
pub use launch::{Launch, LaunchError, Params};
pub use lower::{CompileError, LowerError, Problem};
pub use memory::{DevicePtr, Memory, MemoryError};
pub use module::{Kernel, Module};
pub use numeric::simd::Level;
pub use profile::Profile;
pub use report::Report;
pub use tensor::tensormap::{Fill, Im2col, MapElement, TensorMap, TensorMapError, Tiled};
pub use tensor::{Numerics as MmaMode, Swizzle};

/// The tile kernels themselves, for `benches/tensor.rs`; no part of the door.
#[cfg(feature = "bench")]
#[doc(hidden)]
pub mod bench {
    pub use crate::numeric::{Lanes, lanes};
    pub use crate::tensor::descriptor::{Major, Matrix};
    pub use crate::tensor::wgmma::{Accumulator, Form, OperandA, Step};
    pub use crate::tensor::{Element, mma};

    /// Loads a box of a tensor whose memory begins at address 0.
    pub fn load_box(map: &crate::TensorMap, at: &[i32], global: &[u8], shared: &mut [u8]) {
        let rows = map.rows_at(at, &[]).expect("a coordinate per dimension");
        // SAFETY: nobody writes the slice.
        let loaded = unsafe {
            map.load(rows, shared, 0, |from, bytes| {
                let range = from as usize..(from + bytes) as usize;
                let found = global.get(range).map(crate::memory::HostBytes::to_read);
                found.ok_or(())
            })
        };
        loaded.expect("a box inside the tensor");
    }
}
