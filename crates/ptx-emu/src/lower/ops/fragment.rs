//! Shapes, types and registers of matrix operands.

use crate::front::ast::Operand;
use crate::lower::emit::Emitter;
use crate::lower::error::{Lowered, Problem};
use crate::lower::lookup::wrong;
use crate::lower::modifiers::{Modifiers, TYPES};
use crate::op::*;

/// `m64n128k16` and similar.
pub(super) fn shape(words: &mut Modifiers<'_>) -> Lowered<(u16, u16, u16)> {
    let word = words.next().ok_or(Problem::MissingModifier("a shape"))?;
    let parse = || {
        let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        Some((m.parse().ok()?, n.parse().ok()?, k.parse().ok()?))
    };
    parse().ok_or_else(|| Problem::UnknownModifier(word.to_owned()))
}

/// The next word, which must be a type.
pub(super) fn next_type(words: &mut Modifiers<'_>) -> Lowered<Num> {
    let word = words.next().ok_or(Problem::MissingModifier("a type"))?;
    TYPES
        .iter()
        .find(|&&(name, _)| name == word)
        .map(|&(_, ty)| ty)
        .ok_or_else(|| Problem::UnknownModifier(word.to_owned()))
}

/// A vector of 32-bit registers. Asynchronous ones do not share their slots, because they are in
/// use after the instruction.
pub(super) fn fragment<'a>(
    emitter: &mut Emitter<'_, 'a>,
    operand: &Operand<'a>,
    registers: usize,
    write: bool,
    asynchronous: bool,
) -> Lowered<SlotList> {
    let items = match operand {
        Operand::Vector(items) if items.len() == registers => items.as_slice(),
        Operand::Vector(_) => return wrong(format!("{registers} registers"), operand),
        _ => return wrong("registers in braces".to_owned(), operand),
    };
    let mut slots = Vec::new();
    for item in items {
        if let (Some(register), true) = (emitter.register(item)?, asynchronous) {
            emitter.pin(register);
        }
        slots.push(match write {
            true => Slot::W32(emitter.d32(item, 32)?),
            false => Slot::W32(emitter.s32(item, Num::B32)?),
        });
    }
    emitter.list(&slots)
}
