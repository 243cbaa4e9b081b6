/*probe
question = "What does it cost warps of a CTA to wait for one another, and what does a fence cost?"

# bar.sync by all warps.
[[case]]
name = "bar/{block}"
define = { DEED = "bar" }
block = 32
[[case]]
name = "bar/{block}"
define = { DEED = "bar" }
block = 128
[[case]]
name = "bar/{block}"
define = { DEED = "bar" }
block = 256
[[case]]
name = "bar/{block}"
define = { DEED = "bar" }
block = 384
[[case]]
name = "bar/{block}"
define = { DEED = "bar" }
block = 512
[[case]]
name = "bar/{block}"
define = { DEED = "bar" }
block = 1024

# Named barriers: two halves of the CTA take turns.
[[case]]
name = "turns/{block}"
define = { DEED = "turns" }
block = 64
[[case]]
name = "turns/{block}"
define = { DEED = "turns" }
block = 256

# The same, and the numbers of threads stand in the instructions.
[[case]]
name = "turns_fixed/{block}"
define = { DEED = "turns_fixed", ALL = 64 }
block = 64
[[case]]
name = "turns_fixed/{block}"
define = { DEED = "turns_fixed", ALL = 256 }
block = 256

# A warp works alone, all meet, the next one does: what it takes to go on where another came last.
[[case]]
name = "{DEED}/{block}"
each = { DEED = ["relay", "relay_named", "relay_alone"] }
define = { ALL = 64 }
block = 64
[[case]]
name = "{DEED}/{block}"
each = { DEED = ["relay", "relay_named"] }
define = { ALL = 256 }
block = 256

# mbarriers: arrivals nobody waits for; waits for a phase that is over; two
# warps that answer one another; all threads, or one lane of each warp, arrive
# and all wait.
[[case]]
name = "{DEED}"
each = { DEED = ["arrive", "passed", "ping_pong"] }
block = 64
[[case]]
name = "meet/{block}"
define = { DEED = "meet" }
block = 128
[[case]]
name = "meet/{block}"
define = { DEED = "meet" }
block = 512
[[case]]
name = "meet_warps/{block}"
define = { DEED = "meet_warps" }
block = 128
[[case]]
name = "meet_warps/{block}"
define = { DEED = "meet_warps" }
block = 512

# A wait for a phase that is over by all warps at once, as behind a barrier, and an
# arrival of all lanes, or of one of each warp, there.
[[case]]
name = "passed/{block}"
define = { DEED = "passed" }
block = 256
[[case]]
name = "{DEED}/{block}"
each = { DEED = ["bar_passed", "bar_slot_passed", "bar_arrive", "bar_arrive_warps"] }
block = 128
[[case]]
name = "{DEED}/{block}"
each = { DEED = ["bar_passed", "bar_slot_passed", "bar_arrive", "bar_arrive_warps"] }
block = 256
[[case]]
name = "{DEED}/{block}"
each = { DEED = ["bar_passed"] }
block = 512

# Every warp by itself.
[[case]]
name = "{DEED}"
each = { DEED = ["fence_proxy", "fence_cta", "syncwarp", "atomic_shared"] }
block = 128
[[case]]
name = "{DEED}"
arch = "sm_90a"
each = { DEED = ["wgmma_fence", "wgmma_empty"] }
block = 128
[[case]]
name = "registers"
define = { DEED = "registers", BOUND = 384 }
block = 384
*/
#include <probe.cuh>
#include <dgx/ptx/barrier.cuh>
#include <dgx/ptx/mbarrier.cuh>
#include <dgx/ptx/wgmma.cuh>

// What registers move between depends on the bounds of the launch.
#ifndef BOUND
#define BOUND 1024
#endif

struct Barriers {
  u64 ping, pong, never, slots[2], all, warps;
  u32 word;
};

__device__ __forceinline__ void bar(Barriers&, u32) { __syncthreads(); }

__device__ __forceinline__ void turns(Barriers&, u32) {
  const u32 threads = blockDim.x;
  if (threadIdx.x < threads / 2) {
    asm volatile("bar.arrive 1, %0;" ::"r"(threads) : "memory");
    asm volatile("bar.sync 2, %0;" ::"r"(threads) : "memory");
  } else {
    asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory");
    asm volatile("bar.arrive 2, %0;" ::"r"(threads) : "memory");
  }
}

#ifdef ALL
__device__ __forceinline__ void turns_fixed(Barriers&, u32) {
  if (threadIdx.x < ALL / 2) {
    asm volatile("bar.arrive 1, %0;" ::"n"(ALL) : "memory");
    asm volatile("bar.sync 2, %0;" ::"n"(ALL) : "memory");
  } else {
    asm volatile("bar.sync 1, %0;" ::"n"(ALL) : "memory");
    asm volatile("bar.arrive 2, %0;" ::"n"(ALL) : "memory");
  }
}

// Some 130 cycles of one warp.
__device__ __forceinline__ void relay_alone(Barriers& b, u32 i) {
  if (threadIdx.x / 32 != i % (ALL / 32)) return;
  u32 x = i;
#pragma unroll
  for (int j = 0; j < 32; ++j) asm volatile("mad.lo.u32 %0, %0, %1, %0;" : "+r"(x) : "r"(i) : "memory");
  b.word = x;
}

__device__ __forceinline__ void relay(Barriers& b, u32 i) {
  relay_alone(b, i);
  __syncthreads();
}

__device__ __forceinline__ void relay_named(Barriers& b, u32 i) {
  relay_alone(b, i);
  named_sync<1, ALL>();
}
#endif

__device__ __forceinline__ void arrive(Barriers& b, u32) { mbarrier_arrive(b.never); }

// A fresh barrier's parity 1 counts as over.
__device__ __forceinline__ void passed(Barriers& b, u32) { mbarrier_wait(b.never, 1); }

__device__ __forceinline__ void bar_passed(Barriers& b, u32 i) {
  __syncthreads();
  passed(b, i);
}

// Of a ring of two, by a number that only the thread knows.
__device__ __forceinline__ void bar_slot_passed(Barriers& b, u32) {
  __syncthreads();
  const u32 turn = b.word;
  mbarrier_wait(b.slots[turn % 2], turn / 2 % 2 ^ 1);
}

__device__ __forceinline__ void bar_arrive(Barriers& b, u32 i) {
  __syncthreads();
  arrive(b, i);
}

__device__ __forceinline__ void bar_arrive_warps(Barriers& b, u32 i) {
  __syncthreads();
  if (lane() == 0) arrive(b, i);
}

__device__ __forceinline__ void ping_pong(Barriers& b, u32 i) {
  if (threadIdx.x == 0) {
    mbarrier_arrive(b.ping);
    mbarrier_wait(b.pong, i & 1);
  } else if (threadIdx.x == 32) {
    mbarrier_wait(b.ping, i & 1);
    mbarrier_arrive(b.pong);
  }
}

__device__ __forceinline__ void meet(Barriers& b, u32 i) {
  mbarrier_arrive(b.all);
  mbarrier_wait(b.all, i & 1);
}

__device__ __forceinline__ void meet_warps(Barriers& b, u32 i) {
  if (lane() == 0) mbarrier_arrive(b.warps);
  mbarrier_wait(b.warps, i & 1);
}

__device__ __forceinline__ void fence_proxy(Barriers&, u32) { fence_proxy_async_shared(); }
__device__ __forceinline__ void fence_cta(Barriers&, u32) { asm volatile("fence.acq_rel.cta;" ::: "memory"); }
__device__ __forceinline__ void syncwarp(Barriers&, u32) { __syncwarp(); }
__device__ __forceinline__ void wgmma_fence(Barriers&, u32) { ptx::wgmma_fence(); }

__device__ __forceinline__ void wgmma_empty(Barriers&, u32) {
  ptx::wgmma_fence();
  wgmma_commit();
  wgmma_wait<0>();
}

__device__ __forceinline__ void registers(Barriers&, u32) {
  registers_shrink<40>();
  registers_grow<168>();
}

__device__ __forceinline__ void atomic_shared(Barriers& b, u32) {
  if (lane() == 0) atomicAdd(&b.word, 1);
}

PROBE __launch_bounds__(BOUND, 1) probe(ARGUMENTS) {
  __shared__ Barriers b;
  if (threadIdx.x == 0) {
    mbarrier_init(b.ping, 1);
    mbarrier_init(b.pong, 1);
    mbarrier_init(b.never, 1 << 19);
    for (u64& slot : b.slots) mbarrier_init(slot, 1);
    mbarrier_init(b.all, blockDim.x);
    mbarrier_init(b.warps, blockDim.x / 32);
    mbarrier_init_fence();
    b.word = 0;
  }
  u64 start = 0, end = 0;
  u32 i = 0;
#pragma unroll 1
  for (int repetition = 0; repetition < 2; ++repetition) {
    __syncthreads();
    start = now();
#pragma unroll 8
    for (int j = 0; j < 64; ++j, ++i) DEED(b, i);
    end = now();
  }
  report(out, start, end);
}
