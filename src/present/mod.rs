//! What the user sees on a terminal. Text in, text out: nothing here decides,
//! and nothing is said by colour alone.

mod comparison;
mod counters;
mod failures;
mod gate;
mod grid;
mod matrix;
#[cfg(test)]
mod mutations;
mod number;
mod ranking;
mod repetition;
mod style;
mod summary;

pub use comparison::comparison_table;
pub use counters::{Counted, counters_of_run, counters_table};
pub use failures::failures;
pub use gate::{
    found, gap, gate_gaps, gate_notes, gate_outcome, gate_report, reason, ruling_word, wanted,
};
pub use grid::{Align, Column, Grid};
pub use matrix::matrix;
pub use number::{count, interval, percent, signed_percent, speedup, threshold};
pub use ranking::ranking_table;
pub use repetition::{repetition, repetition_table, spread};
pub use style::Style;
pub use summary::{headline, sweep_summary};
