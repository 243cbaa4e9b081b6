// 64 x 64 of C a CTA, by four warps of 32 x 32: operands through shared memory, one step of K32
// after the other, multiplied by mma.sync.
#pragma once
#include <dgx/ptx/convert.cuh>
#include <dgx/ptx/memory.cuh>
#include <dgx/ptx/mma.cuh>
#include <dgx/stamp.cuh>

namespace dgx {

constexpr u32 TILE = 64, STEP_K = 32, PITCH = STEP_K + 8;  // of a row in shared memory: no two in one bank

// Rows past the end and K past k are zeros.
__device__ __forceinline__ void load_tile(u16 (&to)[TILE][PITCH], const u16* from, u32 first, u32 rows, u32 k, u32 at) {
  for (u32 i = threadIdx.x; i < TILE * STEP_K / 8; i += 128) {
    const u32 row = i / (STEP_K / 8), column = i % (STEP_K / 8) * 8;
    uint4 eight = {};
    if (first + row < rows && at + column < k) eight = ptx::load_global_v4(from + u64(first + row) * k + at + column);
    *reinterpret_cast<uint4*>(&to[row][column]) = eight;
  }
}

__device__ __forceinline__ u32 pair_at(const u16 (&tile)[TILE][PITCH], u32 row, u32 column) {
  return *reinterpret_cast<const u32*>(&tile[row][column]);
}

__device__ __forceinline__ void round_to_f16(float4& d) {
  const u32 low = ptx::f32x2_to_f16x2(d.x, d.y), high = ptx::f32x2_to_f16x2(d.z, d.w);
  d = {ptx::f16_to_f32(low), ptx::f16_to_f32(low >> 16), ptx::f16_to_f32(high), ptx::f16_to_f32(high >> 16)};
}

__device__ __forceinline__ void add_in_f16(float4& d, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  float4 products = {};
  ptx::mma_m16n8k16(products, a0, a1, a2, a3, b0, b1);
  round_to_f16(products);
  d.x += products.x, d.y += products.y, d.z += products.z, d.w += products.w;
}

}  // namespace dgx

extern "C" __global__ void __launch_bounds__(128) gemm(const __grid_constant__ dgx::Args args) {
  using namespace dgx;
  __shared__ alignas(16) u16 a[TILE][PITCH], b[TILE][PITCH];
  DGX_STAMP_KERNEL(args, gemm);
  const Group& group = args.near[0];
  const u32 m = group.m, n = group.n, k = group.k;
  const u32 row = blockIdx.y * TILE, column = blockIdx.x * TILE;
  const u32 lane = threadIdx.x % 32, warp_row = threadIdx.x / 64 * 32, warp_column = threadIdx.x / 32 % 2 * 32;

  float4 d[2][4] = {};
  for (u32 at = 0; at < k; at += STEP_K) {
    __syncthreads();
    load_tile(a, group.a, row, m, k, at);
    load_tile(b, group.b, column, n, k, at);
    __syncthreads();
#pragma unroll
    for (u32 step = 0; step < STEP_K; step += 16) {
      const u32 x = step + lane % 4 * 2;
#pragma unroll
      for (u32 i = 0; i < 2; ++i) {
        const u32 y = warp_row + i * 16 + lane / 4;
        const u32 a0 = pair_at(a, y, x), a1 = pair_at(a, y + 8, x);
        const u32 a2 = pair_at(a, y, x + 8), a3 = pair_at(a, y + 8, x + 8);
#pragma unroll
        for (u32 j = 0; j < 4; ++j) {
          const u32 z = warp_column + j * 8 + lane / 4;
          const u32 b0 = pair_at(b, z, x), b1 = pair_at(b, z, x + 8);
          if (F16_PRODUCTS && at < k / 4) {
            add_in_f16(d[i][j], a0, a1, a2, a3, b0, b1);
          } else {
            ptx::mma_m16n8k16(d[i][j], a0, a1, a2, a3, b0, b1);
          }
          if (F16_SUMS && at < k / 2) round_to_f16(d[i][j]);
        }
      }
    }
  }
#pragma unroll
  for (u32 i = 0; i < 2; ++i)
#pragma unroll
    for (u32 j = 0; j < 4; ++j) {
      const u32 y = row + warp_row + i * 16 + lane / 4, z = column + warp_column + j * 8 + lane % 4 * 2;
      u16* c = group.c + u64(y) * n + z;
      if (y < m && z < n) ptx::store_global_u32(c, ptx::f32x2_to_f16x2(d[i][j].x, d[i][j].y));
      if (y + 8 < m && z < n) ptx::store_global_u32(c + u64(8) * n, ptx::f32x2_to_f16x2(d[i][j].z, d[i][j].w));
    }
}
