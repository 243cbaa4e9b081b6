//! How a run of dgx is made: kernels are read, planned, compiled, run on a GPU
//! or in the emulator, checked against the oracle and timed.
//!
//! ```text
//! catalog → plan → compile → backend → validate, measure → record
//! ```
//!
//! Only `sweep` knows all the stages. `sweep` is the host side and sends requests; `worker` is the
//! device side, a process that executes them: `worker/validate` serves `sweep/validate`, and
//! likewise `measure` and `examine`. The options of a run travel as one `Settings`, from the
//! command line into the header and every request.
//!
//! The modules are listed so that each uses only those above it; a test in the
//! `dgx` crate reads the sources and says where one does not.

// Only `speech` writes to the terminal.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

#[macro_use]
extern crate dgx_core;

pub mod child;
pub mod operator;
pub mod toolkit;

pub mod catalog;

pub mod plan;

pub mod compile;
pub mod validate;

pub mod backend;

pub mod profile;

pub mod worker;

pub mod explain;
pub mod sweep;

pub mod debug;
pub mod sanitize;
