/*dgx
operator = "layer-norm"
summary  = "Each row stays in registers: read once, written once"
parent   = "three-reads"
claim    = { geomean = 1.2, over = "three-reads", why = "the row is read once, and by whole CTAs" }
arch     = "sm_90a"
requires = ["n % 8 == 0", "n <= 16384"]

[const]
COLUMNS = "n"
VECTORS = "m <= 512 && n <= 8192 ? 1 : 2"  # of eight elements, a thread's
THREADS = "align(cdiv(n, 8 * VECTORS), 32)"

[[launch]]
kernel = "layer_norm"
grid   = "m"
block  = "THREADS"
*/
#include <dgx/ptx/convert.cuh>
#include <dgx/row.cuh>
using namespace dgx;

constexpr float EPSILON = dgx::constants::eps;
using Place = Row<COLUMNS, 1, THREADS, VECTORS>;

__device__ __forceinline__ void expand(float (&to)[VECTOR], uint4 raw) {
  const u32 words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
  for (u32 j = 0; j < VECTOR; ++j) to[j] = ptx::bf16_to_f32(words[j / 2], j % 2);
}

extern "C" __global__ void __launch_bounds__(THREADS) layer_norm(const __grid_constant__ Args args) {
  __shared__ float slots[2][THREADS / 32];
  DGX_STAMP_KERNEL(args, layer_norm);
  const Place place;
  const Group& group = args.near[0];
  uint4 raw[VECTORS], weights[VECTORS], biases[VECTORS];
  place.load(raw, group.x, blockIdx.x, 0);
  place.load(weights, group.w, 0, 0);
  place.load(biases, group.b, 0, 0);

  float x[VECTORS][VECTOR], sum = 0.0f, squares = 0.0f;
#pragma unroll
  for (u32 i = 0; i < VECTORS; ++i) {
    expand(x[i], raw[i]);
#pragma unroll
    for (u32 j = 0; j < VECTOR; ++j) sum += x[i][j];
  }
  const float mean = reduce_row<Sum, THREADS, 1>(sum, slots[0]) / float(COLUMNS);
#pragma unroll
  for (u32 i = 0; i < VECTORS; ++i)
#pragma unroll
    for (u32 j = 0; j < VECTOR; ++j) {
      x[i][j] -= mean;
      if (place.exists(i)) squares += x[i][j] * x[i][j];
    }
  const float scale = rsqrtf(reduce_row<Sum, THREADS, 1>(squares, slots[1]) / float(COLUMNS) + EPSILON);
#pragma unroll
  for (u32 i = 0; i < VECTORS; ++i) {
    float w[VECTOR], b[VECTOR];
    expand(w, weights[i]);
    expand(b, biases[i]);
    u32 words[4];
#pragma unroll
    for (u32 j = 0; j < 4; ++j)
      words[j] = ptx::f32x2_to_bf16x2(x[i][2 * j] * scale * w[2 * j] + b[2 * j],
                                      x[i][2 * j + 1] * scale * w[2 * j + 1] + b[2 * j + 1]);
    place.store(group.y, blockIdx.x, i, {words[0], words[1], words[2], words[3]});
  }
}
