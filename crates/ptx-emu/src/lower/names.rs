//! Names in scope: registers, variables and labels.

use super::error::{Lowered, Problem};
use crate::front::ast::{RegisterDecl, ScalarType, Variable};
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
    pub(super) fn file(self) -> File {
        match self.bits {
            1 => File::Pred,
            64 | 128 => File::W64,
            _ => File::W32,
        }
    }
}

/// Where a variable's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Location {
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
    /// A vector parameter: its first element, and the number of consecutive elements.
    Vector(Register, u32),
    Variable(Location),
    Label(Label),
    /// Index of a table of branch or call targets.
    Table(u32),
    /// Index of a call prototype.
    Prototype,
}

/// One declarator of `.reg`: `name`, or `name<count>`.
struct Family {
    bits: u32,
    vector: u32,
    /// Registers of a range, 1 for a single one.
    count: u32,
    /// Distinguishes declarations when ids are assigned.
    declaration: u32,
}

/// How a declarator of `.reg` spells its registers.
struct Declarator<'a> {
    name: &'a str,
    file: File,
    vector: u32,
    ranged: bool,
}

/// The names of one block. `a` and `a<2>` are different names (the latter is `a0` and `a1`), so
/// single registers and ranges have separate tables.
#[derive(Default)]
struct Scope<'a> {
    bindings: HashMap<&'a str, Binding>,
    singles: HashMap<&'a str, Family>,
    ranges: HashMap<&'a str, Family>,
    /// Declarations behind the variables among the bindings.
    variables: HashMap<&'a str, &'a Variable<'a>>,
}

/// The scopes of one function, and the virtual register ids of a whole kernel.
#[derive(Default)]
pub(crate) struct Names<'a> {
    scopes: Vec<Scope<'a>>,
    /// Every declarator of registers, in the order of their numbers.
    declarations: Vec<Declarator<'a>>,
    ids: HashMap<(u32, u32), u32>,
    next: [u32; 3],
    /// Some register is a vector; most modules have none.
    vectors: bool,
}

impl<'a> Names<'a> {
    pub(super) fn enter(&mut self) {
        self.scopes.push(Scope::default());
    }

    pub(super) fn leave(&mut self) {
        self.scopes.pop();
    }

    /// Hides everything declared so far, for another function's body.
    pub(super) fn fresh_function(&mut self) {
        self.scopes.clear();
        self.enter();
    }

    pub(super) fn bind(&mut self, name: &'a str, binding: Binding) -> Lowered<()> {
        let Some(scope) = self.scopes.last_mut() else {
            return Ok(());
        };
        if scope.declares(name) {
            return Err(Problem::Duplicate(name.to_owned()));
        }
        scope.bindings.insert(name, binding);
        self.vectors |= matches!(binding, Binding::Vector(..));
        Ok(())
    }

    /// Like [`Names::bind`] for a variable, whose declaration defines how it is indexed.
    pub(super) fn bind_variable(
        &mut self,
        variable: &'a Variable<'a>,
        binding: Binding,
    ) -> Lowered<()> {
        self.bind(variable.name, binding)?;
        if let Some(scope) = self.scopes.last_mut() {
            scope.variables.insert(variable.name, variable);
        }
        Ok(())
    }

    /// The declaration of a variable, `None` for anything else.
    pub(super) fn variable(&self, name: &str) -> Option<&'a Variable<'a>> {
        let scopes = self.scopes.iter().rev();
        let mut known = scopes.skip_while(|scope| !scope.declares(name));
        known.next()?.variables.get(name).copied()
    }

    pub(super) fn declare(&mut self, decl: &RegisterDecl<'a>) -> Lowered<()> {
        let Some(scope) = self.scopes.last_mut() else {
            return Ok(());
        };
        let bits = register_bits(decl.scalar);
        self.vectors |= decl.vector > 1;
        let family = Family {
            bits,
            vector: decl.vector,
            count: decl.count.unwrap_or(1),
            declaration: self.declarations.len() as u32,
        };
        self.declarations.push(Declarator {
            name: decl.name,
            file: Register { bits, id: 0 }.file(),
            vector: decl.vector,
            ranged: decl.count.is_some(),
        });
        let taken = match decl.count {
            None => scope.declares(decl.name),
            Some(count) => scope.overlaps(decl.name, count),
        };
        if taken {
            return Err(Problem::Duplicate(decl.name.to_owned()));
        }
        let table = match decl.count {
            None => &mut scope.singles,
            Some(_) => &mut scope.ranges,
        };
        table.insert(decl.name, family);
        Ok(())
    }

    /// A register that no name refers to.
    pub(super) fn temporary(&mut self, bits: u32) -> Register {
        let register = Register { bits, id: 0 };
        let next = &mut self.next[register.file() as usize];
        let id = *next;
        *next += if bits == 128 { 2 } else { 1 };
        Register { bits, id }
    }

    pub(super) fn lookup(&mut self, name: &str) -> Option<Binding> {
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
    pub(super) fn component(&mut self, name: &str, component: u32) -> Option<Register> {
        for at in (0..self.scopes.len()).rev() {
            match self.scopes[at].bindings.get(name) {
                Some(&Binding::Vector(Register { bits, id }, count)) => {
                    let id = id + component;
                    return (component < count).then_some(Register { bits, id });
                }
                Some(_) => return None,
                None => {}
            }
            if let Some((declaration, index, bits)) = self.scopes[at].member(name, Some(component))
            {
                return Some(self.intern(declaration, index, bits));
            }
            if self.scopes[at].declares(name) {
                return None;
            }
        }
        None
    }

    pub(super) fn has_vectors(&self) -> bool {
        self.vectors
    }

    /// How many components a vector register has; 0 for anything else.
    pub(super) fn components(&mut self, name: &str) -> usize {
        (0..4)
            .take_while(|component| self.component(name, *component).is_some())
            .count()
    }

    fn intern(&mut self, declaration: u32, index: u32, bits: u32) -> Register {
        if let Some(&id) = self.ids.get(&(declaration, index)) {
            return Register { bits, id };
        }
        let register = self.temporary(bits);
        self.ids.insert((declaration, index), register.id);
        register
    }

    /// A register's name in the text; `None` for one without a name.
    pub(super) fn spelling(&self, file: File, id: u32) -> Option<String> {
        let named = |((declaration, index), of): (&(u32, u32), &u32)| {
            let declarator = &self.declarations[*declaration as usize];
            (declarator.file == file && *of == id).then_some((declarator, *index))
        };
        let (declarator, index) = self.ids.iter().find_map(named)?;
        let Declarator {
            name,
            vector,
            ranged,
            ..
        } = declarator;
        let components = (*vector).max(1);
        let mut spelling = (*name).to_owned();
        if *ranged {
            spelling.push_str(&(index / components).to_string());
        }
        if components > 1 {
            let component = index % components;
            let letter = [".x", ".y", ".z", ".w"].get(component as usize);
            spelling.push_str(letter.copied().unwrap_or_default());
        }
        Some(spelling)
    }

    /// Virtual ids assigned in each file.
    pub(super) fn counts(&self) -> [u32; 3] {
        self.next
    }
}

impl Scope<'_> {
    /// Whether the name has a meaning here.
    fn declares(&self, name: &str) -> bool {
        self.bindings.contains_key(name)
            || self.singles.contains_key(name)
            || self.ranged(name).is_some()
    }

    /// Whether `stem<count>` would declare a name again.
    fn overlaps(&self, stem: &str, count: u32) -> bool {
        let member = |name: &&str| {
            let index = name.strip_prefix(stem).and_then(number);
            index.is_some_and(|index| index < count)
        };
        // Of two overlapping ranges, the longer stem is the shorter one plus the first digits of
        // its numbers.
        let both = |(other, family): (&&str, &Family)| {
            let contains = |outer: &str, inner: &str, outer_count: u32, inner_count: u32| {
                let lead = match inner.strip_prefix(outer) {
                    Some("") => return outer_count.min(inner_count) > 0,
                    rest => rest.and_then(number).filter(|&lead| lead > 0),
                };
                let smallest = lead.and_then(|lead| lead.checked_mul(10));
                inner_count > 0 && smallest.is_some_and(|smallest| smallest < outer_count)
            };
            contains(stem, other, count, family.count) || contains(other, stem, family.count, count)
        };
        self.bindings.keys().any(&member)
            || self.singles.keys().any(member)
            || self.ranges.iter().any(both)
    }

    /// The range a name belongs to, and its number there.
    fn ranged(&self, name: &str) -> Option<(&Family, u32)> {
        let stem_end = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        (stem_end..name.len()).find_map(|split| {
            let (stem, digits) = name.split_at(split);
            let family = self.ranges.get(stem)?;
            let index = number(digits).filter(|&index| index < family.count)?;
            Some((family, index))
        })
    }

    /// Declaration, index within it and width of a register of this scope.
    fn member(&self, name: &str, component: Option<u32>) -> Option<(u32, u32, u32)> {
        let single = self.singles.get(name).map(|family| (family, 0));
        let (family, index) = single.or_else(|| self.ranged(name))?;
        let fits = match component {
            None => family.vector == 1,
            Some(component) => component < family.vector && family.vector > 1,
        };
        let element = component.unwrap_or(0);
        let number = index.checked_mul(family.vector)?.checked_add(element)?;
        fits.then_some((family.declaration, number, family.bits))
    }
}

/// The number that ends a name of a range: without leading zeros.
fn number(digits: &str) -> Option<u32> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    let leading_zero = digits.len() > 1 && digits.starts_with('0');
    (plain && !leading_zero).then(|| digits.parse().ok())?
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
    }

    /// Which names may share a scope.
    #[test]
    fn a_name_and_a_range_of_it_are_different_names() {
        use ScalarType::{B32, F16};
        let fits = |declared: &[(&'static str, Option<u32>)]| {
            let mut names = Names::default();
            names.fresh_function();
            declared
                .iter()
                .all(|&(name, count)| names.declare(&decl(name, B32, count)).is_ok())
        };
        assert!(fits(&[("a", None), ("a", Some(2))]));
        assert!(fits(&[("%r", Some(5)), ("%r7", None), ("%r5", None)]));
        assert!(fits(&[("%r", Some(10)), ("%r1", Some(3))]));
        assert!(fits(&[("%r", Some(99)), ("%r0", Some(3)), ("%r03", None)]));
        assert!(!fits(&[("a", None), ("a", None)]));
        assert!(!fits(&[("a", Some(2)), ("a", Some(1))]));
        assert!(!fits(&[("%r", Some(5)), ("%r4", None)]));
        assert!(!fits(&[("%r4", None), ("%r", Some(5))]));
        assert!(!fits(&[("%r", Some(11)), ("%r1", Some(3))]));
        assert!(!fits(&[("%r1", Some(3)), ("%r", Some(11))]));

        let mut names = Names::default();
        names.fresh_function();
        names.declare(&decl("a", B32, None)).expect("new");
        names.declare(&decl("a", F16, Some(2))).expect("new");
        let bits = |names: &mut Names<'_>, name: &str| match names.lookup(name) {
            Some(Binding::Register(register)) => Some(register.bits),
            _ => None,
        };
        let widths = ["a", "a0", "a1", "a2"].map(|name| bits(&mut names, name));
        assert_eq!(widths, [Some(32), Some(16), Some(16), None]);
        names
            .bind("a1", Binding::Prototype)
            .expect_err("a register");
    }
}
