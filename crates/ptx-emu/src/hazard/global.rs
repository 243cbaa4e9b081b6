//! The shadow of global memory: the last write of each word and a few reads, by any cluster.

use std::collections::BTreeSet;
use std::ops::Range;

use super::numbered::{CompletionCache, Number, Numbered, Renumbering};
use super::published::Published;
use super::shadow::{LINE, Lanes, WHOLE};
use crate::exec::listen::agent::Agent;

/// Bytes of a page.
const PAGE: u64 = 4096;
const WORDS: usize = (PAGE / 4) as usize;
/// Bytes used for one page: its words, and its share of the accesses, most of which cover many
/// words.
const PAGE_BYTES: u64 = WORDS as u64 * (size_of::<Word>() as u64 + 48);

/// Recorded reads of a word, by different clusters or warps.
const READS: usize = 2;
/// Accesses of a word: its last write, and reads.
const TRACES: usize = 1 + READS;

/// One access, in a form that outlives its cluster. There may be many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trace {
    pub(super) cluster: u32,
    /// The access is complete for any warp that knows this number of this strand.
    pub(super) strand: u32,
    pub(super) number: u32,
    pub(super) pc: u32,
    pub(super) cta: u8,
    pub(super) warp: u8,
    /// The lane and the bytes of a word, if it is of one; else 0.
    pub(super) lane: u8,
    pub(super) bytes: u8,
    pub(super) strength: u8,
    pub(super) agent: Agent,
    /// An ordinary access: visible to copies only through a proxy fence.
    pub(super) generic: bool,
}

/// A recorded use of a word, in one number: the access, the bytes, the low bits of the cluster and
/// the lane. 0 if there is none.
#[derive(Debug, Clone, Copy, Default)]
struct Use(u64);

/// The upper bits, which contain the lane.
const LANE_BITS: u32 = 8;

impl Use {
    fn new(access: Number, bytes: u8, cluster: u16, lane: u8) -> Self {
        let user = u64::from(cluster) << 40 | u64::from(lane) << (64 - LANE_BITS);
        Self(u64::from(access.0) | u64::from(bytes) << 32 | user)
    }

    /// The low bits of its cluster: one with others is another cluster.
    fn cluster(self) -> u16 {
        (self.0 >> 40) as u16
    }

    fn access(self) -> Number {
        Number(self.0 as u32)
    }

    fn bytes(self) -> u8 {
        (self.0 >> 32) as u8
    }

    fn lane(self) -> u8 {
        (self.0 >> (64 - LANE_BITS)) as u8
    }

    /// The access with its lane and bytes.
    fn trace(self, all: &Numbered<Trace>) -> Option<Trace> {
        let access = all.get(self.access())?;
        Some(Trace {
            lane: self.lane(),
            bytes: self.bytes(),
            ..*access
        })
    }
}

/// The last write of a word, and reads since.
type Word = [Use; TRACES];

/// Whether all words have the same accesses, in whichever lanes.
fn alike(words: &[Word]) -> bool {
    let mut differ = 0;
    for word in words {
        for (one, first) in word.iter().zip(words[0]) {
            differ |= one.0 ^ first.0;
        }
    }
    differ << LANE_BITS == 0
}

/// How many of the first words have the same accesses.
fn run(words: &[Word]) -> usize {
    let other = |word: &Word| !alike(&[words[0], *word]);
    words.iter().position(other).unwrap_or(words.len())
}

/// A conflict that an access found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Met {
    pub(super) old: Trace,
    pub(super) wrote: bool,
}

/// The current access, its knowledge of others, and the first conflict.
pub(super) struct Caller<F> {
    new: Trace,
    access: Number,
    /// It writes; or it is a read that is recorded for later writes.
    writes: bool,
    kept: bool,
    completions: CompletionCache<F>,
    /// Whether accesses of other clusters are over, if that is the same for all.
    strangers: Option<bool>,
    /// The first conflict, and the word.
    pub(super) met: Option<(Met, u64)>,
}

impl<F: Fn(&Trace, bool) -> bool> Caller<F> {
    /// Whether a use is of another cluster for sure: then nothing need be looked up.
    #[inline(always)]
    fn is_strange(&self, one: Use) -> bool {
        one.access() != Number::NOBODY && one.cluster() != self.new.cluster as u16
    }

    /// Where among the uses of a word a read is recorded.
    #[inline(always)]
    fn place(&mut self, reads: &[Use], all: &Numbered<Trace>) -> usize {
        let (cluster, strand) = (self.new.cluster, self.new.strand);
        let same = |old: &Trace| (old.cluster, old.strand) == (cluster, strand);
        let free = |old: &Use| {
            let own = !self.is_strange(*old) && all.get(old.access()).is_none_or(same);
            own || self.over(all, *old, false)
        };
        1 + reads.iter().position(free).unwrap_or(READS - 1)
    }

    /// Whether an earlier use (a write, if so) is complete.
    #[inline(always)]
    fn over(&mut self, all: &Numbered<Trace>, one: Use, write: bool) -> bool {
        match self.strangers {
            Some(over) if self.is_strange(one) => over,
            _ => self.completions.over(all, one.access(), write),
        }
    }
}

/// The words of an allocation that are accessed, and their lanes.
#[derive(Debug, Clone)]
pub(super) struct Reached {
    pub(super) region: usize,
    pub(super) words: Range<u64>,
    pub(super) bytes: u8,
    pub(super) lanes: Lanes,
}

/// An access of some bytes of a few words, from a first one on.
#[inline]
fn touch_line<F: Fn(&Trace, bool) -> bool>(
    line: &mut [Word],
    (first, bytes, lanes): (u64, u8, Lanes),
    caller: &mut Caller<F>,
    all: &Numbered<Trace>,
) {
    // Words with the same accesses are judged once.
    let same = line.len() == 1 || alike(line);
    let mut at = 0;
    while at < line.len() {
        let rest = &mut line[at..];
        let many = match same {
            true => rest.len(),
            false => run(rest),
        };
        let lanes = lanes.after(at as u32);
        let met = touch(&mut rest[..many], (bytes, lanes), caller, all);
        if caller.met.is_none() {
            caller.met = met.map(|met| (met, first + at as u64));
        }
        at += many;
    }
}

/// An access of some bytes of words with the same earlier accesses: its conflict, if any.
#[inline]
fn touch<F: Fn(&Trace, bool) -> bool>(
    words: &mut [Word],
    (bytes, lanes): (u8, Lanes),
    caller: &mut Caller<F>,
    all: &Numbered<Trace>,
) -> Option<Met> {
    let [write, reads @ ..] = words[0];
    let mut met = None;
    if write.bytes() & bytes != 0
        && !caller.over(all, write, true)
        && !was_seen(write, &reads, caller, all)
    {
        met = Some(write);
    }
    let (new, access) = (caller.new, caller.access);
    let cluster = new.cluster as u16;
    if caller.writes {
        let early = |read: &&Use| read.bytes() & bytes != 0 && !caller.over(all, **read, false);
        let wrote = met.is_some();
        let met = met.or_else(|| reads.iter().find(early).copied());
        let parts = |old: &Trace| {
            (old.cluster, old.strand, old.number) == (new.cluster, new.strand, new.number)
        };
        // Partial writes of one word by the same step are not distinguished further.
        let bytes = match bytes != WHOLE && all.get(write.access()).is_some_and(parts) {
            true => bytes | write.bytes(),
            false => bytes,
        };
        lanes.each(words, |word, lane| {
            *word = [
                Use::new(access, bytes, cluster, lane),
                Use::default(),
                Use::default(),
            ];
        });
        let old = met?.trace(all)?;
        return Some(Met { old, wrote });
    }
    if caller.kept {
        let i = caller.place(&reads, all);
        lanes.each(words, |word, lane| {
            word[i] = Use::new(access, bytes, cluster, lane);
        });
    }
    let old = met?.trace(all)?;
    Some(Met { old, wrote: true })
}

/// Whether a synchronising write is complete for the threads that observed it.
fn was_seen<F: Fn(&Trace, bool) -> bool>(
    write: Use,
    reads: &[Use],
    caller: &mut Caller<F>,
    all: &Numbered<Trace>,
) -> bool {
    let strong = |one: Use| all.get(one.access()).is_some_and(|old| old.strength > 0);
    strong(write)
        && reads.iter().any(|&read| {
            let saw = strong(read) && read.bytes() & write.bytes() != 0;
            saw && caller.over(all, read, false)
        })
}

/// The number of accesses after which those that no word refers to are removed.
const SWEEP: usize = 1 << 16;

/// All accessed global memory.
#[derive(Debug)]
pub(super) struct Global {
    /// Of each allocation, page by page.
    pages: Vec<Vec<Option<Box<[Word]>>>>,
    accesses: Numbered<Trace>,
    /// The number of accesses at the next sweep.
    most: usize,
    /// Pages that may still be made.
    room: usize,
    /// Bytes that were not watched for lack of memory.
    pub(super) unwatched: u64,
    /// Instructions that accessed it.
    pub(super) seen: BTreeSet<u32>,
    pub(super) published: Published,
}

impl Global {
    /// An empty shadow; `limit` bytes may be used for it.
    pub(super) fn new(limit: u64) -> Self {
        Self {
            pages: Vec::new(),
            accesses: Numbered::default(),
            most: SWEEP,
            room: (limit / PAGE_BYTES) as usize,
            unwatched: 0,
            seen: BTreeSet::new(),
            published: Published::default(),
        }
    }

    /// The record of a page, and the accesses; with `make` it is created if missing.
    #[inline]
    fn page(
        &mut self,
        region: usize,
        page: usize,
        make: bool,
    ) -> Option<(&mut [Word], &Numbered<Trace>)> {
        let there = match self.pages.get(region).and_then(|pages| pages.get(page)) {
            Some(Some(_)) => true,
            _ => make && self.make(region, page),
        };
        if !there {
            return None;
        }
        let page = self.pages[region][page].as_deref_mut()?;
        Some((page, &self.accesses))
    }

    /// Creates a page; returns whether there was room.
    #[inline(never)]
    fn make(&mut self, region: usize, page: usize) -> bool {
        if self.room == 0 {
            return false;
        }
        self.room -= 1;
        if self.pages.len() <= region {
            self.pages.resize_with(region + 1, Vec::new);
        }
        let pages = &mut self.pages[region];
        if pages.len() <= page {
            pages.resize_with(page + 1, || None);
        }
        pages[page] = Some(vec![Word::default(); WORDS].into_boxed_slice());
        true
    }

    /// Begins an access. `over` returns whether an earlier one (a write, if so) is complete by now,
    /// and `strangers` the same of all those of other clusters, if there is one answer; a read is
    /// `kept` for later writes to conflict with.
    pub(super) fn call<F: Fn(&Trace, bool) -> bool>(
        &mut self,
        new: Trace,
        (writes, kept): (bool, bool),
        (over, strangers): (F, Option<bool>),
    ) -> Caller<F> {
        self.sweep();
        let hint = new
            .pc
            .wrapping_mul(31)
            .wrapping_add(new.strand ^ new.cluster << 3);
        let (access, first) = self.accesses.number(new, hint);
        if first {
            self.seen.insert(new.pc);
        }
        Caller {
            new,
            access,
            writes,
            kept,
            completions: CompletionCache::new(over),
            strangers,
            met: None,
        }
    }

    /// The access covers some words.
    pub(super) fn touch<F: Fn(&Trace, bool) -> bool>(
        &mut self,
        caller: &mut Caller<F>,
        reached: Reached,
    ) {
        let Reached {
            region,
            words,
            bytes,
            lanes,
        } = reached;
        // Reads that are not kept only conflict with earlier writes.
        let make = caller.writes || caller.kept;
        // Most reads of single words are of what nobody has written.
        if words.end - words.start == 1 && caller.kept && !caller.writes {
            let (page, at) = (words.start / WORDS as u64, words.start % WORDS as u64);
            if let Some((page, all)) = self.page(region, page as usize, true)
                && let [write, reads @ ..] = page[at as usize]
                && write.bytes() & bytes == 0
            {
                let place = caller.place(&reads, all);
                let (access, cluster) = (caller.access, caller.new.cluster as u16);
                page[at as usize][place] = Use::new(access, bytes, cluster, lanes.first());
                return;
            }
        }
        let mut first = words.start;
        while first < words.end {
            let (page, at) = (first / WORDS as u64, (first % WORDS as u64) as usize);
            let most = u64::from(LINE).min(WORDS as u64 - at as u64);
            let many = (words.end - first).min(most) as usize;
            let lanes = lanes.after((first - words.start) as u32);
            match self.page(region, page as usize, make) {
                Some((page, all)) => {
                    let line = &mut page[at..at + many];
                    touch_line(line, (first, bytes, lanes), caller, all);
                }
                None => self.unwatched += 4 * many as u64 * u64::from(make),
            }
            first += many as u64;
        }
    }

    /// The last write of some bytes, or else a read of them that a write would come too early for.
    pub(super) fn last(
        &self,
        (region, word): (usize, u64),
        bytes: u8,
        writes: bool,
    ) -> Option<(Trace, bool)> {
        let page = self
            .pages
            .get(region)?
            .get((word / WORDS as u64) as usize)?;
        let page = page.as_ref()?;
        let word = page[(word % WORDS as u64) as usize];
        let wanted = if writes { TRACES } else { 1 };
        let touched = (0..wanted).find(|&i| word[i].bytes() & bytes != 0)?;
        Some((word[touched].trace(&self.accesses)?, touched == 0))
    }

    /// Removes accesses that no word refers to, once there are many.
    fn sweep(&mut self) {
        if self.accesses.len() < self.most {
            return;
        }
        let mut kept = Renumbering::of(&self.accesses);
        let mut pages = 0;
        for page in self.pages.iter_mut().flatten().flatten() {
            pages += 1;
            for one in page.as_flattened_mut() {
                *one = Use::new(
                    kept.keep(one.access()),
                    one.bytes(),
                    one.cluster(),
                    one.lane(),
                );
            }
        }
        self.accesses = kept.done();
        // A sweep looks at every word.
        let more = (self.accesses.len() / 2).max(WORDS * pages);
        self.most = SWEEP.max(self.accesses.len() + more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(cluster: u32, bytes: u8) -> Trace {
        Trace {
            cluster,
            strand: 0,
            number: 1,
            pc: 0,
            cta: 0,
            warp: 0,
            lane: 0,
            bytes,
            strength: 0,
            agent: Agent::Thread,
            generic: true,
        }
    }

    /// An access of one word.
    fn comes(
        global: &mut Global,
        (region, word): (usize, u64),
        new: Trace,
        (writes, kept): (bool, bool),
        over: impl Fn(&Trace, bool) -> bool,
    ) -> Option<Met> {
        let bytes = new.bytes;
        let new = Trace { bytes: 0, ..new };
        let mut caller = global.call(new, (writes, kept), (over, None));
        let reached = Reached {
            region,
            words: word..word + 1,
            bytes,
            lanes: Lanes::one(0),
        };
        global.touch(&mut caller, reached);
        caller.met.map(|met| met.0)
    }

    #[test]
    fn clusters_meet_where_one_of_them_writes() {
        let mut global = Global::new(1 << 20);
        let alone = |cluster: u32| move |old: &Trace, _: bool| old.cluster == cluster;
        let (read, write) = ((false, true), (true, true));
        let met = |old, wrote| Some(Met { old, wrote });
        let mut met_by = |at, cluster, how| {
            let new = by(cluster, 15);
            comes(&mut global, at, new, how, alone(cluster))
        };
        assert_eq!(met_by((0, 5), 1, read), None);
        assert_eq!(met_by((0, 5), 2, read), None);
        assert_eq!(met_by((0, 5), 2, write), met(by(1, 15), false));
        assert_eq!(met_by((0, 5), 3, read), met(by(2, 15), true));
        assert_eq!(met_by((1, 5), 3, write), None);
    }

    #[test]
    fn words_together_are_as_words_one_by_one() {
        let (mut together, mut apart) = (Global::new(1 << 24), Global::new(1 << 24));
        let mut draws = 1u32;
        let mut draw = |below: u32| {
            draws = draws.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (draws >> 16) % below
        };
        for step in 1..4000 {
            let (first, many) = (u64::from(draw(60)), u64::from(1 + draw(70)));
            let first = first + WORDS as u64 - 50;
            let new = Trace {
                strand: draw(3),
                number: step / 3,
                pc: draw(9),
                strength: draw(3) as u8,
                ..by(draw(3), 0)
            };
            let known = new.number.saturating_sub(draw(8));
            let strangers = [None, None, Some(false), Some(true)][draw(4) as usize];
            let over = |old: &Trace, write: bool| match strangers {
                Some(over) if old.cluster != new.cluster => over,
                _ => old.strand == new.strand || old.number <= known || write && old.pc == new.pc,
            };
            let how = (draw(3) == 0, draw(4) > 0);
            let bytes = [WHOLE, WHOLE, 0b11, 0b1100][draw(4) as usize];
            let lanes = Lanes::from(0, [1, 3, 4, u32::MAX][draw(4) as usize]);
            let reached = |words: Range<u64>, lanes| Reached {
                region: 1,
                words,
                bytes,
                lanes,
            };
            // Those of other clusters need not be looked up.
            let mut caller = together.call(new, how, (over, strangers));
            together.touch(&mut caller, reached(first..first + many, lanes));
            let mut single = apart.call(new, how, (over, None));
            for i in 0..many {
                let word = first + i;
                let lanes = lanes.after(i as u32);
                apart.touch(&mut single, reached(word..word + 1, lanes));
            }
            assert_eq!(caller.met, single.met);
            for word in first..first + many {
                let last = |global: &Global| global.last((1, word), WHOLE, true);
                assert_eq!(last(&together), last(&apart));
            }
        }
    }

    #[test]
    fn accesses_that_no_word_remembers_are_forgotten() {
        let mut global = Global::new(1 << 20);
        for step in 0..200_000 {
            let new = Trace {
                number: step,
                ..by(step % 7, 15)
            };
            comes(
                &mut global,
                (0, u64::from(step % 64)),
                new,
                (true, true),
                |_, _| true,
            );
            assert!(global.accesses.len() <= SWEEP);
        }
        let last = global.last((0, 5), WHOLE, false);
        assert_eq!(last.map(|(old, _)| old.number), Some(199_941));
    }

    #[test]
    fn no_more_is_spent_than_allowed_and_it_says_what_it_did_not_see() {
        let mut global = Global::new(2 * PAGE_BYTES + 100);
        for word in (0..5 * WORDS as u64).step_by(4) {
            comes(&mut global, (3, word), by(1, 15), (true, true), |_, _| {
                false
            });
        }
        let pages = global.pages.iter().flatten().flatten();
        assert_eq!(pages.count(), 2);
        assert_eq!(global.unwatched, 3 * PAGE / 4);
        // A read that is not kept takes no room.
        let mut global = Global::new(PAGE_BYTES);
        comes(&mut global, (0, 0), by(1, 15), (false, false), |_, _| false);
        assert_eq!((global.room, global.unwatched), (1, 0));
    }
}
