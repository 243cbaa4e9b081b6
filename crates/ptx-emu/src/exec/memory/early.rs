//! Reads of what is still on its way: they get poison, and the first one is kept as the cause.

use crate::exec::cluster::Cluster;
use crate::exec::cluster::cta::InFlight;
use crate::exec::origin::{Origin, SharedAt};
use crate::exec::storage::bytes::POISON;
use crate::exec::warp::Warp;
use crate::fault::{EarlyRead, Place};

impl Cluster<'_> {
    /// Poisons the destination of a copy until [`Cluster::landed`].
    pub(crate) fn in_flight(&mut self, to: SharedAt, bytes: u32, pc: u32) {
        let cta = &mut self.ctas[to.cta as usize];
        let (start, end) = (to.offset, to.offset + bytes);
        cta.shared[start as usize..end as usize].fill(POISON);
        cta.in_flight.push(InFlight { start, end, pc });
    }

    /// The bytes of a copy are there.
    pub(crate) fn landed(&mut self, to: SharedAt, bytes: u32, pc: u32) {
        let copies = &mut self.ctas[to.cta as usize].in_flight;
        let this = InFlight {
            start: to.offset,
            end: to.offset + bytes,
            pc,
        };
        if let Some(at) = copies.iter().position(|c| *c == this) {
            copies.swap_remove(at);
        }
    }

    /// A copy in flight that covers one of these shared bytes of a CTA.
    pub(crate) fn copy_over(&self, cta: u32, address: u32, bytes: u32) -> Option<InFlight> {
        let reaches = |c: &&InFlight| c.start < address.saturating_add(bytes) && address < c.end;
        let copies = &self.ctas[cta as usize].in_flight;
        copies.iter().find(reaches).copied()
    }

    /// Notes a load that came before a copy.
    pub(super) fn note_overtaken(&mut self, from: Origin, copy: InFlight) {
        let program = self.env.program;
        let line = Place::of(program, copy.pc, [0; 3], 0, 0).line();
        let what = format!("shared memory read before the copy issued at {line} has arrived");
        let cta = self.ctas[from.cta as usize].id;
        self.keep_early(|| EarlyRead {
            place: Place::of(program, from.pc, cta, from.warp, from.lanes),
            what,
        });
    }

    /// Counts an early read of a warp and keeps the first.
    pub(crate) fn note_early(&mut self, w: &Warp, what: String) {
        let cta = self.ctas[w.cta as usize].id;
        let program = self.env.program;
        self.keep_early(|| EarlyRead {
            place: Place::of(program, w.pc, cta, w.index, w.active),
            what,
        });
    }

    pub(crate) fn keep_early(&mut self, early: impl FnOnce() -> EarlyRead) {
        self.counters.early_reads += 1;
        if self.early.is_none() {
            self.early = Some(Box::new(early()));
        }
    }
}
