//! The reads of each word of shared memory since it was written.

use std::sync::Arc;

use super::numbered::{CompletionCache, Number, Numbered, Renumbering};
use super::shadow::{Trace, WHOLE};
use crate::mixed::MixedMap;

/// A set of reads: empty, one access's of a whole word, or one of [`ReadSets`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct SetId(u32);

/// Marks the set of one access, whose number is in the other bits.
const ONE: u32 = 1 << 31;

impl SetId {
    pub(super) const EMPTY: Self = Self(0);

    fn one(access: Number) -> Self {
        Self(access.0 | ONE)
    }

    fn as_one(self) -> Option<Read> {
        (self.0 & ONE != 0).then_some(Read {
            access: Number(self.0 & !ONE),
            bytes: WHOLE,
        })
    }
}

/// A read of some bytes of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Read {
    pub(super) access: Number,
    pub(super) bytes: u8,
}

/// Sets of reads. A tile that the same warps read in the same steps is one set, not one for each
/// word.
#[derive(Debug, Default)]
pub(super) struct ReadSets {
    /// Sets of several reads, or of parts of a word; the first is number 1.
    sets: Vec<Arc<[Read]>>,
    /// The set that results from one more read. The steps of a warp grow with its knowledge, so for
    /// the same read the same reads are always complete.
    next: MixedMap<(SetId, Read), SetId>,
    numbers: MixedMap<Arc<[Read]>, SetId>,
    /// Buffer for building a set.
    room: Vec<Read>,
}

impl ReadSets {
    pub(super) fn of(&self, id: SetId) -> impl Iterator<Item = Read> {
        let one = id.as_one();
        let several = match (one, id) {
            (None, SetId(number @ 1..)) => &*self.sets[number as usize - 1],
            _ => &[],
        };
        one.into_iter().chain(several.iter().copied())
    }

    fn number(&mut self, set: &[Read]) -> SetId {
        match set {
            [] => return SetId::EMPTY,
            [one] if one.bytes == WHOLE => return SetId::one(one.access),
            _ => {}
        }
        if let Some(id) = self.numbers.get(set) {
            return *id;
        }
        let set: Arc<[Read]> = set.into();
        self.sets.push(Arc::clone(&set));
        let id = SetId(self.sets.len() as u32);
        self.numbers.insert(set, id);
        id
    }

    /// Adds a read; those that were complete when it came are removed.
    pub(super) fn with<F: Fn(&Trace, bool) -> bool>(
        &mut self,
        id: SetId,
        read: Read,
        all: &Numbered<Trace>,
        asked: &mut CompletionCache<F>,
    ) -> SetId {
        if read.bytes == WHOLE {
            match id.as_one() {
                None if id == SetId::EMPTY => return SetId::one(read.access),
                Some(old) if all.alike(old.access, read.access) => return id,
                Some(old) if asked.over(all, old.access, false) => {
                    return SetId::one(read.access);
                }
                _ => {}
            }
        }
        if let Some(next) = self.next.get(&(id, read)) {
            return *next;
        }
        let mut set = std::mem::take(&mut self.room);
        set.clear();
        set.extend(self.of(id));
        match (set.iter_mut()).find(|old| all.alike(old.access, read.access)) {
            Some(old) => old.bytes |= read.bytes,
            None => {
                set.retain(|old| {
                    old.bytes & !read.bytes != 0 || !asked.over(all, old.access, false)
                });
                set.push(read);
            }
        }
        let next = self.number(&set);
        self.next.insert((id, read), next);
        self.room = set;
        next
    }

    /// The reads of bytes that were not written.
    pub(super) fn without(&mut self, id: SetId, written: u8) -> SetId {
        if id == SetId::EMPTY || written == WHOLE {
            return SetId::EMPTY;
        }
        let left = self.of(id).filter(|read| read.bytes & !written != 0);
        let left: Vec<Read> = left.collect();
        self.number(&left)
    }

    /// The number of sets and of transitions between them.
    pub(super) fn len(&self) -> usize {
        self.sets.len() + self.next.len()
    }
}

/// Keeps the sets that are still needed, and their accesses.
pub(super) struct Sweeping<'o> {
    old: &'o ReadSets,
    new: ReadSets,
    /// The new set for each old one; empty if it was not requested.
    moved: Vec<SetId>,
}

impl<'o> Sweeping<'o> {
    pub(super) fn of(old: &'o ReadSets) -> Self {
        Self {
            old,
            new: ReadSets::default(),
            moved: vec![SetId::EMPTY; old.sets.len() + 1],
        }
    }

    pub(super) fn keep(&mut self, id: SetId, accesses: &mut Renumbering<'_, Trace>) -> SetId {
        if let Some(one) = id.as_one() {
            return SetId::one(accesses.keep(one.access));
        }
        let moved = self.moved[id.0 as usize];
        if id == SetId::EMPTY || moved != SetId::EMPTY {
            return moved;
        }
        let kept = self.old.of(id).map(|read| Read {
            access: accesses.keep(read.access),
            ..read
        });
        let kept = self.new.number(&kept.collect::<Vec<_>>());
        self.moved[id.0 as usize] = kept;
        kept
    }

    pub(super) fn done(self) -> ReadSets {
        self.new
    }
}
