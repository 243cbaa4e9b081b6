//! The driver API: `cu…`.

mod array;
mod context;
pub(crate) mod device;
pub(crate) mod entry;
mod event;
mod function;
mod graph;
mod jit;
mod launch;
mod link;
mod memory;
mod module;
mod pointer;
pub(crate) mod stream;
mod tensor_map;
mod transfer;
mod virtual_memory;

/// Names the emulated device.
pub(crate) const UUID: [u8; 16] = *b"dgx emulated gpu";
