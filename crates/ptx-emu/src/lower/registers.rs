//! Registers that are touched while a product in flight holds them, changed without the fence that
//! tells the tensor core, or read though nothing gives them a value.
//!
//! Judged on virtual registers, over all paths, before anything runs.

use std::collections::{BTreeMap, BTreeSet};

use super::emit::{SURVEY_CONSTANTS, Survey};
use super::flow::Blocks;
use crate::op::operand::{Register, Role};
use crate::op::{Op, Pc, Program, RegisterHazard, RegisterTrouble, Slot, WgmmaA};

/// A register that a product in flight holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    /// Commits since.
    age: u32,
    by: Pc,
    /// Read by the product, not written.
    fragment: bool,
}

/// What is known at a point of the program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct State {
    /// Registers changed since the last `wgmma.fence`, and where.
    unfenced: BTreeMap<u32, Pc>,
    held: BTreeMap<u32, Held>,
    /// Some way here has no fence at all.
    no_fence: bool,
}

impl State {
    /// Takes in what is known on another way to the same point; whether that was news.
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

/// Commits after which nobody counts any more.
const OLDEST: u32 = 64;

/// Everything wrong with the registers of a kernel and the functions it reaches.
pub(super) fn hazards(
    survey: &Survey,
    program: &Program,
    blocks: &[Blocks],
) -> Vec<RegisterHazard> {
    let mut found = uninitialised(program);
    let products = program.insts.iter();
    if products.clone().any(|inst| matches!(inst.op, Op::Wgmma(_))) {
        for blocks in blocks {
            in_body(survey, program, blocks, &mut found);
        }
    }
    found.into_iter().collect()
}

/// Reads of registers that no instruction writes.
fn uninitialised(program: &Program) -> BTreeSet<RegisterHazard> {
    let id = |register: Register| match register {
        Register::W32(r) => (0u8, r.0),
        Register::W64(r) => (1, r.0),
        Register::Pred(p) => (2, p.0.into()),
    };
    let mut written = BTreeSet::new();
    let mut read: BTreeMap<(u8, u32), Pc> = BTreeMap::new();
    for (pc, inst) in program.insts.iter().enumerate() {
        let mut see = |role: Role, register: Register| {
            let register = id(register);
            if register.1 >= SURVEY_CONSTANTS {
                return;
            }
            if role.writes() {
                written.insert(register);
            }
            if role == Role::Read {
                read.entry(register).or_insert(pc as Pc);
            }
        };
        if let Some(guard) = inst.guard.pred {
            see(Role::Read, Register::Pred(guard));
        }
        inst.op.registers(&program.slot_pool, &mut see);
    }
    let never = read.into_iter().filter(|(id, _)| !written.contains(id));
    never
        .map(|(_, at)| RegisterHazard {
            trouble: RegisterTrouble::Uninitialised,
            at,
            other: None,
        })
        .collect()
}

fn in_body(
    survey: &Survey,
    program: &Program,
    blocks: &Blocks,
    found: &mut BTreeSet<RegisterHazard>,
) {
    let insts = |block: usize| {
        let (first, end) = blocks.ranges[block];
        let start = survey.groups[first as usize].start;
        let end = survey.groups.get(end as usize);
        start..end.map_or(program.insts.len() as Pc, |group| group.start)
    };
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
        for pc in insts(block) {
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
    fn pass(&mut self, program: &Program, pc: Pc, found: &mut BTreeSet<RegisterHazard>) {
        match &program.insts[pc as usize].op {
            Op::WgmmaFence => {
                self.unfenced.clear();
                self.no_fence = false;
            }
            Op::WgmmaCommit => {
                for held in self.held.values_mut() {
                    held.age = (held.age + 1).min(OLDEST);
                }
            }
            Op::WgmmaWait { n } => self.held.retain(|_, held| held.age <= *n),
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
                self.product(pc, reads.iter().chain(fragments), found);
                self.hold(pc, slots(product.d), false);
                self.hold(pc, fragments, true);
            }
            // Compilers copy accumulators about between products; the copy waits with them.
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
                for (role, register) in touched {
                    let holds = |held: &&Held| role.writes() || !held.fragment;
                    if let Some(held) = self.held.get(&register).filter(holds) {
                        found.insert(RegisterHazard {
                            trouble: RegisterTrouble::Held,
                            at: pc,
                            other: Some(held.by),
                        });
                    }
                    if role.writes() {
                        self.unfenced.insert(register, pc);
                    }
                }
            }
        }
    }

    /// A product that takes the values of these registers.
    fn product<'s>(
        &self,
        pc: Pc,
        mut reads: impl Iterator<Item = &'s Slot>,
        found: &mut BTreeSet<RegisterHazard>,
    ) {
        let changed = reads.find_map(|slot| match slot {
            Slot::W32(r) => self.unfenced.get(&r.0),
            _ => None,
        });
        if self.no_fence || changed.is_some() {
            found.insert(RegisterHazard {
                trouble: RegisterTrouble::Unfenced,
                at: pc,
                other: changed.copied(),
            });
        }
    }

    fn hold(&mut self, by: Pc, slots: &[Slot], fragment: bool) {
        for slot in slots {
            if let Slot::W32(r) = slot {
                let held = Held {
                    age: 0,
                    by,
                    fragment,
                };
                self.held.insert(r.0, held);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Module;

    /// What is found in a kernel of products on `%f0..3` and fragments `%r4..7`.
    fn found(body: &str) -> Vec<(RegisterTrouble, u32, Option<u32>)> {
        let text = format!(
            ".version 8.8\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 out) {{\n\
             .reg .f32 %f<9>; .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .pred %p;\n\
             ld.param.u64 %rd1, [out]; mov.u64 %rd2, 0; mov.u32 %r4, %tid.x; mov.u32 %r5, %tid.x;\n\
             mov.u32 %r6, %tid.x; mov.u32 %r7, %tid.x; mov.f32 %f0, 0f00000000;\n\
             mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n{body}\nret; }}"
        );
        let module = Module::load(&text).unwrap_or_else(|e| panic!("{e}"));
        let program = module.kernels.get("k").expect("it lowers");
        let line = |pc: Pc| {
            let loc = program.insts[pc as usize].loc as usize;
            program.locs[loc].ptx_line - 8
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
            [(Unfenced, 1, None)]
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
    fn a_register_without_a_value_is_named() {
        let body = "add.f32 %f5, %f4, %f0;\nst.global.f32 [%rd1], %f5;\n";
        assert_eq!(found(body), [(RegisterTrouble::Uninitialised, 1, None)]);
    }
}
