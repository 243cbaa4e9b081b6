//! Virtual registers to slots.
//!
//! Compilers emit PTX in single-assignment form: thousands of names, few of them live at once. A
//! slot is 32 lanes wide, so sharing slots keeps a warp's registers in the processor's caches.

use super::flow::Blocks;
use super::names::File;
use super::survey::{Plan, SURVEY_CONSTANTS, Survey};
use crate::op::operand::{Register, Role};
use crate::op::{P, Program, R32, R64};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::ops::Range;

const FILES: [File; 3] = [File::W32, File::W64, File::Pred];

/// A register that no instruction names needs no slot.
const NO_SLOT: u32 = u32::MAX;

/// Fills in the plan's slots. `counts` are the virtual registers of each file.
pub(crate) fn allocate(
    survey: &Survey,
    program: &Program,
    blocks: &[Blocks],
    counts: [u32; 3],
    plan: &mut Plan,
) {
    for file in FILES {
        plan.slots[file as usize] = vec![NO_SLOT; counts[file as usize] as usize];
    }
    let pinned = pinned(survey);
    for &(file, id) in &pinned {
        plan.slots[file as usize][id as usize] = plan.used[file as usize];
        plan.used[file as usize] += 1;
    }
    plan.read = read(program);
    let touches = Touches::of_groups(survey, program);
    for blocks in blocks {
        let slots = FILES.map(|file| {
            let start = plan.used[file as usize];
            let intervals = Liveness::new(survey, blocks, &touches, file).intervals();
            scan(intervals, file, &pinned, plan);
            start..plan.used[file as usize]
        });
        plan.body_slots.push(slots);
    }
}

/// The 32-bit registers that some instruction reads.
fn read(program: &Program) -> BTreeSet<u32> {
    let mut read = BTreeSet::new();
    for inst in &program.insts {
        inst.op
            .registers(&program.slot_pool, &mut |role, register| {
                if let (true, Register::W32(R32(id))) = (role.reads(), register) {
                    read.insert(id);
                }
            });
    }
    read
}

/// Pinned registers and the destinations of their moves: a copy of a result in flight is in flight
/// too.
fn pinned(survey: &Survey) -> BTreeSet<(File, u32)> {
    let mut pinned = survey.pinned.clone();
    let mut grown = true;
    while grown {
        grown = false;
        for &(from, to) in &survey.copies {
            if pinned.contains(&(File::W32, from)) {
                grown |= pinned.insert((File::W32, to));
            }
        }
    }
    pinned
}

/// One read or write of a virtual register by a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Touch {
    file: File,
    id: u32,
    write: bool,
}

/// The registers that each group touches, by the table of instructions, one group after the other.
struct Touches {
    all: Vec<Touch>,
    starts: Vec<usize>,
}

fn number(register: Register) -> (File, u32) {
    match register {
        Register::W32(R32(id)) => (File::W32, id),
        Register::W64(R64(id)) => (File::W64, id),
        Register::Pred(P(id)) => (File::Pred, id.into()),
    }
}

impl Touches {
    fn of_groups(survey: &Survey, program: &Program) -> Self {
        let mut touches = Self {
            all: Vec::new(),
            starts: vec![0],
        };
        let ends = survey.groups.iter().skip(1).map(|group| group.start);
        let ends = ends.chain([program.insts.len() as u32]);
        for (group, end) in survey.groups.iter().zip(ends) {
            touches.add(program, group.start as usize..end as usize);
            touches.starts.push(touches.all.len());
        }
        touches
    }

    /// Adds a group. A register that one of its instructions wrote before another reads it (a
    /// temporary) does not come from outside.
    fn add(&mut self, program: &Program, insts: Range<usize>) {
        let first = self.all.len();
        let mut named: Vec<(Role, (File, u32))> = Vec::new();
        for inst in &program.insts[insts] {
            named.clear();
            let guard = inst
                .guard
                .pred
                .map(|p| (Role::Read, number(Register::Pred(p))));
            named.extend(guard);
            inst.op
                .registers(&program.slot_pool, &mut |role, register| {
                    named.push((role, number(register)));
                });
            named.retain(|(_, (_, id))| *id < SURVEY_CONSTANTS);
            for write in [false, true] {
                for &(role, (file, id)) in &named {
                    let touch = Touch { file, id, write };
                    let does = if write { role.writes() } else { role.reads() };
                    let made = Touch {
                        write: true,
                        ..touch
                    };
                    let known = &self.all[first..];
                    if does && !known.contains(&touch) && !known.contains(&made) {
                        self.all.push(touch);
                    }
                }
            }
        }
    }

    fn of(&self, group: u32) -> &[Touch] {
        &self.all[self.starts[group as usize]..self.starts[group as usize + 1]]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Interval {
    start: u32,
    end: u32,
    id: u32,
}

type Bits = Vec<u64>;

/// Where the registers of one file are live, in one function.
struct Liveness<'s> {
    blocks: &'s Blocks,
    touches: &'s Touches,
    file: File,
    /// The registers this function touches, sorted.
    ids: Vec<u32>,
    live_in: Vec<Bits>,
    live_out: Vec<Bits>,
}

impl<'s> Liveness<'s> {
    fn new(survey: &Survey, blocks: &'s Blocks, touches: &'s Touches, file: File) -> Self {
        let mut ids: Vec<u32> = blocks
            .ranges
            .iter()
            .flat_map(|&(start, end)| (start..end).flat_map(|group| touches.of(group)))
            .filter(|touch| touch.file == file)
            .map(|touch| touch.id)
            .collect();
        ids.sort_unstable();
        ids.dedup();
        let words = ids.len().div_ceil(64);
        let empty = vec![vec![0; words]; blocks.ranges.len()];
        let mut liveness = Self {
            blocks,
            touches,
            file,
            ids,
            live_in: empty.clone(),
            live_out: empty,
        };
        liveness.solve(survey, words);
        liveness
    }

    fn index(&self, id: u32) -> Option<usize> {
        self.ids.binary_search(&id).ok()
    }

    fn solve(&mut self, survey: &Survey, words: usize) {
        let count = self.blocks.ranges.len();
        let mut read = vec![vec![0u64; words]; count];
        let mut written = read.clone();
        for (block, &(start, end)) in self.blocks.ranges.iter().enumerate() {
            for group in start..end {
                // A guarded write leaves the old value in some lanes.
                let kills = !survey.groups[group as usize].guarded;
                let touched = self.touches.of(group).iter();
                let touched: Vec<_> = touched.filter(|touch| touch.file == self.file).collect();
                for touch in touched.iter().filter(|touch| !touch.write || !kills) {
                    let Some(at) = self.index(touch.id) else {
                        continue;
                    };
                    if written[block][at / 64] & 1 << (at % 64) == 0 && !touch.write {
                        read[block][at / 64] |= 1 << (at % 64);
                    }
                }
                for touch in touched.iter().filter(|touch| touch.write && kills) {
                    let Some(at) = self.index(touch.id) else {
                        continue;
                    };
                    written[block][at / 64] |= 1 << (at % 64);
                }
            }
        }
        let mut changed = true;
        while changed {
            changed = false;
            for block in (0..count).rev() {
                for word in 0..words {
                    let next = self.blocks.successors[block].iter();
                    let out = next.fold(0, |bits, &next| bits | self.live_in[next][word]);
                    let alive = read[block][word] | (out & !written[block][word]);
                    self.live_out[block][word] = out;
                    changed |= std::mem::replace(&mut self.live_in[block][word], alive) != alive;
                }
            }
        }
    }

    /// First and last group at which each register is live.
    fn intervals(&self) -> Vec<Interval> {
        let mut intervals: Vec<Interval> = self
            .ids
            .iter()
            .map(|&id| Interval {
                start: u32::MAX,
                end: 0,
                id,
            })
            .collect();
        let mut extend = |at: usize, group: u32| {
            intervals[at].start = intervals[at].start.min(group);
            intervals[at].end = intervals[at].end.max(group);
        };
        for (block, &(start, end)) in self.blocks.ranges.iter().enumerate() {
            for at in 0..self.ids.len() {
                if self.live_in[block][at / 64] & 1 << (at % 64) != 0 {
                    extend(at, start);
                }
                if self.live_out[block][at / 64] & 1 << (at % 64) != 0 {
                    extend(at, end - 1);
                }
            }
            for group in start..end {
                for touch in self.touches.of(group) {
                    if touch.file == self.file
                        && let Some(at) = self.index(touch.id)
                    {
                        extend(at, group);
                    }
                }
            }
        }
        intervals.sort_by_key(|interval| (interval.start, interval.id));
        intervals
    }
}

/// Linear scan: each interval gets the lowest slot free over its whole length. A slot is free
/// again only after the group that read it last, because a group may write before it has read
/// everything.
fn scan(intervals: Vec<Interval>, file: File, pinned: &BTreeSet<(File, u32)>, plan: &mut Plan) {
    let base = plan.used[file as usize];
    let mut next = base;
    let mut free: BinaryHeap<Reverse<u32>> = BinaryHeap::new();
    let mut busy: BinaryHeap<Reverse<(u32, u32)>> = BinaryHeap::new();
    for interval in intervals {
        if pinned.contains(&(file, interval.id)) {
            continue;
        }
        while let Some(&Reverse((end, slot))) = busy.peek()
            && end < interval.start
        {
            busy.pop();
            free.push(Reverse(slot));
        }
        let slot = free.pop().map_or_else(
            || {
                next += 1;
                next - 1
            },
            |Reverse(slot)| slot,
        );
        plan.slots[file as usize][interval.id as usize] = slot;
        busy.push(Reverse((interval.end, slot)));
    }
    plan.used[file as usize] = next;
}
