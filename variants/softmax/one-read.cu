/*dgx
operator = "softmax"
summary  = "Each row stays in registers: read once, written once; a long row is a cluster's"
parent   = "two-reads"
claim    = { geomean = 1.1, over = "two-reads", why = "no second wait; what two-reads reads again is in L2" }
arch     = "sm_90a"
requires = ["n % 8 == 0", "n <= 131072"]

# Measured beyond L2. Few long rows are shared by more CTAs, for latency.
[const]
COLUMNS = "n"
CTAS    = "n > 16384 && m <= 64 ? 8 : n > 65536 ? 4 : n > 32768 ? 2 : 1"  # that share a row
VECTORS = "n / CTAS > 8192 ? 8 : 2"                                       # of eight elements, a thread's
THREADS = "align(cdiv(n, 8 * VECTORS * CTAS), 32)"
PER_SM  = "max(1, min(32, (VECTORS == 2 ? 2048 : 1024) / THREADS))"       # CTAs that fit

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
// Exponentials of long rows take the place of their elements, as f16: an error of one unit in the
// last place, not half of one. Of short rows they are made again.
constexpr bool KEPT = VECTORS == 8;

// The sum of 2^(x - top) over some x, none above top.
struct Part {
  float top, sum;
};

struct Parts {
  using Value = Part;
  // Not infinite: infinity less infinity is NaN.
  static __device__ __forceinline__ Part nothing() { return {-3.0e38f, 0.0f}; }
  static __device__ __forceinline__ Part beside(Part part, u32 lane) {
    return {Floats::beside(part.top, lane), Floats::beside(part.sum, lane)};
  }
  static __device__ __forceinline__ Part of(Part a, Part b) {
    const float top = Maximum::of(a.top, b.top);
    return {top, a.sum * ptx::exp2_approx(a.top - top) + b.sum * ptx::exp2_approx(b.top - top)};
  }
};

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

__device__ __forceinline__ void expand(float (&to)[VECTOR], uint4 raw) {
  const u32 words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
  for (u32 j = 0; j < VECTOR; ++j) to[j] = ptx::f16_to_f32(words[j / 2] >> 16 * (j % 2));
}

__device__ __forceinline__ void exponentials(float (&e)[VECTOR], uint4 raw, float top) {
  expand(e, raw);
#pragma unroll
  for (u32 j = 0; j < VECTOR; ++j) e[j] = ptx::exp2_approx(e[j] * LOG2_E - top);
}

__device__ __forceinline__ uint4 pack(const float (&e)[VECTOR], float scale) {
  u32 words[4];
#pragma unroll
  for (u32 j = 0; j < 4; ++j) words[j] = ptx::f32x2_to_f16x2(e[2 * j] * scale, e[2 * j + 1] * scale);
  return {words[0], words[1], words[2], words[3]};
}

// A warp takes the maximum of its own elements, so a row needs one barrier, not two.
extern "C" __global__ void __launch_bounds__(THREADS, PER_SM) softmax(const __grid_constant__ Args args) {
  __shared__ Part slots[THREADS / 32 * CTAS];
  DGX_STAMP_KERNEL(args, softmax);
  const Row<COLUMNS, CTAS, THREADS, VECTORS> place;
  const Group& group = args.near[0];
  const u32 row = blockIdx.x / CTAS;
  uint4 raw[VECTORS];
  place.load(raw, group.x, row, MINUS_INFINITY);
  Part part = Parts::nothing();
  part.top = Maximum::of(part.top, reduce_warp<Maximum>(maximum_of(raw)) * LOG2_E);
  float e[VECTOR];
#pragma unroll
  for (u32 i = 0; i < VECTORS; ++i) {
    exponentials(e, raw[i], part.top);
#pragma unroll
    for (u32 j = 0; j < VECTOR; ++j) part.sum += e[j];
    if constexpr (KEPT) raw[i] = pack(e, 1.0f);
  }
  part.sum = reduce_warp<Sum>(part.sum);
  place.begun();
  const Part whole = reduce_warps<Parts, THREADS, CTAS>(part, slots);
  const float scale = (KEPT ? ptx::exp2_approx(part.top - whole.top) : 1.0f) / whole.sum;
#pragma unroll
  for (u32 i = 0; i < VECTORS; ++i) {
    if constexpr (KEPT)
      expand(e, raw[i]);
    else
      exponentials(e, raw[i], whole.top);
    place.store(group.y, row, i, pack(e, scale));
  }
}
