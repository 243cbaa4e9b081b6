/*dgx
operator = "softmax"
summary  = "Each row stays in registers: read once, written once; a long row is a cluster's"
parent   = "two-reads"
claim    = { geomean = 1.1, over = "two-reads", why = "no second wait for memory; what two-reads reads again lies in L2" }
arch     = "sm_90a"
requires = ["n % 8 == 0", "n <= 131072"]

# Measured: rows of 4096 are fastest with four vectors a thread, rows of 8192 with two; those a
# cluster shares with as many as fit the registers.
[const]
COLUMNS = "n"
CTAS    = "n > 65536 ? 8 : n > 32768 ? 4 : n > 16384 ? 2 : 1"  # that share a row
VECTORS = "n > 32768 ? 8 : n > 4096 ? 2 : 4"                   # of eight elements, a thread's
THREADS = "align(cdiv(n, 8 * VECTORS * CTAS), 32)"

[[launch]]
kernel  = "softmax"
grid    = "m * CTAS"
block   = "THREADS"
cluster = "CTAS"
*/
#include <dgx/ptx/convert.cuh>
#include <dgx/row.cuh>
using namespace dgx;

constexpr u32 MINUS_INFINITY = 0xFC00FC00;
constexpr float LOG2_E = 1.44269504f;
// Many exponentials are not kept but made again: with fewer registers more rows are under way.
constexpr bool AGAIN = VECTORS > 4;

__device__ __forceinline__ u32 maximum_f16x2(u32 a, u32 b) {
  u32 d;
  asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

__device__ __forceinline__ void exponentials(float (&e)[VECTOR], uint4 raw, float top) {
  const u32 words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
  for (u32 j = 0; j < VECTOR; ++j)
    e[j] = ptx::exp2_approx(ptx::f16_to_f32(words[j / 2] >> 16 * (j % 2)) * LOG2_E - top);
}

extern "C" __global__ void __launch_bounds__(THREADS, CTAS > 1 ? 1024 / THREADS : 1) softmax(const __grid_constant__ Args args) {
  __shared__ float slots[2][THREADS / 32 * CTAS];
  DGX_STAMP_KERNEL(args, softmax);
  cluster_begin<CTAS>();
  const Group& group = args.near[0];
  const u32 row = blockIdx.x / CTAS, first = (CTAS == 1 ? 0 : ptx::cluster_rank() * THREADS) + threadIdx.x;
  const auto* x = reinterpret_cast<const uint4*>(group.x) + u64(row) * (COLUMNS / VECTOR);
  auto* y = reinterpret_cast<uint4*>(group.y) + u64(row) * (COLUMNS / VECTOR);

  uint4 raw[VECTORS];
#pragma unroll
  for (u32 i = 0; i < VECTORS; ++i) {
    const u32 at = first + i * THREADS * CTAS;
    raw[i] = {MINUS_INFINITY, MINUS_INFINITY, MINUS_INFINITY, MINUS_INFINITY};
    if (at < COLUMNS / VECTOR) raw[i] = ptx::load_global_once_v4(x + at);
  }
  u32 largest = MINUS_INFINITY;
#pragma unroll
  for (u32 i = 0; i < VECTORS; ++i)
    largest = maximum_f16x2(largest, maximum_f16x2(maximum_f16x2(raw[i].x, raw[i].y), maximum_f16x2(raw[i].z, raw[i].w)));
  cluster_begun<CTAS>();
  const float mine = Maximum::of(ptx::f16_to_f32(largest), ptx::f16_to_f32(largest >> 16));
  float top = reduce_row<Maximum, THREADS, CTAS>(mine, slots[0]) * LOG2_E;

  float e[VECTORS][VECTOR], sum = 0.0f;
#pragma unroll
  for (u32 i = 0; i < VECTORS; ++i) {
    exponentials(e[i], raw[i], top);
#pragma unroll
    for (u32 j = 0; j < VECTOR; ++j) sum += e[i][j];
  }
  const float scale = 1.0f / reduce_row<Sum, THREADS, CTAS>(sum, slots[1]);
  if constexpr (AGAIN) asm volatile("" : "+f"(top));  // or the compiler keeps them
#pragma unroll
  for (u32 i = 0; i < VECTORS; ++i) {
    const u32 at = first + i * THREADS * CTAS;
    if constexpr (AGAIN) exponentials(e[i], raw[i], top);
    u32 words[4];
#pragma unroll
    for (u32 j = 0; j < 4; ++j) words[j] = ptx::f32x2_to_f16x2(e[i][2 * j] * scale, e[i][2 * j + 1] * scale);
    if (at < COLUMNS / VECTOR) ptx::store_global_v4(y + at, {words[0], words[1], words[2], words[3]});
  }
}
