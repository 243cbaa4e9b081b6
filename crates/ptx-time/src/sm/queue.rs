//! What is going to happen, by time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::{Item, Ticks};

/// Something at a moment. Of one moment, the lowest turn comes first, then who came first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    at: Ticks,
    turn: u32,
    order: u64,
    /// The warp, or the place among `others` at turn 0.
    what: u32,
}

impl Entry {
    /// The moment and the turn as one number: entries are compared more often than anything else.
    fn place(&self) -> u128 {
        u128::from(self.at) << 32 | u128::from(self.turn)
    }
}

impl Ord for Entry {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        let places = self.place().cmp(&other.place());
        places.then_with(|| self.order.cmp(&other.order))
    }
}

impl PartialOrd for Entry {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Items in the order in which they happen.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<Entry>>,
    /// The last that came. Mostly it is what a warp does next, and takes the place of what that
    /// warp has done.
    last: Option<Entry>,
    order: u64,
    /// What is not a warp's, which is large and rare.
    others: Vec<Item>,
    free: Vec<u32>,
}

impl Queue {
    /// Of several at one moment, who has the lower turn above 0 comes first.
    pub(super) fn push_warp(&mut self, at: Ticks, turn: u32, warp: usize) {
        self.push(at, turn.max(1), warp as u32);
    }

    /// Before the warps of the same moment.
    pub(super) fn push_other(&mut self, at: Ticks, item: Item) {
        let place = match self.free.pop() {
            Some(place) => {
                self.others[place as usize] = item;
                place
            }
            None => {
                self.others.push(item);
                self.others.len() as u32 - 1
            }
        };
        self.push(at, 0, place);
    }

    fn push(&mut self, at: Ticks, turn: u32, what: u32) {
        self.order += 1;
        let entry = Entry {
            at,
            turn,
            order: self.order,
            what,
        };
        if let Some(before) = self.last.replace(entry) {
            self.heap.push(Reverse(before));
        }
    }

    pub(super) fn pop(&mut self) -> Option<(Ticks, Item)> {
        let entry = self.first()?;
        let item = match entry.turn {
            0 => {
                self.free.push(entry.what);
                self.others[entry.what as usize]
            }
            _ => Item::Warp(entry.what as usize),
        };
        Some((entry.at, item))
    }

    fn first(&mut self) -> Option<Entry> {
        let Some(last) = self.last.take() else {
            return self.heap.pop().map(|Reverse(entry)| entry);
        };
        match self.heap.peek_mut() {
            Some(mut first) if first.0 < last => {
                let Reverse(entry) = std::mem::replace(&mut *first, Reverse(last));
                Some(entry)
            }
            _ => Some(last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_first_happens_first() {
        let mut queue = Queue::default();
        let operands = |sm| Item::Operands { sm, port: 0 };
        queue.push_warp(5, 9, 1);
        queue.push_warp(5, 3, 2);
        assert_eq!(queue.pop(), Some((5, Item::Warp(2))));
        queue.push_warp(4, 9, 3);
        queue.push_other(5, operands(7));
        queue.push_warp(5, 9, 4);
        assert_eq!(queue.pop(), Some((4, Item::Warp(3))));
        queue.push_other(5, operands(8));
        assert_eq!(queue.pop(), Some((5, operands(7))));
        queue.push_other(6, operands(9));
        assert_eq!(queue.pop(), Some((5, operands(8))));
        let rest: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        let warps = [1, 4].map(|warp| (5, Item::Warp(warp)));
        assert_eq!(rest, [warps[0], warps[1], (6, operands(9))]);
    }
}
