//! What a cluster has written to global memory and the others cannot see yet.
//!
//! Clusters run on as many cores as there are, so plain stores that went straight to memory would
//! be seen by whoever happens to be late. Instead a cluster writes to private copies of small
//! pages, and reads memory as it was when it began plus its own writes. Between waves (or epochs,
//! see [`super::grid`]) the copies are published one cluster after another, in an order drawn from
//! the seed. A kernel whose CTAs race by plain accesses thus has one answer per seed.

use std::cell::UnsafeCell;

use super::cluster::CachedRegion;
use crate::memory::Memory;

/// Bytes of a page: small, because the rows of a tile lie far apart.
const PAGE: usize = 1024;

/// Pages of one table of the directory.
const TABLE: usize = 1024;

#[repr(C, align(64))]
struct Page(UnsafeCell<[u8; PAGE]>);

/// The private pages of one allocation.
#[derive(Default)]
struct Draft {
    /// Place in `pages` plus one, by page number.
    directory: Vec<Option<Box<[u32; TABLE]>>>,
    pages: Vec<(usize, Box<Page>)>,
}

impl Draft {
    fn find(&self, number: usize) -> Option<usize> {
        let table = self.directory.get(number / TABLE)?.as_ref()?;
        let place = table[number % TABLE].checked_sub(1)?;
        Some(self.pages[place as usize].1.0.get() as usize)
    }

    fn add(&mut self, number: usize, page: Box<Page>) -> usize {
        let at = number / TABLE;
        if self.directory.len() <= at {
            self.directory.resize_with(at + 1, || None);
        }
        let table = self.directory[at].get_or_insert_with(|| Box::new([0; TABLE]));
        let address = page.0.get() as usize;
        self.pages.push((number, page));
        table[number % TABLE] = self.pages.len() as u32;
        address
    }
}

/// The private pages of a cluster.
#[derive(Default)]
pub(crate) struct Drafts {
    /// Whether writes are kept private.
    pub(super) on: bool,
    /// By number of the allocation.
    regions: Vec<Option<Draft>>,
}

/// Copies of ranges that cross pages, for callers that need them in one piece.
pub(super) type Pieced = Vec<(u64, Box<[u8]>)>;

/// Longest range that is pieced together.
const MOST_PIECED: u64 = 1 << 14;

impl Drafts {
    pub(super) fn new(on: bool) -> Self {
        Self {
            on,
            regions: Vec::new(),
        }
    }

    /// What there is, leaving an empty draft behind.
    pub(super) fn take(&mut self) -> Self {
        let on = self.on;
        std::mem::replace(self, Self::new(on))
    }

    /// Whether an access to an allocation has to ask for pages one by one.
    #[inline(always)]
    pub(super) fn concern(&self, region: usize, write: bool) -> bool {
        self.on && (write || matches!(self.regions.get(region), Some(Some(_))))
    }

    /// Host address of a byte of an allocation as this cluster sees it; good to the page's end.
    pub(super) fn at(&mut self, region: &CachedRegion, offset: u64, write: bool) -> usize {
        let host = region.host + offset as usize;
        if !self.concern(region.index, write) {
            return host;
        }
        if self.regions.len() <= region.index {
            self.regions.resize_with(region.index + 1, || None);
        }
        let (number, within) = (offset as usize / PAGE, offset as usize % PAGE);
        let found = self.regions[region.index]
            .as_ref()
            .and_then(|draft| draft.find(number));
        let page = match found {
            Some(page) => page,
            None if !write => return host,
            None => {
                let start = (number * PAGE) as u64;
                let len = (region.end - region.base - start).min(PAGE as u64) as usize;
                let mut page = Box::new(Page(UnsafeCell::new([0; PAGE])));
                let source = (region.host + start as usize) as *const u8;
                // SAFETY: the page begins inside the allocation and `len` ends there. Memory is
                // only written between waves.
                unsafe {
                    std::ptr::copy_nonoverlapping(source, page.0.get_mut().as_mut_ptr(), len)
                };
                let draft = self.regions[region.index].get_or_insert_default();
                draft.add(number, page)
            }
        };
        page + within
    }

    /// Whether two bytes of an allocation lie in one page.
    #[inline(always)]
    pub(super) fn together(low: u64, high: u64) -> bool {
        low / PAGE as u64 == high / PAGE as u64
    }

    /// Calls `each` with the host address and the part of every piece of a range.
    pub(super) fn pieces(
        &mut self,
        region: &CachedRegion,
        offset: u64,
        bytes: usize,
        write: bool,
        mut each: impl FnMut(usize, std::ops::Range<usize>),
    ) {
        if !self.concern(region.index, write) {
            return each(region.host + offset as usize, 0..bytes);
        }
        let mut done = 0;
        while done < bytes {
            let from = offset + done as u64;
            let len = (PAGE - from as usize % PAGE).min(bytes - done);
            each(self.at(region, from, write), done..done + len);
            done += len;
        }
    }

    /// A range in one piece: where it lies, or a copy that [`Drafts::put_back`] writes. `None` if
    /// it is in no allocation, or too long to be worth a copy.
    pub(super) fn range(
        &mut self,
        memory: &Memory,
        address: u64,
        bytes: u64,
        write: bool,
        pieced: &mut Pieced,
    ) -> Option<*mut u8> {
        let region = CachedRegion::of(memory, address)?;
        let offset = address - region.base;
        if bytes > region.end - address {
            return None;
        }
        if !self.concern(region.index, write) {
            return Some((region.host + offset as usize) as *mut u8);
        }
        if bytes == 0 || Self::together(offset, offset + bytes - 1) {
            return Some(self.at(&region, offset, write) as *mut u8);
        }
        if bytes > MOST_PIECED {
            return None;
        }
        let mut copy = vec![0; bytes as usize].into_boxed_slice();
        self.pieces(&region, offset, copy.len(), false, |at, part| {
            // SAFETY: `pieces` hands out checked bytes of memory or of a page.
            let piece = unsafe { std::slice::from_raw_parts(at as *const u8, part.len()) };
            copy[part].copy_from_slice(piece);
        });
        pieced.push((address, copy));
        pieced.last_mut().map(|(_, copy)| copy.as_mut_ptr())
    }

    /// Writes pieced ranges to their pages.
    pub(super) fn put_back(&mut self, memory: &Memory, pieced: Pieced) {
        for (address, copy) in pieced {
            let Some(region) = CachedRegion::of(memory, address) else {
                continue;
            };
            self.pieces(
                &region,
                address - region.base,
                copy.len(),
                true,
                |at, part| {
                    // SAFETY: as in `range`, and the page is this cluster's own.
                    let piece =
                        unsafe { std::slice::from_raw_parts_mut(at as *mut u8, part.len()) };
                    piece.copy_from_slice(&copy[part]);
                },
            );
        }
    }
}

/// Publishes drafts, one after another; whether there was anything to publish.
pub(super) fn publish(memory: &Memory, drafts: Vec<Drafts>) -> bool {
    let regions = drafts.iter().map(|d| d.regions.len()).max().unwrap_or(0);
    let mut any = false;
    for index in 0..regions {
        let mut pages: Vec<(usize, &[u8; PAGE])> = drafts
            .iter()
            .filter_map(|d| d.regions.get(index)?.as_ref())
            .flat_map(|draft| &draft.pages)
            // SAFETY: the cluster that wrote the page has stopped.
            .map(|(number, page)| (*number, unsafe { &*page.0.get() }))
            .collect();
        // Stable, so that those of one number stay in the order of their clusters.
        pages.sort_by_key(|(number, _)| *number);
        any |= !pages.is_empty();
        let region = &memory.regions()[index];
        for same in pages.chunk_by(|a, b| a.0 == b.0) {
            let start = same[0].0 * PAGE;
            let len = (region.len as usize - start).min(PAGE);
            // SAFETY: the page lies in the allocation, and no cluster runs while drafts are
            // published.
            let target = unsafe { std::slice::from_raw_parts_mut(region.ptr().add(start), len) };
            merge(target, same);
        }
    }
    any
}

/// Writes the pages of one number over memory: only what each has changed, if they are several. A
/// byte written with the value it had counts as written before all others.
fn merge(target: &mut [u8], pages: &[(usize, &[u8; PAGE])]) {
    if let [(_, page)] = pages {
        return target.copy_from_slice(&page[..target.len()]);
    }
    let before = target.to_vec();
    for (_, page) in pages {
        for ((to, new), old) in target.iter_mut().zip(*page).zip(&before) {
            *to = if new == old { *to } else { *new };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(drafts: &mut Drafts, region: &CachedRegion, offset: u64, value: u8) {
        let at = drafts.at(region, offset, true) as *mut u8;
        // SAFETY: `at` is a byte of a page that `drafts` owns.
        unsafe { *at = value };
    }

    fn read(drafts: &mut Drafts, region: &CachedRegion, offset: u64) -> u8 {
        // SAFETY: as above, or a byte of the allocation.
        unsafe { *(drafts.at(region, offset, false) as *const u8) }
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
        assert_eq!(read(&mut a, &region, 7), 1);
        assert_eq!(read(&mut a, &region, 8), 0);
        assert_eq!(memory.read_vec(ptr, 1500).unwrap(), vec![0; 1500]);
        assert!(publish(&memory, vec![b, a]));
        let now = memory.read_vec(ptr, 1500).unwrap();
        assert_eq!((now[7], now[8], now[1499]), (1, 2, 1));
        assert!(!publish(&memory, vec![Drafts::new(true)]));
    }

    #[test]
    fn a_range_over_several_pages_is_pieced_together_and_put_back() {
        let mut memory = Memory::new();
        let ptr = memory.alloc(4096).unwrap();
        let region = CachedRegion::of(&memory, ptr.0).unwrap();
        let mut drafts = Drafts::new(true);
        write(&mut drafts, &region, 1023, 9);
        let mut pieced = Pieced::new();
        let at = drafts.range(&memory, ptr.0 + 1022, 1028, true, &mut pieced);
        // SAFETY: `range` gave 1028 bytes.
        let bytes = unsafe { std::slice::from_raw_parts_mut(at.unwrap(), 1028) };
        assert_eq!(bytes[..3], [0, 9, 0]);
        bytes.fill(5);
        drafts.put_back(&memory, pieced);
        publish(&memory, vec![drafts]);
        let now = memory.read_vec(ptr, 4096).unwrap();
        assert_eq!(now.iter().filter(|&&b| b == 5).count(), 1028);
        assert_eq!((now[1021], now[2050]), (0, 0));
    }
}
