//! Asynchronous copies: issued now, complete later.
//!
//! A copy into shared memory poisons its destination when issued and publishes the bytes when it
//! completes; a copy out of shared memory reads its source some time between, and what changes
//! there meanwhile is poison. When they complete is up to `cluster::adversary`.

use crate::exec::cluster::Cluster;
use crate::exec::cluster::jobs::{Job, Latency, Pending, SharedSource};
use crate::exec::listen::agent::Agent;
use crate::exec::listen::signal::Signal;
use crate::exec::listen::visit::Act;
use crate::exec::origin::{Origin, SharedAt};
use crate::exec::storage::bytes::POISON;
use crate::exec::warp::Warp;
use crate::fault::{EarlyRead, Place};

/// Bytes after which every swizzle repeats.
const SWIZZLE_PERIOD: u32 = 1024;

impl<'a> Cluster<'a> {
    /// Puts a job of some lanes in flight; its number.
    pub(crate) fn schedule(&mut self, w: &Warp, lanes: u32, latency: Latency, job: Job) -> u64 {
        let at = self.adversary.due(self.clocks.now(), latency);
        self.event_seq += 1;
        self.progress += 1;
        let work = self.event_seq;
        let issuer = w.origin(lanes);
        let (by, signals) = (job.agent(), job.signalled());
        self.signal(issuer, Signal::Issue { work, by, signals });
        let from = Origin { work, ..issuer };
        self.events.insert((at, work), Pending { from, job });
        work
    }

    /// Notes what a copy about to be issued would read.
    pub(crate) fn source(&self, at: SharedAt, bytes: u32) -> SharedSource {
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
    pub(crate) fn take_source(&mut self, source: &mut SharedSource, from: Origin) -> bool {
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
}
