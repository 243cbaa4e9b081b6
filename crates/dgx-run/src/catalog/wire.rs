//! The front matter as it is written. [`mod@super::front_matter`] checks all of it.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::{Fill, MapType, Swizzle};
use dgx_core::document::{OneOrMany, Spanned, Table, Value};
use dgx_core::domain::Status;
use dgx_core::domain::bounds::CLAIM;

/// The description of a variant in its first comment, in TOML.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "dgx front matter")]
pub(super) struct FrontMatter {
    /// The design's idea in one line.
    pub summary: Spanned<String>,
    /// The computation, unless its folder gives it: the stem of a file in `operators/`.
    pub operator: Option<Spanned<String>>,
    /// The variant whose front matter this one extends.
    pub extend: Option<Spanned<String>>,
    /// The variant it was made from.
    pub parent: Option<String>,
    /// The contest round it is from.
    pub round: Option<u32>,
    /// The speedup its author promises.
    pub claim: Option<Spanned<Claim>>,
    /// The compile target, e.g. sm_90a.
    pub arch: Option<Spanned<String>>,
    /// Folders of headers, relative to this file's.
    #[serde(default)]
    pub include: Vec<Spanned<String>>,
    /// Headers of hosts that are treated as empty.
    #[serde(default)]
    pub empty: Vec<String>,
    /// Additional options for NVRTC, e.g. --std=c++20.
    pub flags: Option<Vec<Spanned<String>>>,
    /// In NAME.toml: the file below its folder that has the code, unless it is NAME.cu beside it.
    pub source: Option<Spanned<String>>,
    /// The status its author expects, if it is not ok.
    #[serde(default, deserialize_with = "expectation")]
    pub expect: Option<Status>,
    /// Parameters and their values; every combination is a contender.
    #[serde(default)]
    pub params: Table<Spanned<Vec<i64>>>,
    /// Constants for the compiler.
    #[serde(default, rename = "const")]
    pub constants: Table<Spanned<Value>>,
    /// Names for expressions, evaluated for each group.
    #[serde(default, rename = "let")]
    pub lets: Table<Spanned<Value>>,
    /// Constants picked per shape.
    pub tune: Option<Tune>,
    /// Conditions on a shape.
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
    /// Other contenders, each for the shapes it suits.
    #[serde(default)]
    pub pick: Vec<Pick>,
}

/// A status that a validation can give.
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
    /// An expression. Default: always.
    pub when: Option<Spanned<Value>>,
    /// The cost of a call: of the picks that apply, the cheapest is used.
    #[serde(default)]
    pub cost: Vec<Term>,
}

/// A part of a cost.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Term {
    /// Nanoseconds per unit of `of`.
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
    /// The contender, variant or cublas that the claim is over.
    pub over: String,
    /// The reasoning.
    pub why: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Tune {
    /// Candidates for each constant.
    pub choose: Table<Spanned<Vec<i64>>>,
    /// The expression that the best choice minimises.
    pub minimise: Spanned<Value>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Deal {
    /// CTAs the tiles are dealt to.
    pub workers: Spanned<Value>,
    /// The cost of one tile of a group.
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
    /// The extents of one copy, innermost first.
    #[serde(rename = "box")]
    #[schemars(extend("minItems" = 1, "maxItems" = RANK))]
    pub box_dims: Spanned<Vec<Spanned<Value>>>,
    pub swizzle: Swizzle,
    #[serde(rename = "type")]
    pub dtype: Option<MapType>,
    /// Extents, innermost first. Default: the tensor's own.
    #[schemars(extend("minItems" = 1, "maxItems" = RANK))]
    pub dims: Option<Spanned<Vec<Spanned<Value>>>>,
    /// Bytes from row to row, outwards. Default: dense.
    #[schemars(extend("maxItems" = RANK - 1))]
    pub strides: Option<Spanned<Vec<Spanned<Value>>>>,
    /// The value of elements outside the tensor.
    pub fill: Option<Fill>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Launch {
    /// A __global__ function, or an instance of a template: gemm<128, float>.
    pub kernel: Spanned<String>,
    /// CTAs.
    pub grid: Spanned<Extent>,
    /// Threads of a CTA; for Triton 32 × num_warps by default.
    pub block: Option<Spanned<Extent>>,
    /// The arguments, in order. Default: one dgx::Args.
    pub args: Option<Spanned<Vec<Spanned<Arg>>>>,
    /// Additional options for Triton's compiler, e.g. num_warps.
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

/// An argument of a kernel.
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
    /// A value whose form the kernel's own declaration does not determine.
    Composed(Composed),
}

/// A number of a type, members of a struct, or an offset among them.
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
