use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How operand values are drawn.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// The public benchmark's: |v| ≤ 1.5, scales in [0, 1). Used for timing, because values affect
    /// power draw and thus clocks.
    Benchmark,
    /// Every e2m1 code and every finite positive e4m3 code, including zero and subnormals, with
    /// rows of zeros among the others, balanced so that C stays within fp16.
    Full,
    /// Like `Full`, with some rows that have a NaN or negative scale, products beyond fp16, or a C
    /// below its normal numbers.
    Corner,
    /// The same without negative scales, which ue4m3 does not have.
    CornerUnsigned,
    /// Every partial sum is exact in fp32 and far larger than the result: a dropped or rounded term
    /// shows. Not every operator has such data.
    Exact,
}

words!(Distribution {
    Benchmark = "benchmark",
    Full = "full",
    Corner = "corner",
    CornerUnsigned = "corner-unsigned",
    Exact = "exact",
});

impl Distribution {
    /// The default data of a validation.
    pub const USUAL: [Self; 3] = [Self::Benchmark, Self::Full, Self::Corner];

    /// Its replacement for hardware that reads scales as ue4m3, or does not.
    pub fn with_scales(self, unsigned: bool) -> Self {
        match self {
            Self::Corner if unsigned => Self::CornerUnsigned,
            other => other,
        }
    }
}
