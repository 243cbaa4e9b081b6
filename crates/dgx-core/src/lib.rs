//! What a run of dgx is, and what follows from it: rounds and devices, run files, statistics,
//! ranks, claims, gates and merges. Nothing here needs a GPU, a compiler or the emulator: every
//! table is made from a run file alone, on any machine.
//!
//! Each module uses only modules listed above it; a test in the `dgx` crate reads the sources and
//! reports violations.

// Only `speech` writes to the terminal.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod printable;

#[macro_use]
pub mod speech;
#[macro_use]
mod words;

pub mod clean;
pub mod decode;

pub mod domain;
pub mod files;
pub mod home;
pub mod interrupt;
pub mod number;

pub mod diagnostic;
pub mod expr;

pub mod document;
pub mod operator;
pub mod stats;

pub mod fields;

pub mod config;

pub mod record;

pub mod merge;
pub mod sanitize;

pub mod rank;

pub mod interchange;

pub mod claims;

pub mod gate;
