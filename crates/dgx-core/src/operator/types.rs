//! The types of tensors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What one element of a tensor is. A type with a scale stores its elements as
/// [`ElementType::element`] and one scale for each block along the last axis.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ElementType {
    F64,
    F32,
    F16,
    Bf16,
    E4m3,
    E5m2,
    E2m1,
    /// e2m1 with an e8m0 scale for each 32.
    Mxfp4,
    /// e4m3 with an e8m0 scale for each 32.
    Mxfp8,
    /// e2m1 with an e4m3 scale for each 16.
    Nvfp4,
    I32,
    I8,
    U8,
    Bool,
    /// A power of two: only the scale of another type.
    #[serde(skip)]
    E8m0,
}

/// One number that multiplies a block of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    pub element: ElementType,
    /// Elements along the last axis that share it.
    pub block: u64,
}

/// What arithmetic may be done with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Number {
    Real,
    Integer,
    Truth,
}

impl ElementType {
    /// Those a file may name.
    pub const ALL: [Self; 14] = [
        Self::F64,
        Self::F32,
        Self::F16,
        Self::Bf16,
        Self::E4m3,
        Self::E5m2,
        Self::E2m1,
        Self::Mxfp4,
        Self::Mxfp8,
        Self::Nvfp4,
        Self::I32,
        Self::I8,
        Self::U8,
        Self::Bool,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::F64 => "f64",
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::E4m3 => "e4m3",
            Self::E5m2 => "e5m2",
            Self::E2m1 => "e2m1",
            Self::Mxfp4 => "mxfp4",
            Self::Mxfp8 => "mxfp8",
            Self::Nvfp4 => "nvfp4",
            Self::I32 => "i32",
            Self::I8 => "i8",
            Self::U8 => "u8",
            Self::Bool => "bool",
            Self::E8m0 => "e8m0",
        }
    }

    /// The type a file calls `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.name() == name)
    }

    /// How the elements themselves are stored, the scale aside.
    pub fn element(self) -> Self {
        match self {
            Self::Nvfp4 | Self::Mxfp4 => Self::E2m1,
            Self::Mxfp8 => Self::E4m3,
            other => other,
        }
    }

    /// The scale that blocks along the last axis have.
    pub fn scale(self) -> Option<Scale> {
        let (element, block) = match self {
            Self::Nvfp4 => (Self::E4m3, 16),
            Self::Mxfp4 | Self::Mxfp8 => (Self::E8m0, 32),
            _ => return None,
        };
        Some(Scale { element, block })
    }

    /// Bits of one element, without its share of a scale.
    pub fn bits(self) -> u64 {
        match self.element() {
            Self::F64 => 64,
            Self::F32 | Self::I32 => 32,
            Self::F16 | Self::Bf16 => 16,
            Self::E2m1 => 4,
            _ => 8,
        }
    }

    /// Whether some bits mean "not a number", so that poison can be seen.
    pub fn has_nan(self) -> bool {
        !matches!(
            self.element(),
            Self::E2m1 | Self::I32 | Self::I8 | Self::U8 | Self::Bool
        )
    }

    /// The largest relative error of rounding to this type; 0 for integers.
    pub fn unit_roundoff(self) -> f64 {
        let stored_bits = match self.element() {
            Self::F64 => 52,
            Self::F32 => 23,
            Self::F16 => 10,
            Self::Bf16 => 7,
            Self::E4m3 => 3,
            Self::E5m2 => 2,
            Self::E2m1 => 1,
            Self::E8m0 => 0,
            _ => return 0.0,
        };
        0.5_f64.powi(stored_bits + 1)
    }

    /// The least and the most it can be, infinity aside.
    pub fn limits(self) -> (f64, f64) {
        let most = match self.element() {
            Self::F64 => f64::MAX,
            Self::F32 => f32::MAX.into(),
            Self::F16 => 65504.0,
            Self::Bf16 => 2f64.powi(127) * (2.0 - 2f64.powi(-7)),
            Self::E4m3 => 448.0,
            Self::E5m2 => 57344.0,
            Self::E2m1 => 6.0,
            Self::I32 => return (i32::MIN.into(), i32::MAX.into()),
            Self::I8 => return (-128.0, 127.0),
            Self::U8 => return (0.0, 255.0),
            Self::Bool => return (0.0, 1.0),
            _ => 2f64.powi(127),
        };
        (-most, most)
    }

    pub fn number(self) -> Number {
        match self {
            Self::I32 | Self::I8 | Self::U8 => Number::Integer,
            Self::Bool => Number::Truth,
            _ => Number::Real,
        }
    }

    /// The C++ type behind a pointer to the tensor. Two e2m1 share a byte, the
    /// even one in its low half.
    pub fn c_type(self) -> &'static str {
        match self.element() {
            Self::F64 => "double",
            Self::F32 => "float",
            Self::F16 => "__half",
            Self::Bf16 => "__nv_bfloat16",
            Self::E4m3 => "__nv_fp8_e4m3",
            Self::E5m2 => "__nv_fp8_e5m2",
            Self::I32 => "int",
            Self::I8 => "signed char",
            Self::Bool => "bool",
            _ => "unsigned char",
        }
    }

    /// Bytes of `rows` rows of `columns` elements each, scales included; none
    /// where they do not fit 63 bits.
    pub fn bytes(self, rows: u64, columns: u64) -> Option<u64> {
        let elements = columns.checked_mul(self.bits())?.div_ceil(8);
        let scales = self
            .scale()
            .map_or(0, |scale| columns.div_ceil(scale.block));
        let bytes = elements.checked_add(scales)?.checked_mul(rows)?;
        (bytes < 1 << 63).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_serde_reads() {
        for element in ElementType::ALL {
            let written = serde_json::to_string(&element).unwrap();
            assert_eq!(written, format!("{:?}", element.name()));
            assert_eq!(ElementType::named(element.name()), Some(element));
        }
        assert_eq!(ElementType::named("e8m0"), None);
    }

    #[test]
    fn bytes_count_scales_and_know_their_end() {
        assert_eq!(ElementType::Nvfp4.bytes(3, 256), Some(3 * (128 + 16)));
        assert_eq!(ElementType::Mxfp8.bytes(1, 64), Some(64 + 2));
        assert_eq!(ElementType::F64.bytes(1 << 30, 1 << 30), None);
    }

    #[test]
    fn the_unit_roundoff_is_half_a_step_at_one() {
        assert_eq!(ElementType::F16.unit_roundoff(), 2f64.powi(-11));
        assert_eq!(ElementType::Nvfp4.unit_roundoff(), 0.25);
        assert_eq!(ElementType::I8.unit_roundoff(), 0.0);
    }
}
