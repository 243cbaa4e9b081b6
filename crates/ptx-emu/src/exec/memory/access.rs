//! Loads and stores: from lane addresses to host pointers, checked.
//!
//! Global bytes are shared by all CTAs, but a cluster that runs beside others writes to drafts of
//! its own (see `storage::draft`), so that nobody's results depend on the host's threads.

use crate::exec::checked::Checked;
use crate::exec::cluster::Cluster;
use crate::exec::lanes::{each, lanes};
use crate::exec::listen::agent::Agent;
use crate::exec::listen::visit::{Act, Bytes, Room, Visit};
use crate::exec::origin::Origin;
use crate::exec::storage::banks;
use crate::exec::storage::bytes::{AlignedBytes, POISON};
use crate::exec::storage::draft::Drafts;
use crate::exec::storage::pointers::{HostPtr, Pointers};
use crate::exec::storage::region::CachedRegion;
use crate::exec::storage::window::{WINDOW, Window, window_of};
use crate::exec::warp::Warp;
use crate::fault::FaultKind;
use crate::op::{Addr, Base, CLUSTER_RANK_SHIFT, Order, Space, rank_of};

/// What an access is, for checks and accounting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    /// Bytes per lane.
    pub(crate) bytes: u64,
    pub(crate) act: Act,
    pub(crate) order: Order,
}

impl Access {
    /// A weak load or store.
    #[inline(always)]
    pub(crate) fn weak(bytes: u64, write: bool) -> Self {
        Self {
            bytes,
            act: if write { Act::Write } else { Act::Read },
            order: Order::Weak,
        }
    }

    #[inline(always)]
    pub(crate) fn writes(&self) -> bool {
        self.act.writes()
    }
}

#[inline(always)]
fn lowest(mask: u32) -> usize {
    mask.trailing_zeros() as usize & 31
}

impl Cluster<'_> {
    /// Lane addresses of an operand, in its own space.
    #[inline(always)]
    pub(crate) fn addresses(&self, w: &Warp, addr: Addr) -> [u64; 32] {
        match addr.base {
            Base::R64(r) => {
                let r = w.get64(r);
                each(
                    #[inline(always)]
                    |i| r[i].wrapping_add_signed(addr.offset),
                )
            }
            Base::R32(r) => {
                let r = w.get(r);
                each(
                    #[inline(always)]
                    |i| u64::from(r[i].wrapping_add(addr.offset as u32)),
                )
            }
            Base::Abs => [addr.offset as u64; 32],
            Base::Global(index) => {
                let base = self.env.globals.get(index as usize).copied().unwrap_or(0);
                [base.wrapping_add_signed(addr.offset); 32]
            }
        }
    }

    /// One lane's address.
    pub(crate) fn address(&self, w: &Warp, addr: Addr, lane: usize) -> u64 {
        match addr.base {
            Base::R64(r) => w.get64(r)[lane].wrapping_add_signed(addr.offset),
            Base::R32(r) => u64::from(w.get(r)[lane].wrapping_add(addr.offset as u32)),
            Base::Abs | Base::Global(_) => self.addresses(w, addr)[lane],
        }
    }

    /// Reduces addresses of a state space to a place and addresses within it. `Err` holds a mix:
    /// generic addresses of one warp may point to several places.
    fn locate(
        &self,
        space: Space,
        addresses: &mut [u64; 32],
        mask: u32,
    ) -> Checked<Result<Window, ()>> {
        let place = match space {
            Space::Global | Space::Const => return Ok(Ok(Window::Global)),
            Space::Shared | Space::SharedCluster => Window::Shared,
            Space::Local => Window::Local,
            Space::Param => Window::Param,
            Space::Generic => {
                let first = window_of(addresses[lowest(mask)]);
                let same = |i: &usize| mask >> i & 1 == 0 || window_of(addresses[*i]) == first;
                if !(0..32).all(|i| same(&i)) {
                    return Ok(Err(()));
                }
                first
            }
        };
        // Windows are aligned to their size: the low half is the address in the space. Shared
        // and local addresses are 32 bits even when they come in 64-bit registers.
        if place != Window::Global {
            for a in addresses.iter_mut() {
                *a &= WINDOW - 1;
            }
        }
        Ok(Ok(place))
    }

    /// Checks a warp's access and finds its bytes on the host.
    pub(crate) fn resolve(
        &mut self,
        w: &mut Warp,
        mask: u32,
        space: Space,
        mut addresses: [u64; 32],
        access: Access,
    ) -> Checked<Pointers> {
        match self.locate(space, &mut addresses, mask)? {
            Ok(place) => self.resolve_in(w, mask, place, &addresses, access),
            Err(()) => {
                let mut all = [HostPtr::default(); 32];
                for lane in lanes(mask) {
                    let one = self.resolve(w, 1 << lane, space, [addresses[lane]; 32], access)?;
                    all[lane] = one.0[lane];
                }
                let spare = all[lowest(mask)];
                Ok(Pointers(each(|i| {
                    if mask >> i & 1 == 1 { all[i] } else { spare }
                })))
            }
        }
    }

    #[inline]
    pub(crate) fn resolve_in(
        &mut self,
        w: &mut Warp,
        mask: u32,
        place: Window,
        addresses: &[u64; 32],
        access: Access,
    ) -> Checked<Pointers> {
        let spare = addresses[lowest(mask)];
        let at: [u64; 32] = each(
            #[inline(always)]
            |i| {
                if mask >> i & 1 == 1 {
                    addresses[i]
                } else {
                    spare
                }
            },
        );
        let bits = at.iter().fold(0, |bits, a| bits | a);
        if bits & (access.bytes - 1) != 0 {
            return Err(misaligned(place, &at, mask, access.bytes));
        }
        match place {
            Window::Global => self.global_pointers(w, mask, &at, access),
            Window::Shared => self.shared_pointers(w, mask, &at, access),
            Window::Local => self.local_pointers(w, mask, &at, access),
            Window::Param => self.param_pointers(&at, access),
        }
    }

    /// Accounts for an access of a warp's threads.
    #[inline(always)]
    pub(super) fn pass_threads(
        &mut self,
        from: Origin,
        room: Room,
        access: Access,
        bytes: Bytes<'_>,
    ) {
        self.pass(&Visit {
            agent: Agent::Thread,
            from,
            act: access.act,
            order: access.order,
            room,
            bytes,
        });
    }

    /// One lane's.
    fn pass_lane(&mut self, (w, lane): (&Warp, usize), room: Room, first: u64, access: Access) {
        let len = access.bytes;
        self.pass_threads(
            w.origin(1 << lane),
            room,
            access,
            Bytes::Piece { first, len },
        );
    }

    #[inline]
    fn global_pointers(
        &mut self,
        w: &Warp,
        mask: u32,
        at: &[u64; 32],
        access: Access,
    ) -> Checked<Pointers> {
        let low = at.iter().fold(u64::MAX, |m, &a| m.min(a));
        let high = at.iter().fold(0, |m, &a| m.max(a));
        let cached = &self.last_region;
        if !(low >= cached.base && high.saturating_add(access.bytes) <= cached.end) {
            self.find_region(low, access)?;
        }
        let cached = &self.last_region;
        if high.saturating_add(access.bytes) > cached.end {
            return self.scattered_pointers(w, mask, at, access);
        }
        let (base, first, index) = (cached.base, cached.bytes.first(), cached.index);
        let room = Room::Global { region: index };
        match u32::try_from(high + access.bytes - base) {
            Ok(end) => {
                // Some may lie in one place, so that their number says nothing.
                let due = (low..).step_by(access.bytes as usize);
                let run = lanes(mask).zip(due).all(|(lane, due)| at[lane] == due);
                let bytes = Bytes::Lanes {
                    at: &at.map(|a| (a - base) as u32),
                    each: access.bytes as u32,
                    low: (low - base) as u32,
                    end,
                    dense: run || low == high,
                };
                self.pass_threads(w.origin(mask), room, access, bytes);
            }
            // Offsets beyond 4 GiB.
            Err(_) => {
                for lane in lanes(mask) {
                    self.pass_lane((w, lane), room, at[lane] - base, access);
                }
            }
        }
        if self.drafts.concern(index, access.writes()) {
            return Ok(self.drafted_pointers(at, (low - base, high - base), access));
        }
        Ok(Pointers(each(
            #[inline(always)]
            |i| HostPtr::to(first).offset((at[i] - base) as usize),
        )))
    }

    /// Pointers to what the cluster itself has written, or is about to.
    #[inline(never)]
    fn drafted_pointers(
        &mut self,
        at: &[u64; 32],
        (low, high): (u64, u64),
        access: Access,
    ) -> Pointers {
        let region = self.last_region;
        let drafts = &mut self.drafts;
        if access.writes() {
            return Pointers(each(|i| {
                let place = drafts.at_written(&region, at[i] - region.base, access.bytes);
                HostPtr::to(place.first())
            }));
        }
        if Drafts::together(low, high) {
            let first = HostPtr::to(drafts.at(&region, low).first());
            return Pointers(each(|i| first.offset((at[i] - region.base - low) as usize)));
        }
        Pointers(each(|i| {
            HostPtr::to(drafts.at(&region, at[i] - region.base).first())
        }))
    }

    /// Makes the region of `address` the cached one.
    pub(crate) fn find_region(&mut self, address: u64, access: Access) -> Checked<()> {
        let Some(region) = CachedRegion::of(self.env.memory, address) else {
            return Err(self.outside("global", address, access));
        };
        self.last_region = region;
        if address + access.bytes > self.last_region.end {
            return Err(self.outside("global", address, access));
        }
        Ok(())
    }

    /// Lanes in different allocations, one by one.
    #[inline(never)]
    fn scattered_pointers(
        &mut self,
        w: &Warp,
        mask: u32,
        at: &[u64; 32],
        access: Access,
    ) -> Checked<Pointers> {
        let mut out = [HostPtr::default(); 32];
        for (lane, &address) in at.iter().enumerate() {
            self.find_region(address, access)?;
            let cached = self.last_region;
            let offset = address - cached.base;
            let place = match access.writes() {
                true => self.drafts.at_written(&cached, offset, access.bytes),
                false => self.drafts.at(&cached, offset),
            };
            out[lane] = HostPtr::to(place.first());
            if mask >> lane & 1 == 1 {
                let region = cached.index;
                self.pass_lane((w, lane), Room::Global { region }, offset, access);
            }
        }
        Ok(Pointers(out))
    }

    fn outside(&self, space: &'static str, address: u64, access: Access) -> Box<FaultKind> {
        Box::new(FaultKind::OutOfBounds {
            space,
            address,
            bytes: access.bytes,
            write: access.writes(),
            nearest: self.env.memory.nearest(address),
        })
    }

    #[inline]
    fn shared_pointers(
        &mut self,
        w: &Warp,
        mask: u32,
        at: &[u64; 32],
        access: Access,
    ) -> Checked<Pointers> {
        if self.counts_conflicts {
            let extra = banks::extra_wavefronts(mask, at, access.bytes);
            self.counters.bank_conflicts += u64::from(extra);
        }
        let cta = &mut self.ctas[w.cta as usize];
        let (first, len) = (cta.shared.as_mut_ptr(), cta.shared.len() as u64);
        let low = at.iter().fold(u64::MAX, |m, &a| m.min(a));
        let end = at.iter().fold(0, |m, &a| m.max(a)) + access.bytes;
        if low < u64::from(self.env.program.shared_start) || end > len {
            return self.remote_pointers(w, mask, at, access);
        }
        let bytes = Bytes::Lanes {
            at: &at.map(|a| a as u32),
            each: access.bytes as u32,
            low: low as u32,
            end: end as u32,
            dense: false,
        };
        self.pass_threads(w.origin(mask), Room::Shared { cta: w.cta }, access, bytes);
        Ok(Pointers(each(
            #[inline(always)]
            |i| HostPtr::to(first).offset(at[i] as usize),
        )))
    }

    /// Addresses that name a CTA of the cluster, or are out of bounds.
    #[inline(never)]
    fn remote_pointers(
        &mut self,
        w: &Warp,
        mask: u32,
        at: &[u64; 32],
        access: Access,
    ) -> Checked<Pointers> {
        let mut out = [HostPtr::default(); 32];
        let mut early = None;
        for (lane, &address) in at.iter().enumerate() {
            let (cta, offset) = self.shared_target(w.cta, address as u32, access)?;
            if !access.writes() && cta != w.cta {
                early = early.or_else(|| self.copy_over(cta, offset, access.bytes as u32));
            }
            if mask >> lane & 1 == 1 {
                self.pass_lane((w, lane), Room::Shared { cta }, offset.into(), access);
            }
            let shared = &mut self.ctas[cta as usize].shared;
            out[lane] = HostPtr::to(shared[offset as usize..].as_mut_ptr());
        }
        if let Some(copy) = early {
            self.note_overtaken(w.origin(mask), copy);
        }
        Ok(Pointers(out))
    }

    /// Splits a shared address into CTA and offset, checked against that CTA's bytes.
    pub(crate) fn shared_target(
        &self,
        own: u32,
        address: u32,
        access: Access,
    ) -> Checked<(u32, u32)> {
        let offset = address & ((1 << CLUSTER_RANK_SHIFT) - 1);
        let cta = rank_of(address, own);
        let Some(target) = self.ctas.get(cta as usize) else {
            return Err(Box::new(FaultKind::illegal(format!(
                "shared::cluster address {address:#x} names CTA rank {cta}, but the cluster has {}",
                self.ctas.len()
            ))));
        };
        let end = target.shared.len() as u64;
        let start = self.env.program.shared_start;
        if offset < start || u64::from(offset) + access.bytes > end {
            return Err(Box::new(FaultKind::OutOfBounds {
                space: "shared",
                address: offset.into(),
                bytes: access.bytes,
                write: access.writes(),
                nearest: format!(
                    "the CTA has shared bytes {start:#x}..{end:#x}{}",
                    self.symbol_near(offset)
                ),
            }));
        }
        Ok((cta, offset))
    }

    fn local_pointers(
        &mut self,
        w: &mut Warp,
        mask: u32,
        at: &[u64; 32],
        access: Access,
    ) -> Checked<Pointers> {
        let total = access.bytes * u64::from(mask.count_ones());
        match access.writes() {
            true => self.counters.local_written += total,
            false => self.counters.local_read += total,
        }
        let per_lane = u64::from(self.env.program.local_bytes).next_multiple_of(16);
        if w.local.is_empty() {
            w.local = AlignedBytes::filled(per_lane as usize * 32, POISON);
        }
        let host = HostPtr::to(w.local.as_mut_ptr());
        let mut out = [host; 32];
        for lane in lanes(mask) {
            if at[lane] + access.bytes > per_lane {
                return Err(Box::new(FaultKind::OutOfBounds {
                    space: "local",
                    address: at[lane],
                    bytes: access.bytes,
                    write: access.writes(),
                    nearest: format!("a thread has {per_lane} local bytes"),
                }));
            }
            out[lane] = host.offset((lane as u64 * per_lane + at[lane]) as usize);
        }
        Ok(Pointers(out))
    }

    fn param_pointers(&mut self, at: &[u64; 32], access: Access) -> Checked<Pointers> {
        let bytes = &self.env.params;
        if let Some(&address) = at
            .iter()
            .find(|&&a| access.writes() || a + access.bytes > bytes.len() as u64)
        {
            return Err(Box::new(FaultKind::OutOfBounds {
                space: "param",
                address,
                bytes: access.bytes,
                write: access.writes(),
                nearest: format!(
                    "the kernel has {} parameter bytes, read-only",
                    self.env.program.param_bytes
                ),
            }));
        }
        // Parameters are only read: an access that writes was refused above.
        let host = HostPtr::to(bytes.as_ptr().cast_mut());
        Ok(Pointers(at.map(|a| host.offset(a as usize))))
    }

    /// Whether an access must wait for its turn among all CTAs.
    pub(super) fn communicates(
        &self,
        w: &Warp,
        mask: u32,
        space: Space,
        addresses: &[u64; 32],
    ) -> bool {
        !w.granted && self.env.shared_grid && self.is_global(mask, space, addresses)
    }

    /// Whether a warp's addresses lead to global memory.
    pub(super) fn is_global(&self, mask: u32, space: Space, addresses: &[u64; 32]) -> bool {
        match space {
            Space::Global | Space::Const => true,
            Space::Generic => window_of(addresses[lowest(mask)]) == Window::Global,
            Space::Shared | Space::SharedCluster | Space::Local | Space::Param => false,
        }
    }
}

fn misaligned(place: Window, at: &[u64; 32], mask: u32, align: u64) -> Box<FaultKind> {
    let lane = lanes(mask).find(|&i| at[i] & (align - 1) != 0).unwrap_or(0);
    Box::new(FaultKind::Misaligned {
        space: match place {
            Window::Global => "global",
            Window::Shared => "shared",
            Window::Local => "local",
            Window::Param => "param",
        },
        address: at[lane],
        align,
    })
}
