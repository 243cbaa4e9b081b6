//! Constants that code refers to.

use std::mem::offset_of;

use crate::numeric::approx::{EXP2, EXP2_REACH, SHIFTER};

/// The same word for each lane of a vector.
type Sixteen = [u32; 16];

/// The same double word for each lane of a vector.
type Wide = [u64; 8];

/// Constants that code refers to.
#[repr(C, align(64))]
pub(crate) struct Constants {
    nan: Sixteen,
    sign: Sixteen,
    magnitude: Sixteen,
    exponent: Sixteen,
    low_half: Sixteen,
    low_byte: Sixteen,
    one: Sixteen,
    two_to_31: Sixteen,
    most_signed: Sixteen,
    nan_half: Sixteen,
    nan_halves: Sixteen,
    wide_sign: Wide,
    wide_magnitude: Wide,
    wide_one: Wide,
    wide_two_to_31: Wide,
    fours: [u32; 32],
    eights: [u32; 32],
    wide_fours: [u64; 32],
    wide_eights: [u64; 32],
    evens: [u32; 32],
    sixteens: [u32; 32],
    turned: Sixteen,
    nan_replaced: Sixteen,
    /// Single words for all lanes.
    exp2: [u64; 10],
    shifter: u64,
    root: [u64; 3],
    doubtful: [u64; 2],
    exp2_reach: [u32; 2],
    kept: u32,
    flushed: u32,
}

pub(crate) static CONSTANTS: Constants = Constants {
    nan: [0x7fff_ffff; 16],
    sign: [0x8000_0000; 16],
    magnitude: [0x7fff_ffff; 16],
    exponent: [0x7f80_0000; 16],
    low_half: [0xffff; 16],
    low_byte: [0xff; 16],
    one: [1f32.to_bits(); 16],
    two_to_31: [2_147_483_648f32.to_bits(); 16],
    most_signed: [i32::MAX as u32; 16],
    nan_half: [0x7fff; 16],
    nan_halves: [0x7fff_7fff; 16],
    wide_sign: [1 << 63; 8],
    wide_magnitude: [u64::MAX >> 1; 8],
    wide_one: [1f64.to_bits(); 8],
    wide_two_to_31: [2_147_483_648f64.to_bits(); 8],
    fours: narrowed(multiples(4)),
    eights: narrowed(multiples(8)),
    wide_fours: multiples(4),
    wide_eights: multiples(8),
    evens: evens_and_odds(),
    sixteens: narrowed(multiples(16)),
    turned: [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15],
    nan_replaced: [0x1111_1100; 16],
    exp2: bits(EXP2),
    shifter: SHIFTER.to_bits(),
    // Of the series of 1/√(1 − e), from the third term on.
    root: bits([0.5, 0.375, 0.3125]),
    // Less the middle between two floats, and 64 units; and what is zero if that is below 128.
    doubtful: [0u64.wrapping_sub((1 << 28) - 64), 0x1fff_ff80],
    exp2_reach: [(-EXP2_REACH).to_bits(), EXP2_REACH.to_bits()],
    // Exceptions masked, nearest; and with both kinds of subnormals flushed.
    kept: 0x1f80,
    flushed: 0x9fc0,
};

const fn bits<const N: usize>(floats: [f64; N]) -> [u64; N] {
    let mut all = [0; N];
    let mut i = 0;
    while i < N {
        all[i] = floats[i].to_bits();
        i += 1;
    }
    all
}

/// Each lane's number times another.
const fn multiples(of: u64) -> [u64; 32] {
    let mut all = [0; 32];
    let mut lane = 0;
    while lane < 32 {
        all[lane] = lane as u64 * of;
        lane += 1;
    }
    all
}

/// The even numbers below 32, and the odd ones.
const fn evens_and_odds() -> [u32; 32] {
    let mut all = [0; 32];
    let mut i = 0;
    while i < 32 {
        all[i as usize] = i % 16 * 2 + i / 16;
        i += 1;
    }
    all
}

const fn narrowed(wide: [u64; 32]) -> [u32; 32] {
    let mut all = [0; 32];
    let mut lane = 0;
    while lane < 32 {
        all[lane] = wide[lane] as u32;
        lane += 1;
    }
    all
}

/// Where a constant lies.
#[derive(Debug, Clone, Copy)]
pub(super) enum Constant {
    Nan,
    Sign,
    Magnitude,
    Exponent,
    LowHalf,
    LowByte,
    One,
    TwoTo31,
    MostSigned,
    NanHalf,
    NanHalves,
    WideSign,
    WideMagnitude,
    WideOne,
    WideTwoTo31,
    Fours,
    Eights,
    WideFours,
    WideEights,
    Evens,
    Sixteens,
    /// The lanes of a square of four by four, turned.
    Turned,
    /// For `vfixupimmps`: a number as it is, instead of a NaN what was there before.
    NanReplaced,
    /// A coefficient of 2^f.
    Exp2(usize),
    Shifter,
    /// A coefficient of 1/√(1 − e).
    Root(usize),
    Doubtful(usize),
    Exp2Reach(usize),
    Kept,
    Flushed,
}

impl Constant {
    pub(super) fn offset(self) -> usize {
        match self {
            Self::Nan => offset_of!(Constants, nan),
            Self::Sign => offset_of!(Constants, sign),
            Self::Magnitude => offset_of!(Constants, magnitude),
            Self::Exponent => offset_of!(Constants, exponent),
            Self::LowHalf => offset_of!(Constants, low_half),
            Self::LowByte => offset_of!(Constants, low_byte),
            Self::One => offset_of!(Constants, one),
            Self::TwoTo31 => offset_of!(Constants, two_to_31),
            Self::MostSigned => offset_of!(Constants, most_signed),
            Self::NanHalf => offset_of!(Constants, nan_half),
            Self::NanHalves => offset_of!(Constants, nan_halves),
            Self::WideSign => offset_of!(Constants, wide_sign),
            Self::WideMagnitude => offset_of!(Constants, wide_magnitude),
            Self::WideOne => offset_of!(Constants, wide_one),
            Self::WideTwoTo31 => offset_of!(Constants, wide_two_to_31),
            Self::Fours => offset_of!(Constants, fours),
            Self::Eights => offset_of!(Constants, eights),
            Self::WideFours => offset_of!(Constants, wide_fours),
            Self::WideEights => offset_of!(Constants, wide_eights),
            Self::Evens => offset_of!(Constants, evens),
            Self::Sixteens => offset_of!(Constants, sixteens),
            Self::Turned => offset_of!(Constants, turned),
            Self::NanReplaced => offset_of!(Constants, nan_replaced),
            Self::Exp2(i) => offset_of!(Constants, exp2) + 8 * i,
            Self::Shifter => offset_of!(Constants, shifter),
            Self::Root(i) => offset_of!(Constants, root) + 8 * i,
            Self::Doubtful(i) => offset_of!(Constants, doubtful) + 8 * i,
            Self::Exp2Reach(i) => offset_of!(Constants, exp2_reach) + 4 * i,
            Self::Kept => offset_of!(Constants, kept),
            Self::Flushed => offset_of!(Constants, flushed),
        }
    }
}
