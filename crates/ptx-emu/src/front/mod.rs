//! PTX text to syntax tree.
//!
//! The tree is faithful and untyped: an instruction is its opcode, its modifiers in order and its
//! operands. What they mean, and whether they make sense together, is decided by [`crate::lower`];
//! this room knows only how PTX is written down.

pub(crate) mod ast;
mod lexer;
mod parser;

pub use ast::Position;
pub use parser::ParseError;
pub(crate) use parser::parse;
