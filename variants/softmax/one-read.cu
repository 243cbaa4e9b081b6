/*dgx
operator = "softmax"
summary  = "Each row stays in registers: read once, written once; a long row is a cluster's"
parent   = "two-reads"
claim    = { geomean = 1.1, over = "two-reads", why = "no second wait; what two-reads reads again is in L2" }
arch     = "sm_90a"
params   = { NEXT = [0, 1] }  # CTAs stay: the next row is on its way while one is summed
requires = ["n % 8 == 0", "n <= 131072"]

# Measured without NEXT: rows of 4096 are fastest with four vectors a thread, rows of 8192 with two;
# those a cluster shares with eight.
[const]
COLUMNS = "n"
CTAS    = "n > 65536 ? 8 : n > 32768 ? 4 : n > 16384 ? 2 : 1"    # that share a row
VECTORS = "n > 32768 ? 8 : n > 4096 || NEXT == 1 ? 2 : 4"        # of eight elements, a thread's
THREADS = "align(cdiv(n, 8 * VECTORS * CTAS), 32)"
PER_SM  = "max(1, (VECTORS == 8 ? NEXT == 1 ? 512 : 1024 : NEXT == 1 ? 1536 : 1) / THREADS)"  # CTAs that fit
AT_ONCE = "NEXT == 1 ? min(m, max(1, sms * PER_SM / CTAS)) : m"  # rows

[[launch]]
kernel  = "softmax"
grid    = "AT_ONCE * CTAS"
block   = "THREADS"
cluster = "CTAS"
*/
#include <dgx/ptx/convert.cuh>
#include <dgx/row.cuh>
using namespace dgx;

constexpr u32 MINUS_INFINITY = 0xFC00FC00;
constexpr float LOG2_E = 1.44269504f;
// Exponentials are not kept but made again: with fewer registers more rows are under way.
constexpr bool AGAIN = NEXT || VECTORS > 4;

__device__ __forceinline__ u32 maximum_f16x2(u32 a, u32 b) {
  u32 d;
  asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

__device__ __forceinline__ float maximum_of(const uint4 (&raw)[VECTORS]) {
  u32 d = MINUS_INFINITY;
#pragma unroll
  for (u32 i = 0; i < VECTORS; ++i) {
    const u32 low = maximum_f16x2(raw[i].x, raw[i].y), high = maximum_f16x2(raw[i].z, raw[i].w);
    d = maximum_f16x2(d, maximum_f16x2(low, high));
  }
  return Maximum::of(ptx::f16_to_f32(d), ptx::f16_to_f32(d >> 16));
}

__device__ __forceinline__ void exponentials(float (&e)[VECTOR], uint4 raw, float top) {
  const u32 words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
  for (u32 j = 0; j < VECTOR; ++j)
    e[j] = ptx::exp2_approx(ptx::f16_to_f32(words[j / 2] >> 16 * (j % 2)) * LOG2_E - top);
}

extern "C" __global__ void __launch_bounds__(THREADS, PER_SM) softmax(const __grid_constant__ Args args) {
  __shared__ float slots[2][THREADS / 32 * CTAS];
  DGX_STAMP_KERNEL(args, softmax);
  const Row<COLUMNS, CTAS, THREADS, VECTORS> place;
  const Group& group = args.near[0];
  uint4 raw[VECTORS], next[VECTORS];
  u32 row = blockIdx.x / CTAS;
  place.load(raw, group.x, row, MINUS_INFINITY);
  place.begun();
  while (true) {
    if (NEXT && row + AT_ONCE < group.m) place.load(next, group.x, row + AT_ONCE, MINUS_INFINITY);
    float top = reduce_row<Maximum, THREADS, CTAS>(maximum_of(raw), slots[0]) * LOG2_E;
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
      if constexpr (AGAIN) exponentials(e[i], raw[i], top);
      u32 words[4];
#pragma unroll
      for (u32 j = 0; j < 4; ++j) words[j] = ptx::f32x2_to_f16x2(e[i][2 * j] * scale, e[i][2 * j + 1] * scale);
      place.store(group.y, row, i, {words[0], words[1], words[2], words[3]});
    }
    row += AT_ONCE;
    if (!NEXT || row >= group.m) return;
    copy(raw, next);
  }
}
