// CTAs of a cluster, two to four, take a share of K each and meet at the end: each keeps
// the sums of its share of the columns and gets the others' sums of them. The way from
// SM to SM is narrow (14 bytes a cycle on an H200), so the sums come in parts,
// and the gate of one is computed while the next is on its way.
#pragma once
#include <dgx/ptx/cluster.cuh>
#include <dgx/ptx/mbarrier.cuh>

namespace dgx {

constexpr u32 MOST_PARTS = 4;

// Parts are whole octets of columns.
__device__ constexpr u32 parts_of(u32 kept) { return kept % 32 == 0 ? 4 : kept % 16 == 0 ? 2 : 1; }
__device__ constexpr u32 part_size(u32 kept) { return kept / parts_of(kept); }

struct SplitBarriers {
  u64 sums[MOST_PARTS];  // a part of the others' sums has arrived here

  // By one thread, before the CTAs of the cluster meet for the first time: who
  // is done first sends at once.
  template <u32 Kept, u32 Threads, u32 Ranks>
  __device__ __forceinline__ void open() {
    for (u32 part = 0; part < parts_of(Kept); ++part) {
      ptx::mbarrier_init(sums[part], 1);
      ptx::mbarrier_arrive_expect_tx(sums[part], (Ranks - 1) * Threads * part_size(Kept) * sizeof(float));
    }
  }
};

// take(part, kept) for part after part, kept[i] = d[Rank * Kept + part * size + i]
// of all CTAs. `inbox` is (Ranks - 1) * Threads * Kept floats of shared memory for nothing
// else, at the same place in all.
template <u32 Rank, u32 Ranks, int Kept, int Threads, typename Take>
__device__ __forceinline__ void exchange_parts(const float (&d)[Ranks * Kept], u32 inbox, SplitBarriers& barriers,
                                               u32 thread, const Take& take) {
  static_assert(Kept % 4 == 0);
  constexpr int SIZE = part_size(Kept);
  constexpr u32 BOX = Kept * Threads * sizeof(float);  // of one sender
#pragma unroll
  for (int i = 0; i < Kept; i += 4) {
#pragma unroll
    for (u32 hop = 1; hop < Ranks; ++hop) {
      const u32 other = (Rank + hop) % Ranks;
      const int at = other * Kept + i;
      const u32 to = ptx::remote_address(inbox + (hop - 1) * BOX + thread * 16, other);
      const u32 counted_by = ptx::remote_address(ptx::shared_address(&barriers.sums[i / SIZE]), other);
      ptx::store_async(to + i / 4 * (Threads * 16), d[at], d[at + 1], d[at + 2], d[at + 3], counted_by);
    }
  }
#pragma unroll
  for (int part = 0; part < Kept / SIZE; ++part) {
    ptx::mbarrier_wait(barriers.sums[part], 0);
    float kept[SIZE];
#pragma unroll
    for (int i = 0; i < SIZE; i += 4) {
      const int at = part * SIZE + i;
#pragma unroll
      for (int j = 0; j < 4; ++j) kept[i + j] = d[Rank * Kept + at + j];
#pragma unroll
      for (u32 box = 0; box + 1 < Ranks; ++box) {
        const float4 v = ptx::load_shared_v4_f32(inbox + box * BOX + at / 4 * (Threads * 16) + thread * 16);
        kept[i] += v.x, kept[i + 1] += v.y, kept[i + 2] += v.z, kept[i + 3] += v.w;
      }
    }
    take(part, kept);
  }
}

}  // namespace dgx
