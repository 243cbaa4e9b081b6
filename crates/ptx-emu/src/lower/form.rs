//! The parts of an instruction that its family's code reads.

use super::modifiers::Modifiers;
use crate::front::ast::Operand;

/// An instruction without its guard.
pub(crate) struct Form<'x, 'a> {
    pub opcode: &'a str,
    pub words: Modifiers<'a>,
    pub operands: &'x [Operand<'a>],
}
