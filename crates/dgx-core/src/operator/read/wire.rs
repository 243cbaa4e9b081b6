//! An operator's file as it is written. [`mod@super`] checks it.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::document::{Spanned, Table, Value};
use crate::operator::ElementType;

/// What an operator computes, on which tensors, and how near a result must be.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "dgx operator")]
pub(super) struct OperatorFile {
    /// What is computed, in one line.
    pub summary: Spanned<String>,
    /// What a shape gives, in the order of its name.
    #[schemars(extend("minItems" = 1, "maxItems" = super::MAX_SIZES))]
    pub sizes: Spanned<Vec<Spanned<String>>>,
    /// Whether a shape may list several problems.
    #[serde(default)]
    pub groups: bool,
    /// What sizes must meet: `k % 16 == 0`.
    #[serde(default)]
    pub requires: Vec<Spanned<String>>,
    /// Sizes of small problems that everything is tried on first.
    #[serde(default)]
    pub small: Vec<Spanned<Table<Spanned<i64>>>>,
    /// Numbers with a name.
    #[serde(default, rename = "const")]
    #[schemars(with = "Table<f64>")]
    pub constants: Table<Spanned<Amount>>,
    #[serde(default, rename = "in")]
    pub inputs: Table<Input>,
    #[serde(default, rename = "out")]
    pub outputs: Table<Output>,
    /// Values that a wrong kernel may have computed, by what went wrong.
    #[serde(default)]
    pub mistake: Table<Spanned<String>>,
    /// Operations of one problem, in place of what follows from the value.
    pub flops: Option<Spanned<Value>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    #[serde(rename = "type")]
    pub element: ElementType,
    /// Extents, first axis first: numbers and expressions of sizes.
    pub size: Spanned<Vec<Spanned<Value>>>,
    /// The least and the most that data may be.
    pub range: Option<Spanned<[Spanned<Amount>; 2]>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Output {
    #[serde(rename = "type")]
    pub element: Spanned<ElementType>,
    /// Extents, first axis first: numbers and expressions of sizes.
    pub size: Spanned<Vec<Spanned<Value>>>,
    /// What is computed.
    pub value: Spanned<String>,
    /// Names for parts of this value, and of all below it.
    #[serde(default, rename = "let")]
    pub lets: Table<Spanned<String>>,
    /// The absolute error allowed.
    pub atol: Option<Spanned<f64>>,
    /// The relative error allowed.
    pub rtol: Option<Spanned<f64>>,
    /// The input whose contents this output has before the call.
    pub start: Option<Spanned<String>>,
    /// As `mistake` of the file, where there are several outputs.
    #[serde(default)]
    pub mistake: Table<Spanned<String>>,
}

/// A number, or text that may stand for one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a number or an expression of sizes in quotes"
)]
pub(super) enum Amount {
    Number(f64),
    Text(String),
}
