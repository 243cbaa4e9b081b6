//! Stands in for `libcuda.so.1` and `libcudart.so`: CUDA programs run on the emulator, without a
//! GPU.
//!
//! A program is started with this library in its search path: [`library::prepare`] fills a folder
//! for `LD_LIBRARY_PATH`. The environment sets the device ([`TARGET`]), the seed ([`SEED`]), the
//! hazard detector ([`SANITIZE`]), modelled times ([`TIME`]), whether kernels run at all
//! ([`SKIP`]), and a folder for reports ([`report`]).
//!
//! One core in Rust does the work; `driver` and `runtime` are the two APIs that programs see, of
//! which the core knows nothing, and `refused` lists the missing functions. Kernels run when they
//! are launched: every stream is in order, and nothing is ever pending.

mod array;
mod attributes;
mod c;
mod call;
mod capture;
mod context;
mod device;
mod driver;
mod entry;
mod error;
mod event;
mod fatbin;
mod graph;
mod graph_memory;
mod handles;
mod launch;
pub mod library;
mod limits;
mod link;
mod loaded;
mod memory;
mod module;
mod nvrtc;
mod occupancy;
mod params;
mod pool;
mod progress;
mod refused;
mod registration;
pub mod report;
mod runtime;
mod say;
mod state;
mod static_runtime;
mod stream;
mod tensor_map;
mod time;
mod virtual_memory;
mod work;

pub use device::{Properties, SANITIZE, SEED, SKIP, TARGET};
pub use time::{TIME, Timing};
