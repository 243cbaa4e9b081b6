// The gate's function.
#pragma once
#include <dgx/ptx/convert.cuh>

namespace dgx {

// x / (1 + e^-x). For very negative x the exponential is inf, its reciprocal
// 0 and the result -0: no inf / inf on the way.
__device__ __forceinline__ float silu(float x) {
  constexpr float MINUS_LOG2_E = -1.4426950408889634f;
  return x * ptx::reciprocal_approx(1.0f + ptx::exp2_approx(x * MINUS_LOG2_E));
}

}  // namespace dgx
