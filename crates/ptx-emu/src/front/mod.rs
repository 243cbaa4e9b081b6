//! PTX text to syntax tree.
//!
//! The tree is faithful and untyped: an instruction is its opcode, its modifiers in order and its
//! operands. [`crate::lower`] decides what they mean and whether they fit together; this module
//! knows only the syntax of PTX.

pub(crate) mod ast;
mod lexer;
mod parser;

pub use ast::Position;
pub use parser::ParseError;
pub(crate) use parser::parse;
