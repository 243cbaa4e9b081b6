//! An operator's file as it is written. [`mod@super`] checks it.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::document::{Spanned, Table, Value};
use crate::operator::ElementType;

/// An operator: its computation, its tensors, and the tolerance of results.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "dgx operator")]
pub(super) struct OperatorFile {
    /// The computation, in one line.
    pub summary: Spanned<String>,
    /// The sizes of a shape, in the order of its name.
    #[schemars(extend("minItems" = 1, "maxItems" = super::MAX_SIZES))]
    pub sizes: Spanned<Vec<Spanned<String>>>,
    /// Whether a shape may list several problems.
    #[serde(default)]
    pub groups: bool,
    /// Conditions on sizes: `k % 16 == 0`.
    #[serde(default)]
    pub requires: Vec<Spanned<String>>,
    /// Sizes of small problems, on which everything is tried first.
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
    /// Values that a wrong kernel may have computed, by the name of the mistake.
    #[serde(default)]
    pub mistake: Table<Spanned<String>>,
    /// Operations of one problem, in place of those derived from the value.
    pub flops: Option<Spanned<Value>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    #[serde(rename = "type")]
    pub element: ElementType,
    /// Extents, first axis first: numbers and expressions of sizes.
    pub size: Spanned<Vec<Spanned<Value>>>,
    /// The minimum and the maximum of the data.
    pub range: Option<Spanned<[Spanned<Amount>; 2]>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Output {
    #[serde(rename = "type")]
    pub element: Spanned<ElementType>,
    /// Extents, first axis first: numbers and expressions of sizes.
    pub size: Spanned<Vec<Spanned<Value>>>,
    /// The computation.
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
    /// Like `mistake` of the file, if there are several outputs.
    #[serde(default)]
    pub mistake: Table<Spanned<String>>,
}

/// A number, or the text of one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a number or an expression of sizes in quotes"
)]
pub(super) enum Amount {
    Number(f64),
    Text(String),
}
