/*dgx
summary  = "A warp a row, eight elements a load: no shared memory, no barrier"
arch     = "sm_90a"
requires = ["n % 8 == 0"]
tiles    = "cdiv(m, ROWS)"

[const]
ROWS    = 4
THREADS = "32 * ROWS"

[[launch]]
kernel = "rms_norm"
grid   = "sum(tiles)"
block  = "THREADS"
*/
#include <dgx/abi.cuh>
using namespace dgx;

constexpr float EPS = 1e-5f;  // as operators/rms-norm.toml has it

// Two bf16 of a word.
__device__ float2 widened(u32 pair) {
  return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000)};
}

// To the nearest bf16, ties to even.
__device__ u32 narrowed(float value) {
  const u32 bits = __float_as_uint(value);
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

__device__ u32 scaled(u32 x, u32 w, float scale) {
  const float2 a = widened(x), b = widened(w);
  return narrowed(a.x * scale * b.x) | narrowed(a.y * scale * b.y) << 16;
}

extern "C" __global__ void __launch_bounds__(THREADS) rms_norm(const __grid_constant__ Args args) {
  const Group& group = args.near[0];
  const u32 row = blockIdx.x * ROWS + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= group.m) return;
  const u32 words = group.n / 8;
  const uint4* x = reinterpret_cast<const uint4*>(group.x + u64(row) * group.n);
  const uint4* w = reinterpret_cast<const uint4*>(group.w);
  uint4* y = reinterpret_cast<uint4*>(group.y + u64(row) * group.n);

  float sum = 0.0f;
  for (u32 i = lane; i < words; i += 32) {
    const uint4 word = x[i];
    const u32 pairs[4] = {word.x, word.y, word.z, word.w};
    for (u32 pair : pairs) {
      const float2 v = widened(pair);
      sum += v.x * v.x + v.y * v.y;
    }
  }
  for (u32 step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);

  const float scale = rsqrtf(sum / float(group.n) + EPS);
  for (u32 i = lane; i < words; i += 32) {
    const uint4 a = x[i], b = w[i];
    y[i] = {scaled(a.x, b.x, scale), scaled(a.y, b.y, scale), scaled(a.z, b.z, scale),
            scaled(a.w, b.w, scale)};
  }
}
