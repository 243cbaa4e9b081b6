//! Ways through a kernel's code: given where a warp was, where it came to, and which lines of the
//! PTX it executed in between, which instructions did it issue?

use std::ops::Range;

use ptx_emu::mixed::{MixedMap, MixedSet};

use crate::cubin::Code;
use crate::sass::{Kind, Sass};

/// Turns a way may take backwards; loops are walked turn by turn, so one is the rule.
const TURNS: usize = 2;

/// Basic blocks and the jumps between them.
#[derive(Debug)]
pub(crate) struct Flow {
    blocks: Vec<Range<usize>>,
    successors: Vec<Vec<usize>>,
    block_of: Vec<usize>,
    /// Lines that take and free columns of tensor memory: the assembler makes a sequence of each.
    sequences: MixedSet<u32>,
}

/// Lines executed, and how often each.
pub(crate) type Lines = MixedMap<u32, u32>;

impl Flow {
    pub(crate) fn new(code: &Code) -> Self {
        let sass = &code.instructions;
        let count = sass.len();
        let target = |at: usize| code.target(at);
        let mut leads = vec![false; count];
        leads[..count.min(1)].fill(true);
        for (at, instruction) in sass.iter().enumerate() {
            if ends_block(instruction) {
                if let Some(next) = leads.get_mut(at + 1) {
                    *next = true;
                }
                if instruction.kind == Kind::Branch
                    && let Some(to) = target(at)
                {
                    leads[to] = true;
                }
            }
        }
        let starts: Vec<usize> = (0..count).filter(|&at| leads[at]).collect();
        let mut block_of = vec![0; count];
        let mut blocks = Vec::with_capacity(starts.len());
        for (index, &start) in starts.iter().enumerate() {
            let end = starts.get(index + 1).copied().unwrap_or(count);
            block_of[start..end].fill(index);
            blocks.push(start..end);
        }
        let successors = blocks
            .iter()
            .map(|block| {
                let last = block.end - 1;
                let falls = !matches!(sass[last].kind, Kind::Branch | Kind::Exit | Kind::Return)
                    || sass[last].guarded;
                let next = (falls && block.end < count).then(|| block_of[block.end]);
                let jump = match sass[last].kind {
                    Kind::Branch => target(last).map(|to| block_of[to]),
                    _ => None,
                };
                next.into_iter().chain(jump).collect()
            })
            .collect();
        let takes = |at: &usize| sass[*at].kind == Kind::TmemColumns;
        Self {
            blocks,
            successors,
            block_of,
            sequences: (0..count).filter(takes).map(|at| code.lines[at]).collect(),
        }
    }

    /// The instructions after `from` (or from the first) up to and with the best of `goals`: the
    /// way on which most of what was executed lies, and least else.
    pub(crate) fn way(
        &self,
        code: &Code,
        from: Option<usize>,
        goals: &[usize],
        executed: &Lines,
    ) -> Option<Vec<usize>> {
        let worth = |at: usize| match executed.contains_key(&code.lines[at]) {
            // No reason to go round in it.
            true if self.in_sequence(code, at) => 0.0,
            true => 1.0,
            false => -1.0,
        };
        // Who passes a goal has reached it, unless a predicate kept him from it.
        let ends = |at: usize| goals.contains(&at) && !code.instructions[at].guarded;
        let ways = goals
            .iter()
            .flat_map(|&goal| self.ways(from, goal, &worth, &ends));
        let scored = ways.map(|way| (self.judge(code, &way, executed), way));
        scored
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, way)| way)
    }

    /// The best way to `goal` with no turn back, with one, and so on.
    fn ways(
        &self,
        from: Option<usize>,
        goal: usize,
        worth: &dyn Fn(usize) -> f64,
        ends: &dyn Fn(usize) -> bool,
    ) -> Vec<Vec<usize>> {
        // The worth of passing instructions, if nobody ends there.
        let sum = |range: Range<usize>| match range.clone().any(ends) {
            true => None,
            false => Some(range.map(worth).sum::<f64>()),
        };
        // What is left of the block one stands in: nothing, after a jump.
        let start = from.map_or(0, |at| at + 1);
        let (first, last) = (self.block_of[from.unwrap_or(0)], self.block_of[goal]);
        let mut ways = Vec::new();
        if first == last && start <= goal {
            ways.push((start..=goal).collect());
        }
        let mut best = Best::new(self.blocks.len());
        if let Some(leave) = sum(start..self.blocks[first].end) {
            for &next in &self.successors[first] {
                best.offer((usize::from(next <= first), next), leave, None);
            }
        }
        for turn in 0..=TURNS {
            for (block, range) in self.blocks.iter().enumerate() {
                let Some((score, _)) = best.0[turn][block] else {
                    continue;
                };
                let Some(passing) = sum(range.clone()) else {
                    continue;
                };
                let score = score + passing;
                for &next in &self.successors[block] {
                    let turns = turn + usize::from(next <= block);
                    if turns <= TURNS {
                        best.offer((turns, next), score, Some((turn, block)));
                    }
                }
            }
        }
        for turn in 0..=TURNS {
            let Some((_, mut from)) = best.0[turn][last] else {
                continue;
            };
            let mut chain = Vec::new();
            while let Some(at) = from {
                chain.push(at.1);
                from = best.0[at.0][at.1].and_then(|(_, from)| from);
            }
            let mut way: Vec<usize> = (start..self.blocks[first].end).collect();
            for &block in chain.iter().rev() {
                way.extend(self.blocks[block].clone());
            }
            way.extend(self.blocks[last].start..=goal);
            ways.push(way);
        }
        ways
    }

    /// Whether an instruction only stands around one that takes or frees columns.
    fn in_sequence(&self, code: &Code, at: usize) -> bool {
        let takes = code.instructions[at].kind == Kind::TmemColumns;
        !takes && self.sequences.contains(&code.lines[at])
    }

    /// How well a way fits what was executed: the lines it covers, and the memory accesses and waits
    /// among them, which are as many in the machine's code as in the PTX. What it passes more often
    /// than its line was executed is too much.
    fn judge(&self, code: &Code, way: &[usize], executed: &Lines) -> f64 {
        let mut lines: MixedMap<u32, u32> = MixedMap::default();
        let mut visits: MixedMap<usize, u32> = MixedMap::default();
        let mut score = 0.0;
        for &at in way {
            let (sass, line) = (&code.instructions[at], code.lines[at]);
            let effect = sass.kind.has_effect() && !self.in_sequence(code, at);
            let Some(&times) = executed.get(&line) else {
                score -= if effect && !sass.guarded { 4.0 } else { 0.5 };
                continue;
            };
            let visit = visits.entry(at).or_default();
            *visit += 1;
            if *visit > times {
                score -= 1.0;
            }
            let met = lines.entry(line).or_insert_with(|| {
                score += 1.0;
                0
            });
            if effect {
                *met += 1;
                score += if *met <= times { 4.0 } else { -4.0 };
            }
        }
        score
    }
}

/// After so many turns, at the entry of this block.
type At = (usize, usize);

/// The best score on entering each block after so many turns, and from where; from the start of
/// the way, if from nowhere. Jumps forward keep the turn, so a chain of these has an end.
struct Best(Vec<Vec<Option<Entry>>>);

type Entry = (f64, Option<At>);

impl Best {
    fn new(blocks: usize) -> Self {
        Self(vec![vec![None; blocks]; TURNS + 1])
    }

    fn offer(&mut self, at: At, score: f64, from: Option<At>) {
        let entry = &mut self.0[at.0][at.1];
        if entry.is_none_or(|old| score > old.0) {
            *entry = Some((score, from));
        }
    }
}

fn ends_block(sass: &Sass) -> bool {
    matches!(sass.kind, Kind::Branch | Kind::Exit | Kind::Return)
}
