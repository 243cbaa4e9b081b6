/*dgx
summary  = "17 to 64 tokens, few features: swap-ab's products in one launch, tokens made by a warpgroup of each CTA"
parent   = "swap-ab"
round    = 7
claim    = { geomean = 1.05, over = "decode", why = "up to eight CTAs share K, and none waits for another launch" }
arch     = "sm_90a"
requires = ["groups == 1", "m <= 64", "n <= 1024", "k % 256 == 0", "n % FEATURES == 0"]
tiles    = "n / FEATURES"

# A tile is 32 * WARPGROUPS features and all tokens; SPLIT CTAs of a cluster share its
# K (clusters of four leave some SMs out). Cycles of a step as swap-ab has them.
[tune]
choose   = { WARPGROUPS = [2, 1], SPLIT = [1, 2, 4, 8] }
minimise = """
  SPLIT > 1 && (SPLIT * ALL_TILES > (SPLIT > 2 ? sms - 12 : sms) || least(k) < 512 * SPLIT) ? 1000000000000 :
  3000 + (SPLIT > 1 ? 1500 + 200 * SPLIT : 0)
    + WARPGROUPS * cdiv(most(k), 512 * SPLIT) * 8 * ((WARPGROUPS == 1 ? 205 : 145) + TOKENS * 105 / 100)
"""

[const]
ONE_M       = "most(m)"
ONE_N       = "most(n)"
ONE_K       = "most(k)"
TOKENS      = "align(ONE_M, 8)"
FEATURES    = "32 * WARPGROUPS"
ALL_TILES   = "ONE_N / FEATURES"
THREADS     = "128 * WARPGROUPS + 160"
STAGE_BYTES = "FEATURES * 256 + 6144 + 128 * TOKENS"
SUMS_BYTES  = "256 * WARPGROUPS * TOKENS"
STAGES      = "min(4, (232448 - 1024 - 1024 * TOKENS - SUMS_BYTES) / STAGE_BYTES)"
WINDOW      = 2  # stages under way: the fewer, the sooner comes the first
# More than half an SM's, or two small CTAs would share one and leave another idle.
SMEM        = "max(116 * 1024, 1024 * TOKENS + STAGES * STAGE_BYTES + SUMS_BYTES + 1024)"

[[map]]
name    = "A"
tensor  = "a"
box     = ["128", "TOKENS"]
swizzle = "128B"

[[map]]
name    = "B1"
tensor  = "b1"
box     = ["128", "FEATURES"]
swizzle = "128B"

[[map]]
name    = "B2"
tensor  = "b2"
box     = ["128", "FEATURES"]
swizzle = "128B"

[[launch]]
kernel  = "dual_gemm"
grid    = "ALL_TILES * SPLIT"
block   = "THREADS"
smem    = "SMEM"
cluster = "SPLIT"
*/
#include <dgx/epilogue.cuh>
#include <dgx/fragment.cuh>
#include <dgx/ptx/barrier.cuh>
#include <dgx/ptx/cluster.cuh>
#include <dgx/ptx/tma.cuh>
#include <dgx/ptx/wgmma.cuh>
#include <dgx/shared.cuh>
using namespace dgx;

// As in swap-ab the loop is unrolled over K512, so that ring slots are constants. TMA
// fills what a K that is an odd multiple of 256 lacks with zeros.
constexpr u32 STEPS = 8;
constexpr u32 STEP_K = 64;
constexpr u32 BAND_STEPS = BAND / STEP_K;
constexpr u32 ROUND_BANDS = STEPS / BAND_STEPS;
constexpr u32 ROUNDS = (ONE_K + STEPS * STEP_K - 1) / (STEPS * STEP_K);
constexpr u32 CONSUMER_WARPS = 4 * WARPGROUPS;
constexpr u32 CONSUMERS = 32 * CONSUMER_WARPS;
constexpr u32 MAKER_WARPS = BAND_STEPS;  // each makes its step of every band
constexpr u32 STEP_BYTES = TOKENS * STEP_K * 2;
constexpr u32 TOGETHER = 2;  // steps of tokens that are announced and freed together
constexpr u32 TOKEN_SLOTS = STEPS / TOGETHER;
constexpr u32 OWN_SUMS = TOKENS / 8 * CONSUMERS / SPLIT;  // float4s, gate and up of two tokens, that this CTA ends
static_assert(STAGES >= WINDOW);

using Weights = WeightStage<FEATURES, 2 * BLOCK_BYTES>;
using Reader = WeightReader<FEATURES, STAGES, 2 * BLOCK_BYTES>;

struct Shared {
  alignas(1024) u8 tokens[STEPS][STEP_BYTES];
  Weights weights[STAGES];
  alignas(1024) u8 packed[STAGES][TOKENS * BAND / 2];  // a stage's tokens as they come
  u8 packed_scales[STAGES][BLOCK_BYTES];
  float4 inbox[SPLIT][OWN_SUMS];
  u64 full[STAGES], empty[STAGES];
  u64 tokens_full[TOKEN_SLOTS], tokens_empty[TOKEN_SLOTS];
  u64 arrived;  // the other CTAs' sums
};
static_assert(sizeof(Shared) <= SMEM);

// Rounds of K512, this CTA's share.
__device__ __forceinline__ u32 rank() { return SPLIT == 1 ? 0 : ptx::cluster_rank(); }
__device__ __forceinline__ u32 first_round() { return ROUNDS * rank() / SPLIT; }
__device__ __forceinline__ u32 end_round() { return ROUNDS * (rank() + 1) / SPLIT; }
__device__ __forceinline__ u32 first_feature() { return blockIdx.x / SPLIT * FEATURES; }

// One thread asks for all stages: weights and tokens of a band.
struct Producer {
  const Args& args;
  Shared& shared;
  u32 band = first_round() * ROUND_BANDS, slot = 0, parity = 1;

  __device__ __forceinline__ bool done() const { return band == end_round() * ROUND_BANDS; }

  __device__ __forceinline__ void load() {
    const Group& group = args.near[0];
    Weights& stage = shared.weights[slot];
    u64& full = shared.full[slot];
    const u32 x = band * (BAND / 2), y = first_feature();
    const u32 scales = ptx::shared_address(stage.scales);
    const u64 block = u64(y / BLOCK_ROWS) * (ONE_K / BAND) * BLOCK_BYTES;
    // Past K weights and tokens are zeros, whatever their scales.
    const u32 scaled = (band < ONE_K / BAND ? band : ONE_K / BAND - 1) * BLOCK_BYTES;
    ptx::mbarrier_arrive_expect_tx(full, FEATURES * BAND + TOKENS * BAND / 2 + 3 * BLOCK_BYTES);
    ptx::tma_load_2d(ptx::shared_address(shared.packed[slot]), args.near_maps + MAP_A, x, 0, full, ptx::EVICT_LAST);
    ptx::bulk_load(ptx::shared_address(shared.packed_scales[slot]), group.sfa_atoms + scaled, BLOCK_BYTES, full);
    ptx::tma_load_2d(ptx::shared_address(stage.gate), args.near_maps + MAP_B1, x, y, full, ptx::EVICT_FIRST);
    ptx::tma_load_2d(ptx::shared_address(stage.up), args.near_maps + MAP_B2, x, y, full, ptx::EVICT_FIRST);
    ptx::bulk_load(scales, group.sfb1_atoms + block + scaled, BLOCK_BYTES, full);
    ptx::bulk_load(scales + BLOCK_BYTES, group.sfb2_atoms + block + scaled, BLOCK_BYTES, full);
    ++band;
    if (++slot == STAGES) slot = 0, parity ^= 1;
  }

  // Those after the first WINDOW, each when the one WINDOW before it is here.
  __device__ __forceinline__ void load_rest() {
    for (u32 here = 0, here_parity = 0; !done();) {
      ptx::mbarrier_wait(shared.full[here], here_parity);
      if (++here == STAGES) here = 0, here_parity ^= 1;
      ptx::mbarrier_wait(shared.empty[slot], parity);
      load();
    }
  }
};

// A warp's step of every band: rows of packed tokens, one a lane, become rows of fp16
// in the weights' order of K (korder.cuh).
__device__ __forceinline__ void make_tokens(Shared& shared) {
  constexpr u32 ROWS = (TOKENS + 31) / 32;  // a lane's
  const u32 step = threadIdx.x / 32 % MAKER_WARPS, lane = threadIdx.x % 32;
  const u32 bands = (end_round() - first_round()) * ROUND_BANDS;
  u32 slot = 0, parity = 0;
#pragma unroll 1
  for (u32 band = 0; band < bands; ++band) {
    ptx::mbarrier_wait(shared.full[slot], parity);
    u32 words[ROWS][4][2], scales[ROWS][4];
#pragma unroll
    for (u32 i = 0; i < ROWS; ++i) {
      const u32 row = i * 32 + lane;
      if (row >= TOKENS) break;
      const u32 from = ptx::shared_address(shared.packed[slot]) + row * (BAND / 2) + step % 2 * 8;
      const u32 scales_at = ptx::shared_address(shared.packed_scales[slot]);
#pragma unroll
      for (u32 c = 0; c < 4; ++c) {
        const u32 at = from + ((2 * c + step / 2) ^ (row % 8)) * 16;
        words[i][c][0] = ptx::load_shared_u32(at);
        words[i][c][1] = ptx::load_shared_u32(at + 4);
        scales[i][c] = ptx::load_shared_u32(scales_at + scales_in_blocks(row, c)) >> (8 * step);
      }
    }
    __syncwarp();
    if (lane == 0) ptx::mbarrier_arrive(shared.empty[slot]);
    if (++slot == STAGES) slot = 0, parity ^= 1;
    const u32 ring = band % ROUND_BANDS * BAND_STEPS + step;
    ptx::mbarrier_wait(shared.tokens_empty[ring / TOGETHER], band / ROUND_BANDS % 2 ^ 1);
#pragma unroll
    for (u32 i = 0; i < ROWS; ++i) {
      const u32 row = i * 32 + lane;
      if (row >= TOKENS) break;
      const u32 to = ptx::shared_address(shared.tokens[ring]) + row * (STEP_K * 2);
      u32 scale[4];
#pragma unroll
      for (u32 c = 0; c < 4; ++c) scale[c] = ptx::low_half_twice(scales_to_f16x2(scales[i][c]));
#pragma unroll
      for (u32 word = 0; word < 2; ++word) {
        uint4 pairs[4];
#pragma unroll
        for (u32 c = 0; c < 4; ++c) pairs[c] = dequantise8(words[i][c][word], scale[c]);
        const auto chunk = [&](u32 q) { return to + ((word * 4 + q) ^ (row % 8)) * 16; };
        ptx::store_shared_v4(chunk(0), {pairs[0].x, pairs[1].x, pairs[2].x, pairs[3].x});
        ptx::store_shared_v4(chunk(1), {pairs[0].y, pairs[1].y, pairs[2].y, pairs[3].y});
        ptx::store_shared_v4(chunk(2), {pairs[0].z, pairs[1].z, pairs[2].z, pairs[3].z});
        ptx::store_shared_v4(chunk(3), {pairs[0].w, pairs[1].w, pairs[2].w, pairs[3].w});
      }
    }
    ptx::fence_proxy_async_shared();
    ptx::mbarrier_arrive(shared.tokens_full[ring / TOGETHER]);
  }
}

// d = weights (64 rows) times tokens^T over this CTA's share of K, in units of 1 / UNSCALE.
__device__ __forceinline__ void multiply(float (&d)[TOKENS / 2], Shared& shared) {
  const bool leader = threadIdx.x % 32 == 0;
  const u64 tokens = ptx::swizzled_descriptor(ptx::shared_address(shared.tokens));
  Reader reader(shared.weights, threadIdx.x / 32 * 8 + threadIdx.x % 32 / 4, threadIdx.x % 4);
  reader.gate_scales_at = scales_in_blocks(first_feature() % BLOCK_ROWS + reader.row, reader.lane);
  reader.up_scales_at = BLOCK_BYTES + reader.gate_scales_at;
  u32 fragments[2][4][4];
  RawFragments raw = reader.read(0, shared.full, shared.empty);
  scale_fragments(fragments[0], raw);
  const u32 rounds = end_round() - first_round();
  u32 round = 0;
  do {
#pragma unroll
    for (u32 step = 0; step < STEPS; ++step) {
      if (step % TOGETHER == 0) ptx::mbarrier_wait(shared.tokens_full[step / TOGETHER], round % 2);
      ptx::wgmma_fence();
#pragma unroll
      for (u32 k16 = 0; k16 < STEP_K / 16; ++k16)
        ptx::Wgmma<TOKENS>::rs(d, fragments[step % 2][k16], tokens + ((step * STEP_BYTES + k16 * 32) >> 4), true);
      ptx::wgmma_commit();
      // The nibbles of the next step are taken apart while this one runs.
      if (step + 1 < STEPS || round + 1 < rounds) raw = reader.read(step + 1, shared.full, shared.empty);
      ptx::wgmma_wait<1>();
      if (step % TOGETHER == 0 && leader && (round > 0 || step > 0))
        ptx::mbarrier_arrive(shared.tokens_empty[(step + STEPS - 1) / TOGETHER % TOKEN_SLOTS]);
      scale_fragments(fragments[(step + 1) % 2], raw);
    }
  } while (++round < rounds);
  ptx::wgmma_wait<0>();
  ptx::pin(d);
}

__device__ __forceinline__ float4 plus(const float4& a, const float4& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

// Each CTA of the cluster ends its share of the sums and sends the rest to theirs;
// they are added in a fixed order.
__device__ __forceinline__ void finish(const float (&d)[TOKENS / 2], Shared& shared, const Args& args) {
#pragma unroll
  for (u32 octet = 0; octet < TOKENS / 8; ++octet) {
    const u32 at = octet * CONSUMERS + threadIdx.x, owner = at / OWN_SUMS;
    const float4 sum = {d[4 * octet], d[4 * octet + 1], d[4 * octet + 2], d[4 * octet + 3]};
    float4& to = shared.inbox[rank()][at % OWN_SUMS];
    if (SPLIT == 1 || owner == rank()) {
      to = sum;
    } else {
      ptx::store_async(ptx::remote_address(ptx::shared_address(&to), owner), sum.x, sum.y, sum.z, sum.w,
                       ptx::remote_address(ptx::shared_address(&shared.arrived), owner));
    }
  }
  ptx::named_sync<1, CONSUMERS>();
  if constexpr (SPLIT > 1) ptx::mbarrier_wait(shared.arrived, 0);
  u16* c = args.near[0].c;
  for (u32 own = threadIdx.x; own < OWN_SUMS; own += CONSUMERS) {
    float4 sum = shared.inbox[0][own];
#pragma unroll
    for (u32 other = 1; other < SPLIT; ++other) sum = plus(sum, shared.inbox[other][own]);
    const u32 at = rank() * OWN_SUMS + own, thread = at % CONSUMERS;
    const u32 token = at / CONSUMERS * 8 + thread % 4 * 2, feature = first_feature() + thread / 4;
    const u32 pair = ptx::f32x2_to_f16x2(gated(sum.x, sum.z), gated(sum.y, sum.w));
    if (token < ONE_M) c[u64(token) * ONE_N + feature] = static_cast<u16>(pair);
    if (token + 1 < ONE_M) c[u64(token + 1) * ONE_N + feature] = static_cast<u16>(pair >> 16);
  }
}

__device__ __forceinline__ void open(Shared& shared) {
  for (u32 i = 0; i < STAGES; ++i) {
    ptx::mbarrier_init(shared.full[i], 1);
    ptx::mbarrier_init(shared.empty[i], CONSUMER_WARPS + MAKER_WARPS);
  }
  for (u32 i = 0; i < TOKEN_SLOTS; ++i) {
    ptx::mbarrier_init(shared.tokens_full[i], 32 * TOGETHER);
    ptx::mbarrier_init(shared.tokens_empty[i], CONSUMER_WARPS);
  }
  if constexpr (SPLIT > 1) ptx::mbarrier_init(shared.arrived, 1);
  ptx::mbarrier_init_fence();
  if constexpr (SPLIT > 1)
    ptx::mbarrier_arrive_expect_tx(shared.arrived, (SPLIT - 1) * OWN_SUMS * sizeof(float4));
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) dual_gemm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, dual_gemm);
  Shared& shared = shared_memory<Shared>();
  if (threadIdx.x < MAPS) ptx::tma_prefetch_map(args.near_maps + threadIdx.x);  // at once, not one after the other
  const u32 warp = threadIdx.x / 32;
  const bool producing = threadIdx.x == 32 * (CONSUMER_WARPS + MAKER_WARPS);
  Producer producer{args, shared};
  if (producing) {
    open(shared);
    for (u32 i = 0; i < WINDOW && !producer.done(); ++i) producer.load();  // before anybody is told of the barriers
  }
  __syncthreads();
  if constexpr (SPLIT > 1) ptx::cluster_arrive();
  if (warp < CONSUMER_WARPS) {
    float d[TOKENS / 2] = {};
    multiply(d, shared);
    DGX_STAMP(epilogue);
    if constexpr (SPLIT > 1) ptx::cluster_wait();  // all CTAs have their barriers
    finish(d, shared, args);
    return;
  }
  if (warp < CONSUMER_WARPS + MAKER_WARPS) make_tokens(shared);
  if (producing) producer.load_rest();
  __syncwarp();
  if constexpr (SPLIT > 1) ptx::cluster_wait();
}
