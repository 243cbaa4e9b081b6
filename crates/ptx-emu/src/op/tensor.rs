//! Tensor-core instructions and matrix moves.

use super::{Addr, BoolOp, Num, P, R32, R64, SlotList, Space};
use crate::tensor::wmma::{Fragment, Shape};

/// `wgmma.mma_async`
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wgmma {
    /// N of m64nNkK.
    pub n: u16,
    /// K of m64nNkK.
    pub k: u16,
    /// Accumulator type: F32, F16 or S32.
    pub d_ty: Num,
    /// Operand types.
    pub a_ty: Num,
    /// Operand types.
    pub b_ty: Num,
    /// Accumulator slots (f16: two values per slot).
    pub d: SlotList,
    /// A operand.
    pub a: WgmmaA,
    /// Descriptor of B.
    pub b_desc: R64,
    /// `scale-d`: accumulate if true; `None` means the constant 1 (true).
    pub scale_d: Option<P>,
    /// `scale-d` is the constant 0: D = A·B.
    pub zero_d: bool,
    /// `imm-scale-a` is −1.
    pub negate_a: bool,
    /// `imm-scale-b` is −1.
    pub negate_b: bool,
    /// A in shared memory is MN-major (`imm-trans-a` = 1).
    pub trans_a: bool,
    /// B is MN-major.
    pub trans_b: bool,
    /// `.satfinite` (s32)
    pub satfinite: bool,
    /// `wgmma.mma_async.sp`; `k` is B's.
    pub sparse: Option<Sparsity>,
}

/// Which elements of a sparse A are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sparsity {
    /// Register of the metadata.
    pub metadata: R32,
    /// Which lanes' metadata count.
    pub selector: u8,
    /// `sp::ordered_metadata`
    pub ordered: bool,
}

/// A operand of a [`Wgmma`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WgmmaA {
    /// Matrix descriptor.
    Desc(R64),
    /// Four fragment registers.
    Regs(SlotList),
}

/// `mma.sync`
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mma {
    /// Shape.
    pub m: u16,
    /// Shape.
    pub n: u16,
    /// Shape.
    pub k: u16,
    /// D and C type.
    pub d_ty: Num,
    /// C type (usually D's).
    pub c_ty: Num,
    /// Operand types.
    pub a_ty: Num,
    /// Operand types.
    pub b_ty: Num,
    /// Result fragment.
    pub d: SlotList,
    /// A fragment.
    pub a: SlotList,
    /// B fragment.
    pub b: SlotList,
    /// C fragment.
    pub c: SlotList,
    /// `.satfinite`
    pub satfinite: bool,
    /// A is column-major (only m8n8k4).
    pub a_col: bool,
    /// B is row-major (only m8n8k4).
    pub b_row: bool,
    /// `.and.popc` / `.xor.popc` for b1.
    pub b1_op: Option<BoolOp>,
    /// `mma.sp`
    pub sparse: Option<Sparsity>,
    /// `.block_scale`: (scale vector size, scale type, a scale, byte id, thread id, b scale, …).
    pub block_scale: Option<BlockScale>,
}

/// Scale operands of a block-scaled `mma.sync`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockScale {
    /// 1, 2 or 4 (`scale_vec::nX`).
    pub vec: u8,
    /// Ue8m0 or E4m3 (`ue4m3`).
    pub ty: Num,
    /// Scale data of A.
    pub a: R32,
    /// byte-id-a, thread-id-a
    pub a_ids: (u8, u8),
    /// Scale data of B.
    pub b: R32,
    /// byte-id-b, thread-id-b
    pub b_ids: (u8, u8),
}

/// `wmma.mma`
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wmma {
    /// Shape.
    pub shape: Shape,
    /// D type.
    pub d_ty: Num,
    /// C type.
    pub c_ty: Num,
    /// Operand types.
    pub a_ty: Num,
    /// Operand types.
    pub b_ty: Num,
    /// Result fragment.
    pub d: SlotList,
    /// A fragment.
    pub a: SlotList,
    /// B fragment.
    pub b: SlotList,
    /// C fragment.
    pub c: SlotList,
    /// `.satfinite`
    pub satfinite: bool,
    /// `.and.popc` / `.xor.popc` for b1.
    pub b1_op: Option<BoolOp>,
}

/// `wmma.load` / `wmma.store`
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WmmaMove {
    /// Store rather than load.
    pub store: bool,
    /// What is moved.
    pub fragment: Fragment,
    /// The matrix in memory is column-major.
    pub by_column: bool,
    /// The matrix's first element.
    pub addr: Addr,
    /// Space of `addr`.
    pub space: Space,
    /// Elements from one row (column) to the next; `None`: the matrix is dense.
    pub stride: Option<R32>,
    /// Fragment registers.
    pub regs: SlotList,
}

/// `ldmatrix` / `stmatrix`
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MatrixMove {
    /// Store rather than load.
    pub store: bool,
    /// Number of 8×8 (or 16×8, 16×16) matrices: 1, 2 or 4.
    pub count: u8,
    /// Matrix shape.
    pub shape: MatrixShape,
    /// `.trans`
    pub trans: bool,
    /// Row addresses (shared).
    pub addr: Addr,
    /// Space of `addr`.
    pub space: Space,
    /// Fragment registers.
    pub regs: SlotList,
}

/// Shapes of `ldmatrix`/`stmatrix`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum MatrixShape {
    /// `.m8n8.b16`
    M8n8B16,
    /// `.m16n16.b8` (ldmatrix, trans) and `.m16n8.b8` (stmatrix, trans)
    M16n16B8,
    M16n8B8,
    /// `.m16n16.b8x16.b6x16_p32` / `.b4x16_p64`
    M16n16B6,
    M16n16B4,
    /// `.m8n16.b8x16.b6x16_p32` / `.b4x16_p64`
    M8n16B6,
    M8n16B4,
}
