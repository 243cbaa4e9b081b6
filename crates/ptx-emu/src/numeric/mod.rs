//! The arithmetic of PTX's scalar types, exact to the bit.
//!
//! Values travel as register bits (`u32`, `u64`), because that is what registers hold and because
//! NaN payloads matter: whatever PTX computes writes one canonical NaN. Functions over whole warps
//! are in [`lanes`]; everything else is one lane at a time. Nothing here knows about warps in
//! flight, memory or scheduling.

pub(crate) mod approx;
pub(crate) mod arith;
pub(crate) mod convert;
pub(crate) mod format;
pub(crate) mod halves;
pub(crate) mod lanes;
pub(crate) mod simd;
pub(crate) mod soft;
pub(crate) mod video;

pub(crate) use format::{Format, Value};

/// One register of a warp, a word per lane.
pub(crate) type Lanes = [u32; 32];

/// The NaN every f32 instruction writes.
pub(crate) const NAN_F32: u32 = 0x7fff_ffff;
/// The NaN an invalid f64 operation writes; unlike the narrower types, f64 passes the NaN of an
/// operand on, made quiet.
pub(crate) const NAN_F64: u64 = 0xfff8_0000_0000_0000;
/// The NaN every f16 and bf16 instruction writes.
pub(crate) const NAN_F16: u16 = 0x7fff;

/// How an inexact result is rounded: `.rn`, `.rna`, `.rz`, `.rm`, `.rp` (and the `i` forms), `.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Rounding {
    #[default]
    NearestEven,
    NearestAway,
    Zero,
    Down,
    Up,
    /// Away from zero if these bits, added to the first 16 discarded ones, carry.
    Stochastic(u16),
}

/// The modifiers an arithmetic instruction on f32 or f64 may carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct FloatMode {
    pub rounding: Rounding,
    /// `.ftz`: subnormal operands and results become zero of the same sign (f32 only).
    pub ftz: bool,
    /// `.sat`: the result is clamped to [0, 1] and NaN becomes +0 (f32 only).
    pub sat: bool,
}
