//! What the registers of a warp hold when it begins.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::exec::lanes::{V32, V64, each};
use crate::exec::warp::Warp;
use crate::op::operand::{Register, Role};
use crate::op::{Const64, Op, Program, R32, R64, Special};

/// The registers of a launch's warps.
pub(super) struct Template {
    /// No other launch has it.
    number: u64,
    r32: Vec<V32>,
    r64: Vec<V64>,
    predicates: Vec<u32>,
    /// Those that may be read before they are written, or written by some of their lanes only.
    poisoned: [Vec<Range<usize>>; 2],
    /// Special registers that differ by lane, for each warp of a CTA.
    lanes32: Vec<(R32, Vec<V32>)>,
    lanes64: Vec<(R64, Vec<V64>)>,
    /// The others.
    warps32: Vec<(R32, Special)>,
    warps64: Vec<(R64, Special)>,
}

impl Template {
    /// Those of a program; `of_lane` has special registers that differ by lane, for a warp.
    pub(super) fn new(
        program: &Program,
        seed: u64,
        globals: &[u64],
        warps: u32,
        of_lane: impl Fn(Special, u32, u32) -> Option<u64>,
    ) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let lanes = |special: Special, warp: u32| -> Option<[u64; 32]> {
            of_lane(special, warp, 0)?;
            Some(each(|lane| {
                of_lane(special, warp, lane as u32).unwrap_or(0)
            }))
        };
        let narrow = |&(slot, special): &(R32, Special)| {
            let rows = (0..warps).map(|warp| Some(V32(lanes(special, warp)?.map(|x| x as u32))));
            Some((slot, rows.collect::<Option<_>>()?))
        };
        let wide = |&(slot, special): &(R64, Special)| {
            let rows = (0..warps).map(|warp| Some(V64(lanes(special, warp)?)));
            Some((slot, rows.collect::<Option<_>>()?))
        };
        let same = |special: Special| of_lane(special, 0, 0).is_none();
        let (specials32, specials64) = (&program.specials32, &program.specials64);
        Self {
            number: LAST.fetch_add(1, Ordering::Relaxed) + 1,
            r32: narrow_registers(program, seed),
            r64: wide_registers(program, seed, globals),
            predicates: (0..program.npred.into()).map(|p| mixed(seed, p)).collect(),
            poisoned: poisoned(program),
            lanes32: specials32.iter().filter_map(narrow).collect(),
            lanes64: specials64.iter().filter_map(wide).collect(),
            warps32: specials32.iter().copied().filter(|s| same(s.1)).collect(),
            warps64: specials64.iter().copied().filter(|s| same(s.1)).collect(),
        }
    }

    /// Fills in the registers of a warp, which has those of another one, with this number in its
    /// CTA if it was of the same launch. What is only read is then there already, and what a whole
    /// warp writes first may be anything.
    pub(super) fn fill(&self, w: &mut Warp, index: u32, of_warp: impl Fn(Special) -> u64) {
        w.p.clone_from(&self.predicates);
        if w.template == self.number && w.live == u32::MAX {
            let [narrow, wide] = &self.poisoned;
            for slots in narrow {
                w.r32[slots.clone()].copy_from_slice(&self.r32[slots.clone()]);
            }
            for slots in wide {
                w.r64[slots.clone()].copy_from_slice(&self.r64[slots.clone()]);
            }
        } else {
            w.template = self.number;
            w.r32.clone_from(&self.r32);
            w.r64.clone_from(&self.r64);
            for (slot, warps) in &self.lanes32 {
                w.r32[slot.0 as usize] = warps[index as usize];
            }
            for (slot, warps) in &self.lanes64 {
                w.r64[slot.0 as usize] = warps[index as usize];
            }
        }
        for &(slot, special) in &self.warps32 {
            w.r32[slot.0 as usize] = V32([of_warp(special) as u32; 32]);
        }
        for &(slot, special) in &self.warps64 {
            w.r64[slot.0 as usize] = V64([of_warp(special); 32]);
        }
    }
}

fn narrow_registers(program: &Program, seed: u64) -> Vec<V32> {
    let mut all: Vec<V32> = (0..u64::from(program.n32))
        .map(|slot| V32([poison(seed, slot); 32]))
        .collect();
    for &(slot, value) in &program.consts32 {
        all[slot.0 as usize] = V32([value; 32]);
    }
    all
}

fn wide_registers(program: &Program, seed: u64, globals: &[u64]) -> Vec<V64> {
    let mut all: Vec<V64> = (0..u64::from(program.n64))
        .map(|slot| V64([u64::from(poison(seed, !slot)) * 0x1_0000_0001; 32]))
        .collect();
    for &(slot, value) in &program.consts64 {
        let value = match value {
            Const64::Bits(bits) => bits,
            Const64::Global { index, addend } => {
                let base = globals.get(index as usize).copied().unwrap_or(0);
                base.wrapping_add_signed(addend)
            }
        };
        all[slot.0 as usize] = V64([value; 32]);
    }
    all
}

/// How many registers of each file come before those that are only read, which are the last ones.
fn written(program: &Program) -> [usize; 2] {
    let read32 = program.consts32.len() + program.specials32.len();
    let read64 = program.consts64.len() + program.specials64.len();
    let [own32, own64] = [
        (program.n32 as usize).saturating_sub(read32),
        (program.n64 as usize).saturating_sub(read64),
    ];
    let consts32 = program.consts32.iter().map(|c| c.0);
    let specials32 = program.specials32.iter().map(|s| s.0);
    let last32 = consts32.chain(specials32).all(|r| r.0 as usize >= own32);
    let consts64 = program.consts64.iter().map(|c| c.0);
    let specials64 = program.specials64.iter().map(|s| s.0);
    let last64 = consts64.chain(specials64).all(|r| r.0 as usize >= own64);
    debug_assert!(last32 && last64, "constants stand behind registers");
    [
        if last32 { own32 } else { program.n32 as usize },
        if last64 { own64 } else { program.n64 as usize },
    ]
}

/// The registers of each file that have to be poison, but for those that are only read. What a
/// whole warp writes before it comes to a branch, and has not read, need not be.
fn poisoned(program: &Program) -> [Vec<Range<usize>>; 2] {
    let mut fresh = written(program).map(|slots| vec![true; slots]);
    let mut read = written(program).map(|slots| vec![false; slots]);
    for inst in program.insts.iter().take_while(|inst| is_for_all(&inst.op)) {
        let mut seen = |writes: bool, role: Role, register: Register| {
            let (file, slot) = match register {
                Register::W32(r) => (0, r.0 as usize),
                Register::W64(r) => (1, r.0 as usize),
                Register::Pred(_) => return,
            };
            let (Some(fresh), Some(read)) = (fresh[file].get_mut(slot), read[file].get_mut(slot))
            else {
                return;
            };
            match writes {
                true => *fresh &= !role.writes() || *read || inst.guard.pred.is_some(),
                false => *read |= role.reads() && *fresh,
            }
        };
        for writes in [false, true] {
            let see = &mut |role, register| seen(writes, role, register);
            inst.op.registers(&program.slot_pool, see);
        }
    }
    fresh.map(|slots| {
        let marked = slots.iter().enumerate().filter(|(_, poison)| **poison);
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for (slot, _) in marked {
            match ranges.last_mut() {
                Some(last) if last.end == slot => last.end += 1,
                _ => ranges.push(slot..slot + 1),
            }
        }
        ranges
    })
}

/// Whether all active lanes execute an instruction at once, and then go on.
fn is_for_all(op: &Op) -> bool {
    op.unit().computes() || matches!(op, Op::Ld { .. } | Op::St { .. } | Op::Shfl { .. })
}

/// What a register holds before it is written: NaN as one float or two halves, no address, and
/// another value for every seed and register.
fn poison(seed: u64, slot: u64) -> u32 {
    UNSET | mixed(seed, slot)
}

/// The bits that are set in every such value.
pub(crate) const UNSET: u32 = 0xffc1_ffc1;

pub(super) fn mixed(seed: u64, slot: u64) -> u32 {
    let product = (seed ^ slot.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (product ^ product >> 29)
        .wrapping_mul(0xbf58_476d_1ce4_e5b9)
        .rotate_left(32) as u32
}
