//! The types of tensors.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The type of a tensor's elements. A type with a scale stores its elements as
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
    /// A power of two: used only as the scale of another type.
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

/// The arithmetic that a value allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Number {
    Real,
    Integer,
    Truth,
}

/// Facts of a type: its name, bits of an element, stored bits of its mantissa (none for integers),
/// its minimum and maximum without infinity. In the order of the types.
type Facts = (&'static str, u64, Option<i32>, f64, f64);
const FACTS: [Facts; 15] = [
    ("f64", 64, Some(52), f64::MIN, f64::MAX),
    ("f32", 32, Some(23), f32::MIN as f64, f32::MAX as f64),
    ("f16", 16, Some(10), -65504.0, 65504.0),
    ("bf16", 16, Some(7), -BF16_MAX, BF16_MAX),
    ("e4m3", 8, Some(3), -448.0, 448.0),
    ("e5m2", 8, Some(2), -57344.0, 57344.0),
    ("e2m1", 4, Some(1), -6.0, 6.0),
    ("mxfp4", 4, Some(1), -6.0, 6.0),
    ("mxfp8", 8, Some(3), -448.0, 448.0),
    ("nvfp4", 4, Some(1), -6.0, 6.0),
    ("i32", 32, None, i32::MIN as f64, i32::MAX as f64),
    ("i8", 8, None, -128.0, 127.0),
    ("u8", 8, None, 0.0, 255.0),
    ("bool", 8, None, 0.0, 1.0),
    ("e8m0", 8, Some(0), 1.0 / E8M0_MAX, E8M0_MAX),
];
const BF16_MAX: f64 = f32::from_bits(0x7f7f_0000) as f64;
const E8M0_MAX: f64 = f32::from_bits(0x7f00_0000) as f64;

impl ElementType {
    /// The types that a file may name.
    pub const ALL: [Self; 14] = {
        use ElementType::*;
        [
            F64, F32, F16, Bf16, E4m3, E5m2, E2m1, Mxfp4, Mxfp8, Nvfp4, I32, I8, U8, Bool,
        ]
    };

    fn facts(self) -> Facts {
        FACTS[self as usize]
    }

    pub fn name(self) -> &'static str {
        self.facts().0
    }

    /// The type of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.name() == name)
    }

    /// The type of the stored elements, without the scale.
    pub fn element(self) -> Self {
        match self {
            Self::Nvfp4 | Self::Mxfp4 => Self::E2m1,
            Self::Mxfp8 => Self::E4m3,
            other => other,
        }
    }

    /// The scale of blocks along the last axis.
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
        self.facts().1
    }

    /// Whether some bit patterns mean "not a number", so that poison is visible.
    pub fn has_nan(self) -> bool {
        self.number() == Number::Real && self.element() != Self::E2m1
    }

    /// The largest relative error of rounding to this type; 0 for integers.
    pub fn unit_roundoff(self) -> f64 {
        let stored = self.facts().2;
        stored.map_or(0.0, |bits| 0.5_f64.powi(bits + 1))
    }

    /// The distance of the floats next to 0; 0 for integers.
    pub fn least_step(self) -> f64 {
        let exponent = match self.element() {
            Self::F64 => -1074,
            Self::F32 => -149,
            Self::F16 => -24,
            Self::Bf16 => -133,
            Self::E4m3 => -9,
            Self::E5m2 => -16,
            Self::E2m1 => -1,
            _ => return 0.0,
        };
        2f64.powi(exponent)
    }

    /// The minimum and the maximum of an element, without infinity.
    pub fn limits(self) -> (f64, f64) {
        (self.facts().3, self.facts().4)
    }

    pub fn number(self) -> Number {
        match self {
            Self::I32 | Self::I8 | Self::U8 => Number::Integer,
            Self::Bool => Number::Truth,
            _ => Number::Real,
        }
    }

    /// Bytes of `rows` rows of `columns` elements each, including scales; `None` if they do not fit
    /// 63 bits.
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
        assert_eq!(ElementType::E8m0.name(), "e8m0");
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
        assert_eq!(
            ElementType::Bf16.limits().1,
            2f64.powi(128) - 2f64.powi(120)
        );
        assert_eq!(
            ElementType::E8m0.limits(),
            (2f64.powi(-127), 2f64.powi(127))
        );
    }
}
