// Late tokens: those that no tile of the first wave needs, from row EARLY_ROWS on. Two spare
// warps of each CTA prepare them beside the products, not a kernel before all of them.
//
// A CTA waits for rows that all others make. So all must be on the card at once: there are no
// more of them than SMs, and none waits before its own makers have started.
#pragma once
#include <dgx/korder.cuh>
#include <dgx/ptx/barrier.cuh>

namespace dgx {

constexpr u32 MAKERS = 2;
constexpr u32 LATE_BLOCK = 256;  // rows that are announced together

#if LATE
// Rows made of each block, zero when the products begin.
struct LateRows {
  u32* made;
};
constexpr u32 LATE_ROWS = ONE_M - EARLY_ROWS;
constexpr u32 LATE_BLOCKS = (LATE_ROWS + LATE_BLOCK - 1) / LATE_BLOCK;

__device__ __forceinline__ void open_late(const LateRows& late) {
  for (u32 i = threadIdx.x; i < LATE_BLOCKS; i += PREPARE_THREADS) ptx::store_global_u32(late.made + i, 0);
}

// The packed row and its scales, a line a lane: a maker has no registers to load ahead.
__device__ __forceinline__ void prefetch_row(const Group& group, u32 row) {
  if (row >= ONE_M) return;
  constexpr u32 LINE = 128;
  for (u32 at = threadIdx.x % 32 * LINE; at < ONE_K / 2; at += 32 * LINE)
    ptx::prefetch_l2(group.a + u64(row) * (ONE_K / 2) + at);
  for (u32 at = threadIdx.x % 32 * LINE; at < ONE_K / 16; at += 32 * LINE)
    ptx::prefetch_l2(group.sfa + u64(row) * (ONE_K / 16) + at);
}

__device__ __forceinline__ void make_late_tokens(const LateRows& late, const Group& group, u32 maker,
                                                 TokenChunks& chunks) {
  u16* out = reinterpret_cast<u16*>(group.scratch[SCRATCH_TOKENS]);
  constexpr u32 ROW_PARTS = ONE_K / PART;
  const u32 apart = MAKERS * gridDim.x;
  for (u32 row = EARLY_ROWS + maker * gridDim.x + blockIdx.x; row < ONE_M; row += apart) {
    prefetch_row(group, row + apart);
#pragma unroll 1
    for (u32 part = 0; part < ROW_PARTS; part += 32) {
      reorder_tokens(group, out, ONE_K, row * ROW_PARTS + part, (row + 1) * ROW_PARTS, chunks);
      __syncwarp();
    }
    if (threadIdx.x % 32 == 0) ptx::add_release(late.made + (row - EARLY_ROWS) / LATE_BLOCK, 1);
  }
}

// Until all rows below `end` are there; `made` blocks are known to be.
__device__ __forceinline__ void wait_for_late(const LateRows& late, u32 end, u32& made) {
  if (end > ONE_M) end = ONE_M;
  bool waited = false;
  for (; EARLY_ROWS + made * LATE_BLOCK < end; ++made) {
    const u32 rows = LATE_ROWS - made * LATE_BLOCK;
    ptx::wait_until_reached(late.made + made, rows < LATE_BLOCK ? rows : LATE_BLOCK);
    waited = true;
  }
  if (waited) ptx::fence_proxy_async_global();
}
#else
struct LateRows {};
__device__ __forceinline__ void wait_for_late(const LateRows&, u32, u32&) {}
__device__ __forceinline__ void make_late_tokens(const LateRows&, const Group&, u32, TokenChunks&) {}
#endif

}  // namespace dgx
