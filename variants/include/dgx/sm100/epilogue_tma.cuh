// C by way of shared memory: rows are put together there and TMA writes whole
// lines, leaving out the rows past M.
#pragma once
#include <dgx/ptx/barrier.cuh>
#include <dgx/ptx/tma.cuh>
#include <dgx/sm100/epilogue.cuh>

namespace dgx {

// Each warp stages and stores its own 32 rows, in panels of 64 columns (128
// bytes, the swizzle's span). The map's box is 64 x 32; `staging` has room for
// the tile and is 1024-byte aligned.
template <int Columns>
__device__ __forceinline__ void store_gated_by_tma(const Tile& tile, u32 gate_columns, u32 up_columns, u32 staging,
                                                   const TensorMap* c) {
  constexpr u32 PANEL = 64, ROW_BYTES = PANEL * 2, PANEL_BYTES = 32 * ROW_BYTES;
  const u32 warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const u32 own = staging + warp * (Columns / PANEL * PANEL_BYTES);
  each_chunk<Columns>(gate_columns, up_columns, [&](u32 column, const float(&gate)[CHUNK], const float(&up)[CHUNK]) {
    u32 out[CHUNK / 2];
    gate_chunk(out, gate, up);
    const u32 row = own + column / PANEL * PANEL_BYTES + lane * ROW_BYTES, part = column % PANEL / 8;
    ptx::store_shared_v4(row + (part ^ lane % 8) * 16, {out[0], out[1], out[2], out[3]});
    ptx::store_shared_v4(row + (part + 1 ^ lane % 8) * 16, {out[4], out[5], out[6], out[7]});
  });
  ptx::fence_proxy_async_shared();
  __syncwarp();
  if (ptx::elect_one()) {
#pragma unroll
    for (u32 panel = 0; panel < Columns / PANEL; ++panel)
      ptx::tma_store_2d(c, tile.column + panel * PANEL, tile.row + warp * 32, own + panel * PANEL_BYTES);
    ptx::tma_store_commit();
    ptx::tma_store_wait_read<0>();
  }
  __syncwarp();
}

}  // namespace dgx
