//! `tcgen05`: the products of Blackwell's tensor cores, and how matrices lie in tensor memory.
//!
//! Tensor memory is kept column after column, 128 lanes each, so that what a warp loads of a
//! column is a register, and sixteen rows of a product are a vector.

mod floats;
mod form;
mod fours;
mod moves;
mod operand;
mod product;
mod sparse;

pub(crate) use form::{Form, Kind, Sum, Vector};
pub(crate) use moves::{CopyShape, MoveLanes, MoveShape, Unpacked};
pub(crate) use operand::{Operands, Source};
pub(crate) use product::{Product, TensorColumns};

/// Lanes of tensor memory.
pub(crate) const LANES: usize = 128;

/// Its columns.
pub(crate) const COLUMNS: usize = 512;

/// Sixteen rows (or fewer columns) of D that lie in one piece: element (`rows` + i, `n` + j) is in
/// lane `lane` + i of column `column` + j.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    /// First row, of those the CTA has.
    pub row: u32,
    /// First column of the product and how many.
    pub n: u32,
    pub width: u32,
    pub lane: u32,
    /// From where D begins.
    pub column: u32,
}

/// Rows of a [`Block`].
pub(crate) const BLOCK: usize = 16;
