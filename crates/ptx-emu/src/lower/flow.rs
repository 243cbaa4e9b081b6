//! Control flow of one function: basic blocks, and where diverged lanes reconverge.

use super::names::Label;
use super::survey::{Flow, Group};
use crate::op::{NO_RECONVERGENCE, Pc};
use std::collections::HashMap;

/// Basic blocks of one function; indices of groups are relative to the whole kernel.
pub(crate) struct Blocks {
    /// First group of each block and one past the last.
    pub ranges: Vec<(u32, u32)>,
    pub successors: Vec<Vec<usize>>,
}

impl Blocks {
    /// Splits the groups `first..end`. Labels hold instruction numbers.
    pub(super) fn new(groups: &[Group], labels: &[Pc], first: u32, end: u32) -> Self {
        let body = &groups[first as usize..end as usize];
        let group_at = |label: Label| -> u32 {
            let pc = labels.get(label as usize).copied().unwrap_or_default();
            first + body.partition_point(|group| group.start < pc) as u32
        };
        let mut leaders = vec![first];
        for (at, group) in body.iter().enumerate() {
            if group.flow != Flow::Next {
                leaders.push(first + at as u32 + 1);
            }
            if let Flow::Branch(targets) = &group.flow {
                leaders.extend(targets.iter().map(|&target| group_at(target)));
            }
        }
        leaders.retain(|&leader| leader < end);
        leaders.sort_unstable();
        leaders.dedup();
        let ends = leaders.iter().skip(1).copied().chain([end]);
        let ranges: Vec<(u32, u32)> = leaders.iter().copied().zip(ends).collect();
        let block_at = |group: u32| leaders.binary_search(&group).ok();
        let successors = ranges
            .iter()
            .map(|&(_, block_end)| {
                let last = &groups[block_end as usize - 1];
                let mut next = Vec::new();
                if let Flow::Branch(targets) = &last.flow {
                    next.extend(
                        targets
                            .iter()
                            .filter_map(|&target| block_at(group_at(target))),
                    );
                }
                if last.flow == Flow::Next || last.guarded {
                    next.extend(block_at(block_end));
                }
                next.sort_unstable();
                next.dedup();
                next
            })
            .collect();
        Self { ranges, successors }
    }

    /// Reconvergence point of every branch, keyed by the branch group's first instruction.
    pub(super) fn reconvergence(&self, groups: &[Group], into: &mut HashMap<Pc, Pc>) {
        let meeting = self.post_dominators(groups);
        for (block, &(_, end)) in self.ranges.iter().enumerate() {
            let last = &groups[end as usize - 1];
            if !matches!(last.flow, Flow::Branch(_)) {
                continue;
            }
            let point = meeting[block].map_or(NO_RECONVERGENCE, |block| {
                let group = &groups[self.ranges[block].0 as usize];
                // Lanes that would only wait to return need not: they would block a barrier that
                // the others still have to pass.
                match group.flow == Flow::Return && !group.guarded {
                    true => NO_RECONVERGENCE,
                    false => group.start,
                }
            });
            into.insert(last.start, point);
        }
    }

    /// Immediate post-dominator of each block; `None` is the exit.
    ///
    /// Paths that end a thread (`trap`, `exit`) do not count if another path goes on: ended lanes
    /// need not reconverge.
    fn post_dominators(&self, groups: &[Group]) -> Vec<Option<usize>> {
        let count = self.ranges.len();
        let exit = count;
        let successors = self.surviving_edges(groups);
        let mut predecessors = vec![Vec::new(); count + 1];
        for (block, next) in successors.iter().enumerate() {
            for &target in next {
                predecessors[target].push(block);
            }
            if next.is_empty() {
                predecessors[exit].push(block);
            }
        }
        let order = backward_order(&mut predecessors, exit);
        let mut rank = vec![usize::MAX; count + 1];
        for (at, &block) in order.iter().enumerate() {
            rank[block] = at;
        }
        let mut reverse_successors = vec![Vec::new(); count + 1];
        for (target, sources) in predecessors.iter().enumerate() {
            for &source in sources {
                reverse_successors[source].push(target);
            }
        }
        let mut idom = vec![usize::MAX; count + 1];
        idom[exit] = exit;
        let mut changed = true;
        while changed {
            changed = false;
            for &block in order.iter().skip(1) {
                let known = reverse_successors[block]
                    .iter()
                    .copied()
                    .filter(|&next| idom[next] != usize::MAX);
                let Some(new) = known.reduce(|a, b| meet(&idom, &rank, a, b)) else {
                    continue;
                };
                if idom[block] != new {
                    idom[block] = new;
                    changed = true;
                }
            }
        }
        idom.truncate(count);
        idom.into_iter()
            .map(|block| (block < count).then_some(block))
            .collect()
    }

    fn surviving_edges(&self, groups: &[Group]) -> Vec<Vec<usize>> {
        let count = self.ranges.len();
        let mut doomed: Vec<bool> = self
            .ranges
            .iter()
            .map(|&(_, end)| {
                let last = &groups[end as usize - 1];
                last.flow == Flow::Abort && !last.guarded
            })
            .collect();
        let mut changed = true;
        while changed {
            changed = false;
            for block in (0..count).rev() {
                let next = &self.successors[block];
                if !doomed[block] && !next.is_empty() && next.iter().all(|&next| doomed[next]) {
                    doomed[block] = true;
                    changed = true;
                }
            }
        }
        self.successors
            .iter()
            .map(|next| match next.iter().all(|&next| doomed[next]) {
                true => next.clone(),
                false => next.iter().copied().filter(|&next| !doomed[next]).collect(),
            })
            .collect()
    }
}

/// Nearest common ancestor in the tree of post-dominators found so far.
fn meet(idom: &[usize], rank: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        while rank[a] > rank[b] {
            a = idom[a];
        }
        while rank[b] > rank[a] {
            b = idom[b];
        }
    }
    a
}

/// Reverse post-order of a walk from the exit against the edges. Blocks that cannot reach the exit
/// (endless loops) get an edge to it, the last of each such region first.
fn backward_order(predecessors: &mut [Vec<usize>], exit: usize) -> Vec<usize> {
    let count = exit;
    let mut seen = vec![false; count + 1];
    reach(predecessors, exit, &mut seen);
    for block in (0..count).rev() {
        if !seen[block] {
            predecessors[exit].push(block);
            reach(predecessors, block, &mut seen);
        }
    }
    let mut seen = vec![false; count + 1];
    let mut finished = Vec::with_capacity(count + 1);
    let mut stack = vec![(exit, 0)];
    seen[exit] = true;
    while let Some((block, child)) = stack.pop() {
        match predecessors[block].get(child) {
            None => finished.push(block),
            Some(&next) => {
                stack.push((block, child + 1));
                if !seen[next] {
                    seen[next] = true;
                    stack.push((next, 0));
                }
            }
        }
    }
    finished.reverse();
    finished
}

fn reach(predecessors: &[Vec<usize>], from: usize, seen: &mut [bool]) {
    let mut stack = vec![from];
    while let Some(block) = stack.pop() {
        if !std::mem::replace(&mut seen[block], true) {
            stack.extend(&predecessors[block]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One group per entry, one instruction per group.
    fn points(flows: &[(Flow, bool)], labels: &[Pc]) -> Vec<(Pc, Pc)> {
        let groups: Vec<Group> = flows
            .iter()
            .enumerate()
            .map(|(at, (flow, guarded))| Group {
                start: at as Pc,
                guarded: *guarded,
                flow: flow.clone(),
            })
            .collect();
        let blocks = Blocks::new(&groups, labels, 0, groups.len() as u32);
        let mut found = HashMap::new();
        blocks.reconvergence(&groups, &mut found);
        let mut found: Vec<_> = found.into_iter().collect();
        found.sort_unstable();
        found
    }

    fn branch(label: Label) -> Flow {
        Flow::Branch(vec![label])
    }

    #[test]
    fn if_else_meets_at_the_join() {
        let flows = [
            (branch(0), true),   // 0: @p bra 3
            (Flow::Next, false), // 1
            (branch(1), false),  // 2: bra 4
            (Flow::Next, false), // 3
            (Flow::Next, false), // 4: join
            (Flow::Return, false),
        ];
        assert_eq!(points(&flows, &[3, 4]), [(0, 4), (2, 4)]);
    }

    #[test]
    fn a_loop_meets_after_it() {
        let flows = [
            (Flow::Next, false),
            (branch(0), true), // 1: @p bra 0
            (Flow::Next, false),
            (Flow::Return, false),
        ];
        assert_eq!(points(&flows, &[0]), [(1, 2)]);
    }

    #[test]
    fn a_trapping_arm_does_not_spoil_the_join() {
        let flows = [
            (branch(1), true),   // 0: @p bra 3 (join)
            (branch(0), true),   // 1: @q bra 5 (trap)
            (Flow::Next, false), // 2
            (Flow::Next, false), // 3: join
            (Flow::Return, false),
            (Flow::Abort, false), // 5: trap
        ];
        assert_eq!(points(&flows, &[5, 3]), [(0, 3), (1, 2)]);
    }

    #[test]
    fn lanes_that_return_are_not_waited_for() {
        let flows = [
            (branch(0), true), // 0: @p bra 2 (ret)
            (Flow::Next, false),
            (Flow::Return, false),
        ];
        assert_eq!(points(&flows, &[2]), [(0, NO_RECONVERGENCE)]);
    }

    #[test]
    fn an_endless_loop_has_an_answer() {
        let flows = [
            (branch(1), true),  // 0: @p bra 2
            (branch(0), false), // 1: bra 0
            (branch(1), false), // 2: bra 2
            (Flow::Return, false),
        ];
        assert_eq!(points(&flows, &[0, 2]).len(), 3);
    }
}
