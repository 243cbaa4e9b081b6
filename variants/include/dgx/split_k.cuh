// Two CTAs of a cluster take half of K each and meet at the end: each keeps
// the sums of half the columns and gets the other's share of them.
#pragma once
#include <dgx/ptx/cluster.cuh>
#include <dgx/ptx/mbarrier.cuh>

namespace dgx {

struct SplitBarriers {
  u64 idle;  // the other CTA's warps are done with the memory we write to
  u64 sums;  // its sums have arrived here
};

// kept[i] = d[Rank * Kept + i] of both CTAs. `buffer` is Threads * Kept floats
// of shared memory that this CTA no longer uses, at the same place in both.
template <u32 Rank, int Kept, int Threads>
__device__ __forceinline__ void exchange_halves(float (&kept)[Kept], const float (&d)[2 * Kept], u32 buffer,
                                                SplitBarriers& barriers, u32 thread) {
  static_assert(Kept % 4 == 0);
  constexpr u32 Other = Rank ^ 1;
  if (thread == 0) ptx::mbarrier_arrive_expect_tx(barriers.sums, Threads * Kept * sizeof(float));
  __syncwarp();
  if (thread % 32 == 0)
    ptx::mbarrier_arrive_remote(ptx::remote_address(ptx::shared_address(&barriers.idle), Other));
  ptx::mbarrier_wait(barriers.idle, 0);
  const u32 to = ptx::remote_address(buffer, Other) + thread * 16;
  const u32 counted_by = ptx::remote_address(ptx::shared_address(&barriers.sums), Other);
#pragma unroll
  for (int i = 0; i < Kept; i += 4) {
    const int at = Other * Kept + i;
    ptx::store_async(to + i / 4 * (Threads * 16), d[at], d[at + 1], d[at + 2], d[at + 3], counted_by);
  }
  ptx::mbarrier_wait(barriers.sums, 0);
#pragma unroll
  for (int i = 0; i < Kept; i += 4) {
    const float4 v = ptx::load_shared_v4_f32(buffer + i / 4 * (Threads * 16) + thread * 16);
    kept[i] = d[Rank * Kept + i] + v.x;
    kept[i + 1] = d[Rank * Kept + i + 1] + v.y;
    kept[i + 2] = d[Rank * Kept + i + 2] + v.z;
    kept[i + 3] = d[Rank * Kept + i + 3] + v.w;
  }
}

}  // namespace dgx
