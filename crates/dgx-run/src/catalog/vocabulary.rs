//! The words front matter has for tensors and how they are copied.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use dgx_core::operator::ElementType;

/// A tensor of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperandRef {
    /// One of the operator's, by its place among the fields of a group.
    Field(usize),
    /// Per-group scratch, by its slot.
    Scratch(usize),
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
    /// The same in global memory; in shared memory sixteen take 16 bytes, of
    /// which 8 are padding.
    U4Align16,
    /// Packed in global memory; sixteen take 16 bytes of shared memory, of
    /// which 4 are padding.
    U6Align16,
}

impl MapType {
    /// That of a tensor of `element`s, of which two may share a byte.
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

/// What TMA supplies for elements outside the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fill {
    Zero,
    Nan,
}
