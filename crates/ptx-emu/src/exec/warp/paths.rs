//! Divergence: the paths the lanes of a warp are on, and where they join.

use crate::exec::origin::Split;
use crate::exec::warp::{Parting, Path, State, Warp};
use crate::op::Pc;

/// Most partings of a warp that are remembered; lanes part for good a few times at most.
const PARTINGS: usize = 64;

impl Warp {
    /// Sends the lanes of `taken` to `target` and the rest of the active ones on.
    #[inline(always)]
    pub(crate) fn branch(&mut self, taken: u32, target: Pc, reconverge: Pc) {
        let rest = self.active & !taken;
        let next = self.pc + 1;
        if rest == 0 {
            self.pc = target;
            return self.join_if_there();
        }
        if taken == 0 {
            self.pc = next;
            return self.join_if_there();
        }
        self.diverge(&[(target, taken), (next, rest)], reconverge);
    }

    /// Splits the active lanes into several paths that meet at `reconverge`.
    #[inline(never)]
    pub(crate) fn diverge(&mut self, paths: &[(Pc, u32)], reconverge: Pc) {
        if reconverge == Pc::MAX {
            self.note_partings(paths);
        }
        // Paths that meet only at the end of the function still end where this one does.
        let reconverge = match reconverge {
            Pc::MAX => self.rpc,
            pc => pc,
        };
        if reconverge != self.rpc {
            self.stack.push(Path {
                pc: reconverge,
                mask: self.active,
                rpc: self.rpc,
                depth: self.depth,
                join: true,
                parked: false,
                split: self.split,
            });
        }
        let (depth, split) = (self.depth, self.part());
        let mut first: Option<(Pc, u32)> = None;
        for &(pc, mask) in paths.iter().rev() {
            if pc == reconverge || mask == 0 {
                continue;
            }
            if let Some((pc, mask)) = first.replace((pc, mask)) {
                self.stack.push(Path {
                    pc,
                    mask,
                    rpc: reconverge,
                    depth,
                    join: false,
                    parked: false,
                    split,
                });
            }
        }
        let Some((pc, mask)) = first else {
            return self.pop();
        };
        // As if it had been on the stack, from which it would be read before it is written there.
        (self.pc, self.active) = (pc, mask & self.live);
        (self.rpc, self.split) = (reconverge, split);
        self.met |= self.stack.is_empty();
    }

    #[cold]
    fn note_partings(&mut self, paths: &[(Pc, u32)]) {
        for &(pc, lanes) in paths {
            let from = self.active & !lanes;
            let parting = Parting { from, lanes, pc };
            if self.partings.len() < PARTINGS && !self.partings.contains(&parting) {
                self.partings.push(parting);
            }
        }
    }

    /// The split that the lanes of the current path part at now.
    fn part(&mut self) -> Split {
        self.splits += 1;
        let own = self.splits;
        let root = match self.split.root {
            0 => own,
            root => root,
        };
        Split { own, root }
    }

    /// Takes the next path off the stack; the warp is done when there is none.
    #[inline(never)]
    pub(crate) fn pop(&mut self) {
        while let Some(path) = self.stack.pop() {
            let mask = path.mask & self.live;
            if mask != 0 {
                self.pc = path.pc;
                self.active = mask;
                self.rpc = path.rpc;
                self.depth = path.depth;
                self.split = path.split;
                if self.pc != self.rpc {
                    self.met |= self.stack.is_empty();
                    return;
                }
            }
        }
        self.active = 0;
        self.state = State::Done;
    }

    /// The current path has run into its join.
    #[inline(always)]
    pub(crate) fn join_if_there(&mut self) {
        if self.pc == self.rpc {
            self.pop();
        }
    }

    /// Moves on to the next instruction.
    #[inline(always)]
    pub(crate) fn advance(&mut self) {
        self.pc += 1;
        self.join_if_there();
    }

    /// The lanes of `mask` call a function.
    pub(crate) fn call(&mut self, mask: u32, target: Pc) {
        self.call_each(&[(target, mask)]);
    }

    /// Lanes call functions of their own; all meet again behind the call.
    pub(crate) fn call_each(&mut self, calls: &[(Pc, u32)]) {
        self.stack.push(Path {
            pc: self.pc + 1,
            mask: self.active,
            rpc: self.rpc,
            depth: self.depth,
            join: true,
            parked: false,
            split: self.split,
        });
        let split = match calls.len() {
            1 => self.split,
            _ => self.part(),
        };
        for &(pc, mask) in calls {
            self.stack.push(Path {
                pc,
                mask,
                rpc: Pc::MAX,
                depth: self.depth + 1,
                join: false,
                parked: false,
                split,
            });
        }
        self.pop();
    }

    /// The lanes of `mask` return; in the kernel itself they exit.
    pub(crate) fn ret(&mut self, mask: u32) {
        if self.depth == 0 {
            return self.exit(mask);
        }
        self.leave(mask);
    }

    /// The lanes of `mask` end.
    pub(crate) fn exit(&mut self, mask: u32) {
        self.live &= !mask;
        self.leave(mask);
    }

    fn leave(&mut self, mask: u32) {
        self.active &= !mask;
        match self.active {
            0 => self.pop(),
            _ => self.advance(),
        }
    }

    /// Lets the lanes that wait at this path's join go on without the rest of it. Lanes of one
    /// warp may spin on a lock that a lane already at the join holds.
    pub(crate) fn release_join(&mut self) -> bool {
        let Some(&join) = self.stack.last() else {
            return false;
        };
        let waiting = join.mask & self.live & !self.active;
        if !join.join || join.pc != self.rpc || join.depth != self.depth || waiting == 0 {
            return false;
        }
        self.stack.pop();
        self.stack.push(Path {
            pc: self.pc,
            mask: self.active,
            join: false,
            parked: false,
            split: self.split,
            ..join
        });
        self.pc = join.pc;
        self.active = waiting;
        self.rpc = join.rpc;
        self.split = join.split;
        true
    }

    /// Before a synchronising instruction: takes in the lanes that already stand here, and lets
    /// those still on their way go first. True if the warp went on with another path; the
    /// instruction then comes again.
    pub(crate) fn gather(&mut self) -> bool {
        let (pc, rpc, depth) = (self.pc, self.rpc, self.depth);
        let mut here = 0;
        self.stack.retain(|path| {
            let same = path.parked && path.pc == pc && path.rpc == rpc && path.depth == depth;
            here |= if same { path.mask } else { 0 };
            !same
        });
        self.active |= here & self.live;
        if self.active == self.live {
            return false;
        }
        let siblings = self
            .stack
            .iter()
            .rposition(|path| path.join)
            .map_or(0, |at| at + 1);
        let coming = |path: &Path| {
            !path.parked && path.rpc == rpc && path.depth == depth && path.mask & self.live != 0
        };
        let Some(at) = self.stack[siblings..].iter().rposition(coming) else {
            return false;
        };
        let next = self.stack[siblings + at];
        self.stack[siblings + at] = Path {
            pc,
            mask: self.active,
            parked: true,
            split: self.split,
            ..next
        };
        self.pc = next.pc;
        self.active = next.mask & self.live;
        self.split = next.split;
        true
    }

    /// Lets a sibling path run while this one cannot: lanes of one warp may wait for each other.
    /// Returns false if there is none.
    pub(crate) fn switch_path(&mut self) -> bool {
        let (rpc, depth) = (self.rpc, self.depth);
        let kin = |path: &Path| !path.join && path.rpc == rpc && path.depth == depth;
        let others = self.stack.iter().rposition(|path| !kin(path));
        let first = others.map_or(0, |at| at + 1);
        // Parked ones stand before a barrier and wait for this path themselves.
        let Some(at) = self.stack[first..].iter().rposition(|path| !path.parked) else {
            return false;
        };
        let sibling = self.stack.remove(first + at);
        // Behind every other sibling of the same split, so that each gets its turn.
        self.stack.insert(
            first,
            Path {
                pc: self.pc,
                mask: self.active,
                split: self.split,
                ..sibling
            },
        );
        self.pc = sibling.pc;
        self.active = sibling.mask & self.live;
        self.split = sibling.split;
        self.state = State::Ready;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_parked_at_a_barrier_do_not_take_the_place_of_those_they_wait_for() {
        let mut w = Warp::new(0, 0, 0, 0, 0, u32::MAX);
        (w.pc, w.active) = (10, 0xff);
        let path = |pc, mask, parked| Path {
            pc,
            mask,
            rpc: Pc::MAX,
            depth: 0,
            join: false,
            parked,
            split: Split::default(),
        };
        w.stack = vec![path(30, 0xff00, false), path(20, 0xffff_0000, true)];
        assert!(w.switch_path());
        assert_eq!((w.pc, w.active), (30, 0xff00));
        w.stack.retain(|path| path.parked);
        assert!(!w.switch_path());
        assert_eq!((w.pc, w.active), (30, 0xff00));
    }

    #[test]
    fn paths_are_apart_until_they_join() {
        let mut w = Warp::new(0, 0, 0, 0, 0, u32::MAX);
        let branch = |w: &Warp| w.origin(w.active).branch;
        assert!(!branch(&w).is_one_of_several());
        // Half goes to 10, half on; all meet at 20.
        w.branch(0xffff, 10, 20);
        let first = branch(&w);
        // Within it, once more.
        w.branch(0xff, 12, 15);
        let inner = branch(&w);
        (w.pc, w.rpc) = (15, 15);
        w.join_if_there();
        assert_eq!((w.active, branch(&w).apart(inner)), (0xff00, true));
        w.pc = 15;
        w.join_if_there();
        assert_eq!(branch(&w), first);
        assert!(!first.apart(inner));
        w.pc = 20;
        w.join_if_there();
        let second = branch(&w);
        assert_eq!(second.lanes, 0xffff_0000);
        assert!(second.apart(first) && second.apart(inner));
        w.pc = 20;
        w.join_if_there();
        assert!(!branch(&w).apart(first) && w.active == u32::MAX);
        // Another split, though of the same lanes.
        w.branch(0xffff, 30, 40);
        assert!(!branch(&w).apart(second));
    }
}
