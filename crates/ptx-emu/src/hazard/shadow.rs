//! What is remembered of shared memory: who wrote each word last, and who has read it since.

use crate::exec::origin::Branch;
use crate::mixed::MixedMap;

/// Bytes of a word, a bit each.
pub(super) const WHOLE: u8 = 0b1111;

/// Somebody who reaches memory: a warp of the cluster, or a copy or product by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Actor {
    Warp(u32),
    Work(u32),
}

/// One access as it is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Trace {
    pub(super) actor: Actor,
    /// The warp's step; 0 for works, which have one.
    pub(super) step: u32,
    pub(super) pc: u32,
    /// The path of the warp's lanes.
    pub(super) branch: Branch,
    pub(super) lane: u8,
    /// The bytes of the word.
    pub(super) bytes: u8,
    /// How far an access reaches that tells others something; 0 for ordinary ones.
    pub(super) strength: u8,
}

impl Trace {
    /// What a work does, wherever it does it.
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

    /// Whether two are one access as far as order goes.
    fn alike(&self, other: &Self) -> bool {
        (self.actor, self.step, self.pc, self.strength, self.branch)
            == (
                other.actor,
                other.step,
                other.pc,
                other.strength,
                other.branch,
            )
    }
}

/// The last write of a word and the reads since.
#[derive(Debug, Clone, Copy, Default)]
struct ShadowWord {
    write: Option<Trace>,
    reads: SetId,
    /// Its bytes were written by several; see [`Shadow::split`].
    split: bool,
}

/// A set of reads, by its number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct SetId(u32);

/// Sets of reads. A tile that is read by the same warps in the same steps is one set, not one for
/// each word.
#[derive(Debug)]
struct ReadSets {
    sets: Vec<Box<[Trace]>>,
    /// What a set becomes by one more read. The steps of a warp grow with all it learns, so the
    /// same read always finds the same reads to be over.
    next: MixedMap<(SetId, Trace), SetId>,
    /// The last of them: neighbours mostly become the same.
    last: Option<((SetId, Trace), SetId)>,
    numbers: MixedMap<Box<[Trace]>, SetId>,
}

impl Default for ReadSets {
    fn default() -> Self {
        Self {
            sets: vec![Box::default()],
            next: MixedMap::default(),
            last: None,
            numbers: MixedMap::from_iter([(Box::default(), SetId(0))]),
        }
    }
}

impl ReadSets {
    fn of(&self, id: SetId) -> &[Trace] {
        &self.sets[id.0 as usize]
    }

    fn number(&mut self, set: Vec<Trace>) -> SetId {
        let set = set.into_boxed_slice();
        if let Some(id) = self.numbers.get(&set) {
            return *id;
        }
        let id = SetId(self.sets.len() as u32);
        self.sets.push(set.clone());
        self.numbers.insert(set, id);
        id
    }

    /// One more read; those that were over when it came are forgotten.
    fn with(&mut self, id: SetId, read: Trace, over: &impl Fn(&Trace, bool) -> bool) -> SetId {
        let key = (id, read);
        if let Some((last, next)) = self.last
            && last == key
        {
            return next;
        }
        if let Some(next) = self.next.get(&key) {
            self.last = Some((key, *next));
            return *next;
        }
        let mut set: Vec<Trace> = self.of(id).to_vec();
        match set.iter_mut().find(|old| old.alike(&read)) {
            Some(old) => old.bytes |= read.bytes,
            None => {
                set.retain(|old| old.bytes & !read.bytes != 0 || !over(old, false));
                set.push(read);
            }
        }
        let next = self.number(set);
        self.next.insert(key, next);
        self.last = Some((key, next));
        next
    }

    /// The reads of bytes that were not written.
    fn without(&mut self, id: SetId, written: u8) -> SetId {
        if id == SetId::default() || written == WHOLE {
            return SetId::default();
        }
        let left = self.of(id).iter().filter(|read| read.bytes & !written != 0);
        let left = left.copied().collect();
        self.number(left)
    }
}

/// Sets, and ways from one to the next, after which those that no word has any more are swept out;
/// and how many times those that were left the last time.
const SWEEP: usize = 1 << 16;
const GROWTH: usize = 4;

/// The shared memory of a CTA.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    cells: Vec<ShadowWord>,
    split: MixedMap<u32, [ShadowWord; 4]>,
    sets: ReadSets,
    /// Sets that were left when they were last swept.
    left: usize,
}

/// What an access met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Met {
    /// A write that was not over.
    Write(Trace),
    /// A read that was not over.
    Read(Trace),
    /// Bytes that nobody has written.
    Nothing,
}

impl Shadow {
    fn cell(&mut self, word: u32) -> &mut ShadowWord {
        let word = word as usize;
        if word >= self.cells.len() {
            self.cells.resize(word + 1, ShadowWord::default());
        }
        &mut self.cells[word]
    }

    /// A read of some bytes of a word. `over` says whether an earlier access (a write, if so) was
    /// over when this one came.
    pub(super) fn read(
        &mut self,
        word: u32,
        read: Trace,
        over: &impl Fn(&Trace, bool) -> bool,
    ) -> Option<Met> {
        let cell = *self.cell(word);
        if cell.split {
            return self.read_split(word, read, over);
        }
        let next = self.sets.with(cell.reads, read, over);
        self.cell(word).reads = next;
        self.sweep();
        judge_read(cell.write, &read, over)
    }

    fn read_split(
        &mut self,
        word: u32,
        read: Trace,
        over: &impl Fn(&Trace, bool) -> bool,
    ) -> Option<Met> {
        let mut met = None;
        let cells = self.split.entry(word).or_default();
        for (byte, cell) in cells.iter_mut().enumerate() {
            let one = Trace {
                bytes: read.bytes & 1 << byte,
                ..read
            };
            if one.bytes != 0 {
                met = met.or_else(|| judge_read(cell.write, &one, over));
                cell.reads = self.sets.with(cell.reads, one, over);
            }
        }
        self.sweep();
        met
    }

    /// A write of some bytes of a word; also says whether nobody had read what lay there before
    /// and a work had put it there.
    pub(super) fn write(
        &mut self,
        word: u32,
        write: Trace,
        over: &impl Fn(&Trace, bool) -> bool,
    ) -> Written {
        let cell = *self.cell(word);
        if cell.split {
            return self.write_split(word, write, over);
        }
        let met = judge_write(cell.write, self.sets.of(cell.reads), &write, over);
        let lost = match cell.write {
            Some(old) if cell.reads == SetId::default() && old.actor != write.actor => {
                matches!(old.actor, Actor::Work(_)).then_some(old)
            }
            _ => None,
        };
        let reads = self.sets.without(cell.reads, write.bytes);
        let whole = match cell.write {
            Some(old) if old.alike(&write) => Some(Trace {
                bytes: old.bytes | write.bytes,
                ..write
            }),
            Some(old) if old.bytes & !write.bytes != 0 => None,
            _ => Some(write),
        };
        match whole {
            Some(write) => {
                *self.cell(word) = ShadowWord {
                    write: Some(write),
                    reads,
                    split: false,
                }
            }
            None => {
                let bytes = std::array::from_fn(|byte| {
                    let mask = 1 << byte;
                    let writer = if write.bytes & mask != 0 {
                        Some(write)
                    } else {
                        cell.write
                    };
                    let writer = writer.filter(|writer| writer.bytes & mask != 0);
                    ShadowWord {
                        write: writer.map(|writer| Trace {
                            bytes: mask,
                            ..writer
                        }),
                        reads,
                        split: false,
                    }
                });
                self.split.insert(word, bytes);
                self.cell(word).split = true;
            }
        }
        Written { met, lost }
    }

    fn write_split(
        &mut self,
        word: u32,
        write: Trace,
        over: &impl Fn(&Trace, bool) -> bool,
    ) -> Written {
        let mut met = None;
        let cells = self.split.entry(word).or_default();
        for (byte, cell) in cells.iter_mut().enumerate() {
            let one = Trace {
                bytes: write.bytes & 1 << byte,
                ..write
            };
            if one.bytes != 0 {
                let reads = self.sets.of(cell.reads);
                met = met.or_else(|| judge_write(cell.write, reads, &one, over));
                *cell = ShadowWord {
                    write: Some(one),
                    ..ShadowWord::default()
                };
            }
        }
        if write.bytes == WHOLE {
            self.split.remove(&word);
            *self.cell(word) = ShadowWord {
                write: Some(write),
                ..ShadowWord::default()
            };
        }
        Written { met, lost: None }
    }

    /// Forgets some words: what comes next finds nothing there.
    pub(super) fn forget(&mut self, words: std::ops::Range<u32>) {
        for word in words {
            *self.cell(word) = ShadowWord::default();
            self.split.remove(&word);
        }
    }

    /// Forgets sets that no word has any more, once there are many.
    fn sweep(&mut self) {
        let most = SWEEP.max(GROWTH * self.left);
        if self.sets.sets.len() + self.sets.next.len() < most {
            return;
        }
        let mut kept = ReadSets::default();
        let split = self.split.values_mut().flatten();
        for cell in self.cells.iter_mut().chain(split) {
            cell.reads = kept.number(self.sets.of(cell.reads).to_vec());
        }
        self.left = kept.sets.len();
        self.sets = kept;
    }
}

/// What a write did to a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) met: Option<Met>,
    /// What a work had put there and nobody read.
    pub(super) lost: Option<Trace>,
}

fn judge_read(
    write: Option<Trace>,
    read: &Trace,
    over: &impl Fn(&Trace, bool) -> bool,
) -> Option<Met> {
    match write {
        None => Some(Met::Nothing),
        Some(write) if write.bytes & read.bytes != 0 && !over(&write, true) => {
            Some(Met::Write(write))
        }
        Some(write) if read.bytes & !write.bytes != 0 => Some(Met::Nothing),
        Some(_) => None,
    }
}

fn judge_write(
    old: Option<Trace>,
    reads: &[Trace],
    write: &Trace,
    over: &impl Fn(&Trace, bool) -> bool,
) -> Option<Met> {
    let touches = |trace: &Trace| trace.bytes & write.bytes != 0;
    let writer = old.filter(|old| touches(old) && !over(old, true));
    let reader = || {
        reads
            .iter()
            .find(|read| touches(read) && !over(read, false))
    };
    writer
        .map(Met::Write)
        .or_else(|| reader().copied().map(Met::Read))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(warp: u32, step: u32, bytes: u8) -> Trace {
        Trace {
            actor: Actor::Warp(warp),
            step,
            pc: warp,
            branch: Branch::default(),
            lane: 0,
            bytes,
            strength: 0,
        }
    }

    /// Only a warp's own accesses are over.
    fn own(warp: u32) -> impl Fn(&Trace, bool) -> bool {
        move |old, _| old.actor == Actor::Warp(warp)
    }

    #[test]
    fn a_read_meets_the_last_write_and_a_write_all_reads() {
        let mut shadow = Shadow::default();
        assert_eq!(shadow.read(9, by(0, 1, WHOLE), &own(0)), Some(Met::Nothing));
        let first = by(0, 1, WHOLE);
        shadow.write(3, first, &own(0));
        assert_eq!(shadow.read(3, by(0, 1, WHOLE), &own(0)), None);
        let met = shadow.read(3, by(1, 1, WHOLE), &own(1));
        assert_eq!(met, Some(Met::Write(first)));
        shadow.read(3, by(2, 1, WHOLE), &|_, _| true);
        let met = shadow.write(3, by(0, 2, WHOLE), &own(0)).met;
        assert_eq!(met, Some(Met::Read(by(2, 1, WHOLE))));
        assert_eq!(shadow.write(3, by(0, 3, WHOLE), &own(0)).met, None);
    }

    #[test]
    fn reads_that_no_word_remembers_are_forgotten() {
        let mut shadow = Shadow::default();
        for step in 0..200_000 {
            shadow.read(step % 64, by(step % 7, step, WHOLE), &|_, _| true);
            let kept = shadow.sets.sets.len() + shadow.sets.next.len();
            assert!(kept <= SWEEP + 2);
        }
    }

    #[test]
    fn halves_of_a_word_are_apart() {
        let mut shadow = Shadow::default();
        shadow.write(0, by(0, 1, 0b0011), &own(0));
        assert_eq!(shadow.write(0, by(1, 1, 0b1100), &own(1)).met, None);
        assert_eq!(shadow.read(0, by(0, 2, 0b0011), &own(0)), None);
        let met = shadow.read(0, by(0, 2, WHOLE), &own(0));
        assert!(matches!(met, Some(Met::Write(write)) if write.actor == Actor::Warp(1)));
        assert_eq!(shadow.write(0, by(0, 3, WHOLE), &|_, _| true).met, None);
        assert_eq!(shadow.read(0, by(0, 3, WHOLE), &own(0)), None);
    }

    #[test]
    fn what_a_copy_brought_and_nobody_read_is_lost() {
        let mut shadow = Shadow::default();
        let copy = |work| Trace {
            actor: Actor::Work(work),
            ..by(0, 0, WHOLE)
        };
        let over = |_: &Trace, _: bool| true;
        shadow.write(0, copy(1), &over);
        assert_eq!(shadow.write(0, copy(2), &over).lost, Some(copy(1)));
        shadow.read(0, by(0, 1, WHOLE), &over);
        assert_eq!(shadow.write(0, copy(3), &over).lost, None);
    }
}
