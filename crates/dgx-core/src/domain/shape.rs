use std::borrow::Cow;
use std::fmt;

use crate::domain::Joined;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

/// One problem of a call: its sizes by name, in the operator's order. It is serialised as a map.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Group(Vec<(String, u32)>);

impl Group {
    pub fn new<N: Into<String>>(sizes: impl IntoIterator<Item = (N, u32)>) -> Self {
        Self(
            sizes
                .into_iter()
                .map(|(n, size)| (n.into(), size))
                .collect(),
        )
    }

    /// The size of that name.
    pub fn get(&self, name: &str) -> Option<u32> {
        let mut sizes = self.0.iter();
        sizes.find(|(own, _)| own == name).map(|(_, size)| *size)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        self.0.iter().map(|(name, size)| (name.as_str(), *size))
    }

    /// Puts sizes in the order of `names`; others follow.
    pub fn order_by(&mut self, names: &[String]) {
        let place = |name: &str| names.iter().position(|other| other == name);
        self.0
            .sort_by_key(|(name, _)| place(name).unwrap_or(names.len()));
    }

    /// Sizes alone, in order.
    pub fn sizes(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|(_, size)| *size)
    }

    /// As TOML: `{ rows = 3, columns = 7 }`.
    pub fn to_toml(&self) -> String {
        let sizes = self
            .iter()
            .map(|(n, size)| format!("{n} = {size}"))
            .joined(", ");
        format!("{{ {sizes} }}")
    }
}

/// The name of a shape of one group: `256x4096x7168`.
impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = self.sizes().map(|size| size.to_string()).joined("x");
        f.write_str(&sizes)
    }
}

impl Serialize for Group {
    fn serialize<S: Serializer>(&self, wire: S) -> Result<S::Ok, S::Error> {
        wire.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Group {
    fn deserialize<D: Deserializer<'de>>(wire: D) -> Result<Self, D::Error> {
        wire.deserialize_map(Sizes)
    }
}

struct Sizes;

impl<'de> Visitor<'de> for Sizes {
    type Value = Group;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of sizes")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Group, A::Error> {
        let mut group = Group(Vec::new());
        while let Some((name, size)) = map.next_entry::<String, u32>()? {
            if group.get(&name).is_some() {
                return Err(de::Error::custom(format_args!("duplicate field `{name}`")));
            }
            group.0.push((name, size));
        }
        Ok(group)
    }
}

impl JsonSchema for Group {
    fn schema_name() -> Cow<'static, str> {
        "Group".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "One problem of a call: the operator's sizes by name.",
            "type": "object",
            "additionalProperties": {
                "type": "integer", "format": "uint32", "minimum": 0, "maximum": u32::MAX
            },
        })
    }
}

/// One row of the shape matrix: a list of groups under a name. A dense problem is one group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    pub name: String,
    pub groups: Vec<Group>,
}
