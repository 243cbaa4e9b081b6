//! Ways through a kernel's code: given where a warp was, where it came to, and which lines of the
//! PTX it executed in between, which instructions did it issue?

use std::collections::HashMap;
use std::ops::Range;

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
}

/// Lines executed, and how often each.
pub(crate) type Lines = HashMap<u32, u32>;

impl Flow {
    pub(crate) fn new(code: &Code) -> Self {
        let sass = &code.instructions;
        let count = sass.len();
        let target = |at: usize| {
            let to = at as i64 + 1 + i64::from(sass[at].offset);
            usize::try_from(to).ok().filter(|&to| to < count)
        };
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
        Self {
            blocks,
            successors,
            block_of,
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
            true => 1.0,
            false => -1.0,
        };
        let start = from.map_or(0, |at| at + 1);
        let ways = goals
            .iter()
            .flat_map(|&goal| self.ways(start, goal, &worth));
        // Who passes a goal has reached it, unless a predicate kept him from it.
        let reached = |at: &usize| goals.contains(at) && !code.instructions[*at].guarded;
        let passes = |way: &[usize]| way[..way.len() - 1].iter().any(reached);
        let scored = ways.map(|way| {
            let late = if passes(&way) { 1e6 } else { 0.0 };
            (judge(code, &way, executed) - late, way)
        });
        scored
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, way)| way)
    }

    /// The best way from `start` to `goal` with no turn back, with one, and so on.
    fn ways(&self, start: usize, goal: usize, worth: &dyn Fn(usize) -> f64) -> Vec<Vec<usize>> {
        if start >= self.block_of.len() {
            return Vec::new();
        }
        let sum = |range: Range<usize>| range.map(worth).sum::<f64>();
        let (first, last) = (self.block_of[start], self.block_of[goal]);
        let mut ways = Vec::new();
        if first == last && start <= goal {
            ways.push((start..=goal).collect());
        }
        let mut best = Best::new(self.blocks.len());
        let leave = sum(start..self.blocks[first].end);
        for &next in &self.successors[first] {
            best.offer((usize::from(next <= first), next), leave, None);
        }
        for turn in 0..=TURNS {
            for (block, range) in self.blocks.iter().enumerate() {
                let Some((score, _)) = best.0[turn][block] else {
                    continue;
                };
                let score = score + sum(range.clone());
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

/// How well a way fits what was executed: the lines it covers, and the memory accesses and waits
/// among them, which are as many in the machine's code as in the PTX.
fn judge(code: &Code, way: &[usize], executed: &Lines) -> f64 {
    let mut met: HashMap<u32, (bool, u32)> = HashMap::new();
    let mut score = 0.0;
    for &at in way {
        let (sass, line) = (&code.instructions[at], code.lines[at]);
        let Some(&times) = executed.get(&line) else {
            score -= match sass.kind.has_effect() && !sass.guarded {
                true => 4.0,
                false => 0.5,
            };
            continue;
        };
        let seen = met.entry(line).or_default();
        if !std::mem::replace(&mut seen.0, true) {
            score += 1.0;
        }
        if sass.kind.has_effect() {
            seen.1 += 1;
            score += if seen.1 <= times { 4.0 } else { -4.0 };
        }
    }
    score
}
