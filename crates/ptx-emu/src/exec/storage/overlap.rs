//! Bytes of global memory to which clusters that cannot know of each other have written different
//! values: which one stays is luck.
//!
//! It is looked for when their pages are published, which costs little and says neither who wrote
//! first nor where: the clusters are run again for that.

use std::cell::Cell;

use super::page::{PAGE, WORD};

/// Which bytes of a page were published so far, and of which clusters: mostly of one.
struct Written {
    bits: [u64; PAGE / WORD],
    cluster: u64,
    others: Vec<u64>,
}

/// A page to which several clusters wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Overlap {
    /// The allocation.
    pub(crate) region: usize,
    /// Where the page begins in it.
    pub(crate) first: u64,
    /// All that wrote to it before, and the one that wrote something else.
    pub(crate) clusters: Vec<u64>,
}

/// What the clusters of a launch have written.
#[derive(Default)]
pub(crate) struct Overlaps {
    /// For each page of an allocation its place in `pages` plus one, or 0.
    places: Vec<Vec<u32>>,
    pages: Vec<Written>,
    pub(crate) found: Option<Overlap>,
}

impl Overlaps {
    /// A cluster is about to write a page's bytes over memory. Those of `written` are its own.
    pub(crate) fn publish(
        &mut self,
        (region, page): (usize, usize),
        cluster: u64,
        written: &[Cell<u64>; PAGE / WORD],
        (new, target): (&[u8], &[u8]),
    ) {
        if self.places.len() <= region {
            self.places.resize_with(region + 1, Vec::new);
        }
        let places = &mut self.places[region];
        if places.len() <= page {
            places.resize(page + 1, 0);
        }
        let place = &mut places[page];
        if *place == 0 {
            let mut bits = [0; PAGE / WORD];
            for (to, own) in bits.iter_mut().zip(written) {
                *to = own.get();
            }
            self.pages.push(Written {
                bits,
                cluster,
                others: Vec::new(),
            });
            *place = self.pages.len() as u32;
            return;
        }
        let before = &mut self.pages[*place as usize - 1];
        let mut differs = false;
        for (word, (bits, own)) in before.bits.iter_mut().zip(written).enumerate() {
            let both = *bits & own.get();
            *bits |= own.get();
            let places = (0..WORD).filter(|bit| both >> bit & 1 == 1);
            differs |= both != 0
                && places
                    .map(|bit| word * WORD + bit)
                    .any(|at| new[at] != target[at]);
        }
        before.others.push(cluster);
        if differs && self.found.is_none() {
            let mut clusters = before.others.clone();
            clusters.push(before.cluster);
            clusters.sort_unstable();
            self.found = Some(Overlap {
                region,
                first: (page * PAGE) as u64,
                clusters,
            });
        }
    }
}
