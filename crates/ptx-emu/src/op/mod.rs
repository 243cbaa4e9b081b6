//! The predecoded program: what lowering produces and the executor runs.
//!
//! A [`Program`] is one kernel with every device function it can reach, as a flat list of
//! [`Inst`]s. Everything textual is gone: branch targets are indices, registers are slots in three
//! files, constants and launch-wide special registers sit in slots that are filled before the
//! first instruction, so an operand is always a slot.
//!
//! Register files (per warp, structure of arrays over 32 lanes):
//! - 32-bit file ([`R32`]): `.b8/.b16/.b32` registers. **Invariant:** 8- and 16-bit values are
//!   zero-extended (an `.s16` of −1 is `0x0000_ffff`); every op that writes one keeps this.
//! - 64-bit file ([`R64`]): `.b64` registers; a `.b128` register is two of them, low half first.
//! - predicate file ([`P`]): one `u32` lane mask per predicate.
//!
//! A lowering that splits one PTX instruction into several [`Inst`]s repeats the guard on each and
//! must copy the guard first if an early part overwrites it.

mod copies;
mod inst;
mod memory;
pub(crate) mod operand;
mod program;
mod scalar;
mod sync;
mod tcgen05;
mod tensor;
mod texture;
mod video;

pub(crate) use crate::tensor::tensormap::Field as MapField;
pub(crate) use copies::{BulkCopy, BulkDir, CANCELED, TensorCopy, TensorMode};
pub(crate) use inst::Op;
#[cfg(test)]
pub(crate) use inst::ROWS;
pub(crate) use inst::{Unit, misrouted};
pub(crate) use memory::*;
pub use program::*;
pub(crate) use scalar::*;
pub(crate) use sync::*;
pub(crate) use tcgen05::*;
pub(crate) use tensor::*;
pub(crate) use texture::*;
pub(crate) use video::*;
