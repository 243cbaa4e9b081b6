//! What a family of instructions gets to see of one.

use super::words::Words;
use crate::front::ast::Operand;

/// An instruction without its guard.
pub(crate) struct Form<'x, 'a> {
    pub opcode: &'a str,
    pub words: Words<'a>,
    pub operands: &'x [Operand<'a>],
}
