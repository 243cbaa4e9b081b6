/*dgx
operator = "nvfp4-gemv"
summary  = "A thread keeps its part of b in registers and meets every row of the CTA with it"
parent   = "warp-per-row"
claim    = { geomean = 2, over = "warp-per-row", why = "b is dequantised once for all rows of a CTA" }
arch     = "sm_90a"
requires = ["k <= 65536", "m % ROWS == 0"]

# Measured: the most threads that have work, and few rows a CTA where rows are long.
[const]
LENGTH  = "k"
ROWS    = "k > 4096 ? 4 : 8"                   # of a CTA
VECTORS = "cdiv(k, 32768)"                     # of 32 elements, a thread's
THREADS = "align(cdiv(k, 32 * VECTORS), 32)"

[[launch]]
kernel = "gemv"
grid   = ["m / ROWS", "l"]
block  = "THREADS"
*/
#include <dgx/dequant.cuh>
#include <dgx/ptx/memory.cuh>
#include <dgx/stamp.cuh>
using namespace dgx;

constexpr u32 WARPS = THREADS / 32;
constexpr u32 AT_ONCE = 4;  // rows whose loads are under way together
static_assert(ROWS % AT_ONCE == 0);

// 32 elements and their two scales.
struct Piece {
  uint4 packed;
  u32 scales;
};

__device__ __forceinline__ Piece load(const u8* elements, const u8* scales, u32 at) {
  if (LENGTH % (32 * THREADS) != 0 && at >= LENGTH / 32) return {};
  return {ptx::load_global_once_v4(elements + at * 16), ptx::load_global_u16(scales + at * 2)};
}

// The sums of 16 products of e2m1 are exact in fp16: multiples of 2^-2 up to 288 in each half,
// times 2^14 that `spread` leaves out of one of the two.
__device__ __forceinline__ float block(u32 low, u32 high, const u32 (&b)[8]) {
  const Pairs first = spread(low), second = spread(high);
  u32 sums = ptx::multiply_f16x2(first.pair[0], b[0]);
#pragma unroll
  for (u32 i = 1; i < 4; ++i) sums = ptx::fma_f16x2(first.pair[i], b[i], sums);
#pragma unroll
  for (u32 i = 0; i < 4; ++i) sums = ptx::fma_f16x2(second.pair[i], b[4 + i], sums);
  return ptx::f16_to_f32(sums) + ptx::f16_to_f32(sums >> 16);
}

extern "C" __global__ void __launch_bounds__(THREADS) gemv(const __grid_constant__ Args args) {
  __shared__ float slots[ROWS][WARPS];
  DGX_STAMP_KERNEL(args, gemv);
  const Group& group = args.near[0];
  const u32 row = blockIdx.x * ROWS, l = blockIdx.y;
  const u8* b = reinterpret_cast<const u8*>(group.b) + u64(l) * (LENGTH / 2);
  const u8* sfb = reinterpret_cast<const u8*>(group.sfb) + u64(l) * (LENGTH / 16);
  const u8* a = reinterpret_cast<const u8*>(group.a) + (u64(l) * group.m + row) * (LENGTH / 2);
  const u8* sfa = reinterpret_cast<const u8*>(group.sfa) + (u64(l) * group.m + row) * (LENGTH / 16);

  constexpr u32 TWICE_2_14 = 0x74007400;
  u32 values[VECTORS][2][8];
  float b_scales[VECTORS][2];
  Piece pieces[AT_ONCE][VECTORS];
  const auto load_rows = [&](u32 first) {
#pragma unroll
    for (u32 r = 0; r < AT_ONCE; ++r) {
      const u8 *elements = a + u64(first + r) * (LENGTH / 2), *scales = sfa + u64(first + r) * (LENGTH / 16);
#pragma unroll
      for (u32 v = 0; v < VECTORS; ++v) pieces[r][v] = load(elements, scales, threadIdx.x + v * THREADS);
    }
  };
  load_rows(0);
#pragma unroll
  for (u32 v = 0; v < VECTORS; ++v) {
    const Piece piece = load(b, sfb, threadIdx.x + v * THREADS);
    const u32 words[4] = {piece.packed.x, piece.packed.y, piece.packed.z, piece.packed.w};
#pragma unroll
    for (u32 w = 0; w < 4; ++w) {
      const uint4 four = dequantise8(words[w], TWICE_2_14);
      u32* to = values[v][w / 2] + w % 2 * 4;
      to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
    }
    const u32 scales = ptx::e4m3x2_to_f16x2(piece.scales);
    b_scales[v][0] = ptx::f16_to_f32(scales) * 16384.0f, b_scales[v][1] = ptx::f16_to_f32(scales >> 16) * 16384.0f;
  }
#pragma unroll
  for (u32 first = 0; first < ROWS; first += AT_ONCE) {
    float sums[AT_ONCE];
#pragma unroll
    for (u32 r = 0; r < AT_ONCE; ++r) {
      sums[r] = 0.0f;
#pragma unroll
      for (u32 v = 0; v < VECTORS; ++v) {
        const Piece& piece = pieces[r][v];
        const u32 scales = ptx::e4m3x2_to_f16x2(piece.scales);
        const float low = ptx::f16_to_f32(scales) * b_scales[v][0];
        const float high = ptx::f16_to_f32(scales >> 16) * b_scales[v][1];
        sums[r] += block(piece.packed.x, piece.packed.y, values[v][0]) * low;
        sums[r] += block(piece.packed.z, piece.packed.w, values[v][1]) * high;
      }
    }
    if (first + AT_ONCE < ROWS) load_rows(first + AT_ONCE);
#pragma unroll
    for (u32 r = 0; r < AT_ONCE; ++r) {
#pragma unroll
      for (u32 lane = 16; lane > 0; lane /= 2) sums[r] += __shfl_xor_sync(~0u, sums[r], lane);
      if (threadIdx.x % 32 == 0) slots[first + r][threadIdx.x / 32] = sums[r];
    }
  }
  __syncthreads();
  if (threadIdx.x < ROWS) {
    float sum = 0.0f;
#pragma unroll
    for (u32 warp = 0; warp < WARPS; ++warp) sum += slots[threadIdx.x][warp];
    auto* c = reinterpret_cast<u16*>(group.c) + u64(l) * group.m + row;
    c[threadIdx.x] = static_cast<u16>(ptx::f32x2_to_f16x2(sum, 0.0f));
  }
}
