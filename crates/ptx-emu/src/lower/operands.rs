//! Operands to slots and immediates.

use super::emit::Emitter;
use super::error::{Lowered, Problem, illegal};
use super::lookup::{describe, wrong};
use super::names::Register;
use crate::front::ast::{Constant, Operand};
use crate::op::*;

/// The bits of a literal as a value of a type.
pub(crate) fn literal_bits(constant: Constant, ty: Num) -> u64 {
    let value = match constant {
        Constant::Int(bits) => return bits,
        Constant::Single(bits) if ty == Num::F64 => {
            return f64::from(f32::from_bits(bits)).to_bits();
        }
        Constant::Single(bits) => return u64::from(bits),
        Constant::Double(bits) => f64::from_bits(bits),
    };
    match ty {
        Num::F32 | Num::Tf32 => u64::from((value as f32).to_bits()),
        Num::F16 => u64::from(half::f16::from_f64(value).to_bits()),
        Num::Bf16 => u64::from(half::bf16::from_f64(value).to_bits()),
        _ => value.to_bits(),
    }
}

impl<'a> Emitter<'_, 'a> {
    /// A constant can be added to integers; no assembler defines it for floats.
    fn check_sum(&mut self, operand: &Operand<'a>, ty: Num) -> Lowered<()> {
        match operand {
            Operand::NameOffset(name, _)
                if !ty.is_integer() && self.names.lookup(name).is_some() =>
            {
                illegal("a constant is added to registers of integers only")
            }
            _ => Ok(()),
        }
    }

    /// A register to write, of exactly these bits.
    pub(super) fn target(&mut self, operand: &Operand<'a>, bits: u32) -> Lowered<Register> {
        let register = match operand {
            Operand::NameOffset(..) => None,
            other => self.register(other)?,
        };
        match register {
            Some(register) if register.bits == bits => Ok(register),
            Some(register) => illegal(format!(
                "{} has {} bits where {bits} are needed",
                describe(operand),
                register.bits
            )),
            None => match operand {
                Operand::Name(name) if self.unknown(name) => {
                    Err(Problem::UnknownName((*name).to_owned()))
                }
                other => wrong(format!("a {bits}-bit register"), other),
            },
        }
    }

    pub(super) fn d32(&mut self, operand: &Operand<'a>, bits: u32) -> Lowered<R32> {
        let register = self.target(operand, bits)?;
        Ok(self.r32(register))
    }

    pub(super) fn d64(&mut self, operand: &Operand<'a>) -> Lowered<R64> {
        let register = self.target(operand, 64)?;
        Ok(self.r64(register))
    }

    pub(super) fn dp(&mut self, operand: &Operand<'a>) -> Lowered<P> {
        let register = self.target(operand, 1)?;
        Ok(self.pred(register))
    }

    /// A predicate to write; `_` gives a scratch one.
    pub(super) fn dp_or_sink(&mut self, operand: &Operand<'a>) -> Lowered<P> {
        match operand {
            Operand::Sink => Ok(self.temp_pred()),
            other => self.dp(other),
        }
    }

    /// A destination that may be `_`.
    pub(super) fn dslot(&mut self, operand: &Operand<'a>, bits: u32) -> Lowered<Slot> {
        match operand {
            Operand::Sink => Ok(Slot::Sink),
            other if bits == 64 => Ok(Slot::W64(self.d64(other)?)),
            other => Ok(Slot::W32(self.d32(other, bits)?)),
        }
    }

    /// As [`Emitter::dslot`], the sink if nothing reads the register.
    pub(super) fn wanted(&mut self, operand: &Operand<'a>, bits: u32) -> Lowered<Slot> {
        let slot = self.dslot(operand, bits)?;
        let Slot::W32(_) = slot else {
            return Ok(slot);
        };
        let register = self.target(operand, bits)?;
        let read = self
            .plan
            .is_none_or(|plan| plan.read.contains(&register.id));
        Ok(if read { slot } else { Slot::Sink })
    }

    /// A destination register of any width at least `bits`, with its width.
    pub(super) fn wide_target(&mut self, operand: &Operand<'a>, bits: u32) -> Lowered<(Slot, u32)> {
        if matches!(operand, Operand::Sink) {
            return Ok((Slot::Sink, bits));
        }
        let register = match operand {
            Operand::NameOffset(..) => None,
            other => self.register(other)?,
        };
        let register = match register {
            Some(register) if register.bits >= bits && register.bits <= 64 => register,
            _ => self.target(operand, bits)?,
        };
        Ok((self.any_slot(register), register.bits))
    }

    pub(super) fn any_slot(&self, register: Register) -> Slot {
        match register.bits {
            64 => Slot::W64(self.r64(register)),
            _ => Slot::W32(self.r32(register)),
        }
    }

    /// A value of up to 32 bits: register, special register, symbol or literal.
    pub(super) fn s32(&mut self, operand: &Operand<'a>, ty: Num) -> Lowered<R32> {
        let bits = ty.bits();
        self.check_sum(operand, ty)?;
        if let Some(register) = self.register(operand)? {
            if register.bits != bits {
                return illegal(format!(
                    "{} has {} bits where {bits} are needed",
                    describe(operand),
                    register.bits
                ));
            }
            return Ok(self.r32(register));
        }
        match operand {
            Operand::Constant(constant) => {
                let value = literal_bits(*constant, ty) as u32;
                let mask = if bits < 32 {
                    (1u32 << bits) - 1
                } else {
                    u32::MAX
                };
                Ok(self.const32(value & mask))
            }
            Operand::Name("WARP_SZ") => Ok(self.const32(32)),
            Operand::Name(name) if name.starts_with('%') => {
                let full = self.special_value32(name, None, operand)?;
                Ok(self.low_bits(full, bits))
            }
            Operand::Member(name, member) if name.starts_with('%') => {
                let full = self.special_value32(name, Some(member), operand)?;
                Ok(self.low_bits(full, bits))
            }
            Operand::Name(name) => self.symbol32(name, 0),
            Operand::NameOffset(name, offset) => self.symbol32(name, *offset),
            Operand::Element(name, indices) => self.element32(name, indices),
            other => wrong(format!("a {bits}-bit value"), other),
        }
    }

    pub(super) fn s64(&mut self, operand: &Operand<'a>, ty: Num) -> Lowered<R64> {
        self.check_sum(operand, ty)?;
        if let Some(register) = self.register(operand)? {
            if register.bits != 64 {
                return illegal(format!(
                    "{} has {} bits where 64 are needed",
                    describe(operand),
                    register.bits
                ));
            }
            return Ok(self.r64(register));
        }
        match operand {
            Operand::Constant(constant) => {
                let bits = literal_bits(*constant, ty);
                Ok(self.const64(Const64::Bits(bits)))
            }
            Operand::Name("WARP_SZ") => Ok(self.const64(Const64::Bits(32))),
            Operand::Name(name) if name.starts_with('%') => self.special_value64(name, operand),
            Operand::Name(name) => self.symbol64(name, 0),
            Operand::NameOffset(name, offset) => self.symbol64(name, *offset),
            Operand::Element(name, indices) => self.element64(name, indices),
            other => wrong("a 64-bit value", other),
        }
    }

    /// A value as wide as its type.
    pub(super) fn source(&mut self, operand: &Operand<'a>, ty: Num) -> Lowered<Slot> {
        match ty.bits() {
            64 => Ok(Slot::W64(self.s64(operand, ty)?)),
            _ => Ok(Slot::W32(self.s32(operand, ty)?)),
        }
    }

    /// A value in a register at least as wide as its type (stores and conversions).
    pub(super) fn wide_source(&mut self, operand: &Operand<'a>, ty: Num) -> Lowered<(Slot, u32)> {
        self.check_sum(operand, ty)?;
        match self.register(operand)? {
            Some(register) if register.bits >= ty.bits() && register.bits <= 64 => {
                Ok((self.any_slot(register), register.bits))
            }
            _ => Ok((self.source(operand, ty)?, ty.bits())),
        }
    }

    /// A predicate to read, and whether it is negated.
    pub(super) fn sp(&mut self, operand: &Operand<'a>) -> Lowered<(P, bool)> {
        let (operand, negated) = match operand {
            Operand::Not(name) => (&Operand::Name(name), true),
            other => (other, false),
        };
        match self.register(operand)? {
            Some(register) if register.bits == 1 => {
                return Ok((self.pred(register), negated));
            }
            _ => {}
        }
        match operand {
            Operand::Constant(Constant::Int(bits)) => {
                let d = self.temp_pred();
                self.emit(Op::PConst {
                    d,
                    value: *bits != 0,
                });
                Ok((d, negated))
            }
            Operand::Name(name) if self.unknown(name) => {
                Err(Problem::UnknownName((*name).to_owned()))
            }
            other => wrong("a predicate", other),
        }
    }
}

/// A register with the value of an operand.
pub(crate) trait Source: Sized {
    fn read<'a>(emitter: &mut Emitter<'_, 'a>, operand: &Operand<'a>, ty: Num) -> Lowered<Self>;
}

impl Source for R32 {
    fn read<'a>(emitter: &mut Emitter<'_, 'a>, operand: &Operand<'a>, ty: Num) -> Lowered<Self> {
        emitter.s32(operand, ty)
    }
}

impl Source for R64 {
    fn read<'a>(emitter: &mut Emitter<'_, 'a>, operand: &Operand<'a>, ty: Num) -> Lowered<Self> {
        emitter.s64(operand, ty)
    }
}

impl Source for Slot {
    fn read<'a>(emitter: &mut Emitter<'_, 'a>, operand: &Operand<'a>, ty: Num) -> Lowered<Self> {
        emitter.source(operand, ty)
    }
}

/// A destination register that an operand names.
pub(crate) trait Target: Sized {
    fn write<'a>(emitter: &mut Emitter<'_, 'a>, operand: &Operand<'a>, ty: Num) -> Lowered<Self>;
}

impl Target for R32 {
    fn write<'a>(emitter: &mut Emitter<'_, 'a>, operand: &Operand<'a>, ty: Num) -> Lowered<Self> {
        emitter.d32(operand, ty.bits())
    }
}

impl Target for R64 {
    fn write<'a>(emitter: &mut Emitter<'_, 'a>, operand: &Operand<'a>, _: Num) -> Lowered<Self> {
        emitter.d64(operand)
    }
}

/// The result has one bit per lane, whatever the type of the values it comes from.
impl Target for P {
    fn write<'a>(emitter: &mut Emitter<'_, 'a>, operand: &Operand<'a>, _: Num) -> Lowered<Self> {
        emitter.dp(operand)
    }
}
