use std::fmt;

use serde::{Deserialize, Serialize};

/// How operand values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Distribution {
    /// The public benchmark's: |v| ≤ 1.5, scales in [0, 1). Used for timing,
    /// because values change power draw and so clocks.
    Benchmark,
    /// Every e2m1 code and every finite positive e4m3 code, zero and
    /// subnormals included, balanced so that C stays inside fp16.
    Full,
}

impl Distribution {
    pub(crate) const ALL: [Self; 2] = [Self::Benchmark, Self::Full];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Benchmark => "benchmark",
            Self::Full => "full",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|d| d.as_str() == name)
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
