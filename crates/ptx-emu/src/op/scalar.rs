//! What arithmetic instructions do, and to which formats.

/// Width of an integer op on the 32-bit file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum W {
    B16,
    B32,
}

/// Two-operand integer operations, for 16, 32 and 64 bits alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum IBin {
    Add,
    Sub,
    /// `add.sat.s32`
    AddSat,
    /// `sub.sat.s32`
    SubSat,
    MulLo,
    MulHiS,
    MulHiU,
    /// Division by zero gives all ones, as on the device.
    DivS,
    DivU,
    /// Remainder by zero gives the dividend.
    RemS,
    RemU,
    MinS,
    MinU,
    MaxS,
    MaxU,
    /// `min.s32.relu` / `max.s32.relu`
    MinSRelu,
    MaxSRelu,
    And,
    Or,
    Xor,
    /// Shift amounts (always a 32-bit slot, even for 64-bit values) clamp at the width.
    Shl,
    ShrS,
    ShrU,
    /// `mul24.lo/hi`, signed and unsigned
    Mul24LoS,
    Mul24LoU,
    Mul24HiS,
    Mul24HiU,
}

/// One-operand integer operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum IUn {
    Not,
    Neg,
    Abs,
    /// `cnot`: 1 if the operand is 0, else 0.
    Cnot,
    Brev,
}

/// One-operand integer operations with a 32-bit result for 32- and 64-bit operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum ICount {
    Popc,
    Clz,
    BfindS,
    BfindU,
    BfindShiftS,
    BfindShiftU,
}

/// Packed 16x2 integer operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum I16x2 {
    Add,
    MinS,
    MinU,
    MaxS,
    MaxU,
    MinSRelu,
    MaxSRelu,
}

/// `prmt` modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum PrmtMode {
    Index,
    F4e,
    B4e,
    Rc8,
    Ecl,
    Ecr,
    Rc16,
}

/// Float rounding of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub(crate) enum Round {
    #[default]
    /// `.rn`
    Near,
    /// `.rz`
    Zero,
    /// `.rm`
    Down,
    /// `.rp`
    Up,
    /// `.rna`: nearest, ties away (`cvt` to tf32)
    NearAway,
}

/// Modifiers of float arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FMods {
    /// Rounding of the result.
    pub round: Round,
    /// Flush subnormal inputs and results to zero.
    pub ftz: bool,
    /// Clamp to [0, 1], NaN to 0.
    pub sat: bool,
    /// `.relu` (half types): negative and NaN handling as PTX says (NaN stays canonical NaN).
    pub relu: bool,
    /// `.oob` (`fma` on half types): zero if a factor is the NaN that stands for out of bounds.
    pub oob: bool,
}

/// Two-operand float operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum FBin {
    Add,
    Sub,
    Mul,
    /// IEEE division with `FMods::round`.
    Div,
    /// `div.full.f32` (2 ulp) and `div.approx.f32`
    DivFull,
    DivApprox,
    /// The number wins over a NaN.
    Min,
    Max,
    /// `.NaN`: a NaN wins.
    MinNan,
    MaxNan,
    /// `.xorsign.abs` (and with `.NaN`)
    MinXorsignAbs,
    MaxXorsignAbs,
    MinNanXorsignAbs,
    MaxNanXorsignAbs,
    /// `copysign d, a, b`: magnitude of b with the sign of a.
    Copysign,
}

/// One-operand float operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum FUn {
    Neg,
    Abs,
    /// IEEE square root / reciprocal with `FMods::round`
    Sqrt,
    Rcp,
    SqrtApprox,
    RcpApprox,
    RsqrtApprox,
    Ex2Approx,
    Lg2Approx,
    SinApprox,
    CosApprox,
    TanhApprox,
}

/// Half formats, scalar (low 16 bits) and packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum HFmt {
    F16,
    F16x2,
    Bf16,
    Bf16x2,
}

/// Comparisons; `U` forms are true when an operand is NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    /// both are numbers
    Num,
    /// either is NaN
    Nan,
}

/// `testp` properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum FTest {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}

/// Predicate logic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum BoolOp {
    And,
    Or,
    Xor,
}

/// Scalar number formats for `cvt`, atomics and reductions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub(crate) enum Num {
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    S8,
    U16,
    S16,
    U32,
    S32,
    U64,
    S64,
    F16,
    Bf16,
    Tf32,
    F32,
    F64,
    F16x2,
    Bf16x2,
    E4m3,
    E5m2,
    E2m1,
    E2m3,
    E3m2,
    Ue8m0,
    /// 8-bit fixed point with six fraction bits
    S2f6,
    /// signed/unsigned 4-bit and 1-bit integers (`mma` operands)
    S4,
    U4,
    B1,
    /// signed/unsigned 2-bit integers (`cvt.pack` results)
    S2,
    U2,
}

impl Num {
    /// Bits of a register that holds one.
    pub(crate) fn bits(self) -> u32 {
        match self {
            Num::B8 | Num::U8 | Num::S8 | Num::E4m3 | Num::E5m2 => 8,
            Num::E2m1 | Num::E2m3 | Num::E3m2 | Num::Ue8m0 | Num::S2f6 => 8,
            Num::S4 | Num::U4 | Num::S2 | Num::U2 | Num::B1 => 8,
            Num::B16 | Num::U16 | Num::S16 | Num::F16 | Num::Bf16 => 16,
            Num::B32 | Num::U32 | Num::S32 | Num::F32 | Num::Tf32 => 32,
            Num::F16x2 | Num::Bf16x2 => 32,
            Num::B64 | Num::U64 | Num::S64 | Num::F64 => 64,
            Num::B128 => 128,
        }
    }

    /// Bytes of an element in memory.
    pub(crate) fn bytes(self) -> u64 {
        u64::from(self.bits() / 8)
    }

    pub(crate) fn is_signed(self) -> bool {
        matches!(self, Num::S8 | Num::S16 | Num::S32 | Num::S64)
    }

    /// An integer or untyped format.
    pub(crate) fn is_integer(self) -> bool {
        use Num::*;
        matches!(
            self,
            B8 | B16 | B32 | B64 | B128 | U8 | S8 | U16 | S16 | U32 | S32 | U64 | S64
        )
    }
}

/// Modifiers of `cvt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CvtMods {
    /// Float rounding, or the integer rounding of `.rni/.rzi/.rmi/.rpi` when `integer` is set.
    pub round: Round,
    /// An integer rounding modifier was given (float → integer, or float → integral float).
    pub integer: bool,
    /// Flush subnormals.
    pub ftz: bool,
    /// `.sat`
    pub sat: bool,
    /// `.satfinite`
    pub satfinite: bool,
    /// `.relu`
    pub relu: bool,
}
