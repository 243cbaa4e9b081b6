//! The arithmetic of PTX's scalar types, exact to the bit.
//!
//! Values travel as register bits (`u32`, `u64`), because that is what registers hold and because
//! NaN payloads matter: whatever PTX computes writes one canonical NaN. Functions over whole warps
//! are in [`lanes`]; everything else is one lane at a time. Nothing here knows about warps in
//! flight, memory or scheduling.

pub mod approx;
pub mod arith;
pub mod convert;
pub mod format;
pub mod halves;
pub mod lanes;
pub mod simd;
pub mod soft;
pub mod video;

pub use format::{Format, Value};

/// One register of a warp, a word per lane.
pub type Lanes = [u32; 32];

/// The NaN every f32 instruction writes.
pub const NAN_F32: u32 = 0x7fff_ffff;
/// The NaN an invalid f64 operation writes; unlike the narrower types, f64 passes the NaN of an
/// operand on, made quiet.
pub const NAN_F64: u64 = 0xfff8_0000_0000_0000;
/// The NaN every f16 and bf16 instruction writes.
pub const NAN_F16: u16 = 0x7fff;

/// How an inexact result is rounded: `.rn`, `.rna`, `.rz`, `.rm`, `.rp` (and the `i` forms).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Rounding {
    #[default]
    NearestEven,
    NearestAway,
    Zero,
    Down,
    Up,
}

/// The modifiers an arithmetic instruction on f32 or f64 may carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FloatMode {
    pub rounding: Rounding,
    /// `.ftz`: subnormal operands and results become zero of the same sign (f32 only).
    pub ftz: bool,
    /// `.sat`: the result is clamped to [0, 1] and NaN becomes +0 (f32 only).
    pub sat: bool,
}
