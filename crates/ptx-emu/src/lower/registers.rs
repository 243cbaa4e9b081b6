//! Finds registers that are used while a product in flight holds them, changed without the fence
//! for the tensor core, or read though no path writes them.
//!
//! Works on virtual registers, over all paths, before anything runs.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::flow::Blocks;
use super::names::{File, Names};
use super::survey::{SURVEY_CONSTANTS, Survey};
use crate::op::operand::{Register, Role};
use crate::op::{Op, Pc, Program, RegisterHazard, RegisterTrouble, Slot, WgmmaA};

/// A register that a product in flight holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    /// Commits since it was issued.
    age: u32,
    by: Pc,
    /// Read by the product, not written.
    fragment: bool,
    /// Loaded from tensor memory, with the wait for such loads.
    load: bool,
}

/// The state at a point of the program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct State {
    /// Registers changed since the last `wgmma.fence`, and where.
    unfenced: BTreeMap<u32, Pc>,
    held: BTreeMap<u32, Held>,
    /// Some path here has no fence at all.
    no_fence: bool,
}

impl State {
    /// Adds the state of another path to the same point; returns whether it was new.
    fn join(&mut self, other: &Self) -> bool {
        let before = self.clone();
        for (register, at) in &other.unfenced {
            self.unfenced.entry(*register).or_insert(*at);
        }
        for (register, held) in &other.held {
            let mine = self.held.entry(*register).or_insert(*held);
            if held.age < mine.age {
                *mine = *held;
            }
        }
        self.no_fence |= other.no_fence;
        *self != before
    }
}

/// Commits after which the age is no longer counted.
const OLDEST: u32 = 64;

/// The hazard, its places, and the first of its registers.
type Found = BTreeMap<(RegisterTrouble, Pc, Option<Pc>), Option<(File, u32)>>;

/// All hazards of the registers of a kernel and the functions it reaches.
pub(super) fn hazards(
    survey: &Survey,
    program: &Program,
    blocks: &[Blocks],
    names: &Names<'_>,
) -> Vec<RegisterHazard> {
    let mut found = Found::new();
    for blocks in blocks {
        uninitialised(survey, program, blocks, &mut found);
    }
    let holds = |op: &Op| matches!(op, Op::Wgmma(_) | Op::TmemMove(_));
    if program.insts.iter().any(|inst| holds(&inst.op)) {
        for blocks in blocks {
            in_body(survey, program, blocks, &mut found);
        }
    }
    let hazard = |((trouble, at, other), register): (_, Option<(File, u32)>)| {
        let name = register.and_then(|(file, id)| names.spelling(file, id));
        RegisterHazard {
            trouble,
            at,
            other,
            register: name.unwrap_or_default(),
        }
    };
    found.into_iter().map(hazard).collect()
}

/// The instructions of a block.
fn insts(survey: &Survey, program: &Program, blocks: &Blocks, block: usize) -> Range<Pc> {
    let (first, end) = blocks.ranges[block];
    let start = survey.groups[first as usize].start;
    let end = survey.groups.get(end as usize);
    start..end.map_or(program.insts.len() as Pc, |group| group.start)
}

/// A set of registers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Registers(Vec<u64>);

impl Registers {
    fn insert(&mut self, register: usize) {
        if self.0.len() <= register / 64 {
            self.0.resize(register / 64 + 1, 0);
        }
        self.0[register / 64] |= 1 << (register % 64);
    }

    fn contains(&self, register: usize) -> bool {
        let word = self.0.get(register / 64);
        word.is_some_and(|word| word >> (register % 64) & 1 == 1)
    }

    /// Adds another set; returns whether it was new.
    fn join(&mut self, other: &Self) -> bool {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        let mut news = false;
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            news |= theirs & !*mine != 0;
            *mine |= theirs;
        }
        news
    }
}

/// The registers that an instruction reads without a value, and those it writes.
#[derive(Default)]
struct Passage {
    missing: Vec<usize>,
    writes: Vec<usize>,
}

impl Passage {
    /// The register with this number.
    fn register(number: usize) -> (File, u32) {
        let file = [File::W32, File::W64, File::Pred][number % 3];
        (file, number as u32 / 3)
    }

    /// Registers are represented by numbers; constants are left out.
    fn pass(&mut self, program: &Program, pc: Pc, written: &mut Registers) {
        self.missing.clear();
        self.writes.clear();
        let number = |register: Register| match register {
            Register::W32(r) => (r.0, 0),
            Register::W64(r) => (r.0, 1),
            Register::Pred(p) => (p.0.into(), 2),
        };
        let mut see = |role: Role, register: Register| {
            let (id, kind) = number(register);
            let register = 3 * id as usize + kind;
            if id >= SURVEY_CONSTANTS {
                return;
            }
            if role.writes() {
                self.writes.push(register);
            } else if role == Role::Read && !written.contains(register) {
                self.missing.push(register);
            }
        };
        let inst = &program.insts[pc as usize];
        inst.op.registers(&program.slot_pool, &mut see);
        let copies = matches!(
            inst.op,
            Op::Mov32 { .. } | Op::Mov64 { .. } | Op::PMov { .. }
        );
        let nothing = copies && !self.missing.is_empty();
        if nothing {
            // A copy of an uninitialised register is uninitialised too, and reported at its use.
            self.missing.clear();
            self.writes.clear();
        }
        if let Some(guard) = inst.guard.pred {
            let (id, kind) = number(Register::Pred(guard));
            let register = 3 * id as usize + kind;
            if id < SURVEY_CONSTANTS && !written.contains(register) {
                self.missing.push(register);
            }
        }
        for register in &self.writes {
            written.insert(*register);
        }
    }
}

/// Reads of registers that no instruction on any path to them writes. A register that another body
/// of the program writes, or none here, may come from a caller.
fn uninitialised(survey: &Survey, program: &Program, blocks: &Blocks, found: &mut Found) {
    let entry = |block: usize| insts(survey, program, blocks, block).start == 0;
    if blocks.ranges.is_empty() || !entry(0) {
        return;
    }
    let mut passage = Passage::default();
    let mut entering = vec![None; blocks.ranges.len()];
    entering[0] = Some(Registers::default());
    let mut work = BTreeSet::from([0]);
    while let Some(block) = work.pop_first() {
        let Some(mut written) = entering[block].clone() else {
            continue;
        };
        for pc in insts(survey, program, blocks, block) {
            passage.pass(program, pc, &mut written);
        }
        for &next in &blocks.successors[block] {
            let news = match &mut entering[next] {
                Some(known) => known.join(&written),
                unknown => {
                    *unknown = Some(written.clone());
                    true
                }
            };
            if news {
                work.insert(next);
            }
        }
    }
    let mut named = BTreeSet::new();
    for (block, written) in entering.iter_mut().enumerate() {
        let Some(written) = written else { continue };
        for pc in insts(survey, program, blocks, block) {
            passage.pass(program, pc, written);
            // The first read is enough.
            for news in passage.missing.iter().filter(|r| named.insert(**r)) {
                found
                    .entry((RegisterTrouble::Uninitialised, pc, None))
                    .or_insert(Some(Passage::register(*news)));
            }
        }
    }
}

fn in_body(survey: &Survey, program: &Program, blocks: &Blocks, found: &mut Found) {
    let mut entering = vec![None; blocks.ranges.len()];
    let Some(first) = entering.first_mut() else {
        return;
    };
    *first = Some(State {
        no_fence: true,
        ..State::default()
    });
    let mut work = BTreeSet::from([0]);
    while let Some(block) = work.pop_first() {
        let Some(mut state) = entering[block].clone() else {
            continue;
        };
        for pc in insts(survey, program, blocks, block) {
            state.pass(program, pc, found);
        }
        for &next in &blocks.successors[block] {
            let news = match &mut entering[next] {
                Some(known) => known.join(&state),
                unknown => {
                    *unknown = Some(state.clone());
                    true
                }
            };
            if news {
                work.insert(next);
            }
        }
    }
}

impl State {
    /// One instruction.
    fn pass(&mut self, program: &Program, pc: Pc, found: &mut Found) {
        match &program.insts[pc as usize].op {
            Op::WgmmaFence => {
                self.unfenced.clear();
                self.no_fence = false;
            }
            Op::WgmmaCommit => {
                for held in self.held.values_mut().filter(|held| !held.load) {
                    held.age = (held.age + 1).min(OLDEST);
                }
            }
            Op::WgmmaWait { n } => self.held.retain(|_, held| held.load || held.age <= *n),
            Op::TmemWait { store: false } => self.held.retain(|_, held| !held.load),
            Op::TmemMove(tile) if !tile.store => {
                let slots = &program.slot_pool[tile.regs.start as usize..];
                let mut touched = Vec::new();
                program.insts[pc as usize].op.registers(
                    &program.slot_pool,
                    &mut |role, register| match register {
                        Register::W32(r) if !role.writes() => touched.push((role, r.0)),
                        _ => {}
                    },
                );
                self.touch(pc, touched, found);
                let held = Held {
                    load: true,
                    ..Held::by(pc)
                };
                self.hold(&slots[..usize::from(tile.regs.len)], held);
            }
            Op::Wgmma(product) => {
                let slots = |list: crate::op::SlotList| {
                    &program.slot_pool[list.start as usize..][..usize::from(list.len)]
                };
                let fragments = match product.a {
                    WgmmaA::Regs(list) => slots(list),
                    WgmmaA::Desc(_) => &[],
                };
                let reads = if product.zero_d {
                    &[]
                } else {
                    slots(product.d)
                };
                self.product(program, pc, reads.iter().chain(fragments), found);
                self.hold(slots(product.d), Held::by(pc));
                let fragment = Held {
                    fragment: true,
                    ..Held::by(pc)
                };
                self.hold(fragments, fragment);
            }
            // Compilers copy accumulators between products; the copy waits with them.
            Op::Mov32 { d, a } => {
                match self.held.get(&a.0).copied() {
                    Some(held) if !held.fragment => self.held.insert(d.0, held),
                    _ => self.held.remove(&d.0),
                };
                match self.unfenced.get(&a.0).copied() {
                    Some(at) => self.unfenced.insert(d.0, at),
                    None => self.unfenced.remove(&d.0),
                };
            }
            op => {
                let mut touched = Vec::new();
                op.registers(&program.slot_pool, &mut |role, register| {
                    if let Register::W32(r) = register {
                        touched.push((role, r.0));
                    }
                });
                self.touch(pc, touched, found);
            }
        }
    }

    /// An ordinary instruction uses registers.
    fn touch(&mut self, pc: Pc, touched: Vec<(Role, u32)>, found: &mut Found) {
        for (role, register) in touched {
            let holds = |held: &&Held| role.writes() || !held.fragment;
            if let Some(held) = self.held.get(&register).filter(holds) {
                let trouble = match held.load {
                    true => RegisterTrouble::Loaded,
                    false => RegisterTrouble::Held,
                };
                found
                    .entry((trouble, pc, Some(held.by)))
                    .or_insert(Some((File::W32, register)));
            }
            if role.writes() {
                self.unfenced.insert(register, pc);
            }
        }
    }

    /// A product that reads these registers.
    fn product<'s>(
        &self,
        program: &Program,
        pc: Pc,
        reads: impl Iterator<Item = &'s Slot> + Clone,
        found: &mut Found,
    ) {
        let registers = reads.filter_map(|slot| match slot {
            Slot::W32(r) => Some(r.0),
            _ => None,
        });
        let at = |r: u32| self.unfenced.get(&r).map(|at| (r, *at));
        let changed = registers.clone().find_map(at);
        if self.no_fence || changed.is_some() {
            let first = changed.map(|(r, _)| r).or(registers.clone().next());
            let written = || last_write(program, pc, registers.collect());
            let other = changed.map(|(_, at)| at).or_else(written);
            found
                .entry((RegisterTrouble::Unfenced, pc, other))
                .or_insert(first.map(|r| (File::W32, r)));
        }
    }

    fn hold(&mut self, slots: &[Slot], held: Held) {
        for slot in slots {
            if let Slot::W32(r) = slot {
                self.held.insert(r.0, held);
            }
        }
    }
}

/// The last instruction before another, in the order of the text, that writes one of some
/// registers. Copies are followed to their source; a compiler's own copies have no source line.
fn last_write(program: &Program, before: Pc, mut registers: BTreeSet<u32>) -> Option<Pc> {
    let mut nearest = None;
    for pc in (0..before).rev() {
        let inst = &program.insts[pc as usize];
        let mut writes = false;
        inst.op
            .registers(&program.slot_pool, &mut |role, register| {
                if let Register::W32(r) = register {
                    writes |= role.writes() && registers.contains(&r.0);
                }
            });
        // Products alternate with their own accumulators.
        if !writes || matches!(inst.op, Op::Wgmma(_)) {
            continue;
        }
        nearest.get_or_insert(pc);
        let frame = program.locs[inst.loc as usize].frames.first();
        let named = frame.is_none_or(|frame| frame.line > 0);
        match inst.op {
            Op::Mov32 { a, .. } if a.0 < SURVEY_CONSTANTS => {
                registers.insert(a.0);
            }
            _ if named => return Some(pc),
            _ => {}
        }
    }
    nearest
}

impl Held {
    fn by(by: Pc) -> Self {
        Self {
            age: 0,
            by,
            fragment: false,
            load: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Module;

    /// The findings in a kernel with products on `%f0..3` and fragments `%r4..7`; its lines count
    /// from 1, and those before it down from 0.
    fn found(body: &str) -> Vec<(RegisterTrouble, i64, Option<i64>)> {
        found_for("sm_90a", body)
    }

    fn kernel(target: &str, body: &str) -> String {
        format!(
            ".version 8.8\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 out) {{\n\
             .reg .f32 %f<9>; .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .pred %p;\n\
             ld.param.u64 %rd1, [out]; mov.u64 %rd2, 0; mov.u32 %r4, %tid.x; mov.u32 %r5, %tid.x;\n\
             mov.u32 %r6, %tid.x; mov.u32 %r7, %tid.x; mov.f32 %f0, 0f00000000;\n\
             mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n{body}\nret; }}"
        )
    }

    fn found_for(target: &str, body: &str) -> Vec<(RegisterTrouble, i64, Option<i64>)> {
        let text = kernel(target, body);
        let module = Module::load(&text).unwrap_or_else(|e| panic!("{e}"));
        let program = module.kernels.get("k").expect("it lowers");
        let line = |pc: Pc| {
            let loc = program.insts[pc as usize].loc as usize;
            i64::from(program.locs[loc].ptx_line) - 8
        };
        let hazards = program.register_hazards.iter();
        hazards
            .map(|h| (h.trouble, line(h.at), h.other.map(line)))
            .collect()
    }

    const FENCE: &str = "wgmma.fence.sync.aligned;\n";
    const PRODUCT: &str = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, {%r4,%r5,%r6,%r7}, %rd2, 1, 1, 1, 0;\n";
    const DONE: &str = "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
    const STORE: &str = "st.global.f32 [%rd1], %f2;\n";

    #[test]
    fn a_product_that_is_waited_for_is_left_alone() {
        assert_eq!(found(&format!("{FENCE}{PRODUCT}{DONE}{STORE}")), []);
        let again = format!("{FENCE}{PRODUCT}{PRODUCT}{DONE}add.f32 %f0, %f0, %f0;\n");
        assert_eq!(found(&format!("{again}{FENCE}{PRODUCT}{DONE}{STORE}")), []);
    }

    #[test]
    fn registers_are_held_until_their_group_is_waited_for() {
        use RegisterTrouble::Held;
        let early = found(&format!("{FENCE}{PRODUCT}{STORE}{DONE}"));
        assert_eq!(early, [(Held, 3, Some(2))]);
        let uncommitted = format!("{FENCE}{PRODUCT}wgmma.wait_group.sync.aligned 0;\n{STORE}");
        assert_eq!(found(&uncommitted), [(Held, 4, Some(2))]);
        let fragment = format!("{FENCE}{PRODUCT}add.u32 %r5, %r5, 1;\n{DONE}{STORE}");
        assert_eq!(found(&fragment), [(Held, 3, Some(2))]);
        let one_behind = DONE.replace("aligned 0", "aligned 1");
        assert_eq!(
            found(&format!("{FENCE}{PRODUCT}{one_behind}{STORE}")),
            [(Held, 5, Some(2))]
        );
    }

    #[test]
    fn a_change_needs_a_fence() {
        use RegisterTrouble::Unfenced;
        assert_eq!(
            found(&format!("{PRODUCT}{DONE}{STORE}")),
            [(Unfenced, 1, Some(-1))]
        );
        let changed =
            format!("{FENCE}{PRODUCT}{DONE}mul.f32 %f1, %f1, %f1;\n{PRODUCT}{DONE}{STORE}");
        assert_eq!(found(&changed), [(Unfenced, 6, Some(5))]);
        let turn = "LOOP: setp.ne.u32 %p, %r4, 0;\n";
        let looped =
            format!("{FENCE}{turn}{PRODUCT}{DONE}add.f32 %f3, %f3, %f3;\n@%p bra LOOP;\n{STORE}");
        assert_eq!(found(&looped), [(Unfenced, 3, Some(6))]);
    }

    #[test]
    fn registers_are_called_as_the_text_calls_them() {
        let body = format!(
            "{{ .reg .b32 alone; .reg .v2 .b32 both; add.u32 %r1, alone, 1; add.u32 %r1, both.y, 1;
             add.u32 %r1, %r8, 1; }} {FENCE}{PRODUCT}{STORE}{DONE}"
        );
        let text = kernel("sm_90a", &body);
        let module = Module::load(&text).unwrap_or_else(|e| panic!("{e}"));
        let program = module.kernels.get("k").expect("it lowers");
        let mut names: Vec<&str> = program
            .register_hazards
            .iter()
            .map(|hazard| hazard.register.as_str())
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["%f2", "%r8", "alone", "both.y"]);
    }

    #[test]
    fn a_register_without_a_value_is_named() {
        let body = "add.f32 %f5, %f4, %f0;\nst.global.f32 [%rd1], %f5;\n";
        assert_eq!(found(body), [(RegisterTrouble::Uninitialised, 1, None)]);
        // Written, but on no path that leads here.
        let later = "add.f32 %f5, %f4, %f0;\nst.global.f32 [%rd1], %f5;\nmov.f32 %f4, %f0;\n";
        assert_eq!(found(later), [(RegisterTrouble::Uninitialised, 1, None)]);
        // Written by some of the lanes, or in the first iteration.
        let guarded =
            "setp.ne.u32 %p, %r4, 0;\n@%p mov.f32 %f4, %f0;\nst.global.f32 [%rd1], %f4;\n";
        assert_eq!(found(guarded), []);
        let looped = "LOOP: setp.ne.u32 %p, %r4, 0;\n@%p bra NEXT;\nst.global.f32 [%rd1], %f4;\n\
                      NEXT: mov.f32 %f4, %f0;\n@%p bra LOOP;\n";
        assert_eq!(found(looped), []);
        // Only copied: a load by some of the lanes begins so.
        let copied = "setp.ne.u32 %p, %r4, 0;\nmov.f32 %f4, %f5;\n@%p ld.global.f32 %f4, [%rd1];\n\
                      st.global.f32 [%rd1], %f4;\n";
        assert_eq!(found(copied), []);
        let used = "mov.f32 %f4, %f5;\nst.global.f32 [%rd1], %f4;\n";
        assert_eq!(found(used), [(RegisterTrouble::Uninitialised, 2, None)]);
    }

    #[test]
    fn what_is_loaded_from_tensor_memory_is_waited_for() {
        let load = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r4}, [%r5];\n";
        let wait = "tcgen05.wait::ld.sync.aligned;\n";
        let store = "st.global.b32 [%rd1], %r4;\n";
        let found = |body: String| found_for("sm_100a", &body);
        assert_eq!(found(format!("{load}{wait}{store}")), []);
        assert_eq!(
            found(format!("{load}{store}{wait}")),
            [(RegisterTrouble::Loaded, 2, Some(1))]
        );
        // A copy is waited for like the original.
        assert_eq!(found(format!("{load}mov.b32 %r6, %r4;\n{wait}{store}")), []);
    }
}
