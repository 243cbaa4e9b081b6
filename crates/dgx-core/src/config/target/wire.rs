//! A target file as it is written.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::document::Spanned;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TargetFile {
    pub name: Spanned<String>,
    pub arch: Spanned<String>,
    pub sources: BTreeMap<String, Spanned<String>>,
    pub limits: LimitsTable,
    pub peaks: PeaksTable,
    pub model: Spanned<ModelTable>,
    pub calibration: Option<CalibrationTable>,
    /// Rounds whose runs were examined while the model was built.
    #[serde(default)]
    pub seen: Vec<String>,
}

/// By the names of [`ptx_machine::Machine::NAMES`], all but `sms`.
pub(super) type ModelTable = BTreeMap<Spanned<String>, Figure>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CalibrationTable {
    pub run: Spanned<String>,
    pub median: Spanned<f64>,
    pub p90: Spanned<f64>,
    pub worst: Spanned<f64>,
    pub cells: Spanned<u32>,
    #[serde(default)]
    pub operators: Vec<Spanned<String>>,
    /// Of the compared numbers.
    pub digest: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LimitsTable {
    pub sms: Figure,
    pub memory: Figure,
    pub l2: Figure,
    pub shared_per_sm: Figure,
    pub shared_per_block: Figure,
    pub shared_reserved: Figure,
    pub registers_per_sm: Figure,
    pub register_unit: Figure,
    pub threads_per_sm: Figure,
    pub threads_per_block: Figure,
    pub blocks_per_sm: Figure,
    pub blocks_per_cluster: Figure,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PeaksTable {
    pub clock_mhz: Figure,
    pub bandwidth: Figure,
    pub tensor_flops: Figure,
}

/// A number, and the name of its source.
#[derive(Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a number with its source, { value = …, from = \"…\" }"
)]
pub(super) struct Figure {
    pub value: Spanned<f64>,
    pub from: Spanned<String>,
}
