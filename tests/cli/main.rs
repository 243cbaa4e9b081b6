//! What a user sees: the built `dgx`, run in a folder of its own, its output
//! and exit code held against snapshots.

mod bad_input;
mod beginning;
mod blackwell;
mod broken_variants;
mod browser;
mod calibrating;
mod cards;
mod cheating;
mod comfort;
mod compiling;
mod debugging;
mod documents;
mod fitting;
mod gating;
mod interchange;
mod listing;
mod measuring;
mod merging;
mod odd_files;
mod odd_runs;
mod pasting;
mod profiling;
mod reading;
mod recipes;
mod resuming;
mod running;
mod sanitizing;
mod selecting;
mod slurm;
mod speech;
mod stage;
mod sweep;
mod sweeping;
mod timing;
mod workspace;
