//! A conformance suite for PTX: one small kernel per instruction form.
//!
//! Each [`Case`] is a complete PTX module with its launch, its input bytes and
//! the initial bytes of its outputs. The suite has two sides that meet only in
//! the golden files: [`record`] runs every case on a GPU and stores what came
//! out, [`replay`] runs the same case in `ptx-emu` and compares. Nothing about
//! the expected results is written by hand, so a disagreement is always one
//! between the emulator and the silicon.

mod case;
mod elementwise;
pub mod families;
pub mod forms;
pub mod golden;
mod gpu;
mod kernel;
mod numbers;
mod operand;
mod packing;
pub mod record;
pub mod replay;
mod values;

pub use case::{Case, Compare, Element, Launch};
