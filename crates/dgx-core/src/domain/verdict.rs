use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ContenderId, Distribution, Hazard, Status};

/// Maximum number of recorded hazards per cell; the reason contains their number.
const MOST_HAZARDS: usize = 64;

/// The result of validating one cell. A later verdict on the same cell replaces an `ok` (a timed
/// output can still turn out wrong), and only that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verdict {
    pub contender: ContenderId,
    pub shape: String,
    pub status: Status,
    /// One line for the table: why it is not ok.
    pub reason: Option<String>,
    /// All details: places, patterns, fault with source line.
    pub detail: Option<String>,
    /// Largest error over the tolerance there; ≤ 1 passes.
    pub worst: Option<f64>,
    pub millis: f64,
    /// The output of the contender's kernels, up to a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub printed: Option<String>,
    /// Emulator counters, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, f64>,
    /// Hazards that the emulator found and a result does not show.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hazards: Vec<Hazard>,
    /// Data of the round that no call used, because its calls take long.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<Distribution>,
}

impl Verdict {
    /// A verdict with this status; callers fill in the rest.
    pub fn new(contender: &ContenderId, shape: &str, status: Status) -> Self {
        Self {
            contender: contender.clone(),
            shape: shape.to_owned(),
            status,
            reason: None,
            detail: None,
            worst: None,
            millis: 0.0,
            printed: None,
            counters: BTreeMap::new(),
            hazards: Vec::new(),
            unseen: Vec::new(),
        }
    }

    /// Adds hazards: as the reason if the result is correct, as the likely cause if it is wrong.
    pub fn add_hazards(&mut self, mut hazards: Vec<Hazard>) {
        let Some(first) = hazards.first() else {
            return;
        };
        let more = match hazards.len() {
            1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        let found = format!("{first}{more}");
        hazards.truncate(MOST_HAZARDS);
        let explanations: Vec<String> = hazards.iter().map(Hazard::explanation).collect();
        let explanations = explanations.join("\n\n");
        if self.status == Status::Ok {
            self.status = Status::Racy;
            self.reason = Some(found);
            self.detail = Some(explanations);
        } else {
            let reason = self.reason.take().unwrap_or_default();
            self.reason = Some(format!("{reason}; {found}"));
            let detail = self.detail.take().map(|detail| format!("\n\n{detail}"));
            self.detail = Some(explanations + &detail.unwrap_or_default());
        }
        self.hazards = hazards;
    }
}
