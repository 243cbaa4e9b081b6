// A warp reads its row three times: for the mean, for the variance, for the result.
#pragma once
#include <cuda_bf16.h>

__device__ float sum_of_warp(float value) {
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_xor_sync(~0u, value, lane);
  return value;
}

__global__ void layer_norm(__nv_bfloat162* y, const __nv_bfloat162* x, const __nv_bfloat162* w,
                           const __nv_bfloat162* b, int m, int n, float eps) {
  const int row = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32, pairs = n / 2;
  if (row >= m) return;
  x += size_t(row) * pairs;
  y += size_t(row) * pairs;

  float sum = 0.0f, squares = 0.0f;
  for (int i = lane; i < pairs; i += 32) {
    const float2 v = __bfloat1622float2(x[i]);
    sum += v.x + v.y;
  }
  const float mean = sum_of_warp(sum) / n;
  for (int i = lane; i < pairs; i += 32) {
    const float2 v = __bfloat1622float2(x[i]);
    squares += (v.x - mean) * (v.x - mean) + (v.y - mean) * (v.y - mean);
  }
  const float scale = rsqrtf(sum_of_warp(squares) / n + eps);
  for (int i = lane; i < pairs; i += 32) {
    const float2 v = __bfloat1622float2(x[i]), weight = __bfloat1622float2(w[i]);
    const float2 bias = BIAS ? __bfloat1622float2(b[i]) : float2{0.0f, 0.0f};
    y[i] = __floats2bfloat162_rn((v.x - mean) * scale * weight.x + bias.x, (v.y - mean) * scale * weight.y + bias.y);
  }
}
