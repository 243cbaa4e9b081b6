//! What a cluster has written to global memory and the others cannot see yet.
//!
//! Clusters run on as many cores as there are, so plain stores that went straight to memory would
//! be seen by whoever happens to be late. Instead a cluster writes to private copies of small
//! pages, and reads memory as it was when it began plus its own writes. Between waves (or epochs,
//! see `schedule::grid`) the copies are published one cluster after another, in an order drawn from
//! the seed, each byte from the last one that wrote it. A kernel whose CTAs race by plain accesses
//! thus has one answer per seed, and only CTAs that write parts of a word can mix it.
//!
//! Until the cluster looks at what it wrote, or writes it otherwise than by words of whole warps,
//! its stores are kept as they come, and not in pages (see `super::stores`).

#![expect(
    clippy::vec_box,
    reason = "accesses point into pages, which must not move"
)]

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::overlap::Overlaps;
use super::page::{PAGE, Page};
use super::region::CachedRegion;
#[cfg(target_arch = "x86_64")]
use super::stores::Lie;
use super::stores::{Piece, Stores};
#[cfg(target_arch = "x86_64")]
use crate::exec::lanes::V32;
use crate::memory::{HostBytes, Memory};

/// What no cluster uses now, for the next one: most CTAs write few bytes each, and asking the host
/// for memory would take longer than writing.
static STOCK: Mutex<Stock> = Mutex::new(Stock {
    pages: Vec::new(),
    drafts: Vec::new(),
    stores: Vec::new(),
});

struct Stock {
    pages: Vec<Box<Page>>,
    /// Without pages.
    drafts: Vec<Draft>,
    /// Without any.
    stores: Vec<Stores>,
}

/// Pages kept, at most, and drafts and stores, and places of their directories.
const MOST_STOCK: usize = 1 << 14;
const MOST_DRAFTS: usize = 1 << 10;
const MOST_PLACES: usize = 1 << 10;

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

    /// Gives its pages away.
    fn clear(&mut self, pages: &mut Vec<Box<Page>>) {
        pages.extend(self.pages.drain(..).map(|(_, page)| page));
        self.directory.fill((0, 0));
    }
}

/// The private pages of a cluster.
#[derive(Default)]
pub(crate) struct Drafts {
    /// Whether writes are kept private.
    pub(crate) on: bool,
    /// By number of the allocation.
    regions: Vec<Option<Draft>>,
    /// What is in no page; once there is a page, all that comes later goes into pages.
    stores: Stores,
    paged: bool,
    /// To be used next.
    stock: Vec<Box<Page>>,
    /// Grows when an allocation gets its first page.
    pub(crate) generation: u64,
}

/// Copies of ranges that cross pages, for callers that need them in one piece.
pub(crate) type Pieced = Vec<(u64, Box<[u8]>)>;

/// Longest range that is pieced together.
const MOST_PIECED: u64 = 1 << 14;

impl Drafts {
    pub(crate) fn new(on: bool, generation: u64) -> Self {
        Self {
            on,
            regions: Vec::new(),
            stores: Stores::default(),
            paged: false,
            stock: Vec::new(),
            generation,
        }
    }

    /// What there is, leaving an empty draft behind.
    pub(crate) fn take(&mut self) -> Self {
        let new = Self::new(self.on, self.generation);
        std::mem::replace(self, new)
    }

    /// Whether it has bytes of an allocation.
    #[inline(always)]
    pub(crate) fn holds(&self, region: usize) -> bool {
        matches!(self.regions.get(region), Some(Some(_))) || self.stores.hold(region)
    }

    /// Whether a warp's words are kept as they come.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn keeps(&self, region: usize) -> bool {
        !self.paged && self.stores.take(region)
    }

    /// Keeps a word of each of some lanes; whether it is the first of its allocation.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn keep(&mut self, region: usize, lanes: u32, at: Lie, words: V32) -> bool {
        let first = !self.stores.hold(region);
        if self.stores.is_empty() {
            self.begin_stores();
        }
        self.stores.push(region, lanes, at, words);
        first
    }

    #[cfg(target_arch = "x86_64")]
    #[cold]
    fn begin_stores(&mut self) {
        if let Some(spare) = stock().stores.pop() {
            self.stores = spare;
        }
    }

    /// Puts what was kept as it came into pages.
    #[inline(always)]
    fn settle(&mut self) {
        if !self.stores.is_empty() {
            self.put_into_pages();
        }
    }

    #[cold]
    fn put_into_pages(&mut self) {
        let stores = std::mem::take(&mut self.stores);
        stores.replay(|piece| {
            for part in parts(piece.first as u64, 4 * piece.words.len()) {
                let from = piece.first + part.start;
                let page = self.page(piece.region, from / PAGE);
                page.mark(from % PAGE, part.len());
                let within = from % PAGE..from % PAGE + part.len();
                // SAFETY: the page is this cluster's own.
                let bytes = unsafe { page.host().part(within).write() };
                // Words are aligned, as pages are.
                copy_words(bytes, &piece.words[part.start / 4..]);
            }
        });
        give_back(&mut stock(), stores);
    }

    /// Whether an access to an allocation has to ask for pages one by one.
    #[inline(always)]
    pub(crate) fn concern(&self, region: usize, write: bool) -> bool {
        self.on && (write || self.holds(region))
    }

    /// Bytes of an allocation from an offset to the page's end, as this cluster sees them.
    pub(crate) fn at<'m>(&'m mut self, region: &CachedRegion<'m>, offset: u64) -> HostBytes<'m> {
        self.settle();
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
    /// page and its first byte's offset in the allocation. Nobody may look at what they write over,
    /// unless it is to be `read`.
    #[inline]
    pub(crate) fn at_lanes(
        &mut self,
        region: &CachedRegion<'_>,
        at: &[u32; 32],
        bytes: u32,
        read: bool,
    ) -> (HostBytes<'_>, u32) {
        let number = at[0] as usize / PAGE;
        let page = match read {
            true => self.own(region, number),
            false => self.own_unread(region, number),
        };
        page.mark_lanes(at, bytes);
        (page.host(), (number * PAGE) as u32)
    }

    /// As [`Drafts::at_lanes`] for bytes behind each other that are not read.
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
        self.settle();
        self.page(region.index, number)
    }

    fn page(&mut self, region: usize, number: usize) -> &Page {
        self.paged = true;
        if self.regions.len() <= region {
            self.regions.resize_with(region + 1, || None);
        }
        if self.regions[region].is_none() {
            self.generation += 1;
        }
        let draft =
            self.regions[region].get_or_insert_with(|| stock().drafts.pop().unwrap_or_default());
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
        &mut self,
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

fn stock() -> MutexGuard<'static, Stock> {
    STOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A page to be filled.
fn fresh(pages: &mut Vec<Box<Page>>) -> Box<Page> {
    if pages.is_empty() {
        let all = &mut stock().pages;
        let left = all.len().saturating_sub(HANDFUL);
        pages.extend(all.drain(left..));
    }
    pages.pop().unwrap_or_else(|| Box::new(Page::empty()))
}

fn give_back(all: &mut Stock, mut stores: Stores) {
    stores.clear();
    if all.stores.len() < MOST_DRAFTS {
        all.stores.push(stores);
    }
}

/// Keeps what nobody uses any more.
fn keep(drafts: Vec<Drafts>) {
    let mut all = stock();
    for drafts in drafts {
        if !drafts.stores.is_empty() {
            give_back(&mut all, drafts.stores);
        }
        all.pages.extend(drafts.stock);
        for mut draft in drafts.regions.into_iter().flatten() {
            draft.clear(&mut all.pages);
            if all.drafts.len() < MOST_DRAFTS && draft.directory.len() <= MOST_PLACES {
                all.drafts.push(draft);
            }
        }
    }
    all.pages.truncate(MOST_STOCK);
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
    let mut any = false;
    for drafts in &drafts {
        // What is kept as it came was not written otherwise.
        drafts.stores.replay(|piece| {
            any = true;
            // SAFETY: no cluster runs while drafts are published.
            unsafe { put_words(memory, &piece) };
        });
        for (index, draft) in drafts.regions.iter().enumerate() {
            for (number, page) in draft.iter().flat_map(|draft| &draft.pages) {
                any = true;
                // SAFETY: no cluster runs while drafts are published.
                page.put(unsafe { target(memory, index, *number).write() });
            }
        }
    }
    keep(drafts);
    any
}

/// The same for clusters of these numbers, told page by page to who looks for those that write the
/// same bytes.
pub(crate) fn publish_beside(
    memory: &Memory,
    mut drafts: Vec<Drafts>,
    clusters: &[u64],
    overlaps: &mut Overlaps,
) {
    drafts.iter_mut().for_each(Drafts::settle);
    let regions = drafts.iter().map(|d| d.regions.len()).max().unwrap_or(0);
    for index in 0..regions {
        let mut pages: Vec<(usize, &Page, u64)> = (drafts.iter().zip(clusters))
            .filter_map(|(d, cluster)| Some((d.regions.get(index)?.as_ref()?, *cluster)))
            .flat_map(|(draft, cluster)| draft.pages.iter().map(move |(n, p)| (*n, &**p, cluster)))
            .collect();
        // Stable, so that those of one number stay in the order of their clusters.
        pages.sort_by_key(|page| page.0);
        for (number, page, cluster) in pages {
            // SAFETY: no cluster runs while drafts are published.
            let (new, target) =
                unsafe { (page.host().read(), target(memory, index, number).write()) };
            overlaps.publish((index, number), cluster, &page.written, (new, target));
            page.put(target);
        }
    }
    keep(drafts);
}

/// Writes what was stored to memory.
///
/// # Safety
/// Nobody else may use memory meanwhile.
#[inline(always)]
unsafe fn put_words(memory: &Memory, piece: &Piece<'_>) {
    let bytes = memory.regions()[piece.region].bytes();
    let place = piece.first..piece.first + 4 * piece.words.len();
    // SAFETY: by this function's contract.
    copy_words(unsafe { bytes.part(place).write() }, piece.words);
}

#[inline(always)]
fn copy_words(to: &mut [u8], words: &[u32]) {
    if let (Ok(to), Ok(words)) = (<&mut [u8; 128]>::try_from(&mut *to), words.try_into()) {
        return copy_row(to, words);
    }
    for (to, word) in to.as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *to = word.to_le_bytes();
    }
}

/// The words of a whole warp, which are most of them.
#[inline(always)]
fn copy_row(to: &mut [u8; 128], words: &[u32; 32]) {
    let mut row = [0; 128];
    for (to, word) in row.as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *to = word.to_le_bytes();
    }
    *to = row;
}

/// The bytes of memory that a page is about.
fn target(memory: &Memory, region: usize, number: usize) -> HostBytes<'_> {
    let region = &memory.regions()[region];
    let start = number * PAGE;
    let len = (region.len as usize - start).min(PAGE);
    region.bytes().part(start..start + len)
}

#[cfg(test)]
mod tests;
