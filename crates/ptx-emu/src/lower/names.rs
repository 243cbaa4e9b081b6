//! Names in scope: registers, variables and labels.

use super::error::{Lowered, Problem};
use crate::front::ast::{RegisterDecl, ScalarType};
use std::collections::HashMap;

/// Register files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum File {
    W32,
    W64,
    Pred,
}

/// A declared register: its width in bits (1 for a predicate) and its first virtual id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Register {
    pub bits: u32,
    pub id: u32,
}

impl Register {
    pub fn file(self) -> File {
        match self.bits {
            1 => File::Pred,
            64 | 128 => File::W64,
            _ => File::W32,
        }
    }
}

/// Where a variable's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// Index in `Module::globals`; `constant` for `.const`.
    Global { index: u32, constant: bool },
    /// Index in the kernel's list of shared variables.
    Shared(u32),
    /// Byte offset in local memory.
    Local(u32),
    /// Byte offset in the kernel's parameters.
    Param(u32),
}

/// A label's number, the same in both passes.
pub(crate) type Label = u32;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Binding {
    Register(Register),
    Variable(Place),
    Label(Label),
    /// Index of a table of branch or call targets.
    Table(u32),
    /// Index of a call prototype.
    Prototype,
}

struct Family {
    bits: u32,
    vector: u32,
    count: Option<u32>,
    /// Distinguishes declarations when ids are handed out.
    declaration: u32,
}

#[derive(Default)]
struct Scope<'a> {
    bindings: HashMap<&'a str, Binding>,
    families: HashMap<&'a str, Family>,
}

/// The scopes of one function, and the virtual register ids of a whole kernel.
#[derive(Default)]
pub(crate) struct Names<'a> {
    scopes: Vec<Scope<'a>>,
    declarations: u32,
    ids: HashMap<(u32, u32), u32>,
    next: [u32; 3],
}

impl<'a> Names<'a> {
    pub fn enter(&mut self) {
        self.scopes.push(Scope::default());
    }

    pub fn leave(&mut self) {
        self.scopes.pop();
    }

    /// Hides everything declared so far, for another function's body.
    pub fn fresh_function(&mut self) {
        self.scopes.clear();
        self.enter();
    }

    pub fn bind(&mut self, name: &'a str, binding: Binding) -> Lowered<()> {
        let Some(scope) = self.scopes.last_mut() else {
            return Ok(());
        };
        let taken = scope.families.contains_key(name);
        if taken || scope.bindings.insert(name, binding).is_some() {
            return Err(Problem::Duplicate(name.to_owned()));
        }
        Ok(())
    }

    pub fn declare(&mut self, decl: &RegisterDecl<'a>) -> Lowered<()> {
        let Some(scope) = self.scopes.last_mut() else {
            return Ok(());
        };
        self.declarations += 1;
        let family = Family {
            bits: register_bits(decl.scalar),
            vector: decl.vector,
            count: decl.count,
            declaration: self.declarations,
        };
        let taken = scope.bindings.contains_key(decl.name);
        if taken || scope.families.insert(decl.name, family).is_some() {
            return Err(Problem::Duplicate(decl.name.to_owned()));
        }
        Ok(())
    }

    /// A register that no name refers to.
    pub fn temporary(&mut self, bits: u32) -> Register {
        let register = Register { bits, id: 0 };
        let next = &mut self.next[register.file() as usize];
        let id = *next;
        *next += if bits == 128 { 2 } else { 1 };
        Register { bits, id }
    }

    pub fn lookup(&mut self, name: &str) -> Option<Binding> {
        for at in (0..self.scopes.len()).rev() {
            if let Some(binding) = self.scopes[at].bindings.get(name) {
                return Some(*binding);
            }
            if let Some((declaration, index, bits)) = self.scopes[at].member(name, None) {
                return Some(Binding::Register(self.intern(declaration, index, bits)));
            }
        }
        None
    }

    /// Component of a vector register.
    pub fn component(&mut self, name: &str, component: u32) -> Option<Register> {
        for at in (0..self.scopes.len()).rev() {
            if let Some((declaration, index, bits)) = self.scopes[at].member(name, Some(component))
            {
                return Some(self.intern(declaration, index, bits));
            }
        }
        None
    }

    /// All components of a vector register, `None` if the name is no vector.
    pub fn components(&mut self, name: &str) -> Option<Vec<Register>> {
        let parts: Vec<Register> = (0..8)
            .map_while(|component| self.component(name, component))
            .collect();
        (!parts.is_empty()).then_some(parts)
    }

    fn intern(&mut self, declaration: u32, index: u32, bits: u32) -> Register {
        if let Some(&id) = self.ids.get(&(declaration, index)) {
            return Register { bits, id };
        }
        let register = self.temporary(bits);
        self.ids.insert((declaration, index), register.id);
        register
    }

    /// Virtual ids handed out in each file.
    pub fn counts(&self) -> [u32; 3] {
        self.next
    }
}

impl Scope<'_> {
    /// Declaration, index within it and width of a register of this scope.
    fn member(&self, name: &str, component: Option<u32>) -> Option<(u32, u32, u32)> {
        let fits = |family: &Family| match component {
            None => family.vector == 1,
            Some(component) => component < family.vector && family.vector > 1,
        };
        let element = component.unwrap_or(0);
        if let Some(family) = self.families.get(name)
            && family.count.is_none()
            && fits(family)
        {
            return Some((family.declaration, element, family.bits));
        }
        let stem_end = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        (stem_end..name.len()).find_map(|split| {
            let (stem, digits) = name.split_at(split);
            if digits.len() > 1 && digits.starts_with('0') {
                return None;
            }
            let family = self.families.get(stem)?;
            let index: u32 = digits.parse().ok()?;
            let declared = index < family.count? && fits(family);
            let number = index.checked_mul(family.vector)?.checked_add(element)?;
            declared.then_some((family.declaration, number, family.bits))
        })
    }
}

fn register_bits(scalar: ScalarType) -> u32 {
    match scalar {
        ScalarType::Pred => 1,
        other => other.bytes() * 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::ast::Position;

    fn decl(name: &'static str, scalar: ScalarType, count: Option<u32>) -> RegisterDecl<'static> {
        RegisterDecl {
            scalar,
            vector: 1,
            name,
            count,
            position: Position::default(),
        }
    }

    #[test]
    fn families_hold_their_range_and_inner_scopes_hide_outer_ones() {
        let mut names = Names::default();
        names.fresh_function();
        names
            .declare(&decl("%r", ScalarType::B32, Some(12)))
            .expect("new");
        assert!(names.lookup("%r11").is_some());
        assert!(names.lookup("%r12").is_none());
        assert!(names.lookup("%r01").is_none());
        assert!(names.lookup("%r").is_none());
        names.enter();
        names
            .declare(&decl("%r1", ScalarType::B64, None))
            .expect("new");
        let Some(Binding::Register(inner)) = names.lookup("%r1") else {
            panic!("no register");
        };
        assert_eq!(inner.bits, 64);
        names.leave();
        let Some(Binding::Register(outer)) = names.lookup("%r1") else {
            panic!("no register");
        };
        assert_eq!(outer.bits, 32);
        assert!(names.declare(&decl("%r", ScalarType::B32, None)).is_err());
    }
}
