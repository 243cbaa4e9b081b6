//! A warp: registers, the paths its lanes are on, and what it waits for.

pub(crate) mod frames;
pub(crate) mod pace;
pub(crate) mod paths;
pub(crate) mod queue;

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::clock::{EventTime, Seen};
use super::lanes::{V32, V64, each};
use super::origin::{Branch, Origin, SharedAt, Split};
use crate::counters::CLASSES;
use crate::exec::storage::bytes::AlignedBytes;
use crate::exec::storage::pointers::fetch;
use crate::exec::storage::tmem::rectangle::Stored;
use crate::op::{BarKind, P, Pc, R32, R64, Slot};
use pace::Pace;
use queue::WgmmaQueue;

/// Lanes that left the common path and have yet to run, or a join they run to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    pub(crate) pc: Pc,
    pub(crate) mask: u32,
    /// Where this path ends by joining the entry below it.
    pub(crate) rpc: Pc,
    /// Call depth, to tell a return from an exit.
    pub(crate) depth: u32,
    /// The entry the paths above it join, rather than a path of its own.
    pub(crate) join: bool,
    /// Stands before a synchronising instruction and lets other lanes of the warp come to it.
    pub(crate) parked: bool,
    /// Where its lanes parted from the others.
    pub(crate) split: Split,
}

/// Lanes that left others of their warp with no place to meet again but the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parting {
    /// The others.
    pub(crate) from: u32,
    pub(crate) lanes: u32,
    /// Where they went on.
    pub(crate) pc: Pc,
}

/// What a stopped warp waits for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wait {
    /// Named barrier: released when its generation passes `generation`.
    Bar {
        id: u32,
        generation: u64,
        kind: BarKind,
        mask: u32,
    },
    /// mbarrier phase; the instruction is executed again when woken.
    Mbar { at: SharedAt, phase: WaitPhase },
    /// `barrier.cluster.wait`
    Cluster { generation: u64 },
    /// `nanosleep`
    Sleep { until: EventTime },
    /// `cp.async.wait_group`: groups below this number
    Copies { below: u64 },
    /// `cp.async.bulk.wait_group`
    Bulk { below: u64, read: bool },
    /// `wgmma.wait_group`
    Wgmma { below: u64 },
    /// `tcgen05.alloc`: columns not yet free, or the other CTA of the pair has not come
    Columns { columns: u32 },
    /// `tcgen05.dealloc` of a pair: the other CTA has not come
    PeerColumns { first: u32 },
    /// A global access other CTAs may see or make: performed between epochs, in CTA order.
    Communication,
    /// `setmaxnreg.inc`: registers not yet free
    Registers { count: u32 },
}

/// Phase an mbarrier wait is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitPhase {
    /// Completed phases must exceed this number.
    Number(u64),
    /// Parity of the phase that must have completed.
    Parity(u32),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum State {
    Ready,
    Waiting(Wait),
    Done,
}

/// Outstanding asynchronous copies of a warp, in numbered groups.
#[derive(Debug, Clone, Default)]
pub(crate) struct Groups {
    /// Number of the group now being filled.
    pub(crate) current: u64,
    /// (group, copies whose source is unread, copies not complete)
    pub(crate) open: VecDeque<(u64, u32, u32)>,
}

impl Groups {
    /// Adds a copy to the group being filled; returns its number.
    pub(crate) fn add(&mut self) -> u64 {
        match self.open.back_mut() {
            Some((group, unread, pending)) if *group == self.current => {
                *unread += 1;
                *pending += 1;
            }
            _ => self.open.push_back((self.current, 1, 1)),
        }
        self.current
    }

    pub(crate) fn commit(&mut self) {
        self.current += 1;
    }

    pub(crate) fn was_read(&mut self, group: u64) {
        if let Some(entry) = self.open.iter_mut().find(|e| e.0 == group) {
            entry.1 -= 1;
        }
    }

    pub(crate) fn completed(&mut self, group: u64) {
        if let Some(entry) = self.open.iter_mut().find(|e| e.0 == group) {
            entry.2 -= 1;
        }
        self.open.retain(|e| e.2 > 0);
    }

    /// No copy of a group below `below` is outstanding (`read`: has an unread source).
    pub(crate) fn done_below(&self, below: u64, read: bool) -> bool {
        let outstanding = |e: &&(u64, u32, u32)| if read { e.1 > 0 } else { e.2 > 0 };
        self.open.iter().filter(outstanding).all(|e| e.0 >= below)
    }
}

/// An arrival on an mbarrier once all earlier `cp.async` of the warp are complete.
#[derive(Debug, Clone)]
pub(crate) struct DeferredArrive {
    /// Copies up to this sequence number.
    pub(crate) after: u64,
    /// A barrier per lane.
    pub(crate) targets: Vec<SharedAt>,
}

/// What every turn looks at stands first, in few lines of the processor's cache: a CTA has many
/// warps, and most of their turns are short.
#[repr(C, align(64))]
pub(crate) struct Warp {
    pub(crate) pc: Pc,
    /// Lanes on the current path.
    pub(crate) active: u32,
    /// Lanes that have not exited.
    pub(crate) live: u32,
    pub(crate) rpc: Pc,
    pub(crate) state: State,
    /// How the adversary lets it run, and how often it has waited.
    pub(crate) pace: Option<Pace>,
    pub(crate) waits: u32,
    /// Observable instructions it may still execute in its turn.
    pub(crate) events: u32,
    /// The warp has been caught spinning on something its own lanes hold.
    pub(crate) spins: bool,
    /// All its lanes have met since it last looked: none of them was left behind.
    pub(crate) met: bool,
    /// The communication the warp is parked at may now be performed.
    pub(crate) granted: bool,
    /// A suspended `try_wait` is to give up and return false.
    pub(crate) timed_out: bool,
    /// Progress of the cluster when this warp last looked, and its instructions since it changed.
    pub(crate) seen_progress: u64,
    pub(crate) idle_steps: u64,
    /// CTA within the cluster.
    pub(crate) cta: u32,
    /// Warp within the CTA.
    pub(crate) index: u32,
    pub(crate) depth: u32,
    /// Where the lanes of the current path parted from the others, and how often any did.
    pub(crate) splits: u32,
    pub(crate) split: Split,
    pub(crate) r32: Vec<V32>,
    pub(crate) r64: Vec<V64>,
    pub(crate) p: Vec<u32>,
    /// Carry flags.
    pub(crate) carry: u32,
    /// Lanes that stand before an exchange whose others have come to one of their own.
    pub(crate) excused: u32,
    pub(crate) counts: [u64; CLASSES],
    pub(crate) stack: Vec<Path>,
    pub(crate) wgmma: WgmmaQueue,
    /// Where it stopped to wait.
    pub(crate) stopped: Origin,
    /// Where lanes parted that nothing brings together again.
    pub(crate) partings: Vec<Parting>,
    /// Local memory, lane after lane; empty until touched.
    pub(crate) local: AlignedBytes,
    pub(crate) copies: Groups,
    /// Sequence numbers of outstanding `cp.async`.
    pub(crate) copy_seqs: Vec<u64>,
    pub(crate) deferred: Vec<DeferredArrive>,
    pub(crate) bulk: Groups,
    /// Stores to tensor memory not waited for.
    pub(crate) stored: Vec<Stored>,
    /// The last wait on an mbarrier was told "not yet" without waiting.
    pub(crate) refused: bool,
    /// Cluster-barrier generation this warp arrived in.
    pub(crate) cluster_arrived: u64,
    /// Registers per thread after `setmaxnreg`, 0 before any.
    pub(crate) registers: u32,
    /// Nanoseconds it asked to sleep.
    pub(crate) slept: u64,
    /// What it has seen of the clock.
    pub(crate) clock: Seen,
    /// The launch whose constants its registers hold.
    pub(crate) template: u64,
    /// Frames saved around calls that may re-enter their caller, per lane; empty until used.
    pub(crate) saved: Vec<Vec<u64>>,
}

impl Warp {
    pub(crate) fn new(
        n32: usize,
        n64: usize,
        npred: usize,
        cta: u32,
        index: u32,
        lanes: u32,
    ) -> Self {
        Self {
            r32: vec![V32([0; 32]); n32],
            r64: vec![V64([0; 32]); n64],
            p: vec![0; npred],
            carry: 0,
            pc: 0,
            active: lanes,
            live: lanes,
            rpc: Pc::MAX,
            depth: 0,
            stack: Vec::new(),
            split: Split::default(),
            splits: 0,
            partings: Vec::new(),
            excused: 0,
            state: State::Ready,
            stopped: Origin::default(),
            cta,
            index,
            local: AlignedBytes::default(),
            copies: Groups::default(),
            copy_seqs: Vec::new(),
            deferred: Vec::new(),
            bulk: Groups::default(),
            wgmma: WgmmaQueue::default(),
            stored: Vec::new(),
            granted: false,
            timed_out: false,
            refused: false,
            pace: None,
            waits: 0,
            events: 0,
            seen_progress: 0,
            idle_steps: 0,
            met: false,
            spins: false,
            cluster_arrived: 0,
            registers: 0,
            counts: [0; CLASSES],
            slept: 0,
            clock: Seen::default(),
            template: 0,
            saved: Vec::new(),
        }
    }

    /// Another warp in the place of one that has ended. What its registers hold is for the caller
    /// to say.
    pub(crate) fn renew(&mut self, cta: u32, index: u32, lanes: u32) {
        // Each field by itself, because a warp is large; all of them, so that none is forgotten.
        let Self {
            r32: _,
            r64: _,
            p: _,
            template: _,
            cta: its_cta,
            index: its_index,
            pc,
            active,
            live,
            rpc,
            state,
            pace,
            waits,
            events,
            spins,
            met,
            granted,
            timed_out,
            seen_progress,
            idle_steps,
            depth,
            splits,
            split,
            carry,
            excused,
            counts,
            stack,
            wgmma,
            stopped,
            partings,
            local,
            copies,
            copy_seqs,
            deferred,
            bulk,
            stored,
            refused,
            cluster_arrived,
            registers,
            slept,
            clock,
            saved,
        } = self;
        (*its_cta, *its_index) = (cta, index);
        (*pc, *rpc, *active, *live) = (0, Pc::MAX, lanes, lanes);
        (*state, *pace, *counts) = (State::Ready, None, [0; CLASSES]);
        for number in [waits, events, depth, splits, carry, excused, registers] {
            *number = 0;
        }
        for number in [seen_progress, idle_steps, cluster_arrived, slept] {
            *number = 0;
        }
        for flag in [spins, met, granted, timed_out, refused] {
            *flag = false;
        }
        (*split, *stopped, *clock) = (Split::default(), Origin::default(), Seen::default());
        *local = AlignedBytes::default();
        wgmma.clear();
        for groups in [copies, bulk] {
            groups.current = 0;
            groups.open.clear();
        }
        stack.clear();
        partings.clear();
        copy_seqs.clear();
        deferred.clear();
        stored.clear();
        saved.clear();
    }

    /// Asks for what a turn looks at, which is in no near cache when there are many warps.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        fetch::<_, 6>(self);
    }

    /// Its registers, its own memory and where it stands, as one word; for a cluster's number.
    pub(crate) fn state_hash(&self, cluster: u64) -> u64 {
        let mut state = DefaultHasher::new();
        (cluster, self.cta, self.index, self.pc, self.active).hash(&mut state);
        self.r32.iter().for_each(|r| r.0.hash(&mut state));
        self.r64.iter().for_each(|r| r.0.hash(&mut state));
        self.p.hash(&mut state);
        self.local.hash(&mut state);
        state.finish()
    }

    /// Bytes its registers hold on to.
    pub(crate) fn storage(&self) -> usize {
        self.r32.capacity() * size_of::<V32>() + self.r64.capacity() * size_of::<V64>()
    }

    #[inline(always)]
    pub(crate) fn get(&self, r: R32) -> &[u32; 32] {
        &self.r32[r.0 as usize].0
    }

    #[inline(always)]
    pub(crate) fn get64(&self, r: R64) -> &[u64; 32] {
        &self.r64[r.0 as usize].0
    }

    #[inline(always)]
    pub(crate) fn pred(&self, p: P) -> u32 {
        self.p[p.0 as usize]
    }

    /// Writes the lanes of `mask`. Lanes that have exited may be overwritten, which makes the
    /// common case a plain store.
    #[inline(always)]
    pub(crate) fn put(&mut self, mask: u32, d: R32, v: [u32; 32]) {
        let live = self.live;
        let out = &mut self.r32[d.0 as usize].0;
        if mask == live {
            *out = v;
        } else {
            // Arithmetic, because the vectoriser makes branches of a choice.
            for i in 0..32 {
                let chosen = 0u32.wrapping_sub(mask >> i & 1);
                out[i] ^= (out[i] ^ v[i]) & chosen;
            }
        }
    }

    #[inline(always)]
    pub(crate) fn put64(&mut self, mask: u32, d: R64, v: [u64; 32]) {
        let live = self.live;
        let out = &mut self.r64[d.0 as usize].0;
        if mask == live {
            *out = v;
        } else {
            for i in 0..32 {
                let chosen = 0u64.wrapping_sub(u64::from(mask >> i & 1));
                out[i] ^= (out[i] ^ v[i]) & chosen;
            }
        }
    }

    #[inline(always)]
    pub(crate) fn put_pred(&mut self, mask: u32, d: P, v: u32) {
        let out = &mut self.p[d.0 as usize];
        *out = (*out & !mask) | (v & mask);
    }

    #[inline(always)]
    pub(crate) fn map1(&mut self, mask: u32, d: R32, a: R32, f: impl Fn(u32) -> u32) {
        let a = self.get(a);
        let v = each(
            #[inline(always)]
            |i| f(a[i]),
        );
        self.put(mask, d, v);
    }

    #[inline(always)]
    pub(crate) fn map2(&mut self, mask: u32, d: R32, a: R32, b: R32, f: impl Fn(u32, u32) -> u32) {
        let (a, b) = (self.get(a), self.get(b));
        let v = each(
            #[inline(always)]
            |i| f(a[i], b[i]),
        );
        self.put(mask, d, v);
    }

    #[inline(always)]
    pub(crate) fn map3(
        &mut self,
        mask: u32,
        d: R32,
        [a, b, c]: [R32; 3],
        f: impl Fn(u32, u32, u32) -> u32,
    ) {
        let (a, b, c) = (self.get(a), self.get(b), self.get(c));
        let v = each(
            #[inline(always)]
            |i| f(a[i], b[i], c[i]),
        );
        self.put(mask, d, v);
    }

    #[inline(always)]
    pub(crate) fn map1_64(&mut self, mask: u32, d: R64, a: R64, f: impl Fn(u64) -> u64) {
        let a = self.get64(a);
        let v = each(
            #[inline(always)]
            |i| f(a[i]),
        );
        self.put64(mask, d, v);
    }

    #[inline(always)]
    pub(crate) fn map2_64(
        &mut self,
        mask: u32,
        d: R64,
        a: R64,
        b: R64,
        f: impl Fn(u64, u64) -> u64,
    ) {
        let (a, b) = (self.get64(a), self.get64(b));
        let v = each(
            #[inline(always)]
            |i| f(a[i], b[i]),
        );
        self.put64(mask, d, v);
    }

    #[inline(always)]
    pub(crate) fn map3_64(
        &mut self,
        mask: u32,
        d: R64,
        [a, b, c]: [R64; 3],
        f: impl Fn(u64, u64, u64) -> u64,
    ) {
        let (a, b, c) = (self.get64(a), self.get64(b), self.get64(c));
        let v = each(
            #[inline(always)]
            |i| f(a[i], b[i], c[i]),
        );
        self.put64(mask, d, v);
    }

    #[inline(always)]
    pub(crate) fn test2(&mut self, mask: u32, d: P, a: R32, b: R32, f: impl Fn(u32, u32) -> bool) {
        let (a, b) = (self.get(a), self.get(b));
        let mut bits = 0;
        for i in 0..32 {
            bits |= u32::from(f(a[i], b[i])) << i;
        }
        self.put_pred(mask, d, bits);
    }

    #[inline(always)]
    pub(crate) fn test2_64(
        &mut self,
        mask: u32,
        d: P,
        a: R64,
        b: R64,
        f: impl Fn(u64, u64) -> bool,
    ) {
        let (a, b) = (self.get64(a), self.get64(b));
        let mut bits = 0;
        for i in 0..32 {
            bits |= u32::from(f(a[i], b[i])) << i;
        }
        self.put_pred(mask, d, bits);
    }

    /// A slot's value in one lane, zero-extended; the sink reads as zero.
    pub(crate) fn lane(&self, slot: Slot, lane: usize) -> u64 {
        match slot {
            Slot::W32(r) => u64::from(self.get(r)[lane]),
            Slot::W64(r) => self.get64(r)[lane],
            Slot::Sink => 0,
        }
    }

    /// Sets a slot in one lane.
    pub(crate) fn set_lane(&mut self, slot: Slot, lane: usize, value: u64) {
        match slot {
            Slot::W32(r) => self.r32[r.0 as usize].0[lane] = value as u32,
            Slot::W64(r) => self.r64[r.0 as usize].0[lane] = value,
            Slot::Sink => {}
        }
    }
}

impl Warp {
    /// The instruction a warp stands at, executed by these lanes.
    #[inline(always)]
    pub(crate) fn origin(&self, lanes: u32) -> Origin {
        Origin {
            cta: self.cta,
            warp: self.index,
            lanes,
            pc: self.pc,
            branch: Branch {
                lanes: self.active,
                split: self.split,
            },
            work: 0,
        }
    }
}
