// C by way of shared memory: rows are put together there and TMA writes whole
// lines, leaving out the rows past M.
#pragma once
#include <dgx/epilogue.cuh>
#include <dgx/ptx/barrier.cuh>
#include <dgx/ptx/matrix.cuh>
#include <dgx/ptx/tma.cuh>

namespace dgx {

// Each warpgroup stages and stores its own 64 rows, in panels of 64 columns
// (128 bytes, the swizzle's span); Bytes is a panel of all the CTA's rows. The
// map's box is 64 x 64.
template <int Columns, int Bytes>
__device__ __forceinline__ void store_gated_by_tma(const Tile& tile, const float (&gate)[Columns / 2],
                                                   const float (&up)[Columns / 2], u8 (&staging)[Columns / 64][Bytes],
                                                   const TensorMap* c) {
  const u32 group = threadIdx.x / 128, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const u32 at_group = ptx::shared_address(staging) + group * (64 * 128);
  // stmatrix takes 16 rows x 16 columns a time: lanes 0..15 name the rows of
  // the left half, lanes 16..31 of the right.
  const u32 row = warp * 16 + lane % 16;
#pragma unroll
  for (u32 i = 0; i < Columns / 16; ++i) {
    u32 pair[4];
#pragma unroll
    for (u32 j = 0; j < 4; ++j) {
      const u32 at = 8 * i + 2 * j;
      pair[j] = ptx::f32x2_to_f16x2(gated(gate[at], up[at]), gated(gate[at + 1], up[at + 1]));
    }
    const u32 chunk = (i % 4 * 2 + lane / 16) ^ (row % 8);
    ptx::store_matrix_x4(at_group + i / 4 * Bytes + row * 128 + chunk * 16, pair[0], pair[1], pair[2], pair[3]);
  }
  ptx::fence_proxy_async_shared();
  ptx::named_sync<128>(group + 1);
  if (threadIdx.x % 128 == 0) {
#pragma unroll
    for (u32 panel = 0; panel < Columns / 64; ++panel)
      ptx::tma_store_2d(c, tile.column + panel * 64, tile.row + group * 64, at_group + panel * Bytes);
    ptx::tma_store_commit();
    ptx::tma_store_wait_read<0>();
  }
}

}  // namespace dgx
