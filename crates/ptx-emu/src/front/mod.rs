//! PTX text to syntax tree.
//!
//! The tree is faithful and untyped: an instruction is its opcode, its modifiers in order and its
//! operands. What they mean, and whether they make sense together, is decided by [`crate::lower`];
//! this room knows only how PTX is written down.

pub mod ast;
pub mod lexer;
pub mod parser;

pub use parser::{ParseError, parse};
