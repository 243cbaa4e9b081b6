//! Whole pieces of memory, as copies and the host read and write them.

use super::access::Access;
use super::atomic::combine;
use crate::exec::checked::Checked;
use crate::exec::cluster::Cluster;
use crate::exec::listen::agent::Agent;
use crate::exec::listen::visit::{Act, Bytes, Room, Visit};
use crate::exec::origin::{Origin, SharedAt};
use crate::exec::storage::pointers::HostPtr;
use crate::exec::storage::region::CachedRegion;
use crate::exec::storage::window::{Window, window_of};
use crate::exec::warp::Warp;
use crate::op::{Addr, AtomOp, Num, Order, Space};

impl<'a> Cluster<'a> {
    /// Shared bytes, which were checked when the copy was issued. Should that have been another
    /// length, this panics instead of leaving the CTA's memory.
    pub(crate) fn shared_at(&mut self, at: SharedAt, bytes: usize) -> &mut [u8] {
        &mut self.ctas[at.cta as usize].shared[at.offset as usize..][..bytes]
    }

    /// Accounts for a piece of shared memory, for a copy.
    pub(crate) fn pass_shared_piece(
        &mut self,
        who: (Agent, Origin),
        at: SharedAt,
        len: u64,
        act: Act,
    ) {
        let (agent, from) = who;
        self.pass(&Visit {
            agent,
            from,
            act,
            order: Order::Weak,
            room: Room::Shared { cta: at.cta },
            bytes: Bytes::Piece {
                first: at.offset.into(),
                len,
            },
        });
    }

    /// The allocation of global bytes, checked and accounted for.
    pub(crate) fn pass_global_piece(
        &mut self,
        (agent, from): (Agent, Origin),
        address: u64,
        len: u64,
        act: Act,
    ) -> Checked<CachedRegion<'a>> {
        let known = self.last_region;
        if address < known.base || address.saturating_add(len) > known.end {
            self.find_region(address, Access::weak(len, act.writes()))?;
        }
        let region = self.last_region;
        self.pass(&Visit {
            agent,
            from,
            act,
            order: Order::Weak,
            room: Room::Global {
                region: region.index,
            },
            bytes: Bytes::Piece {
                first: address - region.base,
                len,
            },
        });
        Ok(region)
    }

    pub(crate) fn read_global(
        &mut self,
        who: (Agent, Origin),
        address: u64,
        out: &mut [u8],
    ) -> Checked<()> {
        let region = self.pass_global_piece(who, address, out.len() as u64, Act::Read)?;
        let offset = address - region.base;
        self.drafts
            .pieces(&region, offset, out.len(), |piece, part| {
                out[part].copy_from_slice(piece);
            });
        Ok(())
    }

    pub(crate) fn write_global(
        &mut self,
        who: (Agent, Origin),
        address: u64,
        data: &[u8],
    ) -> Checked<()> {
        self.merge_global(who, address, data, None)
    }

    pub(crate) fn merge_global(
        &mut self,
        who: (Agent, Origin),
        address: u64,
        data: &[u8],
        reduce: Option<(AtomOp, Num)>,
    ) -> Checked<()> {
        let region = self.pass_global_piece(who, address, data.len() as u64, act_of(reduce))?;
        let offset = address - region.base;
        self.drafts
            .pieces_written(&region, offset, data.len(), |piece, part| {
                merge(piece, &data[part], reduce);
            });
        Ok(())
    }

    /// Shared place of a lane's operand, `bytes` long.
    pub(crate) fn shared_operand(
        &self,
        w: &Warp,
        addr: Addr,
        lane: usize,
        bytes: u64,
        write: bool,
    ) -> Checked<SharedAt> {
        let address = self.address(w, addr, lane) as u32;
        let (cta, offset) = self.shared_target(w.cta, address, Access::weak(bytes, write))?;
        Ok(SharedAt { cta, offset })
    }

    /// `N` bytes at a lane's generic (or global, shared, local, parameter) address.
    pub(crate) fn read_block<const N: usize>(
        &mut self,
        agent: Agent,
        w: &mut Warp,
        lane: usize,
        space: Space,
        address: u64,
    ) -> Checked<[u8; N]> {
        let mut out = [0; N];
        let place = match space {
            Space::Generic => window_of(address),
            Space::Shared | Space::SharedCluster => Window::Shared,
            Space::Param => Window::Param,
            Space::Local => Window::Local,
            Space::Global | Space::Const => Window::Global,
        };
        let within = if place == Window::Global {
            address
        } else {
            address & 0xffff_ffff
        };
        let access = Access::weak(N as u64, false);
        match place {
            Window::Global => self.read_global((agent, w.origin(1 << lane)), address, &mut out)?,
            Window::Shared => {
                let (cta, offset) = self.shared_target(w.cta, within as u32, access)?;
                let at = SharedAt { cta, offset };
                self.pass_shared_piece((agent, w.origin(1 << lane)), at, N as u64, Act::Read);
                out.copy_from_slice(self.shared_at(at, N));
            }
            // A lane's local memory and the parameters are each one piece, so its ends are
            // enough; they need no alignment.
            Window::Local | Window::Param => {
                let end = |at: u64| (place, [at; 32], Access { bytes: 1, ..access });
                let mut first = HostPtr::default();
                for (place, at, access) in [end(within + N as u64 - 1), end(within)] {
                    first = self.resolve_in(w, 1 << lane, place, &at, access)?.0[lane];
                }
                // SAFETY: the first and the last of N bytes in one piece were checked.
                out = unsafe { first.cast::<[u8; N]>().read_unaligned() };
            }
        }
        Ok(out)
    }
}

/// What a copy does to its target.
pub(crate) fn act_of(reduce: Option<(AtomOp, Num)>) -> Act {
    if reduce.is_some() {
        Act::Update
    } else {
        Act::Write
    }
}

/// Stores or reduces bytes into memory.
pub(crate) fn merge(target: &mut [u8], data: &[u8], reduce: Option<(AtomOp, Num)>) {
    let Some((op, ty)) = reduce else {
        target.copy_from_slice(data);
        return;
    };
    let each = ty.bytes() as usize;
    for (target, operand) in target.chunks_exact_mut(each).zip(data.chunks_exact(each)) {
        let word = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..each].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        };
        let (old, operand) = (word(target), word(operand));
        let new = match (op, ty) {
            (AtomOp::Add, Num::F64) => crate::numeric::arith::add_f64_in_l2(old, operand),
            _ => combine(op, ty, old, operand),
        };
        target.copy_from_slice(&new.to_le_bytes()[..each]);
    }
}
