// From accumulators in tensor memory to C. Lane r of an accumulator is row r
// of the tile: each thread has a row, and four warps have all of them.
#pragma once
#include <dgx/ptx/convert.cuh>
#include <dgx/ptx/tcgen05.cuh>
#include <dgx/silu.cuh>
#include <dgx/tile.cuh>

namespace dgx {

constexpr int CHUNK = 16;  // columns read at a time: 32 bytes of C

// Calls use(column, product) for every sixteen columns of this thread's row.
// All 32 lanes take part, whether their row exists or not.
template <int Columns, typename Use>
__device__ __forceinline__ void each_chunk(u32 columns, Use use) {
  DGX_STAMP(epilogue);
#pragma unroll 1
  for (u32 column = 0; column < Columns; column += CHUNK) {
    float product[CHUNK];
    ptx::tmem_load(product, ptx::tmem_quarter(columns) + column);
    ptx::tmem_wait(product);
    use(column, product);
  }
}

// Calls use(column, gate, up) for both accumulators.
template <int Columns, typename Use>
__device__ __forceinline__ void each_chunk(u32 gate_columns, u32 up_columns, Use use) {
  DGX_STAMP(epilogue);
#pragma unroll 1
  for (u32 column = 0; column < Columns; column += CHUNK) {
    float gate[CHUNK], up[CHUNK];
    ptx::tmem_load(gate, ptx::tmem_quarter(gate_columns) + column);
    ptx::tmem_load(up, ptx::tmem_quarter(up_columns) + column);
    ptx::tmem_wait(gate, up);
    use(column, gate, up);
  }
}

__device__ __forceinline__ u32 row_in_tile() { return threadIdx.x % 128; }

// Sixteen gated elements, two to a word.
__device__ __forceinline__ void gate_chunk(u32 (&out)[CHUNK / 2], const float (&gate)[CHUNK], const float (&up)[CHUNK]) {
#pragma unroll
  for (int i = 0; i < CHUNK / 2; ++i)
    out[i] = ptx::f32x2_to_f16x2(silu(gate[2 * i]) * up[2 * i], silu(gate[2 * i + 1]) * up[2 * i + 1]);
}

// C straight from registers, a sector of 32 bytes a store.
template <int Columns>
__device__ __forceinline__ void store_gated(const Tile& tile, u32 gate_columns, u32 up_columns) {
  const u32 row = tile.row + row_in_tile();
  u16* c = tile.group->c + u64(row) * tile.group->n + tile.column;
  each_chunk<Columns>(gate_columns, up_columns, [&](u32 column, const float(&gate)[CHUNK], const float(&up)[CHUNK]) {
    u32 out[CHUNK / 2];
    gate_chunk(out, gate, up);
    if (row < tile.group->m) ptx::store_global_v8(c + column, out);
  });
}

}  // namespace dgx
