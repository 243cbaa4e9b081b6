/*dgx
summary = "A CTA a row: partial sums meet in shared memory, x is read twice"
arch    = "sm_90a"
tiles   = "m"

[const]
THREADS = 256

[[launch]]
kernel = "rms_norm"
grid   = "sum(tiles)"
block  = "THREADS"
*/
#include <dgx/abi.cuh>
using namespace dgx;

constexpr float EPS = 1e-5f;  // as operators/rms-norm.toml has it

__device__ float widened(u16 bits) { return __uint_as_float(u32(bits) << 16); }

// To the nearest bf16, ties to even.
__device__ u16 narrowed(float value) {
  const u32 bits = __float_as_uint(value);
  return u16((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

extern "C" __global__ void __launch_bounds__(THREADS) rms_norm(const __grid_constant__ Args args) {
  __shared__ float parts[THREADS / 32];
  const Group& group = args.near[0];
  const u16* x = group.x + u64(blockIdx.x) * group.n;
  u16* y = group.y + u64(blockIdx.x) * group.n;

  float sum = 0.0f;
  for (u32 i = threadIdx.x; i < group.n; i += THREADS) {
    const float value = widened(x[i]);
    sum += value * value;
  }
  for (u32 step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0.0f;
  for (u32 warp = 0; warp < THREADS / 32; ++warp) sum += parts[warp];

  const float scale = rsqrtf(sum / float(group.n) + EPS);
  for (u32 i = threadIdx.x; i < group.n; i += THREADS)
    y[i] = narrowed(widened(x[i]) * scale * widened(group.w[i]));
}
