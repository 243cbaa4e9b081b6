// The operator with nothing clever in it: one thread per element of C, scalar
// arithmetic, a grid row per group. Too slow to contend; what it is for is to
// be mutated, one mistake at a time, to see that each mistake is caught.
#pragma once
#include <dgx/dequant.cuh>
#include <dgx/epilogue.cuh>

namespace dgx::plain {

constexpr float E2M1[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};

// Element k of a packed row with its scale.
__device__ inline float element(const u8* row, const u8* scales, u32 k) {
  const u32 nibble = row[k / 2] >> (k % 2 * 4);
  const u32 scale = ptx::e4m3x2_to_f16x2(scales[k / 16]);
  const float magnitude = E2M1[nibble % 8] * ptx::f16_to_f32(scale);
  return nibble & 8 ? -magnitude : magnitude;
}

// Row `row` of x against row `column` of y over k in [begin, end).
__device__ inline float dot(const u8* x, const u8* x_scales, u32 row, const u8* y, const u8* y_scales, u32 column,
                            u32 k, u32 begin, u32 end) {
  x += u64(row) * (k / 2), x_scales += u64(row) * (k / 16);
  y += u64(column) * (k / 2), y_scales += u64(column) * (k / 16);
  float sum = 0.0f;
  for (u32 i = begin; i < end; ++i) sum += element(x, x_scales, i) * element(y, y_scales, i);
  return sum;
}

__device__ inline float gate(const Group& g, u32 row, u32 column) {
  return dot(g.a, g.sfa, row, g.b1, g.sfb1, column, g.k, 0, g.k);
}

__device__ inline float up(const Group& g, u32 row, u32 column) {
  return dot(g.a, g.sfa, row, g.b2, g.sfb2, column, g.k, 0, g.k);
}

__device__ inline void store(const Group& g, u32 row, u32 column, float value) {
  g.c[u64(row) * g.n + column] = static_cast<u16>(ptx::f32x2_to_f16x2(value, 0.0f));
}

// Calls body(group, row, column) for this thread's element, if it has one.
template <typename Body>
__device__ inline void each_element(const Args& args, Body body) {
  const Group& g = args.groups[blockIdx.y];
  const u32 element = blockIdx.x * blockDim.x + threadIdx.x;
  if (element < g.m * g.n) body(g, element / g.n, element % g.n);
}

}  // namespace dgx::plain
