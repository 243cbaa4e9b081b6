use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Micros;

/// The source of times. Different sources never share a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Timing {
    /// Measured by this tool, with CUDA events on a GPU.
    Measured,
    /// Replayed from the actions of the emulator's warps.
    Modelled,
    /// Recorded elsewhere, without samples.
    #[default]
    Recorded,
    /// Read from a script, to test the measuring itself: they prove nothing about any design.
    Scripted,
}

words!(Timing {
    Measured = "measured",
    Modelled = "modelled",
    Recorded = "recorded",
    Scripted = "scripted",
});

impl Timing {
    /// Whether times are samples in blocks.
    pub fn sampled(self) -> bool {
        match self {
            Self::Measured | Self::Scripted => true,
            Self::Modelled | Self::Recorded => false,
        }
    }
}

/// The backend that runs contenders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackendKind {
    /// An NVIDIA GPU.
    Cuda,
    /// The PTX emulator.
    Emu,
    /// A script that answers like a GPU, to test the measuring itself.
    Fake,
    /// Nothing here: the numbers were recorded elsewhere.
    #[default]
    None,
}

words!(BackendKind {
    Cuda = "cuda",
    Emu = "emu",
    Fake = "fake",
    None = "none",
});

impl BackendKind {
    /// The kind of its times, which is fixed for each backend.
    pub fn timing(self) -> Timing {
        match self {
            Self::Cuda => Timing::Measured,
            Self::Emu => Timing::Modelled,
            Self::Fake => Timing::Scripted,
            Self::None => Timing::Recorded,
        }
    }
}

impl FromStr for BackendKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        named.ok_or_else(|| format!("there is no backend `{text}`"))
    }
}

/// The start and duration of a kernel within a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelTime {
    pub name: String,
    /// From the start of the call's first CTA to that of its own first.
    pub start: Micros,
    /// From its first CTA's start to its last one's end.
    pub micros: Micros,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_names_are_the_printed_names() {
        for kind in BackendKind::ALL {
            let json = serde_json::to_string(&kind).unwrap();
            assert_eq!(json, format!("\"{kind}\""));
            assert_eq!(kind.as_str().parse(), Ok(kind));
            let json = serde_json::to_string(&kind.timing()).unwrap();
            assert_eq!(json, format!("\"{}\"", kind.timing().as_str()));
        }
    }
}
