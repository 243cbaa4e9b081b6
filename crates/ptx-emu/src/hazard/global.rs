//! What is remembered of global memory: the last write of each word and a few reads, by any
//! cluster; and what was left at places that are read and written to tell others something.

use std::collections::{BTreeSet, HashMap};

use super::clock::{Knowledge, Views};
use crate::exec::listen::agent::Agent;
use crate::exec::origin::Origin;

/// Bytes of a page.
const PAGE: u64 = 4096;
const WORDS: usize = (PAGE / 4) as usize;
/// Bytes that are spent on one.
const PAGE_BYTES: u64 = (WORDS * size_of::<GlobalWord>()) as u64;

/// Reads of a word that are remembered, of as many clusters or warps.
const READS: usize = 2;

/// One access, in a form that outlives its cluster. There may be many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trace {
    pub(super) cluster: u32,
    /// Who knows this number of this strand knows that the access is over.
    pub(super) strand: u32,
    pub(super) number: u32,
    pub(super) pc: u32,
    pub(super) cta: u8,
    pub(super) warp: u8,
    pub(super) lane: u8,
    pub(super) bytes: u8,
    pub(super) strength: u8,
    pub(super) agent: Agent,
    /// An ordinary access: copies must see it through a proxy fence.
    pub(super) generic: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct GlobalWord {
    write: Option<Trace>,
    reads: [Option<Trace>; READS],
}

/// What an access met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Met {
    pub(super) old: Trace,
    pub(super) wrote: bool,
}

/// All of global memory that was touched.
#[derive(Debug)]
pub(super) struct Global {
    /// Of each allocation, page by page.
    pages: Vec<Vec<Option<Box<[GlobalWord]>>>>,
    /// Pages there may still be.
    room: usize,
    /// Bytes nobody watched because there was no room.
    pub(super) unwatched: u64,
    /// Instructions that reached it.
    pub(super) seen: BTreeSet<u32>,
    /// What was left where.
    places: HashMap<(usize, u64), Left>,
}

/// What was left at a place.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) views: Views,
    /// The fence by which something was left last.
    pub(super) by: Option<Narrow>,
    /// Grows when something new is left.
    pub(super) version: u64,
}

/// A fence by which something was left, and how far it reaches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Narrow {
    pub(super) cluster: u64,
    pub(super) reach: u8,
    pub(super) at: Origin,
}

impl Narrow {
    /// It does not reach other clusters.
    fn is_short(&self) -> bool {
        self.reach < 3
    }
}

impl Global {
    /// Nothing is remembered yet; `limit` bytes may be spent on it.
    pub(super) fn new(limit: u64) -> Self {
        Self {
            pages: Vec::new(),
            room: (limit / PAGE_BYTES) as usize,
            unwatched: 0,
            seen: BTreeSet::new(),
            places: HashMap::new(),
        }
    }

    /// What is remembered of a word; `make` room for it if there was nothing yet.
    fn cell(&mut self, region: usize, word: u64, make: bool) -> Option<&mut GlobalWord> {
        let (page, at) = (
            (word / WORDS as u64) as usize,
            (word % WORDS as u64) as usize,
        );
        let known = self.pages.get(region).and_then(|pages| pages.get(page));
        if !known.is_some_and(Option::is_some) {
            if !make {
                return None;
            }
            if self.room == 0 {
                self.unwatched += 4;
                return None;
            }
            self.room -= 1;
            if self.pages.len() <= region {
                self.pages.resize_with(region + 1, Vec::new);
            }
            let pages = &mut self.pages[region];
            if pages.len() <= page {
                pages.resize_with(page + 1, || None);
            }
            pages[page] = Some(vec![GlobalWord::default(); WORDS].into_boxed_slice());
        }
        self.pages[region][page]
            .as_mut()
            .map(|cells| &mut cells[at])
    }

    /// An access of some bytes of a word. `over` says whether an earlier one (a write, if so) was
    /// over when this one came; a read is `kept` for later writes to meet.
    pub(super) fn touch(
        &mut self,
        (region, word): (usize, u64),
        new: Trace,
        writes: bool,
        kept: bool,
        over: impl Fn(&Trace, bool) -> bool,
    ) -> Option<Met> {
        // Reads that are not kept only meet what was written before.
        let cell = self.cell(region, word, writes || kept)?;
        let touches = |old: &Trace| old.bytes & new.bytes != 0;
        // What was written to be seen is over for those who saw it.
        let seen = |old: &Trace| {
            let by = |read: &Trace| read.strength > 0 && read.bytes & old.bytes != 0;
            let mut reads = cell.reads.iter().flatten();
            old.strength > 0 && reads.any(|read| by(read) && over(read, false))
        };
        let unseen = |old: &Trace| touches(old) && !over(old, true) && !seen(old);
        let write = cell.write.filter(unseen);
        let met = |old: Trace, wrote: bool| Met { old, wrote };
        if !writes {
            if kept {
                let same = |old: &Trace| (old.cluster, old.strand) == (new.cluster, new.strand);
                let free =
                    |old: &Option<Trace>| old.is_none_or(|old| same(&old) || over(&old, false));
                let at = cell.reads.iter().position(free).unwrap_or(READS - 1);
                cell.reads[at] = Some(new);
            }
            return write.map(|old| met(old, true));
        }
        let unread = |old: &&Trace| touches(old) && !over(old, false);
        let read = cell.reads.iter().flatten().find(unread).copied();
        cell.reads = [None; READS];
        cell.write = match cell.write {
            // Neighbours that write parts of a word are told apart no further than this.
            Some(old)
                if (old.cluster, old.strand, old.number)
                    == (new.cluster, new.strand, new.number) =>
            {
                Some(Trace {
                    bytes: old.bytes | new.bytes,
                    ..new
                })
            }
            _ => Some(new),
        };
        write
            .map(|old| met(old, true))
            .or_else(|| read.map(|old| met(old, false)))
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
        let cell = &page[(word % WORDS as u64) as usize];
        let touches = |old: &Trace| old.bytes & bytes != 0;
        let write = cell.write.filter(touches).map(|old| (old, true));
        let mut reads = cell.reads.iter().flatten().filter(|_| writes);
        write.or_else(|| reads.find(|old| touches(old)).map(|old| (*old, false)))
    }

    /// Leaves at a place what somebody knows; `by` a fence that is new there, or none.
    pub(super) fn leave(
        &mut self,
        at: (usize, u64),
        cluster: u64,
        known: &Knowledge,
        by: Option<Option<Narrow>>,
    ) {
        let left = self.places.entry(at).or_default();
        let mut news = known.leave(cluster, &mut left.views);
        if let Some(by) = by {
            // Fences that reach everywhere are the same to all who read.
            news |= [left.by, by].iter().flatten().any(Narrow::is_short);
            left.by = by;
        }
        left.version += u64::from(news);
    }

    /// How often something new was left there.
    pub(super) fn version(&self, at: (usize, u64)) -> u64 {
        self.places.get(&at).map_or(0, |left| left.version)
    }

    /// What was left there.
    pub(super) fn left(&self, at: (usize, u64)) -> Option<&Left> {
        self.places.get(&at)
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

    #[test]
    fn clusters_meet_where_one_of_them_writes() {
        let mut global = Global::new(1 << 20);
        let alone = |cluster: u32| move |old: &Trace, _: bool| old.cluster == cluster;
        assert_eq!(global.touch((0, 5), by(1, 15), false, true, alone(1)), None);
        assert_eq!(global.touch((0, 5), by(2, 15), false, true, alone(2)), None);
        let met = global.touch((0, 5), by(2, 15), true, true, alone(2));
        assert_eq!(
            met,
            Some(Met {
                old: by(1, 15),
                wrote: false
            })
        );
        let met = global.touch((0, 5), by(3, 15), false, true, alone(3));
        assert_eq!(
            met,
            Some(Met {
                old: by(2, 15),
                wrote: true
            })
        );
        assert_eq!(global.touch((1, 5), by(3, 15), true, true, alone(3)), None);
    }

    #[test]
    fn no_more_is_spent_than_allowed_and_it_says_what_it_did_not_see() {
        let mut global = Global::new(2 * PAGE_BYTES + 100);
        for word in (0..5 * WORDS as u64).step_by(4) {
            global.touch((3, word), by(1, 15), true, true, |_, _| false);
        }
        let pages = global.pages.iter().flatten().flatten();
        assert_eq!(pages.count(), 2);
        assert_eq!(global.unwatched, 3 * PAGE / 4);
        // What is read and not kept takes no room.
        let mut global = Global::new(PAGE_BYTES);
        global.touch((0, 0), by(1, 15), false, false, |_, _| false);
        assert_eq!((global.room, global.unwatched), (1, 0));
    }
}
