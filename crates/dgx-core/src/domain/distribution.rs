use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How operand values are drawn.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// The public benchmark's: |v| ≤ 1.5, scales in [0, 1). Used for timing,
    /// because values change power draw and so clocks.
    Benchmark,
    /// Every e2m1 code and every finite positive e4m3 code, zero and
    /// subnormals included, rows of zeros among the others, balanced so that
    /// C stays inside fp16.
    Full,
    /// As `Full`, and some rows with a scale that is NaN or negative, with
    /// products beyond fp16, or with a C below its normal numbers.
    Corner,
    /// The same without negative scales, which ue4m3 does not have.
    CornerUnsigned,
    /// Every partial sum is exact in fp32 and far larger than the result: a
    /// term that was dropped or rounded is seen. Not every operator has them.
    Exact,
}

impl Distribution {
    pub const ALL: [Self; 5] = [
        Self::Benchmark,
        Self::Full,
        Self::Corner,
        Self::CornerUnsigned,
        Self::Exact,
    ];
    /// What a validation draws from unless its round says otherwise.
    pub const USUAL: [Self; 3] = [Self::Benchmark, Self::Full, Self::Corner];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Benchmark => "benchmark",
            Self::Full => "full",
            Self::Corner => "corner",
            Self::CornerUnsigned => "corner-unsigned",
            Self::Exact => "exact",
        }
    }

    /// What is drawn in its place where the hardware reads scales as ue4m3, or
    /// does not.
    pub fn with_scales(self, unsigned: bool) -> Self {
        match self {
            Self::Corner if unsigned => Self::CornerUnsigned,
            other => other,
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
