//! Run competing designs of one GPU kernel, check each against an oracle,
//! time the right ones side by side, and say which is fastest and how surely.
//!
//! Data flows one way, and the modules are listed in its order:
//!
//! ```text
//! config + catalog → plan → compile → backend → validate → measure → record ‖
//!     stats → rank → gate → tables, report
//! ```
//!
//! Left of ‖ only [`sweep`] knows all the stages. Right of ‖ nothing touches a
//! backend: every table, gate and report is made from a run file alone.

// One door leads to the terminal.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

#[macro_use]
pub mod speech;

pub mod child;
pub mod domain;
pub mod files;

pub mod diagnostic;
pub mod expr;

pub mod document;
pub mod operator;
pub mod stats;

pub mod config;

pub mod catalog;

pub mod plan;

pub mod compile;
pub mod validate;

pub mod backend;

pub mod measure;

pub mod worker;

pub mod record;

pub mod sweep;

pub mod rank;

pub mod claims;

pub mod gate;

pub mod present;

pub mod contest;
pub mod explain;
pub mod export;

pub mod report;

pub mod cli;
