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

/// Nesting of blocks, lists and expressions beyond which a text is refused: deeper than any
/// compiler goes, and shallow enough for every thread's stack.
const MAX_DEPTH: u32 = 64;

/// PTX that is not written as PTX is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("ptx line {position}: expected {expected}, found {found}")]
pub struct ParseError {
    /// Where the offending text begins.
    pub position: Position,
    /// What could have stood there.
    pub expected: String,
    /// What stood there.
    pub found: String,
}

/// Reads a PTX module.
pub(crate) fn parse(text: &str) -> Result<Module<'_>, ParseError> {
    module::ModuleParser::new(text)?.module()
}

#[cfg(test)]
mod tests;
