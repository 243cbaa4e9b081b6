use serde::{Deserialize, Serialize};

/// Where times come from. They are never mixed in one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Timing {
    /// CUDA events on a GPU, by this tool.
    Measured,
    /// Computed from the emulator's counters.
    Modelled,
    /// Numbers taken down elsewhere, without samples.
    Recorded,
}

impl Timing {
    /// The word every table of such times carries.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Modelled => "modelled",
            Self::Recorded => "recorded",
        }
    }
}
