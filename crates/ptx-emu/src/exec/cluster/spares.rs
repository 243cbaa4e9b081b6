//! What CTAs that have ended leave to those that begin.
//!
//! A CTA of a short kernel would spend a quarter of its time asking the host for register files
//! and shared memory and giving them back. A host thread keeps some instead, also from one launch
//! to the next. Whoever takes them writes all of them before anybody looks.

use std::cell::RefCell;

use super::cta::Cta;
#[cfg(target_arch = "x86_64")]
use crate::exec::storage::region::Sites;
use crate::exec::storage::span::{LAYOUTS, Layout};
use crate::exec::warp::Warp;

/// Bytes a host thread keeps, at most.
const MOST: usize = 16 << 20;

thread_local! {
    static SPARES: RefCell<Spares> = const { RefCell::new(Spares::new()) };
}

struct Spares {
    ctas: Vec<Cta>,
    /// Stands in for the warp whose turn it is.
    warp: Option<Box<Warp>>,
    layouts: Vec<Vec<Layout>>,
    #[cfg(target_arch = "x86_64")]
    sites: Option<(u64, u64, Sites)>,
    bytes: usize,
}

impl Spares {
    const fn new() -> Self {
        Self {
            ctas: Vec::new(),
            warp: None,
            layouts: Vec::new(),
            #[cfg(target_arch = "x86_64")]
            sites: None,
            bytes: 0,
        }
    }

    /// Whether there is room for so many bytes more, which are then taken for kept.
    fn keeps(&mut self, bytes: usize) -> bool {
        let keeps = self.bytes + bytes <= MOST;
        self.bytes += if keeps { bytes } else { 0 };
        keeps
    }
}

/// The storage of a CTA that has ended, or of none.
pub(crate) fn cta() -> Cta {
    SPARES.with_borrow_mut(|spares| {
        let cta = spares.ctas.pop().unwrap_or_default();
        spares.bytes -= cta.storage();
        cta
    })
}

/// A warp to stand in for others.
pub(crate) fn warp() -> Box<Warp> {
    let spare = SPARES.with_borrow_mut(|spares| spares.warp.take());
    spare.unwrap_or_else(|| Box::new(Warp::new(0, 0, 0, 0, 0, 0)))
}

/// Leaves it to the next cluster.
pub(crate) fn leave_warp(warp: Box<Warp>) {
    SPARES.with_borrow_mut(|spares| spares.warp = Some(warp));
}

/// Leaves a CTA's storage to the next one.
pub(crate) fn leave(cta: Cta) {
    SPARES.with_borrow_mut(|spares| {
        if spares.keeps(cta.storage()) {
            spares.ctas.push(cta);
        }
    });
}

/// How the lanes of each instruction lay in some CTA before this one. It is compared before it is
/// used, so any will do, and that of a neighbour does best.
pub(crate) fn layouts() -> Vec<Layout> {
    SPARES.with_borrow_mut(|spares| match spares.layouts.pop() {
        Some(layouts) => {
            spares.bytes -= size_of_val(&layouts[..]);
            layouts
        }
        None => vec![Layout::SAME; LAYOUTS],
    })
}

/// Leaves them to the next cluster.
pub(crate) fn leave_layouts(layouts: Vec<Layout>) {
    SPARES.with_borrow_mut(|spares| {
        if spares.keeps(size_of_val(&layouts[..])) {
            spares.layouts.push(layouts);
        }
    });
}

/// Where the loads of another cluster of a launch were, and the number of the drafts they hold for;
/// it can be that of a cluster that has written nothing.
#[cfg(target_arch = "x86_64")]
pub(crate) fn sites(launch: u64) -> (u64, Sites) {
    match SPARES.with_borrow_mut(|spares| spares.sites.take()) {
        Some((number, generation, sites)) if number == launch => (generation, sites),
        Some((_, _, mut sites)) => {
            sites.clear();
            (1, sites)
        }
        None => (1, Sites::none()),
    }
}

/// Leaves them to the next cluster.
#[cfg(target_arch = "x86_64")]
pub(crate) fn leave_sites(launch: u64, generation: u64, sites: Sites) {
    SPARES.with_borrow_mut(|spares| spares.sites = Some((launch, generation, sites)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::storage::bytes::AlignedBytes;

    #[test]
    fn a_thread_keeps_no_more_than_it_may() {
        let large = |kib: usize| Cta {
            shared: AlignedBytes::filled(kib << 10, 0),
            ..Cta::default()
        };
        for _ in 0..100 {
            leave(large(1024));
        }
        let kept = std::iter::repeat_with(cta).take_while(|cta| !cta.shared.is_empty());
        assert_eq!(kept.count(), MOST >> 20);
        leave(large(64));
        assert_eq!(cta().shared.len(), 64 << 10, "there is room again");
    }
}
