//! The driver API: `cu…`.

mod array;
mod context;
mod device;
mod entry;
mod event;
mod function;
mod graph;
mod jit;
mod launch;
mod link;
mod memory;
mod module;
mod pointer;
mod stream;
mod tensor_map;
mod transfer;
mod virtual_memory;
