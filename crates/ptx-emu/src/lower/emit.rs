//! The program under construction.
//!
//! A kernel is emitted twice by the same code. The first pass is a survey: registers have virtual
//! numbers, and labels, callees and shared variables are recorded. From the survey a [`Plan`] is
//! made, with which the second pass emits the final program. So no instruction is ever patched.

use super::error::{Lowered, Problem};
use super::names::{File, Location, Names, Register};
use super::survey::{Flow, Group, Plan, SURVEY_CONSTANTS, Survey};
use super::unit::Unit;
use crate::front::ast;
use crate::op::*;
use std::collections::{BTreeSet, HashMap};

/// Where a formal parameter lives.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Formal {
    Memory { at: u32, size: u32 },
    Register(Register),
}

/// Where the results and parameters of a function live.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallFrame {
    pub returns: Vec<Formal>,
    pub params: Vec<Formal>,
}

/// A shared variable the kernel uses.
#[derive(Debug, Clone)]
pub(crate) struct SharedUse {
    pub name: String,
    pub size: u32,
    pub align: u32,
    /// `.extern` or unsized: in dynamic shared memory.
    pub dynamic: bool,
}

pub(crate) struct Emitter<'m, 'a> {
    pub unit: &'m Unit<'a>,
    pub plan: Option<&'m Plan>,
    pub survey: Survey,
    pub program: Program,
    pub names: Names<'a>,
    pub shared: Vec<SharedUse>,
    shared_index: HashMap<usize, u32>,
    constants32: HashMap<u32, R32>,
    constants64: HashMap<(u64, Option<u32>), R64>,
    specials: HashMap<Special, u32>,
    next_constant: [u32; 2],
    locations: HashMap<(u32, Option<u32>), u32>,
    /// Guard and location of the instruction being lowered.
    pub guard: Guard,
    pub location: u32,
    /// Whether the body is the kernel's own.
    pub in_kernel: bool,
    /// The function that is being lowered.
    pub function: usize,
    /// Tables of branch and call targets.
    pub targets: Vec<Vec<&'a str>>,
    /// Functions that the current body can call.
    pub callees: BTreeSet<usize>,
    pub frames: HashMap<usize, CallFrame>,
    pub call_area: Option<u32>,
    /// Local bytes of each function.
    pub owned_locals: HashMap<usize, Vec<(u32, u32)>>,
    /// Functions whose frames are saved around calls, in the order of `Program::frames`.
    pub saved_frames: Vec<usize>,
    /// Bytes of each local variable, by its offset.
    pub local_sizes: HashMap<u32, u32>,
    /// Whether the kernel reads the place of the system's reserved shared bytes.
    pub reserved_shared: bool,
}

impl<'m, 'a> Emitter<'m, 'a> {
    pub(super) fn new(unit: &'m Unit<'a>, plan: Option<&'m Plan>) -> Self {
        let next_constant = plan.map_or([SURVEY_CONSTANTS; 2], |plan| [plan.used[0], plan.used[1]]);
        Self {
            unit,
            plan,
            survey: Survey::default(),
            program: Program::default(),
            names: Names::default(),
            shared: Vec::new(),
            shared_index: HashMap::new(),
            constants32: HashMap::new(),
            constants64: HashMap::new(),
            specials: HashMap::new(),
            next_constant,
            locations: HashMap::new(),
            guard: Guard::default(),
            location: 0,
            in_kernel: true,
            function: 0,
            targets: Vec::new(),
            callees: BTreeSet::new(),
            frames: HashMap::new(),
            call_area: None,
            owned_locals: HashMap::new(),
            saved_frames: Vec::new(),
            local_sizes: HashMap::new(),
            reserved_shared: false,
        }
    }

    /// First slots after the registers, constants and specials.
    pub(super) fn slot_counts(&self) -> [u32; 2] {
        self.next_constant
    }

    pub(super) fn pc(&self) -> Pc {
        self.program.insts.len() as Pc
    }

    pub(super) fn emit(&mut self, op: Op) {
        self.program.insts.push(Inst {
            op,
            guard: self.guard,
            loc: self.location,
        });
    }

    /// Starts a group.
    pub(super) fn begin_group(&mut self, guard: Option<(Register, bool)>) {
        self.survey.groups.push(Group {
            start: self.pc(),
            guarded: guard.is_some(),
            flow: Flow::Next,
        });
        self.guard = match guard {
            None => Guard::default(),
            Some((register, negate)) => Guard {
                pred: Some(P(self.slot(File::Pred, register.id) as u16)),
                negate,
            },
        };
    }

    pub(super) fn set_flow(&mut self, flow: Flow) {
        if let Some(group) = self.survey.groups.last_mut() {
            group.flow = flow;
        }
    }

    /// Emits the end of a path, guarded or not.
    pub(super) fn leave(&mut self, op: Op, flow: Flow) {
        self.emit(op);
        self.set_flow(flow);
    }

    /// Protects the guard from a write to its predicate within this instruction.
    pub(super) fn protect_guard(&mut self) {
        let Some(pred) = self.guard.pred else { return };
        let copy = self.temp_pred();
        let guard = std::mem::take(&mut self.guard);
        self.emit(Op::PMov {
            d: copy,
            a: pred,
            negate: guard.negate,
        });
        self.guard = Guard {
            pred: Some(copy),
            negate: false,
        };
    }

    fn slot(&self, file: File, id: u32) -> u32 {
        match self.plan {
            None => id,
            // Both passes name the same registers in the same order.
            Some(plan) => plan.slots[file as usize][id as usize],
        }
    }

    pub(super) fn pin(&mut self, register: Register) {
        let halves = if register.bits == 128 { 2 } else { 1 };
        for half in 0..halves {
            self.survey
                .pinned
                .insert((register.file(), register.id + half));
        }
    }

    /// Records a move, whose destination is pinned if its source is.
    pub(super) fn note_copy(&mut self, d: R32, a: R32) {
        if self.plan.is_none() && a.0 < SURVEY_CONSTANTS {
            self.survey.copies.push((a.0, d.0));
        }
    }

    pub(super) fn r32(&self, register: Register) -> R32 {
        R32(self.slot(File::W32, register.id))
    }

    pub(super) fn r64(&self, register: Register) -> R64 {
        R64(self.slot(File::W64, register.id))
    }

    /// Low and high half of a 128-bit register.
    pub(super) fn halves(&self, register: Register) -> [R64; 2] {
        [0, 1].map(|half| R64(self.slot(File::W64, register.id + half)))
    }

    pub(super) fn pred(&self, register: Register) -> P {
        P(self.slot(File::Pred, register.id) as u16)
    }

    pub(super) fn temp32(&mut self) -> R32 {
        let register = self.names.temporary(32);
        self.r32(register)
    }

    pub(super) fn temp64(&mut self) -> R64 {
        let register = self.names.temporary(64);
        self.r64(register)
    }

    pub(super) fn temp_pred(&mut self) -> P {
        let register = self.names.temporary(1);
        self.pred(register)
    }

    pub(super) fn const32(&mut self, bits: u32) -> R32 {
        if let Some(&slot) = self.constants32.get(&bits) {
            return slot;
        }
        let slot = R32(self.next_constant[0]);
        self.next_constant[0] += 1;
        self.constants32.insert(bits, slot);
        self.program.consts32.push((slot, bits));
        slot
    }

    pub(super) fn const64(&mut self, value: Const64) -> R64 {
        let key = match value {
            Const64::Bits(bits) => (bits, None),
            Const64::Global { index, addend } => (addend as u64, Some(index)),
        };
        if let Some(&slot) = self.constants64.get(&key) {
            return slot;
        }
        let slot = R64(self.next_constant[1]);
        self.next_constant[1] += 1;
        self.constants64.insert(key, slot);
        self.program.consts64.push((slot, value));
        slot
    }

    pub(super) fn special32(&mut self, special: Special) -> R32 {
        if let Some(&slot) = self.specials.get(&special) {
            return R32(slot);
        }
        let slot = self.next_constant[0];
        self.next_constant[0] += 1;
        self.specials.insert(special, slot);
        self.program.specials32.push((R32(slot), special));
        R32(slot)
    }

    pub(super) fn special64(&mut self, special: Special) -> R64 {
        if let Some(&slot) = self.specials.get(&special) {
            return R64(slot);
        }
        let slot = self.next_constant[1];
        self.next_constant[1] += 1;
        self.specials.insert(special, slot);
        self.program.specials64.push((R64(slot), special));
        R64(slot)
    }

    pub(super) fn list(&mut self, slots: &[Slot]) -> Lowered<SlotList> {
        let start = self.program.slot_pool.len() as u32;
        let len = u16::try_from(slots.len())
            .map_err(|_| Problem::TooLarge("the operand's list of registers".into()))?;
        self.program.slot_pool.extend_from_slice(slots);
        Ok(SlotList { start, len })
    }

    /// Index of a source location, shared by instructions of the same line.
    pub(super) fn locate(&mut self, ptx_line: u32, location: Option<ast::LocationId>) -> u32 {
        let key = (ptx_line, location);
        if let Some(&known) = self.locations.get(&key) {
            return known;
        }
        let id = self.program.locs.len() as u32;
        self.program.locs.push(SourceLoc {
            ptx_line,
            frames: self.unit.frames(location),
        });
        self.locations.insert(key, id);
        id
    }

    /// Reserves local memory for a function (or for all) and returns its offset.
    pub(super) fn reserve_local(
        &mut self,
        size: u64,
        align: u32,
        owner: Option<usize>,
    ) -> Lowered<u32> {
        let start = u64::from(self.program.local_bytes).next_multiple_of(u64::from(align.max(1)));
        let end = start + size;
        // The device gives a thread at most 512 KiB.
        if end > 512 << 10 {
            return Err(Problem::TooLarge("local memory".into()));
        }
        self.program.local_bytes = end as u32;
        self.local_sizes.insert(start as u32, size as u32);
        if let Some(owner) = owner {
            let owned = self.owned_locals.entry(owner).or_default();
            owned.push((start as u32, size as u32));
        }
        Ok(start as u32)
    }

    /// Number of a module-scope shared variable in this kernel.
    pub(super) fn shared_symbol(&mut self, variable: usize) -> Lowered<u32> {
        if let Some(&known) = self.shared_index.get(&variable) {
            return Ok(known);
        }
        let index = self.declare_shared(&self.unit.ast.variables[variable])?;
        self.shared_index.insert(variable, index);
        Ok(index)
    }

    /// Adds a shared variable to this kernel.
    pub(super) fn declare_shared(&mut self, variable: &ast::Variable<'_>) -> Lowered<u32> {
        let layout = super::unit::layout(variable)?;
        let size = u32::try_from(layout.size)
            .ok()
            .filter(|&size| size <= 1 << 20)
            .ok_or_else(|| Problem::TooLarge(format!("shared variable `{}`", variable.name)))?;
        self.shared.push(SharedUse {
            name: variable.name.to_owned(),
            size,
            align: layout.align,
            dynamic: variable.linkage == ast::Linkage::Extern || layout.size == 0,
        });
        Ok(self.shared.len() as u32 - 1)
    }

    pub(super) fn shared_address(&self, index: u32) -> u32 {
        self.plan
            .and_then(|plan| plan.shared.get(index as usize).copied())
            .unwrap_or(SHARED_BASE)
    }

    /// The location of a symbol.
    pub(super) fn place(&mut self, name: &str) -> Lowered<Option<Location>> {
        match self.unit.variables.get(name) {
            None => Ok(None),
            Some(&super::unit::ModuleVariable::Global { index, constant }) => {
                Ok(Some(Location::Global { index, constant }))
            }
            Some(&super::unit::ModuleVariable::Shared(variable)) => {
                Ok(Some(Location::Shared(self.shared_symbol(variable)?)))
            }
        }
    }
}
