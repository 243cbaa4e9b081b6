//! Video instructions: arithmetic on selected bytes and halves.

use super::{Cmp, R32};

/// `vadd` and its kind, scalar and SIMD.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Video {
    /// What is done to the selected parts.
    pub kind: VideoKind,
    /// Whether the result, A and B have signs.
    pub signed: [bool; 3],
    /// `.sat`
    pub sat: bool,
    /// What happens to the result and C.
    pub then: VideoThen,
    /// Parts of a SIMD form (2 or 4), 1 for a scalar one.
    pub parts: u8,
    /// Scalar: the part of the result that is written (then the rest is C's). SIMD: unused.
    pub part: Part,
    /// SIMD: which parts of the result are computed.
    pub mask: u8,
    /// Scalar: the part of A that is read. SIMD: unused.
    pub a_part: Part,
    /// Scalar: the part of B that is read. SIMD: unused.
    pub b_part: Part,
    /// SIMD: for each part, which of A's and then B's is the left operand.
    pub a_select: [u8; 4],
    /// SIMD: the right operand likewise.
    pub b_select: [u8; 4],
    /// Result.
    pub d: R32,
    /// Operands.
    pub a: R32,
    /// Operands.
    pub b: R32,
    /// Operands.
    pub c: R32,
}

/// Some bits of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// First bit.
    pub shift: u8,
    /// 8, 16 or 32.
    pub bits: u8,
}

impl Part {
    /// A whole register.
    pub(crate) const ALL: Self = Self { shift: 0, bits: 32 };
}

/// The operation of a [`Video`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs)]
pub(crate) enum VideoKind {
    Add,
    Sub,
    AbsDiff,
    Min,
    Max,
    /// Halves of the sum, rounded away from zero at the half.
    Average,
    /// `clamp` holds the amount at 32; otherwise its low five bits count.
    Shl {
        clamp: bool,
    },
    Shr {
        clamp: bool,
    },
    Set(Cmp),
    /// ±(a·b) ± c, shifted right.
    Mad {
        negate_product: bool,
        negate_c: bool,
        plus_one: bool,
        shift: u8,
    },
}

/// The second step of a [`Video`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum VideoThen {
    Nothing,
    Add,
    Min,
    Max,
    /// The part of the result replaces that of C.
    Merge,
}
