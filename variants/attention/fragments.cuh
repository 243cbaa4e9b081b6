// A warp takes 16 queries and goes through their keys, 16 at a time. Everything is loaded from
// global memory as mma.sync wants it; the row's maximum and sum are those so far.
#pragma once
#include <dgx/ptx/convert.cuh>
#include <dgx/ptx/memory.cuh>
#include <dgx/ptx/mma.cuh>
#include <dgx/stamp.cuh>

namespace dgx {

constexpr u32 QUERIES = 16, KEYS = 16;
constexpr float LOWEST = -1e30f;  // not infinity, whose difference to itself is NaN

// Two neighbours of row `row`; zeros past the last row.
__device__ __forceinline__ u32 pair_at(const u16* rows, u32 row, u32 column) {
  return row < LENGTH ? ptx::load_global_u32(rows + u64(row) * DEPTH + column) : 0;
}

// Rows `row` and `row + 1` of one column.
__device__ __forceinline__ u32 column_pair_at(const u16* rows, u32 row, u32 column) {
  const u16* at = rows + u64(row) * DEPTH + column;
  return (row < LENGTH ? at[0] : 0) | (row + 1 < LENGTH ? u32(at[DEPTH]) << 16 : 0);
}

// Over the four lanes that share a row.
template <typename Op>
__device__ __forceinline__ float over_row(float a, Op op) {
  a = op(a, __shfl_xor_sync(~0u, a, 1));
  return op(a, __shfl_xor_sync(~0u, a, 2));
}

// Of a thread's two rows, 8 apart, so far.
struct Rows {
  float top[2] = {LOWEST, LOWEST}, sum[2] = {};
};

// Scores to weights: s[j] has columns 8 j on, rows in x, y and z, w. The sums so far shrink.
__device__ __forceinline__ void weigh(float (&s)[2][4], float (&o)[DEPTH / 8][4], Rows& rows, u32 query, u32 key) {
  const float scale = rsqrtf(float(DEPTH)) * 1.44269504f;
  const u32 lane = threadIdx.x % 32;
#pragma unroll
  for (u32 half = 0; half < 2; ++half) {
    float top = rows.top[half];
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
      float& score = s[i / 2][half * 2 + i % 2];
      const u32 row = query + lane / 4 + half * 8, column = key + i / 2 * 8 + lane % 4 * 2 + i % 2;
      score = column > row + AHEAD || column >= LENGTH ? LOWEST : score * scale;
      top = fmaxf(top, score);
    }
    top = over_row(top, [](float a, float b) { return fmaxf(a, b); });
    const float shrink = ptx::exp2_approx(rows.top[half] - top);
    rows.top[half] = top, rows.sum[half] *= shrink;
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
      float& score = s[i / 2][half * 2 + i % 2];
      score = ptx::exp2_approx(score - top);
      rows.sum[half] += score;
    }
#pragma unroll
    for (u32 j = 0; j < DEPTH / 8; ++j) o[j][half * 2] *= shrink, o[j][half * 2 + 1] *= shrink;
  }
}

__device__ __forceinline__ void multiply(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  float4 sums = {d[0], d[1], d[2], d[3]};
  ptx::mma_m16n8k16(sums, a[0], a[1], a[2], a[3], b0, b1);
  d[0] = sums.x, d[1] = sums.y, d[2] = sums.z, d[3] = sums.w;
}

}  // namespace dgx

extern "C" __global__ void __launch_bounds__(32) attention(const __grid_constant__ dgx::Args args) {
  using namespace dgx;
  DGX_STAMP_KERNEL(args, attention);
  const Group& group = args.near[0];
  const u64 head = u64(blockIdx.y) * LENGTH * DEPTH;
  const u16 *q = group.q + head, *k = group.k + head, *v = group.v + head;
  const u32 query = (gridDim.x - 1 - blockIdx.x) * QUERIES;  // those with the most keys first
  const u32 lane = threadIdx.x % 32, row = query + lane / 4, x = lane % 4 * 2;

  u32 a[DEPTH / 16][4];
#pragma unroll
  for (u32 i = 0; i < DEPTH / 16; ++i)
#pragma unroll
    for (u32 part = 0; part < 4; ++part) a[i][part] = pair_at(q, row + part % 2 * 8, i * 16 + part / 2 * 8 + x);
  float o[DEPTH / 8][4] = {};
  Rows rows;
  for (u32 key = 0; key < min(query + QUERIES + AHEAD, LENGTH); key += KEYS) {
    float s[2][4] = {};
#pragma unroll
    for (u32 j = 0; j < 2; ++j)
#pragma unroll
      for (u32 i = 0; i < DEPTH / 16; ++i) {
        const u32 at = key + j * 8 + lane / 4;
        multiply(s[j], a[i], pair_at(k, at, i * 16 + x), pair_at(k, at, i * 16 + 8 + x));
      }
    weigh(s, o, rows, query, key);
    const u32 p[4] = {ptx::f32x2_to_f16x2(s[0][0], s[0][1]), ptx::f32x2_to_f16x2(s[0][2], s[0][3]),
                      ptx::f32x2_to_f16x2(s[1][0], s[1][1]), ptx::f32x2_to_f16x2(s[1][2], s[1][3])};
#pragma unroll
    for (u32 j = 0; j < DEPTH / 8; ++j)
      multiply(o[j], p, column_pair_at(v, key + x, j * 8 + lane / 4), column_pair_at(v, key + 8 + x, j * 8 + lane / 4));
  }
  for (u32 half = 0; half < 2; ++half) {
    const float scale = 1.0f / over_row(rows.sum[half], [](float a, float b) { return a + b; });
    if (row + half * 8 >= LENGTH) continue;
    u16* to = group.o + head + u64(row + half * 8) * DEPTH + x;
#pragma unroll
    for (u32 j = 0; j < DEPTH / 8; ++j)
      ptx::store_global_u32(to + j * 8, ptx::f32x2_to_f16x2(o[j][half * 2] * scale, o[j][half * 2 + 1] * scale));
  }
}
