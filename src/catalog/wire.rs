//! The front matter as it is written. Nothing leaves this file unchecked: see
//! [`super::front_matter`].

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use toml::Spanned;

use super::{Fill, MapType, Swizzle};
use crate::domain::Status;

/// A table whose order matters: sort the entries by the place of their key.
pub(super) type Table<T> = BTreeMap<Spanned<String>, T>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FrontMatter {
    pub summary: Spanned<String>,
    pub extend: Option<Spanned<String>>,
    pub parent: Option<String>,
    pub round: Option<u32>,
    pub claim: Option<Spanned<Claim>>,
    pub arch: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "expectation")]
    pub expect: Option<Status>,
    #[serde(default)]
    pub params: Table<Spanned<Vec<i64>>>,
    #[serde(default, rename = "const")]
    pub constants: Table<Spanned<Value>>,
    #[serde(default, rename = "let")]
    pub lets: Table<Spanned<Value>>,
    pub tune: Option<Tune>,
    pub requires: Option<Vec<Spanned<Value>>>,
    pub tiles: Option<Spanned<Value>>,
    pub order: Option<Spanned<Value>>,
    pub deal: Option<Spanned<Deal>>,
    #[serde(default)]
    pub scratch: Vec<Scratch>,
    #[serde(default)]
    pub map: Vec<Map>,
    #[serde(default)]
    pub launch: Vec<Launch>,
    #[serde(default)]
    pub pick: Vec<Pick>,
}

/// What a validation can find.
fn expectation<'de, D: Deserializer<'de>>(wire: D) -> Result<Option<Status>, D::Error> {
    match Status::deserialize(wire)? {
        Status::NotValidated => Err(serde::de::Error::custom(
            "no validation finds `not-validated`: that is what nobody validated",
        )),
        status => Ok(Some(status)),
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pick {
    pub contender: Spanned<String>,
    pub when: Option<Spanned<Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Claim {
    pub geomean: f64,
    pub over: String,
    pub why: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tune {
    pub choose: Table<Spanned<Vec<i64>>>,
    pub minimise: Spanned<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Deal {
    pub workers: Spanned<Value>,
    pub cost: Spanned<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scratch {
    pub name: Spanned<String>,
    pub bytes: Spanned<Value>,
    #[serde(default)]
    pub per: Per,
    #[serde(default)]
    pub zero: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Per {
    #[default]
    Group,
    Call,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Map {
    pub name: Spanned<String>,
    pub tensor: Spanned<String>,
    #[serde(rename = "box")]
    pub box_dims: Spanned<Vec<Spanned<Value>>>,
    pub swizzle: Swizzle,
    #[serde(rename = "type")]
    pub dtype: Option<MapType>,
    pub dims: Option<Spanned<Vec<Spanned<Value>>>>,
    pub strides: Option<Spanned<Vec<Spanned<Value>>>>,
    pub fill: Option<Fill>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Launch {
    pub kernel: Spanned<String>,
    pub grid: Spanned<Extent>,
    pub block: Spanned<Extent>,
    pub cluster: Option<Spanned<Extent>>,
    pub smem: Option<Spanned<Value>>,
    #[serde(default)]
    pub pdl: bool,
}

/// An integer, or an expression in a string.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Integer(i64),
    Text(String),
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl Visitor<'_> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer or an expression in quotes")
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }
}

/// A value, or a list of up to three.
#[derive(Debug)]
pub(super) enum Extent {
    One(Value),
    List(Vec<Spanned<Value>>),
}

impl<'de> Deserialize<'de> for Extent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ExtentVisitor)
    }
}

struct ExtentVisitor;

impl<'de> Visitor<'de> for ExtentVisitor {
    type Value = Extent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer, an expression in quotes, or a list of up to three")
    }

    fn visit_i64<E>(self, value: i64) -> Result<Extent, E> {
        Ok(Extent::One(Value::Integer(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Extent, E> {
        Ok(Extent::One(Value::Text(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Extent, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = seq.next_element()? {
            list.push(value);
        }
        Ok(Extent::List(list))
    }
}
