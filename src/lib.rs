//! The user's side of dgx: the command line, tables, exports, reports. dgx runs competing designs
//! of one GPU kernel, checks each against an oracle, times the correct ones side by side, and ranks
//! them.
//!
//! Data flows one way, through three crates:
//!
//! ```text
//! round file →  dgx-run    catalog → plan → compile → validate → measure  → run file
//! run file   →  dgx-core   merge → rank → claims → gate                   → findings
//! findings   →  dgx        tables → exports, contest, report
//! ```
//!
//! A run file is all that `dgx-core` needs: every table, gate and report is made
//! from it alone, on any machine. `dgx-run` makes run files, and needs NVRTC and
//! a GPU or the emulator; only the commands in `cli/run` use it. Without the
//! feature `run` dgx is built without it.
//!
//! The modules of each crate are listed so that each uses only those above it; a
//! test reads the sources and says where one does not.

// Only `speech` writes to the terminal.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
// Functions that only the commands behind the feature `run` use.
#![cfg_attr(not(feature = "run"), allow(dead_code, unused_imports))]

#[macro_use]
extern crate dgx_core;

#[cfg(feature = "run")]
mod cluster;

mod table;

mod present;

mod contest;
#[cfg(feature = "run")]
mod cost_fit;
mod export;

mod agreement;

mod report;

mod cli;

#[cfg(test)]
mod tests;

/// The whole program: its commands, output and exit codes.
pub use cli::main;
