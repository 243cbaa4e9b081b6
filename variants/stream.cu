/*dgx
summary  = "Fewest tokens, one wave: weights go from memory straight to registers, no ring, no barrier before the sums"
parent   = "decode"
round    = 7
claim    = { geomean = 1.1, over = "decode", why = "the first loads leave with the first instructions, the last are used as they come" }
arch     = "sm_90a"
requires = ["groups == 1", "m <= 32", "k % 256 == 0", "n % 8 == 0"]
tiles    = "cdiv(n, FEATURES)"

# A tile is FEATURES features and all tokens; each of WARPS warps takes every
# WARPS-th K128 of it. Cycles of a K128, from its instructions; of a tile.
[tune]
choose   = { OCTETS = [4, 3, 2, 1, 5], WARPS = [16, 14, 12, 8] }
minimise = """
  OCTETS * NT > (WARPS > 12 ? 4 : 5) || WARPS == 8 && (NT > 2 || K > 1024) ? 1000000000000 :
  cdiv(ALL_TILES, sms) * (2000 + cdiv(K / 128, WARPS) * WARPS / 4 * (60 + 70 * NT + OCTETS * (140 + 8 * NT)))
"""

[const]
M         = "most(m)"
N         = "most(n)"
K         = "most(k)"
NT        = "cdiv(M, 8)"  # octets of tokens
FEATURES  = "8 * OCTETS"
ALL_TILES = "cdiv(N, FEATURES)"
GRID      = "min(ALL_TILES, sms)"
THREADS   = "32 * WARPS"

[[launch]]
kernel = "dual_gemm"
grid   = "GRID"
block  = "THREADS"
smem   = "512 * WARPS * OCTETS * NT"
*/
#include <dgx/epilogue.cuh>
#include <dgx/piece.cuh>
#include <dgx/ptx/memory.cuh>
#include <dgx/shared.cuh>
#include <dgx/stamp.cuh>
using namespace dgx;

constexpr u32 SPAN = 128;                     // of K, a warp's at a time
constexpr u32 STEP_BYTES = WARPS * SPAN / 2;  // of a row, all warps'
constexpr u32 STEPS = (K / SPAN + WARPS - 1) / WARPS;
constexpr bool SHORT = ALL_TILES <= GRID && NT <= 2 && (STEPS == 1 || STEPS == 2 && OCTETS == 1);  // straight code, without loads for nobody
constexpr u32 SUMS = OCTETS * NT * 32;  // float4s: gate and up of one feature, two tokens

struct Shared {
  float4 sums[WARPS][SUMS];
};

// A row of a packed operand, as far as this lane reads it.
struct Row {
  const u8 *packed, *scales;

  __device__ __forceinline__ Row(const u8* packed, const u8* scales, u32 row, u32 at)
      : packed(packed + u64(row) * (K / 2) + at), scales(scales + u64(row) * (K / 16) + at / 8) {}

  __device__ __forceinline__ void move(long long rows, long long bytes) {
    packed += rows * (K / 2) + bytes, scales += rows * (K / 16) + bytes / 8;
  }

  __device__ __forceinline__ Piece piece(u32 below) const {
    return {ptx::load_global_once_v4(packed + below * (K / 2)), ptx::load_global_u16(scales + below * (K / 16))};
  }
};

// A lane's way through the operands: row lane / 4 of each octet, quarter lane % 4
// of the warp's K128. Weights and tokens are cut alike, so the same elements meet
// in the MMA, in whatever order. What is not there is zero.
struct Place {
  u32 row, at, tile, step;  // at: bytes of a row; the tile and step to load next
  Row gate, up, token;

  __device__ __forceinline__ Place(const Group& group)
      : row(threadIdx.x % 32 / 4),
        at(threadIdx.x / 32 * (SPAN / 2) + threadIdx.x % 4 * 16),
        tile(blockIdx.x),
        step(0),
        gate(group.b1, group.sfb1, tile * FEATURES + row, at),
        up(group.b2, group.sfb2, tile * FEATURES + row, at),
        token(group.a, group.sfa, row, at) {}

  __device__ __forceinline__ bool has_span() const {
    return tile < ALL_TILES && (K / SPAN % WARPS == 0 || at + step * STEP_BYTES < K / 2);
  }

  __device__ __forceinline__ Weights weights(u32 octet) const {
    const bool has = has_span() && (N % FEATURES == 0 || tile * FEATURES + octet * 8 + row < N);
    if (!has) return {};
    return {gate.piece(octet * 8), up.piece(octet * 8)};
  }

  __device__ __forceinline__ Piece tokens(u32 octet) const {
    if (!has_span() || octet * 8 + row >= M) return {};
    return token.piece(octet * 8);
  }

  __device__ __forceinline__ void advance() {
    constexpr long long BACK = (STEPS - 1) * STEP_BYTES;
    if (++step < STEPS) {
      gate.move(0, STEP_BYTES), up.move(0, STEP_BYTES), token.move(0, STEP_BYTES);
    } else {
      step = 0, tile += GRID;
      gate.move(GRID * FEATURES, -BACK), up.move(GRID * FEATURES, -BACK), token.move(0, -BACK);
    }
  }
};

__device__ __forceinline__ float4 plus(const float4& a, const float4& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

// The warps' sums meet in shared memory.
__device__ __forceinline__ void finish_tile(const float4 (&d)[OCTETS][NT], Shared& shared, const Group& group,
                                            u32 tile) {
#pragma unroll
  for (u32 i = 0; i < OCTETS * NT; ++i) shared.sums[threadIdx.x / 32][i * 32 + threadIdx.x % 32] = d[i / NT][i % NT];
  __syncthreads();
  for (u32 at = threadIdx.x; at < SUMS; at += THREADS) {
    float4 sum = shared.sums[0][at];
#pragma unroll
    for (u32 other = 1; other < WARPS; ++other) sum = plus(sum, shared.sums[other][at]);
    const u32 feature = tile * FEATURES + at / (32 * NT) * 8 + at % 32 / 4, token = at / 32 % NT * 8 + at % 4 * 2;
    const u32 pair = ptx::f32x2_to_f16x2(gated(sum.x, sum.z), gated(sum.y, sum.w));
    if (feature >= N) continue;
    if (token < M) group.c[u64(token) * N + feature] = static_cast<u16>(pair);
    if (token + 1 < M) group.c[u64(token + 1) * N + feature] = static_cast<u16>(pair >> 16);
  }
  if constexpr (ALL_TILES > GRID) __syncthreads();  // the next tile's sums take their place
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) dual_gemm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, dual_gemm);
  Shared& shared = shared_memory<Shared>();
  const Group& group = args.near[0];
  Place place(group);
  Weights ahead[OCTETS];  // of the next step, under way
#pragma unroll
  for (u32 octet = 0; octet < OCTETS; ++octet) ahead[octet] = place.weights(octet);
  Piece tokens_ahead[NT];
#pragma unroll
  for (u32 octet = 0; octet < NT; ++octet) tokens_ahead[octet] = place.tokens(octet);
  for (u32 tile = blockIdx.x; tile < ALL_TILES; tile += GRID) {
    float4 d[OCTETS][NT] = {};
#pragma unroll 2
    for (u32 step = 0; step < STEPS; ++step) {
      DGX_STAMP(multiply);
      const bool more = !SHORT || step + 1 < STEPS;
      if (more) place.advance();
      // All of the next step's loads leave before anything of this one is looked at: a
      // warp has six counters to wait by, and who waits for one load waits for all.
      Weights now[OCTETS];
#pragma unroll
      for (u32 octet = 0; octet < OCTETS; ++octet) now[octet] = ahead[octet];
      Piece tokens_now[NT];
#pragma unroll
      for (u32 octet = 0; octet < NT; ++octet) {
        tokens_now[octet] = tokens_ahead[octet];
        if (more) tokens_ahead[octet] = place.tokens(octet);
      }
#pragma unroll
      for (u32 octet = 0; octet < OCTETS; ++octet)
        if (more) ahead[octet] = place.weights(octet);
      Halves tokens[NT];
#pragma unroll
      for (u32 octet = 0; octet < NT; ++octet) tokens[octet] = halves_of(tokens_now[octet]);
#pragma unroll
      for (u32 octet = 0; octet < OCTETS; ++octet) multiply_octet(d[octet], now[octet], tokens);
    }
    DGX_STAMP(epilogue);
    finish_tile(d, shared, group, tile);
  }
}
