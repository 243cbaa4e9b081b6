//! The shadow of shared memory: the last write of each word, and the reads since.

use std::ops::Range;

use super::numbered::{CompletionCache, Number, Numbered, Renumbering, same};
use super::reads::{Read, ReadSets, SetId, Sweeping};
use crate::exec::listen::visit::Act;
use crate::exec::origin::Branch;
use crate::mixed::MixedMap;

/// Bytes of a word, a bit each.
pub(super) const WHOLE: u8 = 0b1111;

/// In place of the bytes of a word: several accesses wrote them; see [`Shadow::split`].
const SPLIT: u8 = 1 << 7;

/// Words that are compared with each other at a time.
pub(super) const LINE: u32 = 32;

/// The origin of an access: a warp of the cluster, or a copy or product by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Actor {
    Warp(u32),
    Work(u32),
}

/// A recorded access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Trace {
    pub(super) actor: Actor,
    /// The warp's step; 0 for works, which have only one.
    pub(super) step: u32,
    pub(super) pc: u32,
    /// The path of the warp's lanes.
    pub(super) branch: Branch,
    /// The lane and the bytes of a word, if it is of one; else 0.
    pub(super) lane: u8,
    pub(super) bytes: u8,
    /// The scope of a synchronising access; 0 for ordinary ones.
    pub(super) strength: u8,
}

impl Trace {
    /// The access of a work, at any place.
    pub(super) fn of_work(number: u32) -> Self {
        Self {
            actor: Actor::Work(number),
            step: 0,
            pc: 0,
            branch: Branch::default(),
            lane: 0,
            bytes: WHOLE,
            strength: 0,
        }
    }
}

/// The last write of a word and the reads since.
#[derive(Debug, Clone, Copy, Default)]
struct ShadowWord {
    write: Number,
    /// The lane that wrote, and the bytes.
    lane: u8,
    bytes: u8,
    reads: SetId,
}

/// The words of a memory, one array per field: equal neighbours are found by comparing many at
/// once.
#[derive(Debug, Default)]
struct Words {
    writes: Vec<Number>,
    lanes: Vec<u8>,
    bytes: Vec<u8>,
    reads: Vec<SetId>,
}

impl Words {
    /// Grows to words below `end`.
    fn reach(&mut self, end: usize) {
        if end > self.bytes.len() {
            let end = end.next_multiple_of(1024);
            self.writes.resize(end, Number::NOBODY);
            self.lanes.resize(end, 0);
            self.bytes.resize(end, 0);
            self.reads.resize(end, SetId::EMPTY);
        }
    }

    fn get(&self, at: usize) -> ShadowWord {
        ShadowWord {
            write: self.writes[at],
            lane: self.lanes[at],
            bytes: self.bytes[at],
            reads: self.reads[at],
        }
    }

    fn set(&mut self, at: usize, word: ShadowWord) {
        self.writes[at] = word.write;
        self.lanes[at] = word.lane;
        self.bytes[at] = word.bytes;
        self.reads[at] = word.reads;
    }

    /// Whether some words have the same accesses.
    #[inline]
    fn alike(&self, at: Range<usize>) -> bool {
        let same_at = |at: Range<usize>| {
            same(&self.writes[at.clone()]) & same(&self.reads[at.clone()]) & same(&self.bytes[at])
        };
        at.len() == 1 || same_at(at)
    }

    /// The end of the first words that have the same accesses.
    fn run(&self, at: Range<usize>) -> usize {
        let of = |at: usize| (self.writes[at], self.reads[at], self.bytes[at]);
        let first = of(at.start);
        let other = (at.start + 1..at.end).find(|next| of(*next) != first);
        other.unwrap_or(at.end)
    }
}

/// The number of sets, transitions and accesses after which unused ones are removed; and the growth
/// factor since the last sweep.
const SWEEP: usize = 1 << 16;
const GROWTH: usize = 4;

/// The shared memory of a CTA.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    words: Words,
    split: MixedMap<u32, [ShadowWord; 4]>,
    accesses: Numbered<Trace>,
    sets: ReadSets,
    /// Sets and accesses that remained after the last sweep.
    left: usize,
}

/// A conflict that an access found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Met {
    /// A write that was not complete.
    Write(Trace),
    /// A read that was not complete.
    Read(Trace),
    /// Bytes that were never written.
    Nothing,
}

/// The current access, its knowledge of others, and the first conflict.
pub(super) struct Caller<F> {
    act: Act,
    access: Number,
    actor: Actor,
    completions: CompletionCache<F>,
    /// A set of reads before and after adding this read of a whole word.
    next: (SetId, SetId),
    /// A set of reads that are all complete.
    over: SetId,
    /// The first conflict, and the word.
    pub(super) met: Option<(Met, u32)>,
    /// Data of a work that were overwritten without being read: the last such access, and the word.
    /// Not all data were lost if some were `kept`.
    pub(super) lost: Option<(Trace, u32)>,
    pub(super) kept: bool,
}

impl<F> Caller<F> {
    fn meets(&mut self, met: Option<Met>, word: u32) {
        if self.met.is_none() {
            self.met = met.map(|met| (met, word));
        }
    }
}

/// The lanes of some words: each lane has this many words, from a first lane on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lanes {
    first: u8,
    words: u32,
    /// Words of the first lane before these.
    before: u32,
}

impl Lanes {
    /// Each lane has this many.
    pub(super) fn from(first: u8, words: u32) -> Self {
        Self {
            first,
            words,
            before: 0,
        }
    }

    /// All are of one lane.
    pub(super) fn one(lane: u8) -> Self {
        Self::from(lane, u32::MAX)
    }

    /// The first one.
    pub(super) fn first(self) -> u8 {
        self.first
    }

    /// The same without the first words.
    #[inline]
    pub(super) fn after(self, words: u32) -> Self {
        let (lanes, before) = match (words, self.words) {
            (0, _) => (0, self.before),
            (words, 1) => (words, 0),
            (words, each) => ((self.before + words) / each, (self.before + words) % each),
        };
        Self {
            first: self.first + lanes as u8,
            words: self.words,
            before,
        }
    }

    /// Calls `see` for each word with its lane.
    #[inline]
    pub(super) fn each<T>(self, words: &mut [T], mut see: impl FnMut(&mut T, u8)) {
        let (mut lane, mut left) = (self.first, self.words - self.before);
        for word in words {
            if left == 0 {
                (lane, left) = (lane + 1, self.words);
            }
            see(word, lane);
            left -= 1;
        }
    }
}

impl Shadow {
    /// Begins an access. `over` returns whether an earlier one (a write, if so) is complete by now.
    pub(super) fn call<F: Fn(&Trace, bool) -> bool>(
        &mut self,
        act: Act,
        access: Trace,
        over: F,
    ) -> Caller<F> {
        self.sweep();
        let actor = access.actor;
        let (Actor::Warp(who) | Actor::Work(who)) = actor;
        let hint = access.pc.wrapping_mul(31).wrapping_add(who);
        Caller {
            act,
            access: self.accesses.number(access, hint).0,
            actor,
            completions: CompletionCache::new(over),
            next: (SetId::EMPTY, SetId::EMPTY),
            over: SetId::EMPTY,
            met: None,
            lost: None,
            kept: false,
        }
    }

    /// The access covers some whole words.
    pub(super) fn touch<F: Fn(&Trace, bool) -> bool>(
        &mut self,
        caller: &mut Caller<F>,
        words: Range<u32>,
        lanes: Lanes,
    ) {
        self.words.reach(words.end as usize);
        let mut at = words.start;
        while at < words.end {
            let line = words.end.min(at + LINE);
            let alike = self.words.alike(at as usize..line as usize);
            while at < line {
                let end = match alike {
                    true => line,
                    false => self.words.run(at as usize..line as usize) as u32,
                };
                let lanes = lanes.after(at - words.start);
                self.touch_alike(caller, at..end, lanes);
                at = end;
            }
        }
    }

    /// … whole words with the same earlier accesses.
    #[inline]
    fn touch_alike<F: Fn(&Trace, bool) -> bool>(
        &mut self,
        caller: &mut Caller<F>,
        words: Range<u32>,
        lanes: Lanes,
    ) {
        let at = words.start as usize..words.end as usize;
        let old = self.words.get(at.start);
        if old.bytes == SPLIT {
            for (word, lane) in words.zip(0..) {
                self.touch_part(caller, word, WHOLE, lanes.after(lane).first);
            }
            return;
        }
        if caller.act == Act::Read {
            let met = self.judge_read(&old, WHOLE, caller);
            caller.meets(met, words.start);
            if caller.next.0 != old.reads || old.reads == SetId::EMPTY {
                let read = Read {
                    access: caller.access,
                    bytes: WHOLE,
                };
                let sets = &mut self.sets;
                let next = sets.with(old.reads, read, &self.accesses, &mut caller.completions);
                caller.next = (old.reads, next);
            }
            match at.len() {
                1 => self.words.reads[at.start] = caller.next.1,
                _ => self.words.reads[at].fill(caller.next.1),
            }
            return;
        }
        // Its own read is complete before its write and is removed with all reads before it.
        let read = match caller.act.reads() {
            true => self.judge_read(&old, WHOLE, caller),
            false => None,
        };
        let met = read.or_else(|| self.judge_write(&old, WHOLE, caller));
        caller.meets(met, words.start);
        let lost = (!caller.act.reads()).then(|| self.lost(&old, caller));
        match lost.flatten() {
            Some(old) => caller.lost = Some((old, words.end - 1)),
            None => caller.kept = true,
        }
        if at.len() == 1 {
            let new = ShadowWord {
                write: caller.access,
                lane: lanes.first,
                bytes: WHOLE,
                reads: SetId::EMPTY,
            };
            self.words.set(at.start, new);
            return;
        }
        self.words.writes[at.clone()].fill(caller.access);
        self.words.bytes[at.clone()].fill(WHOLE);
        self.words.reads[at.clone()].fill(SetId::EMPTY);
        lanes.each(&mut self.words.lanes[at], |place, lane| *place = lane);
    }

    /// The access covers some bytes of a word.
    pub(super) fn touch_part<F: Fn(&Trace, bool) -> bool>(
        &mut self,
        caller: &mut Caller<F>,
        word: u32,
        bytes: u8,
        lane: u8,
    ) {
        self.words.reach(word as usize + 1);
        let split = self.words.bytes[word as usize] == SPLIT;
        let mut met = None;
        if caller.act.reads() {
            met = match split {
                true => self.read_split(word, bytes, caller),
                false => self.read_part(word, bytes, caller),
            };
        }
        if caller.act.writes() {
            let written = match split {
                true => self.write_split(word, (bytes, lane), caller),
                false => self.write_part(word, (bytes, lane), caller),
            };
            met = met.or(written);
        }
        caller.meets(met, word);
    }

    fn read_part<F: Fn(&Trace, bool) -> bool>(
        &mut self,
        word: u32,
        bytes: u8,
        caller: &mut Caller<F>,
    ) -> Option<Met> {
        let old = self.words.get(word as usize);
        let access = caller.access;
        let read = Read { access, bytes };
        let sets = &mut self.sets;
        let next = sets.with(old.reads, read, &self.accesses, &mut caller.completions);
        self.words.reads[word as usize] = next;
        self.judge_read(&old, bytes, caller)
    }

    fn read_split<F: Fn(&Trace, bool) -> bool>(
        &mut self,
        word: u32,
        bytes: u8,
        caller: &mut Caller<F>,
    ) -> Option<Met> {
        let mut met = None;
        let mut cells = self.split.get(&word).copied().unwrap_or_default();
        let access = caller.access;
        for (byte, cell) in cells.iter_mut().enumerate() {
            let bytes = bytes & 1 << byte;
            if bytes != 0 {
                met = met.or_else(|| self.judge_read(cell, bytes, caller));
                let read = Read { access, bytes };
                let sets = &mut self.sets;
                cell.reads = sets.with(cell.reads, read, &self.accesses, &mut caller.completions);
            }
        }
        self.split.insert(word, cells);
        met
    }

    fn write_part<F: Fn(&Trace, bool) -> bool>(
        &mut self,
        word: u32,
        (bytes, lane): (u8, u8),
        caller: &mut Caller<F>,
    ) -> Option<Met> {
        let at = word as usize;
        let old = self.words.get(at);
        let met = self.judge_write(&old, bytes, caller);
        match self.lost(&old, caller) {
            Some(old) => caller.lost = Some((old, word)),
            None => caller.kept = true,
        }
        let reads = self.sets.without(old.reads, bytes);
        let new = ShadowWord {
            write: caller.access,
            lane,
            bytes,
            reads,
        };
        if self.accesses.alike(old.write, caller.access) {
            let bytes = old.bytes | bytes;
            self.words.set(at, ShadowWord { bytes, ..new });
        } else if old.bytes & !bytes == 0 {
            self.words.set(at, new);
        } else {
            let of_byte = |byte| {
                let mask = 1u8 << byte;
                let writer = if bytes & mask != 0 { new } else { old };
                match writer.bytes & mask {
                    0 => ShadowWord {
                        reads,
                        ..ShadowWord::default()
                    },
                    bytes => ShadowWord {
                        bytes,
                        reads,
                        ..writer
                    },
                }
            };
            self.split.insert(word, std::array::from_fn(of_byte));
            let bytes = SPLIT;
            self.words.set(
                at,
                ShadowWord {
                    bytes,
                    ..ShadowWord::default()
                },
            );
        }
        met
    }

    fn write_split<F: Fn(&Trace, bool) -> bool>(
        &mut self,
        word: u32,
        (bytes, lane): (u8, u8),
        caller: &mut Caller<F>,
    ) -> Option<Met> {
        let mut met = None;
        let mut cells = self.split.get(&word).copied().unwrap_or_default();
        let new = ShadowWord {
            write: caller.access,
            lane,
            bytes,
            reads: SetId::EMPTY,
        };
        for (byte, cell) in cells.iter_mut().enumerate() {
            let bytes = bytes & 1 << byte;
            if bytes != 0 {
                met = met.or_else(|| self.judge_write(cell, bytes, caller));
                *cell = ShadowWord { bytes, ..new };
            }
        }
        caller.kept = true;
        match bytes {
            WHOLE => {
                self.split.remove(&word);
                self.words.set(word as usize, new);
            }
            _ => {
                self.split.insert(word, cells);
            }
        }
        met
    }

    /// The access of some bytes of a word.
    fn trace(&self, access: Number, lane: u8, bytes: u8) -> Option<Trace> {
        let access = self.accesses.get(access)?;
        Some(Trace {
            lane,
            bytes,
            ..*access
        })
    }

    /// The conflict of a read of some bytes of a word.
    #[inline]
    fn judge_read<F: Fn(&Trace, bool) -> bool>(
        &self,
        old: &ShadowWord,
        bytes: u8,
        caller: &mut Caller<F>,
    ) -> Option<Met> {
        let completions = &mut caller.completions;
        if old.bytes & bytes != 0 && !completions.over(&self.accesses, old.write, true) {
            return self.trace(old.write, old.lane, old.bytes).map(Met::Write);
        }
        (bytes & !old.bytes != 0).then_some(Met::Nothing)
    }

    /// The conflict of a write of some bytes of a word.
    #[inline]
    fn judge_write<F: Fn(&Trace, bool) -> bool>(
        &self,
        old: &ShadowWord,
        bytes: u8,
        caller: &mut Caller<F>,
    ) -> Option<Met> {
        let completions = &mut caller.completions;
        if old.bytes & bytes != 0 && !completions.over(&self.accesses, old.write, true) {
            return self.trace(old.write, old.lane, old.bytes).map(Met::Write);
        }
        if old.reads == caller.over {
            return None;
        }
        let early = |read: &Read| {
            read.bytes & bytes != 0 && !completions.over(&self.accesses, read.access, false)
        };
        let Some(read) = self.sets.of(old.reads).find(early) else {
            if bytes == WHOLE {
                caller.over = old.reads;
            }
            return None;
        };
        self.trace(read.access, 0, read.bytes).map(Met::Read)
    }

    /// Data of a work there that were never read.
    fn lost<F>(&self, old: &ShadowWord, caller: &Caller<F>) -> Option<Trace> {
        if old.reads != SetId::EMPTY {
            return None;
        }
        let trace = self.trace(old.write, old.lane, old.bytes)?;
        (matches!(trace.actor, Actor::Work(_)) && trace.actor != caller.actor).then_some(trace)
    }

    /// Forgets some words: they count as unwritten.
    pub(super) fn forget(&mut self, words: Range<u32>) {
        self.words.reach(words.end as usize);
        for word in words {
            self.words.set(word as usize, ShadowWord::default());
            self.split.remove(&word);
        }
    }

    /// Removes sets and accesses that no word refers to, once there are many.
    fn sweep(&mut self) {
        if self.sets.len() + self.accesses.len() < SWEEP.max(GROWTH * self.left) {
            return;
        }
        let mut accesses = Renumbering::of(&self.accesses);
        let mut sets = Sweeping::of(&self.sets);
        for write in &mut self.words.writes {
            *write = accesses.keep(*write);
        }
        for reads in &mut self.words.reads {
            *reads = sets.keep(*reads, &mut accesses);
        }
        for cell in self.split.values_mut().flatten() {
            cell.write = accesses.keep(cell.write);
            cell.reads = sets.keep(cell.reads, &mut accesses);
        }
        let (sets, accesses) = (sets.done(), accesses.done());
        self.left = sets.len() + accesses.len();
        (self.sets, self.accesses) = (sets, accesses);
    }
}

#[cfg(test)]
mod tests;
