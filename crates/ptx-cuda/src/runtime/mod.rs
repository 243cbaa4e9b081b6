//! The runtime API: `cuda…`, and what nvcc's host code calls.

mod array;
mod device;
mod error;
mod event;
mod function;
mod graph;
mod launch;
mod library;
mod memory;
mod nodes;
mod pool;
mod properties;
mod registration;
mod stream;
mod symbol;
mod transfer;
