//! Tensor cores: products, matrix moves and tensor memory.

pub(crate) mod matrix;
pub(crate) mod tcgen05;
pub(crate) mod unset;
pub(crate) mod wgmma;
pub(crate) mod wmma;
