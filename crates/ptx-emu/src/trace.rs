//! What the warps of watched CTAs did, in the order in which each did it: for those who replay a
//! launch in another clock than the emulator's.
//!
//! A trace says nothing of time. Waits are in it as what they waited for, not as how often the
//! emulator had to ask: a loop around `try_wait` is there once, as its last turn.

/// Which CTAs of a launch are traced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watch {
    /// By number in the grid (x fastest). The other CTAs of their clusters are traced with them.
    pub ctas: Vec<u64>,
    /// Runs no others. What the launch leaves in memory is then incomplete.
    pub only: bool,
}

/// The traced part of a launch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// Line of the PTX text of every instruction of the kernel, functions it calls included.
    pub lines: Vec<u32>,
    /// Whether an instruction begins a basic block.
    pub leaders: Vec<bool>,
    /// Sizes of the allocations that [`Deed`]s name.
    pub regions: Vec<u64>,
    /// By number in the grid, ascending.
    pub ctas: Vec<CtaTrace>,
}

/// A piece of an allocation that is part of something by itself: a tensor, of one group or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The allocation.
    pub region: u32,
    /// Where it begins there.
    pub first: u64,
    /// Its size.
    pub bytes: u64,
    /// Of what it is a part; counted from zero.
    pub of: u32,
}

impl Trace {
    /// Tells apart what lies in one allocation: whatever has parts becomes a region of its own, in
    /// which they lie one behind another. What is in no part stays where it is.
    pub fn split(&mut self, parts: &[Part]) {
        let before = self.regions.len() as u32;
        let mut parts = parts.to_vec();
        parts.sort_by_key(|part| (part.region, part.first));
        let mut places = Vec::with_capacity(parts.len());
        for part in &parts {
            let region = before + part.of;
            if self.regions.len() <= region as usize {
                self.regions.resize(region as usize + 1, 0);
            }
            let size = &mut self.regions[region as usize];
            places.push((region, *size));
            *size += part.bytes.next_multiple_of(PART_UNIT);
        }
        let accesses = self.ctas.iter_mut().flat_map(|cta| &mut cta.warps);
        for event in accesses.flatten() {
            let Event::Did { deed, .. } = event else {
                continue;
            };
            let Some(at) = deed.global_mut() else {
                continue;
            };
            let behind = parts.partition_point(|p| (p.region, p.first) <= (at.region, at.first));
            let Some(index) = behind.checked_sub(1) else {
                continue;
            };
            let part = &parts[index];
            if part.region == at.region && at.first - part.first < part.bytes {
                let (region, start) = places[index];
                (at.region, at.first) = (region, start + (at.first - part.first));
            }
        }
    }
}

/// Parts stay as far from the beginning of a sector, or of a line, as they were.
const PART_UNIT: u64 = 256;

/// One CTA of a trace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CtaTrace {
    /// Its number in the grid.
    pub cta: u64,
    /// Its cluster's number in the grid.
    pub cluster: u64,
    /// Its rank in the cluster.
    pub rank: u32,
    /// What each warp did.
    pub warps: Vec<Vec<Event>>,
}

/// Something a warp did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    /// Instructions `first..end`, one after the other, none of which is a [`Deed`].
    Run {
        /// The first.
        first: u32,
        /// One past the last.
        end: u32,
    },
    /// One instruction that others may have to wait for, or that asks for more than a slot of its
    /// own pipe. It stands apart from runs; the lanes it was guarded away from are not counted, and
    /// one guarded away from all is part of a run. Where lanes do different things (copies, or
    /// arrivals at several barriers), several deeds with the same `at` follow one another.
    Did {
        /// The instruction.
        at: u32,
        /// What it did.
        deed: Deed,
    },
}

/// Where an mbarrier lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BarrierAt {
    /// Rank of the CTA in the cluster.
    pub rank: u32,
    /// Its address in that CTA's shared memory.
    pub address: u32,
}

/// Bytes of global memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GlobalBytes {
    /// The allocation, an index of [`Trace::regions`]. With several, that of the first lane.
    pub region: u32,
    /// Where they begin in it: the lowest.
    pub first: u64,
    /// How many bytes are asked for.
    pub bytes: u32,
    /// Sectors of 32 bytes that are touched.
    pub sectors: u32,
    /// Lines of 128 bytes.
    pub lines: u32,
    /// Blocks of 256 bytes, the largest that L2 may be told to get for any part of them.
    pub blocks: u32,
}

/// What an instruction did besides taking its turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Deed {
    /// Loads, stores, atomics and matrix moves in the CTA's own shared memory.
    Shared {
        /// Cycles of 128 bytes it takes, bank conflicts included. Of atomics each serves one lane of
        /// a bank.
        wavefronts: u32,
        /// Bytes moved.
        bytes: u32,
        /// Whether it writes.
        writes: bool,
        /// Whether it is atomic.
        atomic: bool,
    },
    /// Loads, stores and atomics in another CTA's shared memory; `st.async` and
    /// `mbarrier.complete_tx` name a barrier, which may be the CTA's own.
    Remote {
        /// Rank of that CTA.
        rank: u32,
        /// Bytes moved.
        bytes: u32,
        /// Whether it writes.
        writes: bool,
        /// What is told when the bytes are there.
        barrier: Option<BarrierAt>,
    },
    /// Loads, stores and atomics in global memory.
    Global {
        /// Which bytes.
        at: GlobalBytes,
        /// Whether it writes.
        writes: bool,
        /// Whether it is atomic.
        atomic: bool,
    },
    /// Lanes update words of one sector of global memory atomically. Those of an instruction stand
    /// before its [`Deed::Global`].
    Update {
        /// The sector's words that they update.
        at: GlobalBytes,
        /// The most lanes that have the same word: they take turns.
        turns: u32,
    },
    /// `cp.async`: lanes of a warp copy from global to shared memory.
    LaneCopy {
        /// Which bytes.
        at: GlobalBytes,
    },
    /// `cp.async.commit_group`.
    LaneCommit,
    /// `cp.async.wait_group`: until at most so many groups are under way.
    LaneWait(u32),
    /// `cp.async.mbarrier.arrive`: the barrier hears when the copies so far are done.
    LaneArrive {
        /// The barrier.
        barrier: BarrierAt,
        /// Arrivals the barrier counts on: one a lane with `.noinc`. Otherwise none, because
        /// each is added to what the phase expects before it is taken off.
        arrivals: u32,
    },
    /// A bulk or tensor copy; each lane's is a deed of its own.
    Bulk {
        /// Where from, and where to.
        direction: Direction,
        /// Which bytes of global memory, summed over its rows; none between CTAs, or outside a
        /// tensor.
        at: Option<GlobalBytes>,
        /// Contiguous pieces of global memory.
        rows: u32,
        /// Bytes that reach or leave the shared memory of each CTA, zeros outside a tensor
        /// included; none for a prefetch.
        bytes: u32,
        /// CTAs of the cluster that receive it, by bit of rank; zero for stores.
        to: u32,
        /// What is told of the bytes; the same address in every receiving CTA.
        barrier: Option<BarrierAt>,
        /// `.cta_group::2`: of each pair that receives, the CTA is told whose rank is as even as
        /// the barrier's.
        pair: bool,
        /// Where the tensor map lies that it is told by, if it is.
        map: Option<u64>,
    },
    /// `prefetch.tensormap`; each lane's is a deed of its own.
    MapFetch {
        /// Where the map lies.
        map: u64,
    },
    /// `cp.async.bulk.commit_group`.
    BulkCommit,
    /// `cp.async.bulk.wait_group`: until at most so many groups are under way, or only read.
    BulkWait {
        /// Groups that may be under way.
        groups: u32,
        /// Whether their source need only have been read.
        read: bool,
    },
    /// `barrier` or `bar`, and `barrier.cta.red`.
    Barrier {
        /// Which of sixteen.
        id: u32,
        /// Threads it is for.
        threads: u32,
        /// Whether the warp waits, or only arrives.
        waits: bool,
    },
    /// `mbarrier.init`.
    Init {
        /// The barrier.
        barrier: BarrierAt,
        /// Arrivals of a phase.
        count: u32,
    },
    /// `mbarrier.arrive`, by all active lanes together, and `expect_tx` (which arrives 0 times).
    Arrive {
        /// The barrier.
        barrier: BarrierAt,
        /// Arrivals.
        arrivals: u32,
        /// Bytes to be waited for besides.
        expects: u32,
    },
    /// A `test_wait` or `try_wait` that went through.
    Await {
        /// The barrier.
        barrier: BarrierAt,
        /// Parity of the phase that had to be over.
        parity: u32,
    },
    /// `barrier.cluster.arrive`.
    ClusterArrive,
    /// `barrier.cluster.wait`.
    ClusterWait,
    /// `wgmma.mma_async` by one warp of its four.
    Wgmma {
        /// Columns of D.
        n: u32,
        /// Bits of an element of A and B.
        bits: u32,
        /// Whether A comes from registers.
        registers: bool,
        /// Whether A is sparse.
        sparse: bool,
    },
    /// `wgmma.fence`.
    WgmmaFence,
    /// `wgmma.commit_group`.
    WgmmaCommit,
    /// `wgmma.wait_group`: until at most so many groups are under way.
    WgmmaWait(u32),
    /// `mma.sync` and `wmma.mma`.
    Mma {
        /// Rows, columns and depth.
        shape: [u32; 3],
        /// Bits of an element of A and B.
        bits: u32,
    },
    /// `tcgen05.mma`, of one thread.
    TmemMma {
        /// Rows, columns and depth of the product, of both CTAs of a pair together.
        shape: [u32; 3],
        /// CTAs that take part, each with its own rows of A and D and its share of B: 1, or the 2
        /// of a pair.
        ctas: u32,
        /// Columns of tensor memory that D takes in each of them.
        columns: u32,
        /// Where A comes from.
        a: TmemA,
    },
    /// `tcgen05.cp`, of one thread.
    TmemCopy {
        /// Bytes of shared memory that are read, in each of its CTAs.
        bytes: u32,
        /// CTAs that copy: 1, or the 2 of a pair.
        ctas: u32,
    },
    /// `tcgen05.shift`, of one thread.
    TmemShift {
        /// CTAs that shift: 1, or the 2 of a pair.
        ctas: u32,
    },
    /// `tcgen05.commit`, of one thread: barriers hear when all it has issued is done.
    TmemCommit {
        /// The barrier; the same address in every CTA that is told.
        barrier: BarrierAt,
        /// CTAs of the cluster that are told, by bit of rank.
        to: u32,
    },
    /// `tcgen05.ld` and `st`. Waits for tensor memory, and fences, have no instruction on the
    /// machine but where stores are waited for.
    TmemMove {
        /// Columns of tensor memory it goes over, in both halves if there are two.
        columns: u32,
        /// Lanes of each: 32, or 16.
        lanes: u32,
        /// Bits of a lane that are moved together: 32 to 256.
        bits: u32,
        /// Whether it writes.
        writes: bool,
    },
    /// `tcgen05.wait`.
    TmemWait {
        /// For stores, rather than loads.
        stores: bool,
    },
    /// `tcgen05.alloc`, once it was given what it asked for.
    TmemAlloc {
        /// Columns.
        columns: u32,
        /// CTAs that ask together: 1, or the 2 of a pair.
        ctas: u32,
    },
    /// `tcgen05.dealloc`.
    TmemFree {
        /// Columns.
        columns: u32,
        /// CTAs that free them together: 1, or the 2 of a pair.
        ctas: u32,
    },
    /// `griddepcontrol.wait`.
    AwaitLaunch,
    /// `griddepcontrol.launch_dependents`.
    AllowLaunch,
    /// A fence of memory or of a proxy.
    Fence {
        /// Whether it joins proxies.
        proxy: bool,
        /// Whether other CTAs are meant.
        beyond_cta: bool,
    },
    /// `setmaxnreg`.
    Registers(u32),
    /// `nanosleep`.
    Sleep(u32),
    /// A reading of `%clock`, `%clock64` or `%globaltimer`.
    Stamp,
}

impl Deed {
    /// The bytes of global memory it is about.
    pub fn global_mut(&mut self) -> Option<&mut GlobalBytes> {
        match self {
            Self::Global { at, .. } | Self::Update { at, .. } | Self::LaneCopy { at } => Some(at),
            Self::Bulk { at, .. } => at.as_mut(),
            _ => None,
        }
    }
}

/// Where the tensor core finds A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TmemA {
    /// In shared memory.
    Shared,
    /// In the tensor core, which has kept it from the product before.
    Kept,
    /// In tensor memory.
    Tmem,
}

/// Where a bulk copy goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Global to shared memory.
    Load,
    /// Shared to global memory, reductions included.
    Store,
    /// To another CTA's shared memory.
    Exchange,
    /// Global memory into L2.
    Prefetch,
}

#[cfg(test)]
impl Deed {
    /// Four bytes of the first region.
    pub(crate) fn load_of_word(first: u64) -> Self {
        let at = GlobalBytes {
            region: 0,
            first,
            bytes: 4,
            sectors: 1,
            lines: 1,
            blocks: 1,
        };
        Self::Global {
            at,
            writes: false,
            atomic: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_one_allocation_is_told_apart() {
        let load = |first: u64| Event::Did {
            at: 0,
            deed: Deed::load_of_word(first),
        };
        let mut trace = Trace {
            regions: vec![4096],
            ctas: vec![CtaTrace {
                warps: vec![[0, 256, 1100, 2300].map(load).to_vec()],
                ..CtaTrace::default()
            }],
            ..Trace::default()
        };
        // Two parts of one thing, and another between them.
        let part = |first, bytes, of| Part {
            region: 0,
            first,
            bytes,
            of,
        };
        trace.split(&[part(256, 700, 0), part(1024, 512, 1), part(2048, 700, 0)]);
        assert_eq!(trace.regions, [4096, 2 * 768, 512]);
        let mut events = trace.ctas.remove(0).warps.remove(0);
        let mut place = |event: &mut Event| match event {
            Event::Did { deed, .. } => deed.global_mut().map(|at| (at.region, at.first)),
            Event::Run { .. } => None,
        };
        let places: Vec<_> = events.iter_mut().filter_map(&mut place).collect();
        assert_eq!(places, [(0, 0), (1, 0), (2, 76), (1, 768 + 252)]);
    }
}
