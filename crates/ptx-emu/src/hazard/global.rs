//! What is remembered of global memory: the last write of each word and a few reads, by any
//! cluster; and what was left at places that are read and written to tell others something.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::clock::{Knowledge, View};

/// Bytes of a page.
const PAGE: u64 = 4096;
const WORDS: usize = (PAGE / 4) as usize;

/// Reads of a word that are remembered, of as many clusters or warps.
const READS: usize = 2;

/// One access, in a form that outlives its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trace {
    pub(super) cluster: u64,
    /// Who knows this number of this strand knows that the access is over.
    pub(super) strand: u32,
    pub(super) number: u32,
    pub(super) pc: u32,
    pub(super) cta: u32,
    pub(super) warp: u32,
    pub(super) lane: u8,
    pub(super) bytes: u8,
    pub(super) strength: u8,
    pub(super) agent: u8,
    /// An ordinary access: copies must see it through a proxy fence.
    pub(super) generic: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Cell {
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
    pages: HashMap<(usize, u64), Box<[Cell]>>,
    /// Pages there may be.
    room: usize,
    /// Bytes nobody watched because there was no room.
    pub(super) unwatched: u64,
    /// Instructions that reached it.
    pub(super) seen: BTreeSet<u32>,
    /// What was left where.
    places: HashMap<(usize, u64), BTreeMap<u64, View>>,
}

impl Global {
    pub(super) fn new(limit_bytes: u64) -> Self {
        let page = (WORDS * size_of::<Cell>()) as u64;
        Self {
            pages: HashMap::new(),
            room: (limit_bytes / page) as usize,
            unwatched: 0,
            seen: BTreeSet::new(),
            places: HashMap::new(),
        }
    }

    fn cell(&mut self, region: usize, word: u64) -> Option<&mut Cell> {
        let (page, at) = (word / WORDS as u64, word % WORDS as u64);
        let full = self.pages.len() >= self.room;
        match self.pages.entry((region, page)) {
            std::collections::hash_map::Entry::Occupied(page) => {
                Some(&mut page.into_mut()[at as usize])
            }
            std::collections::hash_map::Entry::Vacant(_) if full => {
                self.unwatched += 4;
                None
            }
            std::collections::hash_map::Entry::Vacant(page) => {
                let cells = vec![Cell::default(); WORDS].into_boxed_slice();
                Some(&mut page.insert(cells)[at as usize])
            }
        }
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
        let cell = self.cell(region, word)?;
        let touches = |old: &Trace| old.bytes & new.bytes != 0;
        let write = cell.write.filter(|old| touches(old) && !over(old, true));
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
        let page = self.pages.get(&(region, word / WORDS as u64))?;
        let cell = &page[(word % WORDS as u64) as usize];
        let touches = |old: &Trace| old.bytes & bytes != 0;
        let write = cell.write.filter(touches).map(|old| (old, true));
        let mut reads = cell.reads.iter().flatten().filter(|_| writes);
        write.or_else(|| reads.find(|old| touches(old)).map(|old| (*old, false)))
    }

    /// Leaves at a place what somebody knows.
    pub(super) fn leave(&mut self, at: (usize, u64), cluster: u64, known: &Knowledge) {
        known.leave(cluster, self.places.entry(at).or_default());
    }

    /// What was left there.
    pub(super) fn left(&self, at: (usize, u64)) -> Option<&BTreeMap<u64, View>> {
        self.places.get(&at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(cluster: u64, bytes: u8) -> Trace {
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
            agent: 0,
            generic: true,
        }
    }

    #[test]
    fn clusters_meet_where_one_of_them_writes() {
        let mut global = Global::new(1 << 20);
        let alone = |cluster: u64| move |old: &Trace, _: bool| old.cluster == cluster;
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
    fn without_room_it_says_how_much_it_did_not_see() {
        let mut global = Global::new(0);
        global.touch((0, 0), by(1, 15), true, true, |_, _| false);
        global.touch((0, 1), by(2, 15), true, true, |_, _| false);
        assert_eq!(global.unwatched, 8);
    }
}
