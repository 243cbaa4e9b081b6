//! Tokens to syntax tree, by recursive descent.
//!
//! `cursor` walks the tokens, `module` reads directives at file scope, `declare` variables and
//! functions, `statement` bodies, `operand` operands and constant expressions.

mod cursor;
mod declare;
mod module;
mod operand;
mod statement;

use super::ast::{Module, Position};

/// Maximum nesting of blocks, lists and expressions: deeper than any compiler's, and shallow enough
/// for every thread's stack.
const MAX_DEPTH: u32 = 64;

/// A syntax error in PTX.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ptx line {position}: expected {expected}, found {found}")]
pub struct ParseError {
    /// Where the offending text begins.
    pub position: Position,
    /// What was expected there.
    pub expected: String,
    /// What was there.
    pub found: String,
}

/// Reads a PTX module.
pub(crate) fn parse(text: &str) -> Result<Module<'_>, ParseError> {
    module::ModuleParser::new(text)?.module()
}

#[cfg(test)]
mod tests;
