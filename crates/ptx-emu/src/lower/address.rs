//! Symbols and addresses.

use super::emit::Emitter;
use super::error::{Lowered, Problem, illegal};
use super::lookup::wrong;
use super::names::{Binding, Location, Register};
use crate::front::ast::{self, Operand};
use crate::op::*;

impl<'a> Emitter<'_, 'a> {
    /// The location of a symbol, local scopes first.
    pub(super) fn symbol(&mut self, name: &str) -> Lowered<Option<Location>> {
        match self.names.lookup(name) {
            Some(Binding::Variable(place)) => Ok(Some(place)),
            Some(_) => Ok(None),
            None => self.place(name),
        }
    }

    pub(super) fn symbol32(&mut self, name: &str, offset: i64) -> Lowered<R32> {
        match self.symbol(name)? {
            Some(Location::Shared(index)) => {
                let address = i64::from(self.shared_address(index)).wrapping_add(offset);
                let address = self.const32(address as u32);
                if !self.unit.pairs {
                    return Ok(address);
                }
                let (d, rank) = (self.temp32(), self.special32(Special::SharedRank));
                self.emit(Op::Bin32 {
                    w: W::B32,
                    op: IBin::Or,
                    d,
                    a: address,
                    b: rank,
                });
                Ok(d)
            }
            Some(Location::Local(at) | Location::Param(at)) => {
                Ok(self.const32(i64::from(at).wrapping_add(offset) as u32))
            }
            Some(Location::Global { .. }) => {
                illegal(format!("the address of `{name}` needs 64 bits"))
            }
            None => Err(Problem::UnknownName(name.to_owned())),
        }
    }

    pub(super) fn symbol64(&mut self, name: &str, offset: i64) -> Lowered<R64> {
        let value = match self.symbol(name)? {
            Some(Location::Global { index, .. }) => Const64::Global {
                index,
                addend: offset,
            },
            Some(Location::Shared(index)) => {
                let address = i64::from(self.shared_address(index)).wrapping_add(offset) as u64;
                let address = self.const64(Const64::Bits(address));
                if !self.unit.pairs {
                    return Ok(address);
                }
                let (d, rank) = (self.temp64(), self.special64(Special::SharedRank));
                self.emit(Op::Bin64 {
                    op: IBin::Or,
                    d,
                    a: address,
                    b: rank,
                });
                return Ok(d);
            }
            Some(Location::Local(at) | Location::Param(at)) => {
                Const64::Bits(i64::from(at).wrapping_add(offset) as u64)
            }
            None => return self.function_address(name),
        };
        Ok(self.const64(value))
    }

    fn function_address(&mut self, name: &str) -> Lowered<R64> {
        let Some(&function) = self.unit.functions.get(name) else {
            return Err(Problem::UnknownName(name.to_owned()));
        };
        let address = self.unit.code_address(function);
        Ok(self.const64(Const64::Bits(address)))
    }

    /// The bytes from the start of a variable to one of its elements, as far as they are known, and
    /// what each register among the subscripts adds: (register, bytes a step).
    fn element(
        &mut self,
        name: &str,
        indices: &[ast::Index<'a>],
    ) -> Lowered<(i64, Vec<(Register, u64)>)> {
        let Some(variable) = self.declaration(name) else {
            return Err(match self.unknown(name) {
                true => Problem::UnknownName(name.to_owned()),
                false => Problem::Illegal(format!("`{name}` is no variable with elements")),
            });
        };
        let dims = &variable.dims;
        if indices.len() > dims.len() {
            return illegal(format!("`{name}` has {} dimensions", dims.len()));
        }
        let mut stride = u64::from(variable.scalar.bytes()) * u64::from(variable.vector);
        let mut strides = vec![stride; dims.len()];
        // From the innermost dimension out; `layout` has checked that the product fits.
        for at in (1..dims.len()).rev() {
            stride = stride.wrapping_mul(dims[at].unwrap_or(0));
            strides[at - 1] = stride;
        }
        let mut offset = 0i64;
        let mut registers = Vec::new();
        for (index, stride) in indices.iter().zip(strides) {
            offset = offset.wrapping_add(index.offset.wrapping_mul(stride as i64));
            if let Some(register) = index.register {
                registers.push((self.index_register(register)?, stride));
            }
        }
        Ok((offset, registers))
    }

    fn index_register(&mut self, name: &str) -> Lowered<Register> {
        match self.names.lookup(name) {
            Some(Binding::Register(register)) if matches!(register.bits, 32 | 64) => Ok(register),
            Some(_) => illegal(format!("`{name}` is no register to index with")),
            None => Err(Problem::UnknownName(name.to_owned())),
        }
    }

    /// Adds subscripts in registers to an address.
    fn step(&mut self, base: R64, registers: &[(Register, u64)]) -> R64 {
        let mut sum = base;
        for &(register, stride) in registers {
            let d = self.temp64();
            if register.bits == 32 {
                let (a, b) = (self.r32(register), self.const32(stride as u32));
                let (signed, c) = (true, sum);
                self.emit(Op::MadWide32 { signed, d, a, b, c });
            } else {
                let (a, b) = (self.r64(register), self.const64(Const64::Bits(stride)));
                self.emit(Op::MadLo64 { d, a, b, c: sum });
            }
            sum = d;
        }
        sum
    }

    /// The address of an element as a value, in the variable's own space.
    pub(super) fn element64(&mut self, name: &str, indices: &[ast::Index<'a>]) -> Lowered<R64> {
        let (offset, registers) = self.element(name, indices)?;
        let base = self.symbol64(name, offset)?;
        Ok(self.step(base, &registers))
    }

    /// Like [`Emitter::element64`] if 32 bits are enough for the address.
    pub(super) fn element32(&mut self, name: &str, indices: &[ast::Index<'a>]) -> Lowered<R32> {
        let (offset, registers) = self.element(name, indices)?;
        let base = self.symbol32(name, offset)?;
        if registers.is_empty() {
            return Ok(base);
        }
        let start = self.temp64();
        let high = self.const32(0);
        self.emit(Op::Pack64 {
            d: start,
            lo: base,
            hi: high,
        });
        let sum = self.step(start, &registers);
        let d = self.temp32();
        self.emit(Op::Unpack64 {
            lo: Slot::W32(d),
            hi: Slot::Sink,
            a: sum,
        });
        Ok(d)
    }

    /// `a[2]` where an address is expected: its bytes, in the space the instruction names.
    fn element_address(
        &mut self,
        name: &'a str,
        indices: &[ast::Index<'a>],
        space: Space,
    ) -> Lowered<(Addr, Space)> {
        let (offset, registers) = self.element(name, indices)?;
        let base = Some(name);
        let (addr, space) = self.resolve_address(ast::Address { base, offset }, space)?;
        if registers.is_empty() {
            return Ok((addr, space));
        }
        let start = self.const64(match addr.base {
            Base::Global(index) => Const64::Global {
                index,
                addend: addr.offset,
            },
            _ => Const64::Bits(addr.offset as u64),
        });
        let base = Base::R64(self.step(start, &registers));
        Ok((Addr { base, offset: 0 }, space))
    }

    /// The declaration of a variable in scope.
    fn declaration(&self, name: &str) -> Option<&'a ast::Variable<'a>> {
        let ast = self.unit.ast;
        let module = || ast.variables.iter().find(|v| v.name == name);
        self.names.variable(name).or_else(module)
    }

    /// `[base+offset]`, in the space the instruction names; parameters choose their own.
    pub(super) fn address(
        &mut self,
        operand: &Operand<'a>,
        space: Space,
    ) -> Lowered<(Addr, Space)> {
        match operand {
            Operand::Address(address) => self.resolve_address(*address, space),
            Operand::Element(name, indices) => self.element_address(name, indices, space),
            other => wrong("an address in brackets", other),
        }
    }

    /// Like [`Emitter::address`] if the space cannot change.
    pub(super) fn addr(&mut self, operand: &Operand<'a>, space: Space) -> Lowered<Addr> {
        Ok(self.address(operand, space)?.0)
    }

    pub(super) fn resolve_address(
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
        place: Location,
        offset: i64,
        space: Space,
    ) -> Lowered<(Addr, Space)> {
        let (at, home, window) = match place {
            Location::Global { index, constant } => {
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
            Location::Shared(index) => (self.shared_address(index), Space::Shared, SHARED_WINDOW),
            Location::Local(at) => (at, Space::Local, LOCAL_WINDOW),
            Location::Param(at) => (at, Space::Param, PARAM_WINDOW),
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
