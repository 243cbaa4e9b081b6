//! Run competing designs of one GPU kernel, check each against an oracle,
//! time the right ones side by side, and say which is fastest and how surely.
//!
//! Data flows one way:
//!
//! ```text
//! config + catalog → plan → compile → backend → validate → measure → record ‖
//!     merge → rank → claims → gate → present → export, contest, report
//! ```
//!
//! A round may be swept in parts, on many cards: `merge` makes one run file of
//! several, `cluster` has Slurm run the parts.
//!
//! Left of ‖ only `sweep` knows all the stages. Right of ‖ nothing touches a
//! backend: every table, gate and report is made from a run file alone; only
//! `debug`, which looks into one cell, needs both sides. What
//! both sides need (statuses, devices, blocks, the roofline, the statistics with
//! the rule that says when to stop measuring) stands before either.
//!
//! The modules are listed so that each uses only those above it; a test reads
//! the sources and says where one does not.

// One door leads to the terminal.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

#[macro_use]
extern crate dgx_core;

mod cluster;

mod present;

mod contest;
mod dispatch;
mod export;

mod agreement;

mod report;

mod cli;

#[cfg(test)]
mod arrows;

/// The whole program: the commands, their words and their exit codes.
pub use cli::main;
