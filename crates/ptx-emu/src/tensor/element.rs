//! Element types of tensor-core operands.

use std::sync::LazyLock;

use crate::numeric::{Format, Rounding};

/// What an element of A or B is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Element {
    F16,
    Bf16,
    Tf32,
    F64,
    E4m3,
    E5m2,
    /// The 6- and 4-bit floats; a code is in the low bits.
    E2m3,
    E3m2,
    E2m1,
    S8,
    U8,
    S4,
    U4,
    /// Single bits, 32 to a register word.
    B1,
}

impl Element {
    /// Bits of an element in memory and in registers.
    pub(crate) const fn bits(self) -> u32 {
        match self {
            Self::F64 => 64,
            Self::Tf32 => 32,
            Self::F16 | Self::Bf16 => 16,
            Self::E4m3 | Self::E5m2 | Self::S8 | Self::U8 => 8,
            Self::E2m3 | Self::E3m2 => 6,
            Self::S4 | Self::U4 | Self::E2m1 => 4,
            Self::B1 => 1,
        }
    }

    /// The floating format, for those that have one.
    pub(crate) const fn format(self) -> Option<Format> {
        match self {
            Self::F16 => Some(Format::F16),
            Self::Bf16 => Some(Format::BF16),
            Self::Tf32 => Some(Format::TF32),
            Self::F64 => Some(Format::F64),
            Self::E4m3 => Some(Format::E4M3),
            Self::E5m2 => Some(Format::E5M2),
            Self::E2m3 => Some(Format::E2M3),
            Self::E3m2 => Some(Format::E3M2),
            Self::E2m1 => Some(Format::E2M1),
            Self::S8 | Self::U8 | Self::S4 | Self::U4 | Self::B1 => None,
        }
    }

    /// The value of a code of at most 32 bits; exact in f32 for every type but f64, which has
    /// its own path. The low bits of a tf32 register word do not count.
    #[inline]
    pub(crate) fn value(self, code: u32) -> f32 {
        match self {
            Self::F16 => half::f16::from_bits(code as u16).to_f32_const(),
            Self::Bf16 => f32::from_bits(code << 16),
            Self::Tf32 => f32::from_bits(code & !0x1fff),
            Self::E4m3 => E4M3[code as usize & 0xff],
            Self::E5m2 => E5M2[code as usize & 0xff],
            Self::E2m3 => E2M3[code as usize & 0x3f],
            Self::E3m2 => E3M2[code as usize & 0x3f],
            Self::E2m1 => E2M1[code as usize & 0xf],
            Self::S8 => f32::from(code as i8),
            Self::U8 => f32::from(code as u8),
            Self::S4 => ((code << 28) as i32 >> 28) as f32,
            Self::U4 => (code & 15) as f32,
            Self::B1 => (code & 1) as f32,
            Self::F64 => unreachable!("f64 operands never pass through f32"),
        }
    }

    /// The value as an integer, for integer types.
    #[inline]
    pub(crate) fn integer(self, code: u32) -> i32 {
        match self {
            Self::S8 => i32::from(code as i8),
            Self::U8 => i32::from(code as u8),
            Self::S4 => (code << 28) as i32 >> 28,
            Self::U4 => (code & 15) as i32,
            _ => code as i32,
        }
    }
}

static E4M3: LazyLock<[f32; 256]> = LazyLock::new(|| table(Format::E4M3));
static E5M2: LazyLock<[f32; 256]> = LazyLock::new(|| table(Format::E5M2));
static E2M3: LazyLock<[f32; 64]> = LazyLock::new(|| table(Format::E2M3));
static E3M2: LazyLock<[f32; 64]> = LazyLock::new(|| table(Format::E3M2));
static E2M1: LazyLock<[f32; 16]> = LazyLock::new(|| table(Format::E2M1));

fn table<const N: usize>(format: Format) -> [f32; N] {
    std::array::from_fn(|code| {
        let value = format.decode(code as u64);
        f32::from_bits(Format::F32.encode(value, Rounding::NearestEven, false) as u32)
    })
}
