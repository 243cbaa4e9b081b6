//! Symbols and addresses.

use super::emit::Emitter;
use super::error::{Lowered, Problem, illegal};
use super::names::{Binding, Place};
use super::operands::wrong;
use crate::front::ast::{self, Operand};
use crate::op::*;

impl<'a> Emitter<'_, 'a> {
    /// What a symbol's bytes are called, local scopes first.
    pub fn symbol(&mut self, name: &str) -> Lowered<Option<Place>> {
        match self.names.lookup(name) {
            Some(Binding::Variable(place)) => Ok(Some(place)),
            Some(_) => Ok(None),
            None => self.place(name),
        }
    }

    pub(super) fn symbol32(&mut self, name: &str, offset: i64) -> Lowered<R32> {
        match self.symbol(name)? {
            Some(Place::Shared(index)) => {
                let address = i64::from(self.shared_address(index)).wrapping_add(offset);
                Ok(self.const32(address as u32))
            }
            Some(Place::Local(at) | Place::Param(at)) => {
                Ok(self.const32(i64::from(at).wrapping_add(offset) as u32))
            }
            Some(Place::Global { .. }) => illegal(format!("the address of `{name}` needs 64 bits")),
            None => Err(Problem::UnknownName(name.to_owned())),
        }
    }

    pub(super) fn symbol64(&mut self, name: &str, offset: i64) -> Lowered<R64> {
        let value = match self.symbol(name)? {
            Some(Place::Global { index, .. }) => Const64::Global {
                index,
                addend: offset,
            },
            Some(Place::Shared(index)) => {
                Const64::Bits(i64::from(self.shared_address(index)).wrapping_add(offset) as u64)
            }
            Some(Place::Local(at) | Place::Param(at)) => {
                Const64::Bits(i64::from(at).wrapping_add(offset) as u64)
            }
            None => return self.function_address(name),
        };
        Ok(self.const64(value))
    }

    /// A function's address is the number of its first instruction.
    fn function_address(&mut self, name: &str) -> Lowered<R64> {
        let Some(&function) = self.unit.functions.get(name) else {
            return Err(Problem::UnknownName(name.to_owned()));
        };
        self.callees.insert(function);
        let entry = self.plan.and_then(|plan| plan.entries.get(&function));
        let pc = entry.map_or(0, |&(_, indirect)| indirect);
        Ok(self.const64(Const64::Bits(u64::from(pc))))
    }

    /// `[base+offset]`, in the space the instruction names; parameters choose their own.
    pub fn address(&mut self, operand: &Operand<'a>, space: Space) -> Lowered<(Addr, Space)> {
        match operand {
            Operand::Address(address) => self.resolve_address(*address, space),
            other => wrong("an address in brackets", other),
        }
    }

    /// As [`Emitter::address`] where the space cannot change.
    pub fn addr(&mut self, operand: &Operand<'a>, space: Space) -> Lowered<Addr> {
        Ok(self.address(operand, space)?.0)
    }

    pub fn resolve_address(
        &mut self,
        address: ast::Address<'a>,
        space: Space,
    ) -> Lowered<(Addr, Space)> {
        let offset = address.offset;
        let Some(base) = address.base else {
            return Ok((absolute(offset), space));
        };
        if let Some(Binding::Register(register)) = self.names.lookup(base) {
            let base = match register.bits {
                32 => Base::R32(self.r32(register)),
                64 => Base::R64(self.r64(register)),
                bits => return illegal(format!("`{base}` has {bits} bits and is no address")),
            };
            self.touch(register, false);
            // In a function, parameters lie in local memory.
            let space = match space {
                Space::Param if !self.in_kernel => Space::Local,
                other => other,
            };
            return Ok((Addr { base, offset }, space));
        }
        let Some(place) = self.symbol(base)? else {
            return Err(Problem::UnknownName(base.to_owned()));
        };
        self.symbol_address(base, place, offset, space)
    }

    fn symbol_address(
        &mut self,
        name: &str,
        place: Place,
        offset: i64,
        space: Space,
    ) -> Lowered<(Addr, Space)> {
        let (at, home, window) = match place {
            Place::Global { index, constant } => {
                let fits = match space {
                    Space::Generic => true,
                    Space::Global => !constant,
                    other => other == Space::Const && constant,
                };
                if !fits {
                    return illegal(format!("`{name}` lies in another state space"));
                }
                let base = Base::Global(index);
                return Ok((Addr { base, offset }, space));
            }
            Place::Shared(index) => (self.shared_address(index), Space::Shared, SHARED_WINDOW),
            Place::Local(at) => (at, Space::Local, LOCAL_WINDOW),
            Place::Param(at) => (at, Space::Param, PARAM_WINDOW),
        };
        let at = i64::from(at).wrapping_add(offset);
        match (space, home) {
            (Space::Generic, _) => Ok((absolute(at.wrapping_add(window as i64)), space)),
            (Space::SharedCluster, Space::Shared) => Ok((absolute(at), space)),
            // Parameters of functions and calls are local memory under another name.
            (Space::Param, Space::Local | Space::Param) => Ok((absolute(at), home)),
            (asked, home) if asked == home => Ok((absolute(at), home)),
            _ => illegal(format!("`{name}` lies in another state space")),
        }
    }
}

fn absolute(offset: i64) -> Addr {
    Addr {
        base: Base::Abs,
        offset,
    }
}
