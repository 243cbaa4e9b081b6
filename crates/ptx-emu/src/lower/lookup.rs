//! Resolves the names in operands.

use super::emit::Emitter;
use super::error::{Lowered, Problem, illegal};
use super::names::{Binding, Register};
use crate::front::ast::{Constant, Operand};
use crate::op::*;

/// Describes an operand for errors.
pub(crate) fn describe(operand: &Operand<'_>) -> String {
    match operand {
        Operand::Name(name) => format!("`{name}`"),
        Operand::NameOffset(name, offset) => format!("`{name}+{offset}`"),
        Operand::Element(name, _) => format!("an element of `{name}`"),
        Operand::Member(name, member) => format!("`{name}.{member}`"),
        Operand::Constant(Constant::Int(bits)) => format!("`{}`", *bits as i64),
        Operand::Constant(_) => "a float constant".into(),
        Operand::Vector(items) => format!("a vector of {}", items.len()),
        Operand::Address(_) => "an address".into(),
        Operand::TensorAddress(..) => "an address with coordinates".into(),
        Operand::Sink => "`_`".into(),
        Operand::Pair(..) => "a pair".into(),
        Operand::Not(name) => format!("`!{name}`"),
        Operand::Negated(inner) => format!("the negative of {}", describe(inner)),
        Operand::List(_) => "an argument list".into(),
    }
}

pub(crate) fn wrong<T>(expected: impl Into<String>, found: &Operand<'_>) -> Lowered<T> {
    Err(Problem::Operand {
        expected: expected.into(),
        found: describe(found),
    })
}

/// Exactly `N` operands.
pub(crate) fn exactly<'x, 'a, const N: usize>(
    operands: &'x [Operand<'a>],
) -> Lowered<&'x [Operand<'a>; N]> {
    operands.try_into().map_err(|_| Problem::OperandCount {
        expected: N.to_string(),
        found: operands.len(),
    })
}

/// `N` operands and at most `more` further ones.
pub(crate) fn at_least<'x, 'a, const N: usize>(
    operands: &'x [Operand<'a>],
    more: usize,
) -> Lowered<(&'x [Operand<'a>; N], &'x [Operand<'a>])> {
    operands
        .split_first_chunk::<N>()
        .filter(|(_, rest)| rest.len() <= more)
        .ok_or_else(|| Problem::OperandCount {
            expected: format!("{N} to {}", N + more),
            found: operands.len(),
        })
}

/// An integer literal.
pub(crate) fn immediate(operand: &Operand<'_>) -> Lowered<i64> {
    match operand {
        Operand::Constant(Constant::Int(bits)) => Ok(*bits as i64),
        other => wrong("an integer constant", other),
    }
}

/// An unsigned integer literal that fits 32 bits.
pub(crate) fn immediate_u32(operand: &Operand<'_>) -> Lowered<u32> {
    match u32::try_from(immediate(operand)?) {
        Ok(value) => Ok(value),
        Err(_) => wrong("a constant from 0 to 4294967295", operand),
    }
}

impl<'a> Emitter<'_, 'a> {
    /// The register an operand names, if it names one.
    pub(super) fn register(&mut self, operand: &Operand<'a>) -> Lowered<Option<Register>> {
        match operand {
            Operand::Name(name) => match self.names.lookup(name) {
                Some(Binding::Register(register)) => Ok(Some(register)),
                _ => Ok(None),
            },
            Operand::Member(name, member) => {
                let component = match *member {
                    "x" | "r" => 0,
                    "y" | "g" => 1,
                    "z" | "b" => 2,
                    "w" | "a" => 3,
                    _ => return Ok(None),
                };
                Ok(self.names.component(name, component))
            }
            Operand::NameOffset(name, offset) => match self.names.lookup(name) {
                Some(Binding::Register(register)) => self.sum(register, *offset).map(Some),
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    /// `r+1` as an operand: a new register with the sum.
    fn sum(&mut self, register: Register, offset: i64) -> Lowered<Register> {
        let d = self.names.temporary(register.bits);
        match register.bits {
            16 | 32 => {
                let w = if register.bits == 16 { W::B16 } else { W::B32 };
                let (a, b) = (self.r32(register), self.const32(offset as u32));
                let (op, d) = (IBin::Add, self.r32(d));
                self.emit(Op::Bin32 { w, op, d, a, b });
            }
            64 => {
                let (a, b) = (self.r64(register), Const64::Bits(offset as u64));
                let (b, d) = (self.const64(b), self.r64(d));
                self.emit(Op::Bin64 {
                    op: IBin::Add,
                    d,
                    a,
                    b,
                });
            }
            bits => return illegal(format!("no constant is added to {bits} bits")),
        }
        Ok(d)
    }

    /// The halves of a 128-bit register that is read.
    pub(super) fn source128(&mut self, operand: &Operand<'a>) -> Lowered<[R64; 2]> {
        match self.register(operand)? {
            Some(register) if register.bits == 128 => Ok(self.halves(register)),
            _ => wrong("a 128-bit register", operand),
        }
    }

    /// No declaration of any kind has this name.
    pub(super) fn unknown(&mut self, name: &str) -> bool {
        self.names.lookup(name).is_none()
            && !self.unit.variables.contains_key(name)
            && !self.unit.functions.contains_key(name)
    }
}
