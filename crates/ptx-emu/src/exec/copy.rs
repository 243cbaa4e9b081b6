//! Asynchronous copies: issued now, complete later.
//!
//! A copy into shared memory poisons its destination when issued and publishes the bytes when it
//! completes, at a time drawn from the seed; a copy out of shared memory reads its source when it
//! completes. So a missing wait, or a buffer reused too early, gives wrong bytes, not luck.

use std::cmp::Ordering;

use super::access::{Access, Place, lanes, place_of};
use super::atomic::{combine, read_word, width, write_word};
use super::cluster::{Cluster, Flow, POISON};
use super::tensor_copy::TensorJob;
use super::warp::{DeferredArrive, Wait, Warp};
use crate::fault::{Fault, FaultKind};
use crate::op::{Addr, AtomOp, Num, P, R32, Space};

type Checked<T> = Result<T, Box<FaultKind>>;

/// The instruction an event comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) cta: u32,
    pub(crate) warp: u32,
    pub(crate) pc: u32,
}

/// An event in flight.
pub(crate) struct Pending {
    pub(crate) at: u64,
    pub(crate) seq: u64,
    pub(crate) from: Origin,
    pub(crate) job: Job,
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Pending {}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pending {
    /// The earliest is the greatest: that is what a heap hands out first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.seq).cmp(&(self.at, self.seq))
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
        from: SharedAt,
        to: u64,
        bytes: u32,
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
}

/// Where bytes for shared memory come from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ByteSource {
    Global(u64),
    Shared(SharedAt),
}

/// One lane of a `cp.async`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaneCopy {
    to: SharedAt,
    from: u64,
    bytes: u8,
    /// Bytes really read; the rest is zero.
    valid: u8,
}

/// Operands of `cp.async`.
pub(super) struct CpAsync {
    pub(super) dst: Addr,
    pub(super) src: Addr,
    pub(super) bytes: u8,
    pub(super) src_bytes: Option<R32>,
    pub(super) ignore: Option<P>,
}

impl Cluster<'_> {
    /// Puts a job in flight.
    pub(super) fn schedule(&mut self, w: &Warp, base: u64, spread: u64, job: Job) -> u64 {
        let latency = match self.env.seed {
            0 => base,
            _ => base / 2 + self.draw(spread),
        };
        self.event_seq += 1;
        self.progress += 1;
        self.events.push(Pending {
            at: self.tick + latency,
            seq: self.event_seq,
            from: Origin {
                cta: w.cta,
                warp: w.index,
                pc: w.pc,
            },
            job,
        });
        self.event_seq
    }

    /// Completes what is due.
    pub(super) fn deliver(&mut self) -> Result<(), Box<Fault>> {
        while self.events.peek().is_some_and(|e| e.at <= self.tick) {
            let Some(event) = self.events.pop() else {
                break;
            };
            self.progress += 1;
            let reduces = match &event.job {
                Job::ToGlobal { reduce, .. } => reduce.is_some(),
                Job::Tensor(job) => job.reduce.is_some(),
                _ => false,
            };
            if reduces && self.env.shared_grid {
                self.ordered.push(event);
            } else {
                self.finish_ordered(event)?;
            }
        }
        Ok(())
    }

    /// Completes one event, blaming faults on the instruction that issued it.
    pub(super) fn finish_ordered(&mut self, event: Pending) -> Result<(), Box<Fault>> {
        let Pending { seq, from, job, .. } = event;
        self.finish(seq, from, job)
            .map_err(|kind| self.fault(*kind, from.cta as usize, from.warp as usize, from.pc, 0))
    }

    fn finish(&mut self, seq: u64, from: Origin, job: Job) -> Checked<()> {
        match job {
            Job::Lanes { group, items } => self.finish_lanes(seq, from, group, &items),
            Job::ToShared {
                from: source,
                bytes,
                targets,
                reduce,
            } => {
                for (to, barrier) in targets {
                    self.landed(to, bytes, from.pc);
                    self.copy_in(source, to, bytes, reduce)?;
                    self.complete_tx(barrier, bytes)?;
                }
                Ok(())
            }
            Job::ToGlobal {
                from: source,
                to,
                bytes,
                group,
                reduce,
                mask,
            } => {
                self.copy_out(source, to, bytes, reduce, mask)?;
                let w = &mut self.ctas[from.cta as usize].warps[from.warp as usize];
                w.bulk.was_read(group);
                w.bulk.completed(group);
                Ok(())
            }
            Job::Remote {
                to,
                barrier,
                data,
                reduce,
            } => {
                self.copied(to, data.len() as u64, true);
                let at = self.shared_at(to, data.len());
                // SAFETY: `shared_at` checked the range.
                unsafe { merge(at, &data, reduce) };
                self.complete_tx(barrier, data.len() as u32)
            }
            Job::Tensor(job) => self.finish_tensor(from, *job),
        }
    }

    /// Host address of `bytes` of shared memory, which were checked when the copy was issued.
    /// Should that have been another length, this panics instead of leaving the CTA's memory.
    pub(super) fn shared_at(&mut self, at: SharedAt, bytes: usize) -> usize {
        let range = &mut self.ctas[at.cta as usize].shared[at.offset as usize..][..bytes];
        range.as_mut_ptr() as usize
    }

    /// Host address of global bytes, checked.
    pub(super) fn global_at(&mut self, address: u64, bytes: u64, write: bool) -> Checked<usize> {
        let known = self.last_region;
        if address < known.base || address.saturating_add(bytes) > known.end {
            self.find_region(address, Access { bytes, write })?;
        }
        let region = self.last_region;
        let footprint = if write {
            &self.env.written
        } else {
            &self.env.read
        };
        footprint.mark(region.index, address - region.base, bytes);
        Ok(region.host + (address - region.base) as usize)
    }

    pub(super) fn complete_tx(&mut self, barrier: SharedAt, bytes: u32) -> Checked<()> {
        let cta = &mut self.ctas[barrier.cta as usize];
        cta.mbarriers.update(&mut cta.shared, barrier.offset, |b| {
            b.tx -= i64::from(bytes);
            Ok(())
        })?;
        Ok(())
    }

    fn copy_in(
        &mut self,
        from: ByteSource,
        to: SharedAt,
        bytes: u32,
        reduce: Option<(AtomOp, Num)>,
    ) -> Checked<()> {
        let source = match from {
            ByteSource::Global(address) => {
                self.counters.async_read += u64::from(bytes);
                self.global_at(address, u64::from(bytes), false)?
            }
            ByteSource::Shared(at) => {
                self.copied(at, u64::from(bytes), false);
                self.shared_at(at, bytes as usize)
            }
        };
        self.copied(to, u64::from(bytes), true);
        let target = self.shared_at(to, bytes as usize);
        // SAFETY: both ranges were checked; a copy within one CTA may overlap itself.
        unsafe {
            if reduce.is_none() {
                std::ptr::copy(source as *const u8, target as *mut u8, bytes as usize);
            } else {
                let data = std::slice::from_raw_parts(source as *const u8, bytes as usize).to_vec();
                merge(target, &data, reduce);
            }
        }
        Ok(())
    }

    fn copy_out(
        &mut self,
        from: SharedAt,
        to: u64,
        bytes: u32,
        reduce: Option<(AtomOp, Num)>,
        mask: u16,
    ) -> Checked<()> {
        self.counters.async_written += u64::from(bytes);
        self.copied(from, u64::from(bytes), false);
        let target = self.global_at(to, u64::from(bytes), true)?;
        let source = self.shared_at(from, bytes as usize);
        // SAFETY: both were checked just now.
        unsafe {
            let data = std::slice::from_raw_parts(source as *const u8, bytes as usize);
            if mask == u16::MAX {
                merge(target, data, reduce);
            } else {
                let kept = data
                    .iter()
                    .enumerate()
                    .filter(|(i, _)| mask >> (i % 16) & 1 == 1);
                kept.for_each(|(i, &byte)| *((target + i) as *mut u8) = byte);
            }
        }
        Ok(())
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
        let (cta, offset) = self.shared_target(w.cta, address, Access { bytes, write })?;
        Ok(SharedAt { cta, offset })
    }

    /// `cp.async`
    pub(super) fn cp_async(&mut self, w: &mut Warp, mask: u32, op: &CpAsync) -> Checked<Flow> {
        let sources = self.addresses(w, op.src);
        let mut items = Vec::with_capacity(mask.count_ones() as usize);
        for lane in lanes(mask) {
            let to = self.shared_operand(w, op.dst, lane, u64::from(op.bytes), true)?;
            let valid = match (op.src_bytes, op.ignore) {
                (_, Some(p)) if w.pred(p) >> lane & 1 == 1 => 0,
                (Some(r), _) => w.get(r)[lane].min(u32::from(op.bytes)) as u8,
                _ => op.bytes,
            };
            let align = u64::from(op.bytes);
            if !u64::from(to.offset).is_multiple_of(align)
                || (valid > 0 && !sources[lane].is_multiple_of(align))
            {
                return Err(Box::new(FaultKind::Misaligned {
                    space: "cp.async",
                    address: sources[lane],
                    align,
                }));
            }
            if valid > 0 {
                self.global_at(sources[lane], u64::from(valid), false)?;
                self.counters.async_read += u64::from(valid);
            }
            let (at, len) = (to.offset as usize, usize::from(op.bytes));
            self.ctas[to.cta as usize].shared[at..at + len].fill(POISON);
            items.push(LaneCopy {
                to,
                from: sources[lane],
                bytes: op.bytes,
                valid,
            });
        }
        let group = w.copies.add();
        let seq = self.schedule(w, 200, 400, Job::Lanes { group, items });
        w.copy_seqs.push(seq);
        Ok(Flow::Next)
    }

    fn finish_lanes(
        &mut self,
        seq: u64,
        from: Origin,
        group: u64,
        items: &[LaneCopy],
    ) -> Checked<()> {
        for item in items {
            self.copied(item.to, u64::from(item.bytes), true);
            let target = self.shared_at(item.to, usize::from(item.bytes));
            // SAFETY: both sides are checked here, the source again.
            unsafe {
                std::ptr::write_bytes(target as *mut u8, 0, usize::from(item.bytes));
                if item.valid > 0 {
                    let source = self.global_at(item.from, u64::from(item.valid), false)?;
                    std::ptr::copy_nonoverlapping(
                        source as *const u8,
                        target as *mut u8,
                        usize::from(item.valid),
                    );
                }
            }
        }
        let w = &mut self.ctas[from.cta as usize].warps[from.warp as usize];
        w.copies.completed(group);
        w.copy_seqs.retain(|s| *s != seq);
        let oldest = w.copy_seqs.iter().copied().min().unwrap_or(u64::MAX);
        let (due, later) = std::mem::take(&mut w.deferred)
            .into_iter()
            .partition(|d| d.after < oldest);
        w.deferred = later;
        let due: Vec<DeferredArrive> = due;
        for (cta, address) in due.into_iter().flat_map(|d| d.targets) {
            self.arrive_once(cta, address)?;
        }
        Ok(())
    }

    fn arrive_once(&mut self, cta: u32, address: u32) -> Checked<()> {
        let cta = &mut self.ctas[cta as usize];
        cta.mbarriers.update(&mut cta.shared, address, |b| {
            b.pending -= 1;
            Ok(())
        })?;
        Ok(())
    }

    /// `cp.async.wait_group` / `wait_all`
    pub(super) fn cp_async_wait(&mut self, w: &mut Warp, n: u32, all: bool) -> Flow {
        if all {
            w.copies.commit();
        }
        let below = w.copies.current.saturating_sub(u64::from(n));
        if w.copies.done_below(below, false) {
            return Flow::Next;
        }
        self.counters.barrier_waits += 1;
        Flow::After(Wait::Copies { below })
    }

    /// `cp.async.mbarrier.arrive`: arrives when all earlier copies of the thread are complete.
    pub(super) fn cp_async_arrive(
        &mut self,
        w: &mut Warp,
        mask: u32,
        noinc: bool,
        addr: Addr,
    ) -> Checked<Flow> {
        let mut targets = Vec::new();
        for lane in lanes(mask) {
            let (cta, address) = self.barrier_target(w, addr, lane)?;
            if !noinc {
                let cta = &mut self.ctas[cta as usize];
                cta.mbarriers.update(&mut cta.shared, address, |b| {
                    b.pending += 1;
                    Ok(())
                })?;
            }
            targets.push((cta, address));
        }
        self.progress += 1;
        match w.copy_seqs.iter().copied().max() {
            Some(after) => w.deferred.push(DeferredArrive { after, targets }),
            None => {
                for (cta, address) in targets {
                    self.arrive_once(cta, address)?;
                }
            }
        }
        Ok(Flow::Next)
    }

    /// `N` bytes at a lane's generic (or global, shared, local, parameter) address.
    pub(super) fn read_block<const N: usize>(
        &mut self,
        w: &mut Warp,
        lane: usize,
        space: Space,
        address: u64,
    ) -> Checked<[u8; N]> {
        let mut out = [0; N];
        let place = match space {
            Space::Generic => place_of(address),
            Space::Shared | Space::SharedCluster => Place::Shared,
            Space::Param => Place::Param,
            Space::Local => Place::Local,
            Space::Global | Space::Const => Place::Global,
        };
        let within = if place == Place::Global {
            address
        } else {
            address & 0xffff_ffff
        };
        let access = Access {
            bytes: N as u64,
            write: false,
        };
        let at = match place {
            Place::Global => self.global_at(address, N as u64, false)?,
            Place::Shared => {
                let (cta, offset) = self.shared_target(w.cta, within as u32, access)?;
                self.shared_at(SharedAt { cta, offset }, N)
            }
            // A lane's local memory and the parameters are each one piece, so its ends are
            // enough; they need no alignment.
            Place::Local | Place::Param => {
                let end = |at: u64| (place, [at; 32], Access { bytes: 1, ..access });
                let mut first = 0;
                for (place, at, access) in [end(within + N as u64 - 1), end(within)] {
                    first = self.resolve_in(w, 1 << lane, place, &at, access)?.0[lane];
                }
                first
            }
        };
        // SAFETY: all N bytes were checked above.
        unsafe { std::ptr::copy_nonoverlapping(at as *const u8, out.as_mut_ptr(), N) };
        Ok(out)
    }
}

/// Stores or reduces bytes into memory.
///
/// # Safety
/// `at` must be valid for `data.len()` bytes.
pub(super) unsafe fn merge(at: usize, data: &[u8], reduce: Option<(AtomOp, Num)>) {
    // SAFETY: by this function's contract.
    unsafe {
        let Some((op, ty)) = reduce else {
            std::ptr::copy_nonoverlapping(data.as_ptr(), at as *mut u8, data.len());
            return;
        };
        let each = width(ty) as usize;
        for (i, chunk) in data.chunks_exact(each).enumerate() {
            let place = at + i * each;
            let mut word = [0; 8];
            word[..each].copy_from_slice(chunk);
            let old = read_word(place, each as u64);
            let operand = u64::from_le_bytes(word);
            let new = match (op, ty) {
                (AtomOp::Add, Num::F64) => crate::numeric::arith::add_f64_in_l2(old, operand),
                _ => combine(op, ty, old, operand),
            };
            write_word(place, each as u64, new);
        }
    }
}
