//! Values that check themselves while serde reads them.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeInclusive;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{
    self, DeserializeOwned, Deserializer, IntoDeserializer, SeqAccess, Unexpected, Visitor,
};
use serde::{Deserialize, Serialize, Serializer};

use super::{KEY, Spanned, refused};
use crate::domain::short;

/// A number as TOML has it, and its Rust type.
pub trait Number: Copy + PartialOrd + fmt::Display + Serialize {
    type Literal: DeserializeOwned + Copy;
    const SCHEMA_TYPE: &str;
    fn read(written: Self::Literal) -> Option<Self>;
    fn shown(written: Self::Literal) -> String;
}

impl Number for f64 {
    type Literal = f64;
    const SCHEMA_TYPE: &str = "number";
    fn read(written: f64) -> Option<f64> {
        Some(written)
    }
    fn shown(written: f64) -> String {
        short(written)
    }
}

impl Number for u32 {
    type Literal = i64;
    const SCHEMA_TYPE: &str = "integer";
    fn read(written: i64) -> Option<u32> {
        written.try_into().ok()
    }
    fn shown(written: i64) -> String {
        written.to_string()
    }
}

/// The allowed range of a number.
pub trait Allowed {
    type Number: Number;
    const RANGE: RangeInclusive<Self::Number>;
}

/// Reads a number within its range, and describes it: for `#[serde(with = …)]`.
pub struct Within<A>(PhantomData<A>);

impl<A: Allowed> Within<A> {
    /// Writes a default into a schema.
    pub fn serialize<S: Serializer>(number: &A::Number, wire: S) -> Result<S::Ok, S::Error> {
        number.serialize(wire)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(wire: D) -> Result<A::Number, D::Error> {
        let written = <A::Number as Number>::Literal::deserialize(wire)?;
        let read = <A::Number as Number>::read(written);
        read.filter(|number| A::RANGE.contains(number))
            .ok_or_else(|| {
                let (least, most) = A::RANGE.into_inner();
                let shown = <A::Number as Number>::shown(written);
                refused(
                    format_args!("{KEY} = {shown} is out of range"),
                    format_args!("give between {least} and {most}"),
                )
            })
    }
}

impl<A: Allowed> JsonSchema for Within<A> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Within".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let (least, most) = A::RANGE.into_inner();
        let number = |number: A::Number| number.to_string().parse::<serde_json::Number>().ok();
        json_schema!({
            "type": <A::Number as Number>::SCHEMA_TYPE,
            "minimum": number(least),
            "maximum": number(most),
        })
    }
}

/// Like [`Within`], for an optional key.
pub fn optional<'de, A: Allowed, D: Deserializer<'de>>(
    wire: D,
) -> Result<Option<A::Number>, D::Error> {
    Within::<A>::deserialize(wire).map(Some)
}

/// An integer, or text: an expression, for example.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected an integer or an expression in quotes")]
pub enum Value {
    Integer(i64),
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

/// A value that can stand alone or in a list.
pub trait Single: DeserializeOwned {
    const CALLED: &str;
}

impl Single for i64 {
    const CALLED: &str = "an integer";
}

impl Single for Value {
    const CALLED: &str = "an integer or an expression in quotes";
}

/// One value, or a list of up to `MOST` of them.
#[derive(Debug)]
pub enum OneOrMany<T, const MOST: usize> {
    One(T),
    Many(Vec<Spanned<T>>),
}

impl<T: JsonSchema, const MOST: usize> JsonSchema for OneOrMany<T, MOST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("OneOrMany{}{MOST}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({
            "anyOf": [one, { "type": "array", "minItems": 1, "maxItems": MOST, "items": one }]
        })
    }
}

impl<'de, T: Single, const MOST: usize> Deserialize<'de> for OneOrMany<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(wire: D) -> Result<Self, D::Error> {
        wire.deserialize_any(Either(PhantomData))
    }
}

struct Either<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Single, const MOST: usize> Visitor<'de> for Either<T, MOST> {
    type Value = OneOrMany<T, MOST>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, or a list of them", T::CALLED)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
        T::deserialize(value.into_deserializer()).map(OneOrMany::One)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        let one = T::deserialize(text.into_deserializer());
        one.map(OneOrMany::One)
            .map_err(|_: E| E::invalid_type(Unexpected::Str(text), &self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(OneOrMany::Many(values))
    }
}
