// From accumulators to C.
#pragma once
#include <dgx/dequant.cuh>
#include <dgx/ptx/memory.cuh>
#include <dgx/silu.cuh>
#include <dgx/tile.cuh>

namespace dgx {

// One element of the operator from the two raw accumulators.
__device__ __forceinline__ float gated(float gate, float up) { return silu(gate * UNSCALE) * (up * UNSCALE); }

// Calls store(i, row, column) for every pair of neighbouring columns d[i],
// d[i + 1] that a thread of the tile's team holds and that lies inside the
// group's M rows.
template <int Columns, typename Store>
__device__ __forceinline__ void each_pair(const Tile& tile, u32 thread, Store store) {
  const u32 lane = thread % 32;
  const u32 row = tile.row + thread / 32 * 16 + lane / 4;
  const u32 column = tile.column + lane % 4 * 2;
#pragma unroll
  for (u32 half = 0; half < 2; ++half) {
    if (row + 8 * half < tile.group->m) {
#pragma unroll
      for (u32 i = 0; i < Columns / 8; ++i) store(4 * i + 2 * half, row + 8 * half, column + 8 * i);
    }
  }
}

// C straight from registers, two elements a store.
template <int Columns>
__device__ __forceinline__ void store_gated(const Tile& tile, const float (&gate)[Columns / 2],
                                            const float (&up)[Columns / 2], u32 thread = threadIdx.x) {
  u16* c = tile.group->c;
  const u64 n = tile.group->n;
  each_pair<Columns>(tile, thread, [&](u32 i, u32 row, u32 column) {
    ptx::store_global_u32(c + row * n + column,
                          ptx::f32x2_to_f16x2(gated(gate[i], up[i]), gated(gate[i + 1], up[i + 1])));
  });
}

}  // namespace dgx
