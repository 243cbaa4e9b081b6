//! The front matter as it is written. [`mod@super::front_matter`] checks all of it.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::{Fill, MapType, Swizzle};
use dgx_core::document::{OneOrMany, Spanned, Table, Value};
use dgx_core::domain::Status;
use dgx_core::domain::bounds::CLAIM;

/// What a variant's first comment says of it, in TOML.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "dgx front matter")]
pub(super) struct FrontMatter {
    /// The design's idea in one line.
    pub summary: Spanned<String>,
    /// What it computes, where its folder does not say: the stem of a file in
    /// `operators/`.
    pub operator: Option<Spanned<String>>,
    /// The variant whose front matter this one is laid over.
    pub extend: Option<Spanned<String>>,
    /// The variant it is a change to.
    pub parent: Option<String>,
    /// The contest round it is from.
    pub round: Option<u32>,
    /// The speedup its author promises.
    pub claim: Option<Spanned<Claim>>,
    /// What it is compiled for, e.g. sm_90a.
    pub arch: Option<Spanned<String>>,
    /// Folders of headers, seen from this file's.
    #[serde(default)]
    pub include: Vec<Spanned<String>>,
    /// Headers of hosts that are taken as empty.
    #[serde(default)]
    pub empty: Vec<String>,
    /// What NVRTC is given besides, e.g. --std=c++20.
    pub flags: Option<Vec<Spanned<String>>>,
    /// In NAME.toml: the file below its folder that has the code, where that is
    /// not NAME.cu beside it.
    pub source: Option<Spanned<String>>,
    /// What its author says becomes of it, where that is not ok.
    #[serde(default, deserialize_with = "expectation")]
    pub expect: Option<Status>,
    /// Parameters and their values; every combination is a contender.
    #[serde(default)]
    pub params: Table<Spanned<Vec<i64>>>,
    /// Constants the compiler is told.
    #[serde(default, rename = "const")]
    pub constants: Table<Spanned<Value>>,
    /// Names for expressions, evaluated for each group.
    #[serde(default, rename = "let")]
    pub lets: Table<Spanned<Value>>,
    /// Constants picked per shape.
    pub tune: Option<Tune>,
    /// What a shape must satisfy.
    pub requires: Option<Vec<Spanned<Value>>>,
    /// Tiles of a group.
    pub tiles: Option<Spanned<Value>>,
    /// Which tiles come first.
    pub order: Option<Spanned<Value>>,
    /// How the host deals tiles out to CTAs.
    pub deal: Option<Spanned<Deal>>,
    /// Buffers besides the operands.
    #[serde(default)]
    pub scratch: Vec<Scratch>,
    /// Tensor maps for TMA.
    #[serde(default)]
    pub map: Vec<Map>,
    /// Kernels of one call, in order.
    #[serde(default)]
    pub launch: Vec<Launch>,
    /// Other contenders, each on the shapes it is meant for.
    #[serde(default)]
    pub pick: Vec<Pick>,
}

/// What a validation can find.
fn expectation<'de, D: Deserializer<'de>>(wire: D) -> Result<Option<Status>, D::Error> {
    match Status::deserialize(wire)? {
        Status::NotValidated => Err(serde::de::Error::custom(
            "`not-validated` cannot be expected: it marks cells that were not validated",
        )),
        status => Ok(Some(status)),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Pick {
    pub contender: Spanned<String>,
    /// An expression; always where there is none.
    pub when: Option<Spanned<Value>>,
    /// What a call takes: of those that apply, the cheapest is picked.
    #[serde(default)]
    pub cost: Vec<Term>,
}

/// A part of a cost.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Term {
    /// Nanoseconds for each of what `of` counts.
    pub ns: Spanned<f64>,
    /// An expression over the shape and the constants of the contender.
    pub of: Spanned<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Claim {
    /// The geometric mean claimed, e.g. 1.4.
    #[schemars(extend("minimum" = CLAIM.start(), "maximum" = CLAIM.end()))]
    pub geomean: f64,
    /// Over whom: a contender, a variant or cublas.
    pub over: String,
    /// The reasoning.
    pub why: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Tune {
    /// Candidates for each constant.
    pub choose: Table<Spanned<Vec<i64>>>,
    /// What the best of them has least of.
    pub minimise: Spanned<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Deal {
    /// CTAs the tiles are dealt to.
    pub workers: Spanned<Value>,
    /// Of one tile of a group.
    pub cost: Spanned<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Scratch {
    pub name: Spanned<String>,
    /// Its size.
    pub bytes: Spanned<Value>,
    /// One for each group, or one for the call.
    #[serde(default)]
    pub per: Per,
    /// Cleared before each call.
    #[serde(default)]
    pub zero: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Per {
    #[default]
    Group,
    Call,
}

/// Dimensions of a tensor map.
pub(super) const RANK: usize = 5;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Map {
    pub name: Spanned<String>,
    /// The operand, or a scratch buffer.
    pub tensor: Spanned<String>,
    /// What one copy takes, innermost first.
    #[serde(rename = "box")]
    #[schemars(extend("minItems" = 1, "maxItems" = RANK))]
    pub box_dims: Spanned<Vec<Spanned<Value>>>,
    pub swizzle: Swizzle,
    #[serde(rename = "type")]
    pub dtype: Option<MapType>,
    /// Extents, innermost first; the tensor's own where there are none.
    #[schemars(extend("minItems" = 1, "maxItems" = RANK))]
    pub dims: Option<Spanned<Vec<Spanned<Value>>>>,
    /// Bytes from row to row, outwards; dense where there are none.
    #[schemars(extend("maxItems" = RANK - 1))]
    pub strides: Option<Spanned<Vec<Spanned<Value>>>>,
    /// What stands for elements outside the tensor.
    pub fill: Option<Fill>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Launch {
    /// A __global__ function, or an instance of a template: gemm<128, float>.
    pub kernel: Spanned<String>,
    /// CTAs.
    pub grid: Spanned<Extent>,
    /// Threads of a CTA; for Triton 32 × num_warps where there is none.
    pub block: Option<Spanned<Extent>>,
    /// What its parameters are given, in order; one dgx::Args where there is none.
    pub args: Option<Spanned<Vec<Spanned<Arg>>>>,
    /// What Triton's compiler is given besides, e.g. num_warps.
    #[serde(default)]
    pub options: Table<Spanned<Value>>,
    /// CTAs of a cluster.
    pub cluster: Option<Spanned<Extent>>,
    /// Dynamic shared memory, bytes.
    pub smem: Option<Spanned<Value>>,
    /// Programmatic dependent launch.
    #[serde(default)]
    pub pdl: bool,
}

/// Dimensions of a grid, a block or a cluster.
pub(super) const AXES: usize = 3;

/// A value, or a list of up to three.
pub(super) type Extent = OneOrMany<Value, AXES>;

/// What a parameter is given.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected a name, an expression, a number, or a table such as { f16 = 1 }"
)]
pub(super) enum Arg {
    Integer(i64),
    Real(f64),
    /// A tensor, a scratch buffer, a map, a constant of the operator, or an expression.
    Text(String),
    /// What the kernel's own declaration does not settle.
    Composed(Composed),
}

/// A number of a type, members of a struct, or a place among them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Composed {
    I8(Box<Arg>),
    I16(Box<Arg>),
    I32(Box<Arg>),
    I64(Box<Arg>),
    F16(Box<Arg>),
    Bf16(Box<Arg>),
    F32(Box<Arg>),
    F64(Box<Arg>),
    Struct(Vec<Arg>),
    /// The next member begins at this byte of the struct; zeros lie before it.
    At(u32),
}
