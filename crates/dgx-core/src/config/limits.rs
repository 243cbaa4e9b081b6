//! Numeric limits of a round file: the reader refuses values beyond them, and the schema lets
//! editors do so too.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use crate::diagnostic::did_you_mean;
use crate::document::{Allowed, Within, refused};
use crate::domain::Counter;
use crate::domain::bounds::{CLAIM, EXTENT, GROUPS};

macro_rules! allowed {
    ($($(#[$doc:meta])* $name:ident: $number:ty = $range:expr;)*) => {$(
        $(#[$doc])*
        pub(super) struct $name;

        impl Allowed for $name {
            type Number = $number;
            const RANGE: RangeInclusive<$number> = $range;
        }
    )*};
}

/// A speedup, or a multiple of a counter.
pub const FACTOR: RangeInclusive<f64> = 1e-3..=1e3;

allowed! {
    /// With a larger tolerance wrong kernels pass.
    Tolerance: f64 = 0.0..=0.1;
    /// Seconds; a day at most.
    Timeout: f64 = 0.1..=86_400.0;
    MaxSeconds: f64 = 0.01..=86_400.0;
    MinBlocks: u32 = 1..=1_000_000;
    Processes: u32 = 1..=64;
    Warmup: u32 = 0..=10_000;
    Factor: f64 = FACTOR;
    Smem: u32 = 1..=1 << 30;
    Registers: u32 = 1..=255;
    Occupancy: f64 = 0.0..=1.0;
    Retries: u32 = 0..=1000;
}

pub(super) const SCORE: RangeInclusive<f64> = 0.0..=10.0;

/// The range of a single size, for the schema.
pub(super) fn size() -> Schema {
    json_schema!({ "type": "integer", "minimum": 1, "maximum": EXTENT })
}

/// One size, or a list of them.
pub(super) fn sizes() -> Schema {
    json_schema!({
        "anyOf": [
            size(),
            { "type": "array", "minItems": 1, "maxItems": GROUPS, "items": size() },
        ]
    })
}

/// Dense problems: every combination of sizes.
pub(super) fn grids(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": { "type": "object", "additionalProperties": sizes() },
    })
}

/// A remedy for a word that is not the name of a counter.
pub fn counter_remedy(name: &str) -> String {
    let names = Counter::names();
    let list = || format!("use one of {}", names.join(", "));
    did_you_mean(name, names.iter().copied()).unwrap_or_else(list)
}

#[derive(Deserialize)]
#[serde(transparent)]
struct Multiple(#[serde(with = "Within::<Factor>")] f64);

/// Counters by their names, each with a factor.
pub(super) fn factors<'de, D: Deserializer<'de>>(wire: D) -> Result<Vec<(Counter, f64)>, D::Error> {
    let table = BTreeMap::<String, Multiple>::deserialize(wire)?;
    let rule = |(name, Multiple(factor)): (String, Multiple)| {
        let counter = Counter::named(&name).ok_or_else(|| {
            let message = format!("`{name}` is not a counter");
            refused(message, counter_remedy(&name))
        })?;
        Ok((counter, factor))
    };
    table.into_iter().map(rule).collect()
}

pub(super) fn factors_schema(generator: &mut SchemaGenerator) -> Schema {
    let factor = serde_json::Value::from(Within::<Factor>::json_schema(generator));
    let each = Counter::all().map(|counter| (counter.as_str().to_owned(), factor.clone()));
    let each: serde_json::Map<String, serde_json::Value> = each.collect();
    json_schema!({ "type": "object", "properties": each, "additionalProperties": false })
}

/// Two speedups.
pub(super) fn claimed_range<'de, D: Deserializer<'de>>(
    wire: D,
) -> Result<Option<(f64, f64)>, D::Error> {
    match Vec::<f64>::deserialize(wire)?.as_slice() {
        [low, high] if low <= high && CLAIM.contains(low) && CLAIM.contains(high) => {
            Ok(Some((*low, *high)))
        }
        _ => Err(refused(
            "a claim is a pair of speedups from 0.001 to 1000, least first",
            "e.g. claim = [1.5, 1.8]",
        )),
    }
}

pub(super) fn claimed_range_schema(_: &mut SchemaGenerator) -> Schema {
    let speedup = json_schema!({
        "type": "number", "minimum": CLAIM.start(), "maximum": CLAIM.end()
    });
    json_schema!({ "type": "array", "minItems": 2, "maxItems": 2, "items": speedup })
}
