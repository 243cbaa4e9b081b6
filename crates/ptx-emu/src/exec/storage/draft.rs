//! What a cluster has written to global memory and the others cannot see yet.
//!
//! Clusters run on as many cores as there are, so plain stores that went straight to memory would
//! be seen by whoever happens to be late. Instead a cluster writes to private copies of small
//! pages, and reads memory as it was when it began plus its own writes. Between waves (or epochs,
//! see `schedule::grid`) the copies are published one cluster after another, in an order drawn from
//! the seed, each byte from the last one that wrote it. A kernel whose CTAs race by plain accesses
//! thus has one answer per seed, and only CTAs that write parts of a word can mix it.

#![expect(
    clippy::vec_box,
    reason = "accesses point into pages, which must not move"
)]

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::overlap::Overlaps;
use super::page::{PAGE, Page};
use super::region::CachedRegion;
use crate::memory::{HostBytes, Memory};

/// Pages that no cluster uses now, for the next one: most CTAs write few bytes each, and asking
/// the host for them would take longer than writing.
static STOCK: Mutex<Vec<Box<Page>>> = Mutex::new(Vec::new());

/// Pages kept, at most.
const MOST_STOCK: usize = 1 << 14;

/// Pages a cluster takes at once.
const HANDFUL: usize = 16;

/// The private pages of one allocation.
#[derive(Default)]
struct Draft {
    /// Page number plus one and place in `pages`, from the place its number is mixed to on; as
    /// many as a power of two, and at least half of them free.
    directory: Vec<(usize, usize)>,
    pages: Vec<(usize, Box<Page>)>,
}

/// Places of a directory at first.
const DIRECTORY: usize = 32;

impl Draft {
    /// Place in `directory` of a page, or where it would be.
    #[inline]
    fn place(&self, number: usize) -> usize {
        let last = self.directory.len() - 1;
        let mut at = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & last;
        while ![0, number + 1].contains(&self.directory[at].0) {
            at = (at + 1) & last;
        }
        at
    }

    /// Place in `pages`.
    #[inline]
    fn find(&self, number: usize) -> Option<usize> {
        if self.directory.is_empty() {
            return None;
        }
        let (key, page) = self.directory[self.place(number)];
        (key != 0).then_some(page)
    }

    fn add(&mut self, number: usize, page: Box<Page>) -> usize {
        let place = self.pages.len();
        self.pages.push((number, page));
        if 2 * self.pages.len() > self.directory.len() {
            let length = DIRECTORY.max(2 * self.directory.len());
            self.directory.clear();
            self.directory.resize(length, (0, 0));
            for (place, &(number, _)) in self.pages.iter().enumerate() {
                let at = self.place(number);
                self.directory[at] = (number + 1, place);
            }
        } else {
            let at = self.place(number);
            self.directory[at] = (number + 1, place);
        }
        place
    }
}

/// The private pages of a cluster.
#[derive(Default)]
pub(crate) struct Drafts {
    /// Whether writes are kept private.
    pub(crate) on: bool,
    /// By number of the allocation.
    regions: Vec<Option<Draft>>,
    /// To be used next.
    stock: Vec<Box<Page>>,
    /// Grows when an allocation gets its first page, and when pages are taken.
    pub(crate) generation: u64,
}

/// Copies of ranges that cross pages, for callers that need them in one piece.
pub(crate) type Pieced = Vec<(u64, Box<[u8]>)>;

/// Longest range that is pieced together.
const MOST_PIECED: u64 = 1 << 14;

impl Drafts {
    pub(crate) fn new(on: bool) -> Self {
        Self {
            on,
            regions: Vec::new(),
            stock: Vec::new(),
            generation: 1,
        }
    }

    /// What there is, leaving an empty draft behind.
    pub(crate) fn take(&mut self) -> Self {
        let new = Self {
            generation: self.generation + 1,
            ..Self::new(self.on)
        };
        std::mem::replace(self, new)
    }

    /// Whether it has pages of an allocation.
    #[inline(always)]
    pub(crate) fn holds(&self, region: usize) -> bool {
        matches!(self.regions.get(region), Some(Some(_)))
    }

    /// Whether an access to an allocation has to ask for pages one by one.
    #[inline(always)]
    pub(crate) fn concern(&self, region: usize, write: bool) -> bool {
        self.on && (write || self.holds(region))
    }

    /// Bytes of an allocation from an offset to the page's end, as this cluster sees them.
    pub(crate) fn at<'m>(&'m self, region: &CachedRegion<'m>, offset: u64) -> HostBytes<'m> {
        let (number, within) = (offset as usize / PAGE, offset as usize % PAGE);
        let draft = match self.on {
            true => self.regions.get(region.index).and_then(Option::as_ref),
            false => None,
        };
        let end = (number + 1) * PAGE;
        match draft.and_then(|draft| Some(&draft.pages[draft.find(number)?].1)) {
            Some(page) => {
                page.fill(region, number);
                page.host().part(within..PAGE)
            }
            None => {
                let end = end.min((region.end - region.base) as usize);
                region.bytes.part(offset as usize..end)
            }
        }
    }

    /// Bytes the cluster is about to write, all in one page.
    pub(crate) fn at_written<'m>(
        &'m mut self,
        region: &CachedRegion<'m>,
        offset: u64,
        bytes: u64,
    ) -> HostBytes<'m> {
        let (offset, bytes) = (offset as usize, bytes as usize);
        if !self.on {
            return region.bytes.part(offset..offset + bytes);
        }
        let page = self.own(region, offset / PAGE);
        let within = offset % PAGE;
        page.mark(within, bytes);
        page.host().part(within..within + bytes)
    }

    /// As [`Drafts::at_written`] for the lanes of a warp, which write `bytes` each, aligned: the
    /// page and its first byte's offset in the allocation.
    #[inline(never)]
    pub(crate) fn at_lanes(
        &mut self,
        region: &CachedRegion<'_>,
        at: &[u32; 32],
        bytes: u32,
    ) -> (HostBytes<'_>, u32) {
        let number = at[0] as usize / PAGE;
        let page = self.own(region, number);
        page.mark_lanes(at, bytes);
        (page.host(), (number * PAGE) as u32)
    }

    /// As [`Drafts::at_lanes`] for lanes that do not look at what they write over.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(crate) fn over_lanes(
        &mut self,
        region: &CachedRegion<'_>,
        at: &[u32; 32],
        bytes: u32,
    ) -> (HostBytes<'_>, u32) {
        let number = at[0] as usize / PAGE;
        let page = self.own_unread(region, number);
        page.mark_lanes(at, bytes);
        (page.host(), (number * PAGE) as u32)
    }

    /// As [`Drafts::over_lanes`] for bytes behind each other.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(crate) fn over_range(
        &mut self,
        region: &CachedRegion<'_>,
        from: u32,
        bytes: u32,
    ) -> (HostBytes<'_>, u32) {
        let number = from as usize / PAGE;
        let page = self.own_unread(region, number);
        page.mark(from as usize % PAGE, bytes as usize);
        (page.host(), (number * PAGE) as u32)
    }

    /// The cluster's own copy of a page.
    fn own(&mut self, region: &CachedRegion<'_>, number: usize) -> &Page {
        let page = self.own_unread(region, number);
        page.fill(region, number);
        page
    }

    /// As [`Drafts::own`], if nothing but what is written next will be looked at.
    fn own_unread(&mut self, region: &CachedRegion<'_>, number: usize) -> &Page {
        if self.regions.len() <= region.index {
            self.regions.resize_with(region.index + 1, || None);
        }
        if !self.holds(region.index) {
            self.generation += 1;
        }
        let draft = self.regions[region.index].get_or_insert_default();
        let place = match draft.find(number) {
            Some(place) => place,
            None => {
                let mut page = fresh(&mut self.stock);
                page.clear();
                draft.add(number, page)
            }
        };
        &draft.pages[place].1
    }

    /// Whether two bytes of an allocation lie in one page.
    #[inline(always)]
    pub(crate) fn together(low: u64, high: u64) -> bool {
        low / PAGE as u64 == high / PAGE as u64
    }

    /// Calls `each` with every piece of a range that is read, and its part of the range.
    pub(crate) fn pieces(
        &self,
        region: &CachedRegion<'_>,
        offset: u64,
        bytes: usize,
        mut each: impl FnMut(&[u8], Range<usize>),
    ) {
        if !self.concern(region.index, false) {
            let whole = region.bytes.part(offset as usize..offset as usize + bytes);
            // SAFETY: memory is only written between waves.
            return each(unsafe { whole.read() }, 0..bytes);
        }
        for part in parts(offset, bytes) {
            let piece = self.at(region, offset + part.start as u64);
            // SAFETY: as above, and a cluster's pages are its own.
            each(unsafe { piece.part(0..part.len()).read() }, part);
        }
    }

    /// As [`Drafts::pieces`], to be written.
    pub(crate) fn pieces_written(
        &mut self,
        region: &CachedRegion<'_>,
        offset: u64,
        bytes: usize,
        mut each: impl FnMut(&mut [u8], Range<usize>),
    ) {
        if !self.on {
            let whole = region.bytes.part(offset as usize..offset as usize + bytes);
            // SAFETY: a cluster that writes memory itself is alone.
            return each(unsafe { whole.write() }, 0..bytes);
        }
        for part in parts(offset, bytes) {
            let from = offset + part.start as u64;
            let piece = self.at_written(region, from, part.len() as u64);
            // SAFETY: pages are the cluster's own.
            each(unsafe { piece.write() }, part);
        }
    }

    /// Notes bytes as written that [`Drafts::range`] gave as part of a longer range.
    pub(crate) fn mark(&mut self, region: &CachedRegion<'_>, offset: u64, bytes: usize) {
        self.pieces_written(region, offset, bytes, |_, _| {});
    }

    /// A range in one piece: where it lies, or a copy that [`Drafts::put_back`] writes. `None` if
    /// it is in no allocation, or too long to be worth a copy. Which of its bytes are written is
    /// for the caller to [`Drafts::mark`].
    ///
    /// # Safety
    /// What is returned must not be used once the pages are taken or `pieced` is dropped.
    pub(crate) unsafe fn range<'m>(
        &mut self,
        memory: &'m Memory,
        address: u64,
        bytes: u64,
        write: bool,
        pieced: &mut Pieced,
    ) -> Option<HostBytes<'m>> {
        let region = CachedRegion::of(memory, address)?;
        let offset = address - region.base;
        if bytes > region.end - address {
            return None;
        }
        let (first, len) = (offset as usize, bytes as usize);
        if !self.concern(region.index, write) {
            return Some(region.bytes.part(first..first + len));
        }
        if bytes == 0 || Self::together(offset, offset + bytes - 1) {
            let within = first % PAGE;
            let here = match write {
                true => self.own(&region, first / PAGE).host().part(within..PAGE),
                false => self.at(&region, offset),
            };
            // SAFETY: pages are boxed, and stay until they are taken.
            return Some(unsafe { here.part(0..len).outlive() });
        }
        if bytes > MOST_PIECED {
            return None;
        }
        let mut copy = vec![0; len].into_boxed_slice();
        self.pieces(&region, offset, len, |piece, part| {
            copy[part].copy_from_slice(piece);
        });
        pieced.push((address, copy));
        let copy = &mut pieced.last_mut()?.1;
        // SAFETY: the copy is boxed, and stays as long as `pieced`.
        Some(unsafe { HostBytes::of_slice(copy).outlive() })
    }

    /// Writes pieced ranges to their pages.
    pub(crate) fn put_back(&mut self, memory: &Memory, pieced: Pieced) {
        for (address, copy) in pieced {
            let Some(region) = CachedRegion::of(memory, address) else {
                continue;
            };
            let offset = address - region.base;
            for part in parts(offset, copy.len()) {
                let from = offset as usize + part.start;
                let within = from % PAGE..from % PAGE + part.len();
                let page = self.own(&region, from / PAGE).host();
                // SAFETY: the page is this cluster's own.
                unsafe { page.part(within).write() }.copy_from_slice(&copy[part]);
            }
        }
    }
}

/// A page to be filled.
fn fresh(stock: &mut Vec<Box<Page>>) -> Box<Page> {
    if stock.is_empty() {
        let mut all = STOCK.lock().unwrap_or_else(PoisonError::into_inner);
        let left = all.len().saturating_sub(HANDFUL);
        stock.extend(all.drain(left..));
    }
    stock.pop().unwrap_or_else(|| Box::new(Page::empty()))
}

/// Keeps pages nobody uses any more.
fn keep(drafts: Vec<Drafts>) {
    let mut all = STOCK.lock().unwrap_or_else(PoisonError::into_inner);
    for drafts in drafts {
        let used = drafts.regions.into_iter().flatten();
        let used = used.flat_map(|draft| draft.pages).map(|(_, page)| page);
        let room = MOST_STOCK.saturating_sub(all.len());
        all.extend(drafts.stock.into_iter().chain(used).take(room));
    }
}

/// A range cut where pages end.
fn parts(offset: u64, bytes: usize) -> impl Iterator<Item = Range<usize>> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let from = done;
        done = bytes.min(from + PAGE - (offset as usize + from) % PAGE);
        (from < bytes).then_some(from..done)
    })
}

/// Publishes drafts, one after another; whether there was anything to publish.
pub(crate) fn publish(memory: &Memory, drafts: Vec<Drafts>) -> bool {
    publish_beside(memory, drafts, None)
}

/// The same for clusters of these numbers, told to who looks for those that write the same bytes.
pub(crate) fn publish_beside(
    memory: &Memory,
    drafts: Vec<Drafts>,
    mut beside: Option<(&[u64], &mut Overlaps)>,
) -> bool {
    let regions = drafts.iter().map(|d| d.regions.len()).max().unwrap_or(0);
    let mut any = false;
    for index in 0..regions {
        let mut pages: Vec<(usize, &Page, usize)> = (drafts.iter().enumerate())
            .filter_map(|(nth, d)| Some((nth, d.regions.get(index)?.as_ref()?)))
            .flat_map(|(nth, draft)| draft.pages.iter().map(move |(n, page)| (*n, &**page, nth)))
            .collect();
        // Stable, so that those of one number stay in the order of their clusters.
        pages.sort_by_key(|page| page.0);
        any |= !pages.is_empty();
        let region = &memory.regions()[index];
        for same in pages.chunk_by(|a, b| a.0 == b.0) {
            let start = same[0].0 * PAGE;
            let len = (region.len as usize - start).min(PAGE);
            // SAFETY: no cluster runs while drafts are published.
            let target = unsafe { region.bytes().part(start..start + len).write() };
            for &(number, page, nth) in same {
                if let Some((clusters, overlaps)) = &mut beside {
                    // SAFETY: the cluster that wrote it has stopped.
                    let new = unsafe { page.host().read() };
                    overlaps.publish((index, number), clusters[nth], &page.written, (new, target));
                }
                page.put(target);
            }
        }
    }
    keep(drafts);
    any
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(drafts: &mut Drafts, region: &CachedRegion<'_>, offset: u64, value: u8) {
        drafts.pieces_written(region, offset, 1, |bytes, _| bytes[0] = value);
    }

    fn read(drafts: &Drafts, region: &CachedRegion<'_>, offset: u64) -> u8 {
        let mut byte = 0;
        drafts.pieces(region, offset, 1, |bytes, _| byte = bytes[0]);
        byte
    }

    #[test]
    fn writes_are_private_until_published_and_the_last_one_wins() {
        let mut memory = Memory::new();
        let ptr = memory.alloc(1500).unwrap();
        let region = CachedRegion::of(&memory, ptr.0).unwrap();
        let (mut a, mut b) = (Drafts::new(true), Drafts::new(true));
        write(&mut a, &region, 1499, 1);
        write(&mut a, &region, 7, 1);
        write(&mut b, &region, 7, 2);
        write(&mut b, &region, 8, 2);
        assert_eq!(read(&a, &region, 7), 1);
        assert_eq!(read(&a, &region, 8), 0);
        assert_eq!(memory.read_vec(ptr, 1500).unwrap(), vec![0; 1500]);
        assert!(publish(&memory, vec![b, a]));
        let now = memory.read_vec(ptr, 1500).unwrap();
        assert_eq!((now[7], now[8], now[1499]), (1, 2, 1));
        assert!(!publish(&memory, vec![Drafts::new(true)]));
    }

    #[test]
    fn each_byte_is_the_last_writers_even_with_the_value_it_had() {
        let mut memory = Memory::new();
        let ptr = memory.alloc(2048).unwrap();
        memory.write(ptr.offset(8), &[1, 0, 5]).unwrap();
        let region = CachedRegion::of(&memory, ptr.0).unwrap();
        let mut drafts = [(0x0101u16, 7), (0x0002, 5)].map(|(word, byte)| {
            let mut drafts = Drafts::new(true);
            for (i, value) in word.to_le_bytes().into_iter().enumerate() {
                write(&mut drafts, &region, 8 + i as u64, value);
            }
            write(&mut drafts, &region, 10, byte);
            drafts
        });
        let drafts = drafts.iter_mut().map(Drafts::take).collect();
        publish(&memory, drafts);
        assert_eq!(memory.read_vec(ptr.offset(8), 3).unwrap(), [2, 0, 5]);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn what_is_around_bytes_written_over_is_filled_in_when_it_is_read() {
        let mut memory = Memory::new();
        let ptr = memory.alloc(1500).unwrap();
        memory.write(ptr, &[7; 1500]).unwrap();
        let region = CachedRegion::of(&memory, ptr.0).unwrap();
        let mut drafts = Drafts::new(true);
        let lanes = std::array::from_fn(|lane| 1100 + 8 * lane as u32);
        let mut expected = vec![7; 1500];
        let mut fill = |page: HostBytes<'_>, start: u32, first: u32| {
            let within = (first - start) as usize;
            // SAFETY: nobody else has the page.
            unsafe { page.part(within..within + 4).write() }.fill(1);
            expected[first as usize..first as usize + 4].fill(1);
        };
        let (page, start) = drafts.over_range(&region, 1032, 4);
        fill(page, start, 1032);
        let (page, start) = drafts.over_lanes(&region, &lanes, 4);
        lanes.iter().for_each(|&first| fill(page, start, first));
        let seen: Vec<u8> = (0..1500).map(|at| read(&drafts, &region, at)).collect();
        assert_eq!(seen, expected);
        publish(&memory, vec![drafts]);
        assert_eq!(memory.read_vec(ptr, 1500).unwrap(), expected);
    }

    #[test]
    fn a_range_is_published_where_it_was_marked() {
        let mut memory = Memory::new();
        let ptr = memory.alloc(4096).unwrap();
        let region = CachedRegion::of(&memory, ptr.0).unwrap();
        // Rows of 16 bytes, every other one of which is somebody else's.
        let drafts = [0u64, 1].map(|who| {
            let mut drafts = Drafts::new(true);
            for row in 0..64 {
                drafts.mark(&region, 32 * row + 16 * who, 16);
            }
            let mut pieced = Pieced::new();
            // SAFETY: neither pages nor pieces are taken before the bytes were used.
            let at = unsafe { drafts.range(&memory, ptr.0, 2048, true, &mut pieced) };
            // SAFETY: nobody else has them.
            let bytes = unsafe { at.unwrap().write() };
            for row in bytes.chunks_mut(16).skip(who as usize).step_by(2) {
                row.fill(who as u8 + 1);
            }
            drafts.put_back(&memory, pieced);
            drafts
        });
        publish(&memory, drafts.into());
        let now = memory.read_vec(ptr, 2048).unwrap();
        let expected = |i: usize| 1 + (i / 16 % 2) as u8;
        assert_eq!(now, Vec::from_iter((0..2048).map(expected)));
    }

    #[test]
    fn a_range_over_several_pages_is_pieced_together_and_put_back() {
        let mut memory = Memory::new();
        let ptr = memory.alloc(4096).unwrap();
        let region = CachedRegion::of(&memory, ptr.0).unwrap();
        let mut drafts = Drafts::new(true);
        write(&mut drafts, &region, 1023, 9);
        let mut pieced = Pieced::new();
        // SAFETY: as above.
        let at = unsafe { drafts.range(&memory, ptr.0 + 1022, 1028, true, &mut pieced) };
        // SAFETY: as above.
        let bytes = unsafe { at.unwrap().write() };
        assert_eq!(bytes[..3], [0, 9, 0]);
        bytes.fill(5);
        drafts.mark(&region, 1022, 1028);
        drafts.put_back(&memory, pieced);
        publish(&memory, vec![drafts]);
        let now = memory.read_vec(ptr, 4096).unwrap();
        assert_eq!(now.iter().filter(|&&b| b == 5).count(), 1028);
        assert_eq!((now[1021], now[2050]), (0, 0));
    }
}
