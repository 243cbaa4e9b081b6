//! The words of front matter for tensors and the ways to copy them.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use dgx_core::operator::ElementType;

/// A tensor of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperandRef {
    /// One of the operator's, by its index among the fields of a group.
    Field(usize),
    /// Per-group scratch, by its slot.
    Scratch(usize),
}

/// The arguments of a kernel. A whole number is `I` and a value of each group `G`: formulas in a
/// variant, numbers in a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arguments<I = i64, G = Vec<u32>> {
    /// Tensors, maps and sizes are arrays with an entry for each group.
    pub arrays: bool,
    /// As written.
    pub texts: Vec<String>,
    pub list: Vec<Argument<I, G>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Argument<I = i64, G = Vec<u32>> {
    /// A tensor of the operator, or a scratch buffer of each group.
    Operand(OperandRef),
    /// A scratch buffer of the call, by its slot.
    CallScratch(usize),
    /// A tensor map, by its index.
    Map(usize),
    /// With the width that the kernel declares.
    Number(Number<I>),
    PerGroup(G),
    Typed(NumberType, Number<I>),
    /// Members one after the other, each aligned to its size.
    Struct(Vec<Argument<I, G>>),
    /// Among members: the byte at which the next begins.
    At(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Number<I = i64> {
    Integer(I),
    Real(f64),
}

impl<I, G> Argument<I, G> {
    /// The same argument with each number evaluated.
    pub fn evaluated<J, H, E>(
        &self,
        integer: &impl Fn(&I) -> Result<J, E>,
        per_group: &impl Fn(&G) -> Result<H, E>,
    ) -> Result<Argument<J, H>, E> {
        let number = |number: &Number<I>| match number {
            Number::Integer(value) => integer(value).map(Number::Integer),
            Number::Real(value) => Ok(Number::Real(*value)),
        };
        Ok(match self {
            Self::Operand(operand) => Argument::Operand(*operand),
            Self::CallScratch(slot) => Argument::CallScratch(*slot),
            Self::Map(place) => Argument::Map(*place),
            Self::Number(value) => Argument::Number(number(value)?),
            Self::PerGroup(value) => Argument::PerGroup(per_group(value)?),
            Self::Typed(of, value) => Argument::Typed(*of, number(value)?),
            Self::Struct(members) => {
                let members = members.iter().map(|one| one.evaluated(integer, per_group));
                Argument::Struct(members.collect::<Result<_, _>>()?)
            }
            Self::At(byte) => Argument::At(*byte),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MapType {
    U8,
    U16,
    U32,
    I32,
    U64,
    I64,
    F16,
    Bf16,
    F32,
    F64,
    /// Two to a byte, in both memories.
    U4,
    /// The same in global memory; in shared memory sixteen take 16 bytes, 8 of them padding.
    U4Align16,
    /// Packed in global memory; in shared memory sixteen take 16 bytes, 4 of them padding.
    U6Align16,
}

impl MapType {
    /// The type for a tensor of `element`s, two of which may share a byte.
    pub(super) fn of(element: ElementType) -> Self {
        match element.element() {
            ElementType::F64 => Self::F64,
            ElementType::F32 => Self::F32,
            ElementType::F16 => Self::F16,
            ElementType::Bf16 => Self::Bf16,
            ElementType::I32 => Self::I32,
            _ => Self::U8,
        }
    }

    /// Size of an element in bits.
    pub fn bits(self) -> u64 {
        match self {
            Self::U4 | Self::U4Align16 => 4,
            Self::U6Align16 => 6,
            Self::U8 => 8,
            Self::U16 | Self::F16 | Self::Bf16 => 16,
            Self::U32 | Self::I32 | Self::F32 => 32,
            Self::U64 | Self::I64 | Self::F64 => 64,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Swizzle {
    #[serde(rename = "none")]
    None,
    #[serde(rename = "32B")]
    B32,
    #[serde(rename = "64B")]
    B64,
    #[serde(rename = "128B")]
    B128,
}

/// The value that TMA supplies for elements outside the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fill {
    Zero,
    Nan,
}

/// The type in which a number is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NumberType {
    I8,
    I16,
    I32,
    I64,
    F16,
    Bf16,
    F32,
    F64,
}

impl NumberType {
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }

    /// As front matter has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    pub fn bytes(self) -> usize {
        match self {
            Self::I8 => 1,
            Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }
}

/// The language of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Cuda,
    Ptx,
    /// Python, compiled by Triton.
    Triton,
}

impl Language {
    const ALL: [Self; 3] = [Self::Cuda, Self::Ptx, Self::Triton];

    pub fn ending(self) -> &'static str {
        match self {
            Self::Cuda => "cu",
            Self::Ptx => "ptx",
            Self::Triton => "py",
        }
    }

    /// By the ending of a file's name.
    pub fn of(path: &Path) -> Option<Self> {
        let ending = path.extension()?;
        Self::ALL.into_iter().find(|l| ending == l.ending())
    }

    /// Bytes at the top of a text that may precede front matter: in Python also comments, the first
    /// of which may name the interpreter.
    pub(super) fn skipped(self, text: &str) -> usize {
        let mut rest = text.trim_start_matches('\u{feff}').trim_start();
        while self == Self::Triton && rest.starts_with('#') {
            rest = rest
                .split_once('\n')
                .map_or("", |(_, next)| next.trim_start());
        }
        text.len() - rest.len()
    }

    /// The delimiters of front matter at the top of a file.
    pub(super) fn comment(self) -> (&'static str, &'static str) {
        match self {
            Self::Cuda | Self::Ptx => ("/*dgx", "*/"),
            Self::Triton => ("\"\"\"dgx", "\"\"\""),
        }
    }
}
