//! What a round file may say, in numbers: for the reader, which refuses what is
//! beyond them, and for the schema, by which editors do.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::domain::Counter;
use crate::domain::Distribution;
use crate::domain::bounds::{CLAIM, EXTENT, GROUPS};

/// Looser than this and wrong kernels pass.
pub(super) const TOLERANCE: RangeInclusive<f64> = 0.0..=0.1;
/// Seconds; a day at most.
pub(super) const TIMEOUT: RangeInclusive<f64> = 0.1..=86_400.0;
pub(super) const MAX_SECONDS: RangeInclusive<f64> = 0.01..=86_400.0;
pub(super) const MIN_BLOCKS: RangeInclusive<u32> = 1..=1_000_000;
pub(super) const PROCESSES: RangeInclusive<u32> = 1..=64;
pub(super) const WARMUP: RangeInclusive<u32> = 0..=10_000;
/// A speedup, or a multiple of a counter.
pub const FACTOR: RangeInclusive<f64> = 1e-3..=1e3;
pub(super) const SMEM: RangeInclusive<u32> = 1..=1 << 30;
pub(super) const REGISTERS: RangeInclusive<u32> = 1..=255;
pub(super) const OCCUPANCY: RangeInclusive<f64> = 0.0..=1.0;
pub(super) const RETRIES: RangeInclusive<u32> = 0..=1000;
pub(super) const SCORE: RangeInclusive<f64> = 0.0..=10.0;
/// TMA wants 16-byte rows of scales, 16 elements a scale.
pub(super) const K_MULTIPLE: i64 = 256;
pub(super) const N_MULTIPLE: i64 = 128;

/// What a size may be, one by itself.
pub(super) struct Size<const MULTIPLE: i64>;

impl<const MULTIPLE: i64> JsonSchema for Size<MULTIPLE> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Size{MULTIPLE}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "integer", "minimum": 1, "maximum": EXTENT, "multipleOf": MULTIPLE
        })
    }
}

/// One size, or a list of them.
pub(super) struct Sizes<const MULTIPLE: i64>;

impl<const MULTIPLE: i64> JsonSchema for Sizes<MULTIPLE> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Sizes{MULTIPLE}").into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<Size<MULTIPLE>>();
        json_schema!({
            "anyOf": [one, { "type": "array", "minItems": 1, "maxItems": GROUPS, "items": one }]
        })
    }
}

/// The name of a distribution.
pub(super) struct DistributionName;

impl JsonSchema for DistributionName {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Distribution".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Distribution::ALL.map(Distribution::as_str) })
    }
}

/// Counters by their names, each with a factor.
pub(super) struct Factors;

impl JsonSchema for Factors {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Factors".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let factor = number(&FACTOR);
        let each = Counter::all().map(|counter| (counter.as_str().to_owned(), factor.clone()));
        let each: serde_json::Map<String, serde_json::Value> = each.collect();
        json_schema!({ "type": "object", "properties": each, "additionalProperties": false })
    }
}

/// Two speedups.
pub(super) struct ClaimedRange;

impl JsonSchema for ClaimedRange {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ClaimedRange".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "minItems": 2, "maxItems": 2, "items": number(&CLAIM) })
    }
}

fn number(range: &RangeInclusive<f64>) -> serde_json::Value {
    serde_json::json!({ "type": "number", "minimum": range.start(), "maximum": range.end() })
}
