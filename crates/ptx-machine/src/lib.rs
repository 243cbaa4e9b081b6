//! The numbers a GPU is modelled by.

use serde::{Deserialize, Serialize};

macro_rules! machine {
    (
        $($(#[doc = $doc:literal])+ $name:ident,)+
        tensor memory: $($(#[doc = $tensor_doc:literal])+ $tensor:ident,)+
    ) => {
        /// What a GPU does in which time. Cycles are of the SM's clock; intervals are the cycles
        /// a unit of one of the SM's four partitions is taken by a warp's instruction, latencies
        /// the cycles until its result can be used.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Machine {
            $($(#[doc = $doc])+ pub $name: f64,)+
            /// What its tensor memory does, if it has any.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub tmem: Option<TensorMemory>,
        }

        /// What tensor memory does in which time, and the tensor core that works on it: one queue
        /// an SM.
        #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct TensorMemory {
            $($(#[doc = $tensor_doc])+ pub $tensor: f64,)+
        }

        impl TensorMemory {
            const fn all(number: f64) -> Self {
                Self { $($tensor: number,)+ }
            }
        }

        impl Machine {
            /// The names of all numbers.
            pub const NAMES: &'static [&'static str] =
                &[$(stringify!($name),)+ $(stringify!($tensor)),+];

            /// Made of a number for every name; the first that is missing otherwise. Those of
            /// tensor memory may be missing all together.
            pub fn from_numbers(
                mut number: impl FnMut(&'static str) -> Option<f64>,
            ) -> Result<Self, &'static str> {
                let tensor = [$(number(stringify!($tensor))),+];
                Ok(Self {
                    $($name: number(stringify!($name)).ok_or(stringify!($name))?,)+
                    tmem: match tensor.iter().any(Option::is_some) {
                        false => None,
                        true => Some(TensorMemory {
                            $($tensor: number(stringify!($tensor)).ok_or(stringify!($tensor))?,)+
                        }),
                    },
                })
            }

            /// The first number no machine can have, not even one that is asked what it would do
            /// if something took no time or had no end: negative, endless where time is counted,
            /// or nothing of what work is divided by.
            pub fn impossible(&self) -> Option<&'static str> {
                let fine = |name: &&str| match self.number(name) {
                    Some(number) if divides(name) => number > 0.0,
                    Some(number) => number.is_finite() && number >= 0.0,
                    None => true,
                };
                Self::NAMES.iter().find(|name| !fine(name)).copied()
            }

            /// The number of a name; of tensor memory only where there is any.
            pub fn number(&self, name: &str) -> Option<f64> {
                match name {
                    $(stringify!($name) => Some(self.$name),)+
                    $(stringify!($tensor) => Some(self.tmem?.$tensor),)+
                    _ => None,
                }
            }

            /// The place of a number.
            pub fn number_mut(&mut self, name: &str) -> Option<&mut f64> {
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)+
                    $(stringify!($tensor) => Some(&mut self.tmem.as_mut()?.$tensor),)+
                    _ => None,
                }
            }
        }
    };
}

impl TensorMemory {
    /// Takes no time.
    pub const FREE: Self = Self::all(0.0);
}

/// Whether work is divided by a number.
fn divides(name: &str) -> bool {
    matches!(name, "sms" | "sectors_per_cycle")
        || name.ends_with("clock_mhz")
        || name.ends_with("_port")
        || name.ends_with("_bandwidth")
}

machine! {
    /// SM clock of a call that multiplies but does not load the card, MHz.
    clock_mhz,
    /// SM clock where nobody has multiplied for a while, MHz.
    rested_clock_mhz,
    /// By how much the clock falls, MHz, when all tensor cores are always busy. It goes with the
    /// square of their load.
    clock_drop_mhz,
    /// Microseconds without products on any SM after which the clock rises.
    rest_micros,
    /// Microseconds it takes back when products begin again.
    resume_micros,
    /// Multiprocessors.
    sms,
    /// Interval of integer logic, adds, shifts, permutes.
    alu_interval,
    /// Interval of integer multiply-adds.
    imad_interval,
    /// Interval of the upper half of an integer product.
    imad_high_interval,
    /// Interval of single-precision operations.
    fma_interval,
    /// Interval of half-precision pairs.
    half_interval,
    /// Interval of double-precision operations.
    double_interval,
    /// Interval of transcendental functions.
    mufu_interval,
    /// Their latency.
    mufu_latency,
    /// Interval of conversions between packed formats.
    pack_interval,
    /// Interval of other conversions.
    convert_interval,
    /// Their latency.
    convert_latency,
    /// Interval of exchanges between lanes, SM wide.
    shuffle_interval,
    /// Their latency.
    shuffle_latency,
    /// Latency from vector to uniform registers.
    to_uniform_latency,
    /// Latency of loads of constants.
    constant_latency,
    /// What the first use of a line of constants on an SM takes beyond that.
    constant_line_latency,
    /// The same where L2 does not have it.
    constant_cold_latency,
    /// Latency of special registers.
    special_latency,
    /// Cycles of a taken branch.
    branch_cycles,
    /// Cycles of a line of instructions that an SM has not run before, behind the line before it.
    fetch_interval,
    /// Cycles until the first line after a jump is there, if the SM has not run it before.
    fetch_latency,
    /// Bytes of a kernel's code, from its beginning, that a launch brings near the SMs.
    near_code_bytes,
    /// Cycles in which an SM gets a kilobyte of the code behind them that it has not run before.
    far_fetch_latency,
    /// The same where L2 does not have it.
    far_fetch_cold_latency,
    /// Cycles of a wavefront of 128 bytes of shared memory, SM wide.
    shared_interval,
    /// Cycles of work that shared memory, or the way to L2, has ahead of it before warps must wait.
    queue_cycles,
    /// The same for the way through L2.
    l2_queue_cycles,
    /// Cycles after its turn at memory in which an instruction reads its operands: until then the
    /// warp may not overwrite them.
    operands_latency,
    /// Latency of a load from shared memory.
    shared_latency,
    /// Latency of an atomic on shared memory.
    shared_atomic_latency,
    /// Latency of a load from global memory that the SM's own cache answers.
    l1_latency,
    /// Latency of a load that L2 answers.
    l2_latency,
    /// By how much the last of several sectors from L2 is later, for each e-fold of them.
    l2_spread,
    /// What a load from memory takes beyond that.
    memory_latency,
    /// By how much the last of several sectors from memory is later, for each e-fold of them.
    memory_spread,
    /// By how much the last of more than eight rows is later still, for each e-fold of them.
    memory_row_spread,
    /// The part of what L2 gets besides what is asked for that comes before it is all there.
    memory_beside,
    /// What it takes beyond that where memory is always busy; it goes with the part of the time it is.
    memory_busy_latency,
    /// Bytes of memory's time that each separate piece takes besides its own.
    memory_piece,
    /// Channels of memory, each with a queue of its own, over which separate pieces are scattered.
    memory_channels,
    /// Cycles of what is asked for later that memory serves before an earlier request, at most.
    memory_reordering,
    /// Latency of an atomic on global memory.
    atomic_latency,
    /// Sectors of global memory a cycle, per SM.
    sectors_per_cycle,
    /// Cycles in which an SM's own cache looks for a line.
    line_interval,
    /// Bytes a cycle an SM gets from L2.
    l2_port,
    /// Bytes a second all SMs together get from L2.
    l2_bandwidth,
    /// Bytes a cycle an SM sends to L2.
    store_port,
    /// Bytes a second all SMs together send to L2.
    store_bandwidth,
    /// The part of L2's time that bytes take which all SMs read alike.
    l2_same,
    /// Bytes a second from memory, read cold.
    memory_bandwidth,
    /// The same as long as what is read drives out of L2 what was written before.
    dirty_bandwidth,
    /// How many bytes that are.
    dirty_bytes,
    /// Bytes that L2 keeps of what a call has used, the last of it.
    l2_bytes,
    /// Cycles of the copy engine for a copy.
    bulk_interval,
    /// Cycles of the copy engine for each row of a tensor copy.
    row_interval,
    /// Latency of a bulk copy that L2 answers, issue to barrier.
    bulk_latency,
    /// Latency of the first reading of a tensor map.
    map_latency,
    /// The same where L2 has it.
    map_l2_latency,
    /// Latency of a bulk store beyond its way to L2: its memory has been read, and it counts as done.
    bulk_store_latency,
    /// Latency of a test of an mbarrier that is through.
    phase_latency,
    /// From the end of a phase to the warp that waits for it.
    wake_latency,
    /// From an arrival to the end of the phase it completes.
    arrive_latency,
    /// Interval of tests and arrivals at mbarriers, SM wide.
    syncs_interval,
    /// Interval of warps at barriers of CTAs, SM wide.
    barrier_interval,
    /// Latency of a barrier of a CTA.
    barrier_latency,
    /// Latency of a barrier of a cluster.
    cluster_latency,
    /// Latency to another CTA's shared memory.
    remote_latency,
    /// Bytes a cycle to another CTA's shared memory.
    remote_port,
    /// Latency of a fence within the CTA.
    fence_latency,
    /// Cycles for which a fence behind stores keeps others from shared memory.
    fence_interval,
    /// Latency of a fence beyond the CTA.
    far_fence_latency,
    /// Tensor cycles of a wgmma per column.
    wgmma_column,
    /// Tensor cycles of a wgmma that has hardly any columns.
    wgmma_least,
    /// Latency of a wgmma beyond its tensor cycles.
    wgmma_latency,
    /// Cycles of its partition a wgmma takes from other work, whatever its width.
    wgmma_steal,
    /// The same per column.
    wgmma_steal_column,
    /// Cycles of `wgmma.wait_group` beyond the wait itself.
    wgmma_wait_latency,
    /// Cycles such a wait takes at least, also where all products are done.
    wgmma_settled_latency,
    /// Tensor cycles of an `mma.sync` m16n8k16 of 16-bit elements.
    mma_interval,
    /// Its latency.
    mma_latency,
    /// Cycles for which it keeps others from a bank of registers for each register it reads there.
    mma_read_interval,
    /// Microseconds of a call with one empty kernel, as a sweep times it.
    launch_micros,
    /// What a call takes more whose code and parameters are not in L2, microseconds.
    cold_start_micros,
    /// Microseconds from the end of a launch to the first CTA of the next.
    next_launch_micros,
    /// Microseconds from the first CTA of a launch to the first of one that need not wait for it.
    dependent_start_micros,
    /// Microseconds from the end of a launch to a warp of the next that waits for it.
    dependent_wait_micros,
    /// Microseconds from the first to the last CTA's start on an empty card.
    spread_micros,
    /// Cycles from the end of a CTA to the first instruction of the next in its place.
    turnover_cycles,
    /// Cycles of a CTA before its first instruction's effect: cold instructions and parameters.
    start_cycles,

    tensor memory:

    /// Tensor cycles of a `tcgen05.mma` per column of tensor memory that its D takes.
    tmem_product_column,
    /// Cycles in which it reads 128 bytes of operands from shared memory.
    tmem_operand_line,
    /// Cycles more in which a pair of CTAs does.
    tmem_pair_operands,
    /// From its issue to the warp that waits for its commit, beyond its tensor cycles.
    tmem_product_latency,
    /// The same for an A in tensor memory.
    tmem_a_latency,
    /// The same for a pair of CTAs.
    tmem_pair_latency,
    /// Cycles in which `tcgen05.cp` copies 128 bytes.
    tmem_copy_line,
    /// From its issue to the warp that waits for its commit, beyond these.
    tmem_copy_latency,
    /// Cycles of a `tcgen05.shift`.
    tmem_shift_cycles,
    /// Cycles of `tcgen05.ld` and `st` per column, each partition for itself.
    tmem_move_column,
    /// The same for lanes of 256 bits, whose banks conflict.
    tmem_wide_column,
    /// Latency of a load beyond these.
    tmem_load_latency,
    /// Latency of `tcgen05.alloc` where columns are free.
    tmem_alloc_latency,
}
