//! Tensor cores and bulk tensor copies as pure functions.
//!
//! Operands come as register lanes and shared-memory bytes, results go back the same way. Nothing
//! here knows when an instruction is issued or becomes visible; that is the executor's business.

pub(crate) mod descriptor;
pub(crate) mod element;
pub(crate) mod fused;
pub(crate) mod matrix;
pub(crate) mod mma;
#[allow(dead_code, reason = "mma.sync of sm_120a comes next")]
pub(crate) mod scaled;
pub(crate) mod sparse;
pub(crate) mod swizzle;
pub(crate) mod tcgen05;
pub(crate) mod tensormap;
pub(crate) mod wgmma;
pub(crate) mod wmma;

pub(crate) use element::Element;
pub use swizzle::Swizzle;

/// How sums of products are rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Numerics {
    /// f32 fused multiply-adds in order of k: fast, at least as accurate as the hardware.
    #[default]
    Fast,
    /// As the tensor cores do: exact products, one sum per instruction aligned to its largest
    /// exponent and truncated (see `fused` and `scaled`).
    Exact,
}
