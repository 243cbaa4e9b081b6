//! `tcgen05.alloc`, `dealloc` and `relinquish_alloc_permit`.

use super::ctas::{Ctas, uniform, whole_warp};
use crate::exec::checked::{Checked, illegal};
use crate::exec::cluster::adversary::Delivery;
use crate::exec::cluster::cta::Cta;
use crate::exec::cluster::{Cluster, Flow};
use crate::exec::listen::agent::Agent;
use crate::exec::listen::signal::Signal;
use crate::exec::listen::visit::Act;
use crate::exec::storage::tmem::reach::Reach;
use crate::exec::storage::tmem::{Ask, GRANULE, Piece, split};
use crate::exec::warp::{State, Wait, Warp};
use crate::fault::{Fault, FaultKind, Place};
use crate::op::{Addr, CtaGroup, R32};
use crate::tensor::tcgen05::COLUMNS;

/// A number of columns that can be had.
fn columns_of(w: &Warp, r: R32, what: &str) -> Checked<u32> {
    let columns = uniform(w, r, &format!("the number of columns of {what}"))?;
    match columns.is_power_of_two() && (GRANULE..=COLUMNS as u32).contains(&columns) {
        true => Ok(columns),
        false => Err(illegal(format!(
            "{what} of {columns} columns: 32, 64, 128, 256 or 512 can be had"
        ))),
    }
}

impl Cluster<'_> {
    pub(super) fn tmem_alloc(
        &mut self,
        w: &mut Warp,
        mask: u32,
        group: CtaGroup,
        dst: Addr,
        columns: R32,
    ) -> Checked<Flow> {
        const WHAT: &str = "tcgen05.alloc";
        whole_warp(w, mask, WHAT)?;
        let ctas = self.tmem_group(w, group, WHAT)?;
        let columns = columns_of(w, columns, WHAT)?;
        let own = w.cta as usize;
        let tmem = &self.ctas[own].tmem;
        if tmem.relinquished {
            return Err(illegal(
                "tcgen05.alloc after tcgen05.relinquish_alloc_permit of the same CTA",
            ));
        }
        if let Some(last) = tmem.last.filter(|last| *last < columns) {
            return Err(illegal(format!(
                "tcgen05.alloc of {columns} columns after one of {last}: allocations of a CTA must \
                 not grow"
            )));
        }
        let to = self.shared_operand(w, dst, 0, 4, true)?;
        let shares = self.env.multiprocessors.is_some();
        if shares && !w.granted {
            return Ok(Flow::Again(Wait::Communication));
        }
        let found = match ctas.peer(own) {
            None => self.find_columns(ctas, columns),
            Some(_) => self.ask_together(w, ctas, columns)?,
        };
        let Some(first) = found else {
            self.counters.barrier_waits += u64::from(!shares);
            return Ok(Flow::Again(Wait::Columns { columns }));
        };
        if ctas.count == 1 {
            let pc = w.pc;
            self.take_columns(own, Piece { first, columns, pc });
        }
        let (cta, origin) = (w.cta, w.origin(mask));
        let fresh = Signal::TmemAlloc {
            cta,
            first,
            columns,
        };
        self.signal(origin, fresh);
        self.progress += 1;
        self.pass_shared_piece((Agent::Thread, w.origin(1)), to, 4, Act::Write);
        let bytes = self.shared_at(to, 4);
        bytes.copy_from_slice(&first.to_le_bytes());
        Ok(Flow::Next)
    }

    /// Columns that are free in each of the CTAs.
    fn find_columns(&self, ctas: Ctas, columns: u32) -> Option<u32> {
        match &self.env.multiprocessors {
            // Both CTAs of a pair have the same.
            None => self.ctas[ctas.first].tmem.find(columns),
            Some(all) => {
                let sms = ctas.all().map(|cta| self.ctas[cta].tmem.sm);
                all.find(&sms.collect::<Vec<_>>(), columns)
            }
        }
    }

    fn take_columns(&mut self, cta: usize, piece: Piece) {
        let Cta { id, tmem, .. } = &mut self.ctas[cta];
        tmem.take(piece);
        if let Some(all) = &self.env.multiprocessors {
            all.take(tmem.sm, *id, piece);
        }
    }

    /// Lets the others on its multiprocessors have what was freed; whether anything was.
    pub(crate) fn release_columns(&mut self) -> bool {
        let Some(all) = &self.env.multiprocessors else {
            return false;
        };
        let mut any = false;
        for tmem in self.ctas.iter_mut().map(|cta| &mut cta.tmem) {
            for piece in tmem.freed.drain(..) {
                all.free(tmem.sm, &piece);
                any = true;
            }
        }
        any
    }

    /// Puts the cluster into a place of the device: its CTAs on as many multiprocessors.
    pub(crate) fn settle_in(&mut self, place: u64) {
        let (sms, ranks) = (u64::from(self.env.limits.sms), self.ctas.len() as u64);
        self.place = place;
        for (cta, rank) in self.ctas.iter_mut().zip(0..) {
            cta.tmem.sm = ((place * ranks + rank) % sms) as u32;
        }
    }

    /// Whether one of its allocations waits.
    pub(crate) fn lacks_columns(&self) -> bool {
        let lacks = |w: &Warp| matches!(w.state, State::Waiting(Wait::Columns { .. }));
        self.warps().any(lacks)
    }

    /// Allocates in both CTAs of a pair once both have asked.
    fn ask_together(&mut self, w: &Warp, ctas: Ctas, columns: u32) -> Checked<Option<u32>> {
        let own = w.cta as usize;
        let peer = own ^ 1;
        match self.ctas[own].tmem.ask {
            // Another warp of this CTA is before.
            Some(ask) if ask.warp != w.index => return Ok(None),
            Some(Ask {
                granted: Some(first),
                ..
            }) => {
                self.ctas[own].tmem.ask = None;
                return Ok(Some(first));
            }
            _ => {}
        }
        let ask = Ask {
            warp: w.index,
            columns,
            pc: w.pc,
            granted: None,
        };
        self.ctas[own].tmem.ask = Some(ask);
        let Some(other) = self.ctas[peer].tmem.ask else {
            return Ok(None);
        };
        if other.granted.is_some() {
            return Ok(None);
        }
        if other.columns != columns {
            return Err(illegal(format!(
                "tcgen05.alloc of {columns} columns where the other CTA of the pair asks for {}",
                other.columns
            )));
        }
        let Some(first) = self.find_columns(ctas, columns) else {
            return Ok(None);
        };
        for (cta, ask) in [(own, ask), (peer, other)] {
            let pc = ask.pc;
            self.take_columns(cta, Piece { first, columns, pc });
        }
        self.ctas[own].tmem.ask = None;
        self.ctas[peer].tmem.ask = Some(Ask {
            granted: Some(first),
            ..other
        });
        Ok(Some(first))
    }

    /// Whether an allocation that waits may be tried again.
    pub(crate) fn columns_free(&self, cta: usize, warp: usize, columns: u32) -> bool {
        if self.env.multiprocessors.is_some() {
            // Between epochs, all in their turn.
            return false;
        }
        let tmem = &self.ctas[cta].tmem;
        if tmem.group != Some(CtaGroup::Pair) {
            return tmem.find(columns).is_some();
        }
        match tmem.ask {
            Some(ask) if ask.warp as usize == warp => {
                let peer = self.ctas[cta ^ 1].tmem.ask;
                let both = peer.is_some_and(|peer| peer.granted.is_none());
                ask.granted.is_some() || (both && tmem.find(columns).is_some())
            }
            Some(_) => false,
            None => true,
        }
    }

    /// What an allocation waits for, in words.
    pub(crate) fn columns_wanted(&self, cta: usize, columns: u32) -> String {
        let tmem = &self.ctas[cta].tmem;
        if let Some(all) = &self.env.multiprocessors
            && (tmem.ask.is_none() || self.ctas[cta ^ 1].tmem.ask.is_some())
        {
            return format!(
                "tcgen05.alloc: {columns} columns wanted, {}",
                all.tell(tmem.sm)
            );
        }
        match tmem.find(columns) {
            Some(_) => {
                "tcgen05.alloc of cta_group::2: the other CTA of the pair has not come".to_owned()
            }
            None => format!(
                "tcgen05.alloc: {columns} columns wanted, {} of {COLUMNS} are free",
                tmem.free()
            ),
        }
    }

    pub(super) fn tmem_dealloc(
        &mut self,
        w: &mut Warp,
        mask: u32,
        group: CtaGroup,
        (at, columns): (R32, R32),
    ) -> Checked<Flow> {
        const WHAT: &str = "tcgen05.dealloc";
        whole_warp(w, mask, WHAT)?;
        let ctas = self.tmem_group(w, group, WHAT)?;
        let columns = columns_of(w, columns, WHAT)?;
        let at = uniform(w, at, "the address of tcgen05.dealloc")?;
        let (_, first) = split(at);
        let own = w.cta as usize;
        let pieces = &self.ctas[own].tmem.pieces;
        let place = pieces.iter().position(|p| p.first == first);
        let Some(place) = place else {
            return Err(illegal(format!(
                "tcgen05.dealloc of {columns} columns from {first} on, where no tcgen05.alloc began"
            )));
        };
        let piece = pieces[place];
        if piece.columns != columns {
            return Err(illegal(format!(
                "tcgen05.dealloc of {columns} columns from {first} on, where {} were allocated",
                piece.columns
            )));
        }
        self.idle_columns(ctas, own, &piece)?;
        let tmem = &mut self.ctas[own].tmem;
        tmem.pieces.remove(place);
        if self.env.multiprocessors.is_some() {
            tmem.freed.push(piece);
        }
        let freed = Reach {
            columns: first..first + columns,
            lanes: u128::MAX,
        };
        let who = (Agent::Thread, w.origin(mask));
        self.pass_tensor(who, own, &freed, Act::Free);
        self.progress += 1;
        // Whether it waits for the other CTA to do the same is left open.
        match ctas.peer(own) {
            Some(_) if self.adversary.delivery == Delivery::Latest => {
                Ok(Flow::After(Wait::PeerColumns { first }))
            }
            _ => Ok(Flow::Next),
        }
    }

    /// Nothing that was issued may still be at work in columns that are freed.
    fn idle_columns(&self, ctas: Ctas, own: usize, piece: &Piece) -> Checked<()> {
        let columns = piece.first..piece.first + piece.columns;
        let busy = self.at_work(own, &columns, u128::MAX);
        let Some(issued) = busy else { return Ok(()) };
        let line = Place::of(self.env.program, issued.from.pc, [0; 3], 0, 0).line();
        let whose = match ctas.count {
            1 => "",
            _ => ", in both CTAs of the pair",
        };
        Err(illegal(format!(
            "tcgen05.dealloc of columns {} to {} while {} issued at {line} works there{whose}: wait \
             for its tcgen05.commit first",
            columns.start,
            columns.end - 1,
            issued.name()
        )))
    }

    /// Whether the other CTA of a pair has freed the columns from `first` on.
    pub(crate) fn peer_freed(&self, cta: usize, first: u32) -> bool {
        let peer = self.ctas.get(cta ^ 1);
        peer.is_none_or(|peer| peer.tmem.pieces.iter().all(|p| p.first != first))
    }

    pub(super) fn tmem_relinquish(
        &mut self,
        w: &mut Warp,
        mask: u32,
        group: CtaGroup,
    ) -> Checked<Flow> {
        const WHAT: &str = "tcgen05.relinquish_alloc_permit";
        whole_warp(w, mask, WHAT)?;
        self.tmem_group(w, group, WHAT)?;
        self.ctas[w.cta as usize].tmem.relinquished = true;
        self.progress += 1;
        Ok(Flow::Next)
    }

    /// A CTA has ended: it must have freed what it allocated.
    pub(crate) fn check_columns(&self, cta: usize) -> Result<(), Box<Fault>> {
        let Some((pc, columns)) = self.ctas[cta].tmem.leak() else {
            return Ok(());
        };
        let kind = FaultKind::illegal(format!(
            "the CTA ended with {columns} columns of tensor memory that this tcgen05.alloc took: \
             tcgen05.dealloc is missing"
        ));
        Err(self.fault(kind, cta, 0, pc, 0))
    }
}
