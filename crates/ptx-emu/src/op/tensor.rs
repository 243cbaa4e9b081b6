//! Tensor-core instructions and matrix moves.

use super::{Addr, P, R32, R64, SlotList, Space};
use crate::tensor::matrix::Tile;
use crate::tensor::mma::narrow::Narrow;
use crate::tensor::mma::octets::Octets;
use crate::tensor::mma::sparse::Sparse;
use crate::tensor::wmma::Fragment;
use crate::tensor::{mma, wgmma, wmma};

/// `wgmma.mma_async`
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Wgmma {
    /// N of m64nNkK.
    pub n: u16,
    /// K of m64nNkK.
    pub k: u16,
    /// Shape, types, signs and saturation.
    pub form: wgmma::Form,
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
    /// A in shared memory is MN-major (`imm-trans-a` = 1).
    pub trans_a: bool,
    /// B is MN-major.
    pub trans_b: bool,
    /// `wgmma.mma_async.sp`; `k` is B's.
    pub sparse: Option<Sparsity>,
}

/// Which elements of a sparse A are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sparsity {
    /// Register of the metadata.
    pub metadata: R32,
    /// Which lanes' metadata count.
    pub selector: u8,
    /// `sp::ordered_metadata`
    pub ordered: bool,
}

/// A operand of a [`Wgmma`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WgmmaA {
    /// Matrix descriptor.
    Desc(R64),
    /// Four fragment registers.
    Regs(SlotList),
}

/// `mma.sync`
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Mma {
    /// Shape, types and layouts.
    pub product: Product,
    /// Result fragment.
    pub d: SlotList,
    /// A fragment.
    pub a: SlotList,
    /// B fragment.
    pub b: SlotList,
    /// C fragment.
    pub c: SlotList,
    /// Which elements of a sparse A are stored.
    pub metadata: Option<R32>,
    /// Scales of A and of B.
    pub scales: Option<[BlockScales; 2]>,
}

/// The scales of an operand of [`Mma`] and which of them count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockScales {
    /// Register of four scales.
    pub data: R32,
    /// The first byte.
    pub byte: R32,
    /// Which lanes of each four.
    pub thread: R32,
}

/// The products `mma.sync` computes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Product {
    /// By all lanes together.
    Dense(mma::Form),
    /// `mma.sp`
    Sparse(Sparse),
    /// m8n8k4 of f16, by eight lanes each.
    Octets(Octets),
    /// Of 8-, 6- and 4-bit floats, perhaps with scales.
    Narrow(Narrow),
}

/// `wmma.mma`
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Wmma {
    /// Shape and types.
    pub form: wmma::Wmma,
    /// Result fragment.
    pub d: SlotList,
    /// A fragment.
    pub a: SlotList,
    /// B fragment.
    pub b: SlotList,
    /// C fragment.
    pub c: SlotList,
}

/// `wmma.load` / `wmma.store`
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct WmmaMove {
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
pub(crate) struct MatrixMove {
    /// Store rather than load.
    pub store: bool,
    /// Number of matrices: 1, 2 or 4.
    pub count: u8,
    /// What a matrix is made of.
    pub tile: Tile,
    /// Row addresses (shared).
    pub addr: Addr,
    /// Space of `addr`.
    pub space: Space,
    /// Fragment registers.
    pub regs: SlotList,
}
