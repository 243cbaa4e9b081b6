use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A time in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Micros(pub f64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            t if t < 10.0 => format!("{t:.2}"),
            t if t < 100.0 => format!("{t:.1}"),
            t => format!("{t:.0}"),
        };
        f.pad(&text)
    }
}

/// A size in bytes. Prefixes are binary and written so: a plain M would be a million.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const K: u64 = 1024;
        let text = match self.0 {
            b if b < K => format!("{b} B"),
            b if b < K * K => format!("{} KiB", b.div_ceil(K)),
            b if b < K * K * K => format!("{:.1} MiB", b as f64 / (K * K) as f64),
            b => format!("{:.1} GiB", b as f64 / (K * K * K) as f64),
        };
        f.pad(&text)
    }
}

/// An estimate with its interval. A point estimate has no bounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    pub estimate: f64,
    pub lower: Option<f64>,
    pub upper: Option<f64>,
}

impl Interval {
    pub fn point(estimate: f64) -> Self {
        Self {
            estimate,
            lower: None,
            upper: None,
        }
    }
}
