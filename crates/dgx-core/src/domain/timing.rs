use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Micros;

/// Where times come from. They are never mixed in one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Timing {
    /// CUDA events on a GPU, by this tool.
    Measured,
    /// Replayed from what the emulator's warps did.
    Modelled,
    /// Numbers taken down elsewhere, without samples.
    Recorded,
    /// Read from a script, to try the measuring itself: they say nothing about
    /// any design.
    Scripted,
}

impl Timing {
    /// The word every table of such times carries.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Modelled => "modelled",
            Self::Recorded => "recorded",
            Self::Scripted => "scripted",
        }
    }

    /// Whether times come as samples, in blocks.
    pub fn sampled(self) -> bool {
        match self {
            Self::Measured | Self::Scripted => true,
            Self::Modelled | Self::Recorded => false,
        }
    }
}

/// What runs contenders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackendKind {
    /// An NVIDIA GPU.
    Cuda,
    /// The PTX emulator.
    Emu,
    /// A script that answers as a GPU would, to try the measuring itself.
    Fake,
    /// Nothing here: the numbers were recorded elsewhere.
    None,
}

impl BackendKind {
    pub const ALL: [Self; 4] = [Self::Cuda, Self::Emu, Self::Fake, Self::None];

    /// Its name in run files and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cuda => "cuda",
            Self::Emu => "emu",
            Self::Fake => "fake",
            Self::None => "none",
        }
    }

    /// What its times are: no backend has a choice.
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

impl fmt::Display for BackendKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// When a kernel of a call runs.
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
