//! What the user sees on a terminal. Text in, text out: nothing here decides,
//! and nothing is said by colour alone.

mod belief;
mod comparison;
mod counters;
#[cfg(feature = "run")]
mod debug;
mod failures;
mod gate;
mod grid;
mod hazards;
mod matrix;
#[cfg(test)]
mod mutations;
mod next;
mod number;
mod ranking;
mod repetition;
mod style;
mod summary;

pub(crate) use belief::{belief, belief_again, belief_in, micros_title, model_error};
pub(crate) use comparison::{UNPAIRED, comparison_table};
pub(crate) use counters::{Counted, counters_of_run, counters_table};
#[cfg(feature = "run")]
pub(crate) use debug::{AccountText, Telling};
pub(crate) use failures::{failed, failures, first_wrong};
pub(crate) use gate::{
    foreign, found, gap, gate_gaps, gate_notes, gate_outcome, gate_report, lacks, reason,
    ruling_word, wanted,
};
pub(crate) use grid::{Align, Column, Grid};
pub(crate) use hazards::{hazards_of_cell, hazards_summary, hazards_text};
pub(crate) use matrix::matrix;
pub(crate) use next::{Folders, Met};
pub(crate) use number::{count, interval, percent, signed_percent, speedup, threshold};
pub(crate) use ranking::{
    CLAIM, Over, bound_text, claim_words, mean_micros, mean_title, ranking_table, verdict_word,
};
pub(crate) use repetition::{Agreed, agree_word, repetition_table};
pub(crate) use style::Style;
pub(crate) use summary::{Asked, headline, notes, sweep_summary, unranked};
