//! A round file as it is written. Numbers are signed and lists unchecked here, so that
//! [`super::read`] can explain mistakes in our own words.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};

use super::{Gate, Measurement, Pitch, Slurm, Yardstick, limits, round::Validation};
use crate::document::{OneOrMany, Spanned, Table, refused};
use crate::domain::bounds::GROUPS;

#[derive(Clone, Copy, Debug, JsonSchema)]
#[schemars(untagged)]
pub(super) enum AskedYardstick {
    Usual(bool),
    Named(Yardstick),
}

impl<'de> Deserialize<'de> for AskedYardstick {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YardstickVisitor)
    }
}

struct YardstickVisitor;

impl Visitor<'_> for YardstickVisitor {
    type Value = AskedYardstick;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"cublas\", \"copy\", true or false")
    }

    fn visit_bool<E>(self, usual: bool) -> Result<AskedYardstick, E> {
        Ok(AskedYardstick::Usual(usual))
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<AskedYardstick, E> {
        let named = Yardstick::ALL
            .into_iter()
            .find(|known| known.as_str() == name);
        named.map(AskedYardstick::Named).ok_or_else(|| {
            let message = format!("unknown yardstick `{}`", name.escape_debug());
            refused(message, "write \"cublas\", \"copy\", true or false")
        })
    }
}

/// A round of dgx: a question, the contenders, the shapes, and the rules.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "dgx round")]
#[schemars(extend("anyOf" = [
    { "required": ["shapes"], "properties": { "shapes": { "minItems": 1 } } },
    { "required": ["grid"], "properties": { "grid": { "minItems": 1 } } },
]))]
pub(super) struct RoundFile {
    /// Names the run file. Default: the file's stem.
    pub name: Option<Spanned<String>>,
    /// One line, printed above the tables.
    pub question: Spanned<String>,
    /// The computation: the stem of a file in `operators/`. Default: `nvfp4-dual-gemm`.
    pub operator: Option<Spanned<String>>,
    /// Variants: `pipelined` for every combination of its parameters,
    /// `pipelined:STAGES=2` for one.
    #[schemars(extend("minItems" = 1))]
    pub contenders: Spanned<Vec<Spanned<String>>>,
    /// The contender that speedups are over; competes even if not listed.
    pub baseline: Spanned<Baseline>,
    /// The reference timed beside the contenders on a GPU: `cublas` or `copy`; `true` means cuBLAS
    /// if it has the operator's product, else a copy.
    pub yardstick: Option<Spanned<AskedYardstick>>,
    /// Problems, dense or grouped.
    #[serde(default)]
    pub shapes: Vec<Spanned<Shape>>,
    /// Dense problems: every combination of these sizes.
    #[serde(default)]
    #[schemars(schema_with = "limits::grids")]
    pub grid: Vec<Spanned<Grid>>,
    /// How results are checked.
    #[serde(default)]
    pub validate: Validation,
    /// How long to measure.
    #[serde(default)]
    pub measure: Measurement,
    /// How shards become jobs.
    #[serde(default)]
    pub slurm: Slurm,
    /// Rules that a run must meet.
    pub gate: Option<Gate>,
    /// Scores given before anything was measured.
    pub jury: Option<Jury>,
    /// Designs as they were proposed.
    #[serde(default)]
    pub pitch: Vec<Pitch>,
}

/// A problem of one group or several. The operator defines the sizes.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// Its name in tables; dense ones are named by their sizes.
    pub name: Option<Spanned<String>>,
    /// Groups, each spelt out, in place of sizes.
    pub groups: Option<Spanned<Vec<Spanned<Group>>>>,
    /// One number, or a list that makes groups.
    pub sizes: Grid,
}

/// The sizes of one group.
pub(super) type Group = Table<Spanned<i64>>;

/// Sizes, each one number or a list.
pub(super) type Grid = Table<Spanned<Extents>>;

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ShapeVisitor)
    }
}

struct ShapeVisitor;

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a shape")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
        let mut shape = Shape::default();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            match key.get_ref().as_str() {
                "name" => shape.name = Some(map.next_value()?),
                "groups" => shape.groups = Some(map.next_value()?),
                _ => {
                    shape.sizes.insert(key, map.next_value()?);
                }
            }
        }
        Ok(shape)
    }
}

impl JsonSchema for Shape {
    fn schema_name() -> Cow<'static, str> {
        "Shape".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let size = limits::size();
        json_schema!({
            "description": "A problem: its name, and the operator's sizes or `groups`.",
            "type": "object",
            "properties": {
                "name": {
                    "description": "What tables call it; dense ones are named by their sizes.",
                    "type": "string",
                },
                "groups": {
                    "description": "Groups, each spelt out, in place of sizes.",
                    "type": "array",
                    "minItems": 1,
                    "maxItems": GROUPS,
                    "items": { "type": "object", "additionalProperties": size },
                },
            },
            "additionalProperties": limits::sizes(),
        })
    }
}

/// A user's settings for all rounds.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UserFile {
    #[serde(default)]
    pub slurm: Slurm,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Jury {
    /// The pitched designs.
    pub candidates: Spanned<Vec<String>>,
    /// The jurors.
    pub juror: Spanned<Vec<Juror>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Juror {
    pub name: Spanned<String>,
    /// Weights that add up to 1.
    pub criteria: Spanned<Table<f64>>,
    /// One score per criterion for every candidate, 0 to 10.
    pub scores: Spanned<Table<Spanned<Vec<f64>>>>,
    /// Totals as they were announced.
    #[serde(default)]
    pub announced: Table<f64>,
    /// The candidate voted for.
    pub vote: Option<Spanned<String>>,
}

/// A contender's name, or the round whose winner it is.
#[derive(Debug, JsonSchema)]
#[schemars(untagged)]
pub(super) enum Baseline {
    Name(String),
    WinnerOf(WinnerOf),
}

impl<'de> Deserialize<'de> for Baseline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BaselineVisitor)
    }
}

struct BaselineVisitor;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WinnerOf {
    /// A round whose file lies beside this one.
    pub winner_of: String,
}

impl<'de> Visitor<'de> for BaselineVisitor {
    type Value = Baseline;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a contender's name or { winner_of = \"ROUND\" }")
    }

    fn visit_str<E>(self, value: &str) -> Result<Baseline, E> {
        Ok(Baseline::Name(value.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Baseline, A::Error> {
        let winner = WinnerOf::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Baseline::WinnerOf(winner))
    }
}

/// One size, or a list of them.
pub(super) type Extents = OneOrMany<i64, GROUPS>;
