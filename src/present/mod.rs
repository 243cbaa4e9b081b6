//! Terminal output. Text in, text out: nothing here decides anything, and colour never carries
//! information alone.

mod accuracy;
mod comparison;
mod counters;
#[cfg(feature = "run")]
mod debug;
mod failures;
mod gate;
mod hazards;
mod matrix;
mod next;
mod ranking;
mod repetition;
mod summary;
#[cfg(test)]
mod tests;

pub(crate) use crate::table::{Column, Style, Table};
pub(crate) use accuracy::{
    accuracy, accuracy_in_short, accuracy_on, between, micros_title, model_error,
    modelled_otherwise, times,
};
pub(crate) use comparison::{benchmark_table, comparison_table, recorded_table};
pub(crate) use counters::{CounterRow, all_counters, counters_of_run, counters_tables, rendered};
#[cfg(feature = "run")]
pub(crate) use debug::{DebugContext, account_text, next_command};
pub(crate) use dgx_core::number::{interval, percent, signed_percent, speedup};
pub(crate) use failures::{failure_lines, failures, first_wrong};
pub(crate) use gate::{
    foreign, gap, gate_gaps, gate_notes, gate_outcome, gate_report, gate_table, impossible, lacks,
    loose, ruling_word,
};
pub(crate) use hazards::{examined_table, hazards_of_cell, hazards_summary, hazards_text};
pub(crate) use matrix::{matrix, matrix_table};
pub(crate) use next::{Commands, Folders};
pub(crate) use ranking::{
    bound_text, claim_tone, mean_clock, mean_micros, over_title, ranking_table, status_tone,
};
pub(crate) use repetition::Repetition;
pub(crate) use summary::{SummaryOptions, headline, notes, sweep_summary, unranked};
