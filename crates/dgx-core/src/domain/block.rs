use serde::{Deserialize, Serialize};

use super::{ContenderId, Micros};

/// One randomised complete block: every contender of a shape timed once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    pub shape: String,
    pub process: u32,
    pub block: u32,
    /// The uuid of the card it ran on, if that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<String>,
    /// In the order they ran.
    pub samples: Vec<Sample>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    pub contender: ContenderId,
    /// 0, or 1 for the baseline's second entry (the A/A arm).
    pub arm: u32,
    pub micros: Micros,
    /// SM clock during the sample, if it was read.
    pub clock_mhz: Option<f64>,
}
