// A thread's part of a row: its maximum, and powers of e.
#pragma once
#include <dgx/ptx/convert.cuh>
#include <dgx/row.cuh>

namespace dgx {

constexpr u32 MINUS_INFINITY = 0xFC00FC00;
constexpr float LOG2_E = 1.44269504f;

__device__ __forceinline__ u32 maximum_f16x2(u32 a, u32 b) {
  u32 d;
  asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

template <u32 Vectors>
__device__ __forceinline__ float maximum_of(const uint4 (&raw)[Vectors]) {
  u32 d = MINUS_INFINITY;
#pragma unroll
  for (u32 i = 0; i < Vectors; ++i) {
    const u32 low = maximum_f16x2(raw[i].x, raw[i].y), high = maximum_f16x2(raw[i].z, raw[i].w);
    d = maximum_f16x2(d, maximum_f16x2(low, high));
  }
  return Maximum::of(ptx::f16_to_f32(d), ptx::f16_to_f32(d >> 16));
}

__device__ __forceinline__ void exponentials(float (&e)[VECTOR], uint4 raw, float top) {
  const u32 words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
  for (u32 j = 0; j < VECTOR; ++j)
    e[j] = ptx::exp2_approx(ptx::f16_to_f32(words[j / 2] >> 16 * (j % 2)) * LOG2_E - top);
}

__device__ __forceinline__ uint4 weights(const float (&e)[VECTOR], float scale) {
  u32 words[4];
#pragma unroll
  for (u32 j = 0; j < 4; ++j) words[j] = ptx::f32x2_to_f16x2(e[2 * j] * scale, e[2 * j + 1] * scale);
  return {words[0], words[1], words[2], words[3]};
}

}  // namespace dgx
