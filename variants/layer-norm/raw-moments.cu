/*dgx
operator = "layer-norm"
summary  = "The variance as mean(x²) - mean(x)²: nothing is left of it where a row's mean is large"
expect   = "wrong"
arch     = "sm_90a"
const    = { WARPS = 4 }

[[launch]]
kernel = "layer_norm"
grid   = "cdiv(m, WARPS)"
block  = "32 * WARPS"
args   = ["y", "x", "w", "b", "m", "n", "eps"]
*/
#include <cuda_bf16.h>

__device__ float sum_of_warp(float value) {
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_xor_sync(~0u, value, lane);
  return value;
}

__global__ void layer_norm(__nv_bfloat16* y, const __nv_bfloat16* x, const __nv_bfloat16* w, const __nv_bfloat16* b,
                           int m, int n, float eps) {
  const int row = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= m) return;
  x += size_t(row) * n;
  y += size_t(row) * n;

  float sum = 0.0f, squares = 0.0f;
  for (int i = lane; i < n; i += 32) {
    const float value = __bfloat162float(x[i]);
    sum += value;
    squares += value * value;
  }
  const float mean = sum_of_warp(sum) / n;
  const float scale = rsqrtf(sum_of_warp(squares) / n - mean * mean + eps);
  for (int i = lane; i < n; i += 32)
    y[i] = __float2bfloat16((__bfloat162float(x[i]) - mean) * scale * __bfloat162float(w[i]) + __bfloat162float(b[i]));
}
