//! Loads and stores between registers and any memory.

use super::access::Access;
use super::gather::{gather, scatter};
use crate::exec::checked::Checked;
use crate::exec::cluster::{Cluster, Flow};
use crate::exec::lanes::lanes;
use crate::exec::listen::visit::Act;
use crate::exec::storage::pointers::Pointers;
use crate::exec::warp::{Wait, Warp};
use crate::op::{Addr, Extend, Order, Slot, SlotList, Space, pool};

impl Cluster<'_> {
    #[inline(never)]
    pub(super) fn load_any(
        &mut self,
        w: &mut Warp,
        mask: u32,
        (space, order): (Space, Order),
        (width, ext): (u8, Extend),
        d: SlotList,
        addr: Addr,
    ) -> Checked<Flow> {
        let slots = pool(self.env.program, d);
        let access = Access {
            bytes: u64::from(width) * slots.len() as u64,
            act: Act::Read,
            order,
        };
        let Some(ptr) = self.in_turn(w, mask, (space, addr), access)? else {
            return Ok(Flow::Again(Wait::Communication));
        };
        for (i, &slot) in slots.iter().enumerate() {
            // SAFETY: `in_turn` checked every lane's bytes and their alignment.
            unsafe { gather(w, mask, slot, &ptr, i * usize::from(width), width, ext) };
        }
        Ok(Flow::Next)
    }

    #[inline(never)]
    pub(super) fn store_any(
        &mut self,
        w: &mut Warp,
        mask: u32,
        (space, order): (Space, Order),
        width: u8,
        s: SlotList,
        addr: Addr,
    ) -> Checked<Flow> {
        let slots = pool(self.env.program, s);
        let access = Access {
            bytes: u64::from(width) * slots.len() as u64,
            act: Act::Write,
            order,
        };
        let Some(ptr) = self.in_turn(w, mask, (space, addr), access)? else {
            return Ok(Flow::Again(Wait::Communication));
        };
        self.progress += 1;
        if self.is_change_wanted() {
            // SAFETY: as in `load_any`.
            unsafe { self.tell_if_unchanged(w, mask, slots, width, &ptr) };
        }
        for (i, &slot) in slots.iter().enumerate() {
            // SAFETY: as in `load_any`.
            unsafe { scatter(w, mask, slot, &ptr, i * usize::from(width), width) };
        }
        Ok(Flow::Next)
    }

    /// Where every lane's bytes are, which are checked; nothing if the access must first wait for
    /// its turn among all CTAs.
    #[inline(always)]
    fn in_turn(
        &mut self,
        w: &mut Warp,
        mask: u32,
        (space, addr): (Space, Addr),
        access: Access,
    ) -> Checked<Option<Pointers>> {
        let addresses = self.addresses(w, addr);
        if access.order != Order::Weak && self.communicates(w, mask, space, &addresses) {
            return Ok(None);
        }
        self.resolve(w, mask, space, addresses, access).map(Some)
    }

    /// Whether somebody wants to know if a store changes anything.
    #[inline(always)]
    pub(crate) fn is_change_wanted(&self) -> bool {
        self.ear.as_ref().is_some_and(|ear| ear.wants_changes())
    }

    /// Tells him if it will not.
    ///
    /// # Safety
    /// The bytes of every lane must be valid.
    #[cold]
    pub(super) unsafe fn tell_if_unchanged(
        &mut self,
        w: &Warp,
        mask: u32,
        slots: &[Slot],
        width: u8,
        pointers: &Pointers,
    ) {
        // SAFETY: by this function's contract.
        if unsafe { holds(w, mask, slots, width, pointers) } {
            self.tell_unchanged();
        }
    }

    /// Tells him that a store changes nothing.
    pub(crate) fn tell_unchanged(&mut self) {
        if let Some(ear) = self.ear.as_mut() {
            ear.unchanged();
        }
    }
}

/// Whether memory holds what a store would write.
///
/// # Safety
/// The bytes of every lane must be valid.
unsafe fn holds(w: &Warp, mask: u32, slots: &[Slot], width: u8, pointers: &Pointers) -> bool {
    let width = usize::from(width);
    lanes(mask).all(|lane| {
        slots.iter().enumerate().all(|(i, slot)| {
            let new = match slot {
                Slot::W32(r) => u64::from(w.get(*r)[lane]),
                Slot::W64(r) => w.get64(*r)[lane],
                Slot::Sink => return false,
            };
            let at = pointers.0[lane].offset(i * width);
            // SAFETY: `width` bytes are valid by this function's contract.
            let old = |byte: usize| unsafe { at.offset(byte).cast::<u8>().read() };
            let mut new = new.to_le_bytes().into_iter().take(width).enumerate();
            new.all(|(byte, new)| old(byte) == new)
        })
    })
}
