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

// Of two, with one reciprocal for both: 1/a = b * 1/(ab). The exponentials end at
// 2^63, so that ab is finite and a NaN stays with its own element; what they
// leave of an x below -44 is less than any fp16.
__device__ __forceinline__ void silu_two(float& x, float& y) {
  constexpr float MINUS_LOG2_E = -1.4426950408889634f, MOST = 63.0f, LEAST_X = -44.0f;
  const float a = 1.0f + ptx::exp2_approx(fminf(x * MINUS_LOG2_E, MOST));
  const float b = 1.0f + ptx::exp2_approx(fminf(y * MINUS_LOG2_E, MOST));
  const float one = ptx::reciprocal_approx(a * b);
  x = ptx::max_nan(x, LEAST_X) * (one * b);
  y = ptx::max_nan(y, LEAST_X) * (one * a);
}

}  // namespace dgx
