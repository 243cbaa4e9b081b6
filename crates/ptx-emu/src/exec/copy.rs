//! Asynchronous copies: issued now, complete later.
//!
//! A copy into shared memory poisons its destination when issued and publishes the bytes when it
//! completes; a copy out of shared memory reads its source some time between, and what changes
//! there meanwhile is poison. When they complete is up to [`super::adversary`].

use super::access::{Access, Window, window_of};
use super::atomic::combine;
use super::cluster::{CachedRegion, Cluster, POISON};
use super::door::{Act, Agent, Bytes, Room, Visit};
use super::lane_copy::LaneCopy;
use super::paths::Branch;
use super::pointers::HostPtr;
use super::signal::Step;
use super::tensor_copy::TensorJob;
use super::warp::Warp;
use crate::fault::{EarlyRead, Fault, FaultKind, Place};
use crate::op::{Addr, AtomOp, Num, Order, Space};

type Checked<T> = Result<T, Box<FaultKind>>;

/// Where an access or an event comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) cta: u32,
    pub(crate) warp: u32,
    /// The lanes that execute the instruction.
    pub(crate) lanes: u32,
    pub(crate) pc: u32,
    /// The path of the warp they are on.
    pub(crate) branch: Branch,
    /// Number of the copy or product it issued, if that acts now; else 0.
    pub(crate) work: u64,
}

/// An event in flight.
pub(crate) struct Pending {
    pub(crate) from: Origin,
    pub(crate) job: Job,
}

/// How long a kind of copy takes when its time is drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Latency {
    pub(super) least: u64,
    pub(super) spread: u64,
}

impl Latency {
    /// `cp.async`
    pub(super) const LANES: Self = Self::new(100, 400);
    /// Bulk and tensor copies into shared memory.
    pub(super) const LOAD: Self = Self::new(200, 600);
    /// Bulk and tensor copies out of it.
    pub(super) const STORE: Self = Self::new(150, 500);
    /// Stores to other CTAs of the cluster.
    pub(super) const REMOTE: Self = Self::new(50, 200);
    /// Work of tensor cores on tensor memory.
    pub(super) const TENSOR: Self = Self::new(100, 400);

    const fn new(least: u64, spread: u64) -> Self {
        Self { least, spread }
    }
}

/// A place in the cluster's shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SharedAt {
    pub(crate) cta: u32,
    pub(crate) offset: u32,
}

/// What happens when an event is due.
pub(crate) enum Job {
    /// `cp.async` of a warp.
    Lanes { group: u64, items: Vec<LaneCopy> },
    /// Bytes into shared memory, signalled on barriers.
    ToShared {
        from: ByteSource,
        bytes: u32,
        targets: Vec<(SharedAt, SharedAt)>,
        reduce: Option<(AtomOp, Num)>,
    },
    /// Bytes (or a reduction) out of shared memory.
    ToGlobal {
        from: SharedSource,
        to: u64,
        group: u64,
        reduce: Option<(AtomOp, Num)>,
        mask: u16,
    },
    /// `st.async`, `red.async`
    Remote {
        to: SharedAt,
        barrier: SharedAt,
        data: Vec<u8>,
        reduce: Option<(AtomOp, Num)>,
    },
    /// `cp.async.bulk.tensor`
    Tensor(Box<TensorJob>),
    /// What the tensor core of a CTA was given, up to this; a commit arrives on barriers.
    TensorCore { pipe: u32, targets: Vec<SharedAt> },
}

impl Job {
    /// The bulk group of a copy out of shared memory, and whether its source has been read.
    pub(super) fn bulk_group(&self) -> Option<(u64, bool)> {
        match self {
            Job::ToGlobal { from, group, .. } => Some((*group, from.read)),
            Job::Tensor(job) => job
                .source
                .as_ref()
                .map(|(source, group)| (*group, source.read)),
            Job::Lanes { .. } | Job::ToShared { .. } | Job::Remote { .. } => None,
            Job::TensorCore { .. } => None,
        }
    }

    /// The shared bytes a copy to global memory takes.
    pub(super) fn shared_source(&mut self) -> Option<&mut SharedSource> {
        match self {
            Job::ToGlobal { from, .. } => Some(from),
            Job::Tensor(job) => job.source.as_mut().map(|(source, _)| source),
            Job::Lanes { .. } | Job::ToShared { .. } | Job::Remote { .. } => None,
            Job::TensorCore { .. } => None,
        }
    }

    /// Who carries it out.
    pub(super) fn agent(&self) -> Agent {
        match self {
            Job::Lanes { .. } | Job::Remote { .. } => Agent::LaneCopy,
            Job::ToShared { .. } | Job::ToGlobal { .. } | Job::Tensor(_) => Agent::BulkCopy,
            Job::TensorCore { .. } => Agent::TensorCore,
        }
    }

    /// The first barrier it signals.
    pub(super) fn signalled(&self) -> Option<SharedAt> {
        match self {
            Job::ToShared { targets, .. } => targets.first().map(|(_, barrier)| *barrier),
            Job::Remote { barrier, .. } => Some(*barrier),
            Job::Tensor(job) => job.targets.first().map(|(_, barrier)| *barrier),
            Job::TensorCore { targets, .. } => targets.first().copied(),
            Job::Lanes { .. } | Job::ToGlobal { .. } => None,
        }
    }

    /// Whether the copy signals this barrier when it completes.
    pub(super) fn signals(&self, at: SharedAt) -> bool {
        match self {
            Job::ToShared { targets, .. } => targets.iter().any(|(_, b)| *b == at),
            Job::Remote { barrier, .. } => *barrier == at,
            Job::Tensor(job) => job.targets.iter().any(|(_, b)| *b == at),
            Job::TensorCore { targets, .. } => targets.contains(&at),
            Job::Lanes { .. } | Job::ToGlobal { .. } => false,
        }
    }
}

/// Where bytes for shared memory come from.
pub(crate) enum ByteSource {
    Global(u64),
    Shared(SharedSource),
    /// An answer that comes from nowhere in memory.
    Given([u8; super::cancel::ANSWER as usize]),
}

/// Shared bytes that a copy reads at an unknown moment between its issue and its completion.
pub(crate) struct SharedSource {
    at: SharedAt,
    /// As they were at issue, and what the copy takes once it has read; in front of them a gap, so
    /// that they lie in their swizzle pattern as they do in shared memory.
    bytes: Vec<u8>,
    gap: u32,
    read: bool,
}

/// Bytes after which every swizzle repeats.
const SWIZZLE_PERIOD: u32 = 1024;

impl SharedSource {
    /// What was read, from the gap's end on.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.gap as usize..]
    }

    /// What was read with the gap before it, and the gap's length.
    pub(super) fn swizzled(&self) -> (&[u8], u32) {
        (&self.bytes, self.gap)
    }
}

impl<'a> Cluster<'a> {
    /// Completes one event, blaming faults on the instruction that issued it.
    pub(super) fn finish_ordered(&mut self, event: Pending) -> Result<(), Box<Fault>> {
        let Pending { from, job } = event;
        if let Job::TensorCore { pipe, .. } = job {
            return self.drain(pipe as usize, from.work);
        }
        self.finish(from, job)
            .map_err(|kind| self.fault(*kind, from.cta as usize, from.warp as usize, from.pc, 0))
    }

    fn finish(&mut self, from: Origin, job: Job) -> Checked<()> {
        match job {
            Job::Lanes { group, items } => self.finish_lanes(from, group, &items),
            Job::ToShared {
                from: mut source,
                bytes,
                targets,
                reduce,
            } => {
                if let ByteSource::Shared(source) = &mut source {
                    self.take_source(source, from);
                }
                for (to, barrier) in targets {
                    self.landed(to, bytes, from.pc);
                    let layouts = &mut self.ctas[to.cta as usize].tmem.layouts;
                    layouts.forget(to.offset..to.offset + bytes);
                    self.copy_in(from, &source, (to, bytes), reduce)?;
                    self.complete_tx(from, barrier, bytes)?;
                }
                Ok(())
            }
            Job::ToGlobal {
                from: mut source,
                to,
                group,
                reduce,
                mask,
            } => {
                let read_now = self.take_source(&mut source, from);
                self.copy_out(from, source.bytes(), to, reduce, mask)?;
                self.finish_bulk(from, group, read_now);
                Ok(())
            }
            Job::Remote {
                to,
                barrier,
                data,
                reduce,
            } => {
                let act = act_of(reduce);
                self.pass_shared_piece((Agent::LaneCopy, from), to, data.len() as u64, act);
                merge(self.shared_at(to, data.len()), &data, reduce);
                self.complete_tx(from, barrier, data.len() as u32)
            }
            Job::Tensor(job) => self.finish_tensor(from, *job),
            // Its faults are those of what it was given.
            Job::TensorCore { .. } => Ok(()),
        }
    }

    /// Shared bytes, which were checked when the copy was issued. Should that have been another
    /// length, this panics instead of leaving the CTA's memory.
    pub(super) fn shared_at(&mut self, at: SharedAt, bytes: usize) -> &mut [u8] {
        &mut self.ctas[at.cta as usize].shared[at.offset as usize..][..bytes]
    }

    /// A piece of shared memory at the door, for a copy.
    pub(super) fn pass_shared_piece(
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

    /// The allocation of global bytes, checked and let through the door.
    pub(super) fn pass_global_piece(
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

    pub(super) fn read_global(
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

    pub(super) fn write_global(
        &mut self,
        who: (Agent, Origin),
        address: u64,
        data: &[u8],
    ) -> Checked<()> {
        self.merge_global(who, address, data, None)
    }

    fn merge_global(
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

    pub(super) fn complete_tx(&mut self, from: Origin, at: SharedAt, bytes: u32) -> Checked<()> {
        let step = Step::Complete { bytes };
        self.at_mbarrier(from, at, step, |b| b.tx -= i64::from(bytes))
    }

    fn copy_in(
        &mut self,
        from: Origin,
        source: &ByteSource,
        (to, bytes): (SharedAt, u32),
        reduce: Option<(AtomOp, Num)>,
    ) -> Checked<()> {
        let who = (Agent::BulkCopy, from);
        self.pass_shared_piece(who, to, u64::from(bytes), act_of(reduce));
        match source {
            ByteSource::Global(address) => {
                let region = self.pass_global_piece(who, *address, bytes.into(), Act::Read)?;
                let offset = address - region.base;
                let target = &mut self.ctas[to.cta as usize].shared[to.offset as usize..];
                self.drafts
                    .pieces(&region, offset, bytes as usize, |piece, part| {
                        merge(&mut target[part], piece, reduce);
                    });
            }
            ByteSource::Shared(source) => {
                merge(self.shared_at(to, bytes as usize), source.bytes(), reduce);
            }
            ByteSource::Given(answer) => {
                merge(self.shared_at(to, bytes as usize), answer, reduce);
            }
        }
        Ok(())
    }

    fn copy_out(
        &mut self,
        from: Origin,
        data: &[u8],
        to: u64,
        reduce: Option<(AtomOp, Num)>,
        mask: u16,
    ) -> Checked<()> {
        let who = (Agent::BulkCopy, from);
        if mask == u16::MAX {
            return self.merge_global(who, to, data, reduce);
        }
        let region = self.pass_global_piece(who, to, data.len() as u64, act_of(reduce))?;
        let chosen = (0..data.len()).filter(|i| mask >> (i % 16) & 1 == 1);
        // Another CTA may write the bytes between.
        for i in chosen {
            let offset = to - region.base + i as u64;
            self.drafts
                .pieces_written(&region, offset, 1, |target, _| target[0] = data[i]);
        }
        Ok(())
    }

    /// Notes what a copy about to be issued would read.
    pub(super) fn source(&self, at: SharedAt, bytes: u32) -> SharedSource {
        let gap = at.offset % SWIZZLE_PERIOD;
        let shared = &self.ctas[at.cta as usize].shared;
        let mut kept = vec![0; gap as usize];
        kept.extend_from_slice(&shared[at.offset as usize..][..bytes as usize]);
        SharedSource {
            at,
            bytes: kept,
            gap,
            read: false,
        }
    }

    /// Reads the source of a copy: bytes that are no longer what they were at issue could be taken
    /// before or after the change, so they are poison. False if it was read before.
    pub(super) fn take_source(&mut self, source: &mut SharedSource, from: Origin) -> bool {
        if std::mem::replace(&mut source.read, true) {
            return false;
        }
        let (at, gap) = (source.at, source.gap as usize);
        let kept = &mut source.bytes[gap..];
        self.pass_shared_piece((Agent::BulkCopy, from), at, kept.len() as u64, Act::Read);
        let now = &self.ctas[at.cta as usize].shared[at.offset as usize..][..kept.len()];
        if now != kept {
            for (kept, now) in kept.iter_mut().zip(now) {
                *kept = if *kept == *now { *kept } else { POISON };
            }
            let cta = self.ctas[from.cta as usize].id;
            let place = Place::of(self.env.program, from.pc, cta, from.warp, 0);
            let what = "shared memory changed while this copy was reading it".to_owned();
            self.keep_early(|| EarlyRead { place, what });
        }
        true
    }

    /// A copy to global memory is complete.
    pub(super) fn finish_bulk(&mut self, from: Origin, group: u64, read_now: bool) {
        let w = &mut self.ctas[from.cta as usize].warps[from.warp as usize];
        if read_now {
            w.bulk.was_read(group);
        }
        w.bulk.completed(group);
    }

    /// Shared place of a lane's operand, `bytes` long.
    pub(super) fn shared_operand(
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
    pub(super) fn read_block<const N: usize>(
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
pub(super) fn act_of(reduce: Option<(AtomOp, Num)>) -> Act {
    if reduce.is_some() {
        Act::Update
    } else {
        Act::Write
    }
}

/// Stores or reduces bytes into memory.
pub(super) fn merge(target: &mut [u8], data: &[u8], reduce: Option<(AtomOp, Num)>) {
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
