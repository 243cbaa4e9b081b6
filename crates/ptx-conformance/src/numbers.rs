//! Matrix elements: values encoded in the formats tensor cores multiply.

use std::sync::LazyLock;

use half::{bf16, f16};

use crate::values::{SplitMix, finite_fp8};

/// Formats of matrix operands and accumulators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum Number {
    F16,
    Bf16,
    Tf32,
    E4m3,
    E5m2,
    S8,
    U8,
    S4,
    U4,
    B1,
    F32,
    F64,
    S32,
}

impl Number {
    /// The name in instructions.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Tf32 => "tf32",
            Self::E4m3 => "e4m3",
            Self::E5m2 => "e5m2",
            Self::S8 => "s8",
            Self::U8 => "u8",
            Self::S4 => "s4",
            Self::U4 => "u4",
            Self::B1 => "b1",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::S32 => "s32",
        }
    }

    /// Bits of one element in memory (tf32 takes a whole word).
    pub(crate) fn bits(self) -> usize {
        match self {
            Self::B1 => 1,
            Self::S4 | Self::U4 => 4,
            Self::E4m3 | Self::E5m2 | Self::S8 | Self::U8 => 8,
            Self::F16 | Self::Bf16 => 16,
            Self::Tf32 | Self::F32 | Self::S32 => 32,
            Self::F64 => 64,
        }
    }

    /// Whether it is a floating-point format.
    pub(crate) fn is_float(self) -> bool {
        !matches!(
            self,
            Self::S8 | Self::U8 | Self::S4 | Self::U4 | Self::B1 | Self::S32
        )
    }

    /// The bits of `value`, rounded where the format is coarser.
    pub(crate) fn encode(self, value: f64) -> u64 {
        match self {
            Self::F16 => u64::from(f16::from_f64(value).to_bits()),
            Self::Bf16 => u64::from(bf16::from_f64(value).to_bits()),
            Self::Tf32 => u64::from((value as f32).to_bits() & 0xffff_e000),
            Self::E4m3 => encode_fp8(value, 3),
            Self::E5m2 => encode_fp8(value, 2),
            Self::F32 => u64::from((value as f32).to_bits()),
            Self::F64 => value.to_bits(),
            _ => value as i64 as u64 & ((1 << self.bits()) - 1),
        }
    }

    /// A small integer that every format holds, so that sums of hundreds of products are exact.
    pub(crate) fn small(self, rng: &mut SplitMix) -> u64 {
        let value = match self {
            Self::B1 => rng.below(2) as f64,
            Self::U8 | Self::U4 => rng.below(5) as f64,
            _ => rng.below(5) as f64 - 2.0,
        };
        self.encode(value)
    }

    /// A random value of ordinary size: floats in [-1, 1), integers over their whole range.
    pub(crate) fn ordinary(self, rng: &mut SplitMix) -> u64 {
        if self.is_float() {
            self.encode(f64::from(rng.unit()))
        } else {
            rng.next() & ((1 << self.bits()) - 1)
        }
    }
}

/// The values of E5M2 and of E4M3, which operands are made of by the thousand.
static FINITE_FP8: LazyLock<[Vec<f64>; 2]> = LazyLock::new(|| [2, 3].map(finite_fp8));

/// The nearest 8-bit float of `mantissa` bits: operands need no tie rule, only a value.
fn encode_fp8(value: f64, mantissa: u32) -> u64 {
    let finite = &FINITE_FP8[mantissa as usize - 2];
    let magnitude = value.abs();
    let above = finite
        .partition_point(|&v| v < magnitude)
        .min(finite.len() - 1);
    let below = above.saturating_sub(1);
    let nearest = if magnitude - finite[below] < finite[above] - magnitude {
        below
    } else {
        above
    };
    nearest as u64 | u64::from(value.is_sign_negative()) << 7
}

/// Packs elements of `bits` bits, the first in the lowest bits.
pub(crate) fn pack_bits(values: &[u64], bits: usize) -> Vec<u8> {
    if bits >= 8 {
        let mut bytes = Vec::with_capacity(values.len() * bits / 8);
        for value in values {
            bytes.extend_from_slice(&value.to_le_bytes()[..bits / 8]);
        }
        return bytes;
    }
    let per_byte = 8 / bits;
    values
        .chunks(per_byte)
        .map(|chunk| {
            chunk
                .iter()
                .rev()
                .fold(0u8, |byte, &v| byte << bits | v as u8)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_bit_floats_encode() {
        assert_eq!(Number::E4m3.encode(1.0), 0x38);
        assert_eq!(Number::E4m3.encode(-448.0), 0xfe);
        assert_eq!(Number::E5m2.encode(2.0), 0x40);
        assert_eq!(Number::E5m2.encode(0.0), 0);
    }

    #[test]
    fn narrow_elements_fill_bytes_from_below() {
        assert_eq!(pack_bits(&[1, 2, 3, 4], 4), [0x21, 0x43]);
        assert_eq!(pack_bits(&[1, 0, 0, 0, 0, 0, 0, 1], 1), [0x81]);
    }
}
