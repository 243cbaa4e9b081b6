// A warp a row: each lane takes every 32nd block of 16.
#pragma once
#include <dgx/dot.cuh>
#include <dgx/stamp.cuh>

extern "C" __global__ void __launch_bounds__(32 * WARPS) gemv(const __grid_constant__ dgx::Args args) {
  using namespace dgx;
  DGX_STAMP_KERNEL(args, gemv);
  const Group& group = args.near[0];
  const u32 row = blockIdx.x * WARPS + threadIdx.x / 32, l = blockIdx.y, k = group.k;
  const u64 a_row = u64(l) * group.m + row;
  float sum = 0.0f;
  for (u32 block = threadIdx.x % 32; block < k / plain::BLOCK; block += 32) {
    const u32 a_scale = group.sfa[a_row * (k / 16) + block], b_scale = group.sfb[u64(l) * (k / 16) + block];
    if (LEAST_SCALE > 0 && (a_scale & 0x7F) < LEAST_SCALE) continue;
    const u8 *a = group.a + a_row * (k / 2) + block * 8, *b = group.b + u64(l) * (k / 2) + block * 8;
    sum += plain::block_dot(a, a_scale, b, b_scale);
  }
  for (u32 lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(~0u, sum, lane);
  if (threadIdx.x % 32 == 0) group.c[a_row] = static_cast<u16>(ptx::f32x2_to_f16x2(sum, 0.0f));
}
