//! What a launch did, counted.
//!
//! All counts are sums over warps and do not depend on the order in which CTAs ran, so they are
//! the same on any number of cores.

use std::ops::AddAssign;

/// Instruction classes, by the unit that would execute them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Class {
    /// Integer, logic, moves, selects and comparisons.
    Int,
    /// f32 arithmetic and comparisons.
    Float,
    /// f64 arithmetic.
    Double,
    /// f16 and bf16 arithmetic.
    Half,
    /// Conversions.
    Convert,
    /// Approximate special functions.
    Mufu,
    /// Global loads, stores and atomics (and generic ones).
    Global,
    /// Shared loads, stores and atomics, matrix moves.
    Shared,
    /// Local, constant and parameter accesses.
    OtherMemory,
    /// Branches, calls, exits.
    Control,
    /// Barriers, votes, shuffles, fences, mbarriers.
    Sync,
    /// Asynchronous copies.
    Async,
    /// Tensor-core instructions.
    Tensor,
}

/// Number of [`Class`]es.
pub const CLASSES: usize = 13;

impl Class {
    /// Every class, in the order of [`Counters::warp_instructions`].
    pub const ALL: [Class; CLASSES] = [
        Class::Int,
        Class::Float,
        Class::Double,
        Class::Half,
        Class::Convert,
        Class::Mufu,
        Class::Global,
        Class::Shared,
        Class::OtherMemory,
        Class::Control,
        Class::Sync,
        Class::Async,
        Class::Tensor,
    ];

    /// Name for tables and records.
    pub fn name(self) -> &'static str {
        match self {
            Class::Int => "int",
            Class::Float => "float",
            Class::Double => "double",
            Class::Half => "half",
            Class::Convert => "convert",
            Class::Mufu => "mufu",
            Class::Global => "global",
            Class::Shared => "shared",
            Class::OtherMemory => "other-memory",
            Class::Control => "control",
            Class::Sync => "sync",
            Class::Async => "async",
            Class::Tensor => "tensor",
        }
    }
}

/// Counts of one launch, or of several added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Warp instructions issued, per [`Class`] (index by `class as usize`).
    pub warp_instructions: [u64; CLASSES],
    /// Bytes loaded from global memory by threads.
    pub global_read: u64,
    /// Bytes stored to global memory by threads, atomics included.
    pub global_written: u64,
    /// Bytes of distinct 32-byte global sectors read, by threads or bulk copies.
    pub global_unique_read: u64,
    /// Bytes of distinct 32-byte global sectors written.
    pub global_unique_written: u64,
    /// Bytes loaded from shared memory by threads.
    pub shared_read: u64,
    /// Bytes stored to shared memory by threads.
    pub shared_written: u64,
    /// Bytes asynchronous copies took out of shared memory.
    pub shared_async_read: u64,
    /// Bytes asynchronous copies put into shared memory: every CTA of a multicast, and the fill
    /// of what is out of bounds.
    pub shared_async_written: u64,
    /// Bytes tensor cores read from shared memory: operands of wgmma and tcgen05.
    pub shared_tensor_read: u64,
    /// Bytes of distinct 32-byte sectors read in each CTA's shared memory, by threads, copies and
    /// wgmma, summed over CTAs.
    pub shared_unique_read: u64,
    /// Bytes of distinct 32-byte sectors written in each CTA's shared memory.
    pub shared_unique_written: u64,
    /// Bytes loaded from local memory: spills, and arrays that are indexed.
    pub local_read: u64,
    /// Bytes stored to local memory.
    pub local_written: u64,
    /// Extra shared-memory wavefronts caused by bank conflicts.
    pub bank_conflicts: u64,
    /// Bytes read from global memory by asynchronous copies.
    pub async_read: u64,
    /// Bytes written to global memory by asynchronous copies.
    pub async_written: u64,
    /// Asynchronous copies issued (bulk and tensor).
    pub bulk_copies: u64,
    /// Floating-point (or integer) operations issued to tensor cores, padding included.
    pub mma_flops: u64,
    /// Times a warp had to stop at a barrier, mbarrier or wait_group.
    pub barrier_waits: u64,
    /// Atomics and reductions performed, per lane.
    pub atomics: u64,
    /// Reads of shared memory before its copy had arrived, of accumulators before their wait, and
    /// wgmma issued on tiles still on their way: each got poison.
    pub early_reads: u64,
    /// Kernels launched.
    pub launches: u64,
    /// CTAs run.
    pub ctas: u64,
}

impl Counters {
    /// Warp instructions of one class.
    pub fn instructions(&self, class: Class) -> u64 {
        self.warp_instructions[class as usize]
    }

    /// Warp instructions in all.
    pub fn total_instructions(&self) -> u64 {
        self.warp_instructions.iter().sum()
    }
}

impl AddAssign<&Counters> for Counters {
    fn add_assign(&mut self, other: &Counters) {
        for (sum, n) in self
            .warp_instructions
            .iter_mut()
            .zip(other.warp_instructions)
        {
            *sum += n;
        }
        self.global_read += other.global_read;
        self.global_written += other.global_written;
        self.global_unique_read += other.global_unique_read;
        self.global_unique_written += other.global_unique_written;
        self.shared_read += other.shared_read;
        self.shared_written += other.shared_written;
        self.shared_async_read += other.shared_async_read;
        self.shared_async_written += other.shared_async_written;
        self.shared_tensor_read += other.shared_tensor_read;
        self.shared_unique_read += other.shared_unique_read;
        self.shared_unique_written += other.shared_unique_written;
        self.local_read += other.local_read;
        self.local_written += other.local_written;
        self.bank_conflicts += other.bank_conflicts;
        self.async_read += other.async_read;
        self.async_written += other.async_written;
        self.bulk_copies += other.bulk_copies;
        self.mma_flops += other.mma_flops;
        self.barrier_waits += other.barrier_waits;
        self.atomics += other.atomics;
        self.early_reads += other.early_reads;
        self.launches += other.launches;
        self.ctas += other.ctas;
    }
}
