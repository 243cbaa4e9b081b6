// A CTA reads its row twice: first the maximum and the sum so far, which shrinks as the maximum
// grows, then the weights.
#pragma once
#include <dgx/ptx/convert.cuh>
#include <dgx/row.cuh>

namespace dgx {

constexpr float LOG2_E = 1.44269504f;
constexpr float LOWEST = -3e38f;  // not infinity, whose difference to itself is NaN

__device__ __forceinline__ void unpack(float (&v)[VECTOR], uint4 raw) {
  const u32 words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
  for (u32 j = 0; j < VECTOR; ++j) v[j] = ptx::f16_to_f32(words[j / 2] >> 16 * (j % 2)) * LOG2_E;
}

}  // namespace dgx

extern "C" __global__ void __launch_bounds__(THREADS) softmax(const __grid_constant__ dgx::Args args) {
  using namespace dgx;
  __shared__ float slots[2][THREADS / 32];
  DGX_STAMP_KERNEL(args, softmax);
  const Group& group = args.near[0];
  const u32 vectors = group.n / VECTOR;
  const auto* x = reinterpret_cast<const uint4*>(group.x) + u64(blockIdx.x) * vectors;
  auto* y = reinterpret_cast<uint4*>(group.y) + u64(blockIdx.x) * vectors;

  float v[VECTOR], top = SUBTRACT ? LOWEST : 0.0f, sum = 0.0f;
  for (u32 at = threadIdx.x; at < vectors; at += THREADS) {
    unpack(v, ptx::load_global_v4(x + at));
    const float before = top;
    for (u32 j = 0; SUBTRACT && j < VECTOR; ++j) top = Maximum::of(top, v[j]);
    sum *= ptx::exp2_approx(before - top);
    for (u32 j = 0; j < VECTOR; ++j) sum += ptx::exp2_approx(v[j] - top);
  }
  const float all = reduce_row<Maximum, THREADS, 1>(top, slots[0]);
  const float scale = 1.0f / reduce_row<Sum, THREADS, 1>(sum * ptx::exp2_approx(top - all), slots[1]);
  for (u32 at = threadIdx.x; at < vectors; at += THREADS) {
    unpack(v, ptx::load_global_v4(x + at));
    u32 words[4];
    for (u32 j = 0; j < VECTOR; ++j) v[j] = ptx::exp2_approx(v[j] - all) * scale;
    for (u32 j = 0; j < 4; ++j) words[j] = ptx::f32x2_to_f16x2(v[2 * j], v[2 * j + 1]);
    ptx::store_global_v4(y + at, {words[0], words[1], words[2], words[3]});
  }
}
