// Warp MMA, m16 x n8 x k16, fp16 operands, fp32 accumulators.
//
// a[0..3] hold rows lane / 4 and + 8 at k = 2 * (lane % 4) (a0, a1), then the
// same at k + 8 (a2, a3); b0 and b1 hold column lane / 4 at the same two k; d is
// rows lane / 4 (d0, d1) and + 8 (d2, d3) of columns 2 * (lane % 4) and + 1.
#pragma once
#include <dgx/abi.cuh>

namespace dgx::ptx {

__device__ __forceinline__ void mma_m16n8k16(float4& d, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d.x), "+f"(d.y), "+f"(d.z), "+f"(d.w)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

}  // namespace dgx::ptx
