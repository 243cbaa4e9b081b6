/*dgx
summary  = "Few tokens: every warp streams its own bands of K, weights and tokens meet in registers"
parent   = "swap-ab"
round    = 7
claim    = { geomean = 2.0, over = "cublas", why = "a quarter of the weight bytes, read once, in one launch" }
arch     = "sm_90a"
requires = ["m <= 64", "k % 256 == 0", "n % 128 == 0"]
tiles    = "cdiv(m, TOKENS) * (n / 32)"

# A tile is 32 features times at most TOKENS tokens; SPLIT CTAs of a cluster may
# share its K. A band of K256 costs about 1000 + 30 TOKENS issue slots; meeting
# at the end costs as much as one or two bands.
[tune]
choose   = { SPLIT = [1, 2, 4, 8], TOKENS = [8, 16, 24, 32] }
minimise = """
  SPLIT > 1 && (ALL_TILES * SPLIT > sms || SPLIT > least(k / 256)) ? 1000000000000 :
  (cdiv(ALL_TILES * SPLIT, sms) * cdiv(most(k / 256), SPLIT) * 10 + (SPLIT > 1 ? 15 + SPLIT : 0)) * (1000 + 30 * TOKENS)
"""

[const]
WARPS      = 7  # 4 and 14, and two CTAs an SM, were slower: docs/kernels.md
ONE_M      = "groups == 1 ? most(m) : 0"  # a dense shape needs no look at the group
ONE_K      = "groups == 1 ? most(k) : 0"
ALL_TILES  = "sum(cdiv(m, TOKENS) * (n / 32))"
THREADS    = "32 * WARPS"
GRID       = "min(ALL_TILES * SPLIT, SPLIT > 1 ? ALL_TILES * SPLIT : sms)"
SUM_OCTETS = "TOKENS <= 16 ? 4 : 2"  # octets of features whose sums meet at once
SLOT_BYTES = "9216 + 144 * TOKENS"
FIXED      = "64 * TOKENS * SUM_OCTETS * WARPS + 256 * TOKENS + 1024"
# As many slots of the ring as fit, but no more than a warp has bands.
SLOTS      = "min((232448 - FIXED) / (WARPS * SLOT_BYTES), cdiv(ALL_TILES * SPLIT, GRID) * cdiv(cdiv(most(k / 256), SPLIT), WARPS))"

[[launch]]
kernel  = "dual_gemm"
grid    = "GRID"
block   = "THREADS"
smem    = "SLOTS * WARPS * SLOT_BYTES + FIXED"
cluster = "SPLIT"
*/
#include <dgx/dequant.cuh>
#include <dgx/epilogue.cuh>
#include <dgx/korder.cuh>
#include <dgx/ptx/cluster.cuh>
#include <dgx/ptx/copy.cuh>
#include <dgx/ptx/mbarrier.cuh>
#include <dgx/ptx/mma.cuh>
#include <dgx/shared.cuh>
#include <dgx/tile.cuh>
using namespace dgx;

// The MMA's sixteen rows are an octet of features: eight rows of B1 and the
// same eight of B2, so that a thread holds gate and up of the same elements. A
// tile has four octets, 32 rows apart: their scales are then neighbours in the
// blocked layout, sixteen bytes for the four.
constexpr u32 OCTETS = 4;
constexpr u32 NT = TOKENS / 8;  // token tiles of the MMA's eight columns
constexpr u32 BAND_BYTES = BAND / 2;

struct alignas(1024) Slot {
  u8 gate[OCTETS * 8][BAND_BYTES];
  u8 up[OCTETS * 8][BAND_BYTES];
  u8 tokens[TOKENS][BAND_BYTES];
};

struct alignas(128) SlotScales {
  u8 gate[BAND / 64][8][16];  // of a row of each octet, four scales each
  u8 up[BAND / 64][8][16];
  u8 tokens[TOKENS][16];
};
static_assert(sizeof(Slot) + sizeof(SlotScales) == SLOT_BYTES);

// Where the scales of K64 block j of row r lie: a quad's lanes read one row of
// all four blocks, and should not meet in a bank.
__device__ __forceinline__ u32 scale_place(u32 j, u32 r) { return j * 128 + (r ^ (2 * j)) * 16; }

constexpr u32 PASS_SUMS = SUM_OCTETS * NT * 32;  // float4s: gate and up of one feature, two tokens
constexpr u32 PASSES = OCTETS / SUM_OCTETS;
constexpr u32 OWN_SUMS = PASS_SUMS / SPLIT;  // of a pass, that this CTA of the cluster ends

struct Shared {
  Slot ring[WARPS][SLOTS];
  SlotScales scales[WARPS][SLOTS];
  float4 sums[WARPS][PASS_SUMS];
  float4 inbox[PASSES][SPLIT][OWN_SUMS];
  u64 arrived;
};
static_assert(sizeof(Shared) <= SLOTS * WARPS * SLOT_BYTES + FIXED);

struct Work {
  u32 group;
  u32 row;          // first token
  u32 block, part;  // of 128 features; which eight of each 32 of them
  u32 begin, end;   // bands of K, this CTA's share

  __device__ __forceinline__ u32 feature(u32 octet, u32 row) const { return block * 128 + octet * 32 + part * 8 + row; }
};

__device__ __forceinline__ u32 k_of(const Group& group) { return ONE_K ? ONE_K : group.k; }
__device__ __forceinline__ u32 m_of(const Group& group) { return ONE_M ? ONE_M : group.m; }

__device__ __forceinline__ Work work_of(const Args& args, u32 tile) {
  const u32 index = ONE_M ? 0 : find_group(args, tile);
  const Group group = group_at(args, index);
  const u32 token_tiles = (m_of(group) + TOKENS - 1) / TOKENS, local = tile - group.tile_begin;
  const u32 feature_tile = local / token_tiles, bands = k_of(group) / BAND;
  const u32 rank = SPLIT == 1 ? 0 : ptx::cluster_rank();
  return {index,          local % token_tiles * TOKENS, feature_tile / 4,
          feature_tile % 4, bands * rank / SPLIT,         bands * (rank + 1) / SPLIT};
}

constexpr u32 TILES_APART = GRID / SPLIT;

// A warp's way through the bands of its tiles: every WARPS-th of each tile.
struct Loader {
  const Args& args;
  Shared& shared;
  u32 warp, lane;
  u32 tile, band, slot = 0;
  Work work;

  __device__ __forceinline__ Loader(const Args& args, Shared& shared)
      : args(args), shared(shared), warp(threadIdx.x / 32), lane(threadIdx.x % 32), tile(blockIdx.x / SPLIT) {
    take_up();
    settle();
  }

  __device__ __forceinline__ void take_up() {
    work = work_of(args, tile);
    band = work.begin + warp;
  }

  // To the next tile in which this warp has a band.
  __device__ __forceinline__ void settle() {
    while (band >= work.end) {
      tile += TILES_APART;
      if (tile >= args.tile_count) return;
      take_up();
    }
  }

  // Asks for the next band, if there is one. A group is committed either way, so
  // that their number says which have arrived.
  __device__ __forceinline__ void load() {
    if (tile < args.tile_count) {
      load_band(group_at(args, work.group));
      band += WARPS;
      settle();
    }
    ptx::copy_async_commit();
    slot = slot + 1 == SLOTS ? 0 : slot + 1;
  }

  __device__ __forceinline__ void load_band(const Group& group) {
    const u64 k = k_of(group);
    const Slot& to = shared.ring[warp][slot];
    const SlotScales& to_scales = shared.scales[warp][slot];
    // Four rows of 128 bytes at a time, under the 128B swizzle.
    const u32 row = lane / 8, chunk = lane % 8;
    const u32 even = row * BAND_BYTES + (chunk ^ row) * 16, odd = (row + 4) * BAND_BYTES + (chunk ^ (row + 4)) * 16;
    const u32 gate = ptx::shared_address(to.gate), up = ptx::shared_address(to.up);
    const u64 from = work.feature(0, row) * (k / 2) + band * BAND_BYTES + chunk * 16;
    const u8 *b1 = group.b1 + from, *b2 = group.b2 + from;
#pragma unroll
    for (u32 octet = 0; octet < OCTETS; ++octet) {
      ptx::copy_async(gate + octet * 8 * BAND_BYTES + even, b1 + octet * 32 * (k / 2));
      ptx::copy_async(gate + octet * 8 * BAND_BYTES + odd, b1 + (octet * 32 + 4) * (k / 2));
      ptx::copy_async(up + octet * 8 * BAND_BYTES + even, b2 + octet * 32 * (k / 2));
      ptx::copy_async(up + octet * 8 * BAND_BYTES + odd, b2 + (octet * 32 + 4) * (k / 2));
    }
    const u64 atoms = (work.block * (k / 64) + band * (BAND / 64) + row) * 512 + work.part * 128 + chunk * 16;
    const u32 at = scale_place(row, chunk);
    ptx::copy_async(ptx::shared_address(to_scales.gate) + at, group.sfb1_atoms + atoms);
    ptx::copy_async(ptx::shared_address(to_scales.up) + at, group.sfb2_atoms + atoms);
    load_tokens(group, ptx::shared_address(to.tokens), ptx::shared_address(to_scales.tokens), row, chunk);
  }

  // Tokens past M arrive as zeros.
  __device__ __forceinline__ void load_tokens(const Group& group, u32 to, u32 to_scales, u32 row, u32 chunk) {
    const u64 k = k_of(group);
    const u32 m = m_of(group);
#pragma unroll
    for (u32 first = 0; first < TOKENS; first += 4) {
      const u32 token = work.row + first + row, at = first + row;
      const bool there = token < m;
      const u8* from = group.a + (there ? token : 0) * (k / 2) + band * BAND_BYTES + chunk * 16;
      ptx::copy_async_or_zero(to + at * BAND_BYTES + (chunk ^ at % 8) * 16, from, there);
    }
#pragma unroll
    for (u32 first = 0; first < TOKENS; first += 32) {
      const u32 at = first + lane, token = work.row + at;
      const bool there = token < m;
      if (TOKENS % 32 == 0 || at < TOKENS)
        ptx::copy_async_or_zero(to_scales + at * 16,
                                group.sfa + (there ? token : 0) * (k / 16) + band * (BAND / 16), there);
    }
  }
};

__device__ __forceinline__ u32 word_of(const uint4& v, u32 i) {
  return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

__device__ __forceinline__ uint4 scaled(u32 nibbles, u32 scales, u32 word) {
  return dequantise8(nibbles, word < 2 ? ptx::low_half_twice(scales) : ptx::high_half_twice(scales));
}

// d[octet][tile] += weights times tokens^T over one band, in units of 1 / UNSCALE.
// Both operands lie in shared memory alike and are taken apart alike, so they
// agree on the order of K (dgx/korder.cuh).
__device__ __forceinline__ void multiply_band(float4 (&d)[OCTETS][NT], Loader& loader, u32 slot) {
  const u32 lane = loader.lane, row = lane / 4, quad = lane % 4;
  const Slot& from = loader.shared.ring[loader.warp][slot];
  const SlotScales& scales = loader.shared.scales[loader.warp][slot];
  const uint4 gate_scales = ptx::load_shared_v4(ptx::shared_address(scales.gate) + scale_place(quad, row));
  const uint4 up_scales = ptx::load_shared_v4(ptx::shared_address(scales.up) + scale_place(quad, row));
  u32 token_scales[NT];
#pragma unroll
  for (u32 t = 0; t < NT; ++t)
    token_scales[t] = ptx::load_shared_u32(ptx::shared_address(scales.tokens) + t * 128 + lane * 4);
#pragma unroll 1  // half the code to fetch
  for (u32 half = 0; half < 2; ++half) {
    const u32 at = row * BAND_BYTES + ((2 * quad + half) ^ row) * 16;
    uint4 gate[OCTETS], up[OCTETS], tokens[NT];
#pragma unroll
    for (u32 octet = 0; octet < OCTETS; ++octet) {
      gate[octet] = ptx::load_shared_v4(ptx::shared_address(from.gate) + octet * 8 * BAND_BYTES + at);
      up[octet] = ptx::load_shared_v4(ptx::shared_address(from.up) + octet * 8 * BAND_BYTES + at);
    }
#pragma unroll
    for (u32 t = 0; t < NT; ++t)
      tokens[t] = ptx::load_shared_v4(ptx::shared_address(from.tokens) + t * 8 * BAND_BYTES + at);
    if (half == 1) {  // the slot is read: let it fill again
      __syncwarp();
      loader.load();
    }
    u32 gate_pair[OCTETS], up_pair[OCTETS], token_pair[NT];
#pragma unroll
    for (u32 octet = 0; octet < OCTETS; ++octet) {
      gate_pair[octet] = scales_to_f16x2(word_of(gate_scales, octet) >> (16 * half));
      up_pair[octet] = scales_to_f16x2(word_of(up_scales, octet) >> (16 * half));
    }
#pragma unroll
    for (u32 t = 0; t < NT; ++t) token_pair[t] = scales_to_f16x2(token_scales[t] >> (16 * half));
#pragma unroll
    for (u32 word = 0; word < 4; ++word) {
      uint4 b[NT];
#pragma unroll
      for (u32 t = 0; t < NT; ++t) b[t] = scaled(word_of(tokens[t], word), token_pair[t], word);
#pragma unroll
      for (u32 octet = 0; octet < OCTETS; ++octet) {
        const uint4 g = scaled(word_of(gate[octet], word), gate_pair[octet], word);
        const uint4 u = scaled(word_of(up[octet], word), up_pair[octet], word);
#pragma unroll
        for (u32 t = 0; t < NT; ++t) {
          ptx::mma_m16n8k16(d[octet][t], g.x, u.x, g.y, u.y, b[t].x, b[t].y);
          ptx::mma_m16n8k16(d[octet][t], g.z, u.z, g.w, u.w, b[t].z, b[t].w);
        }
      }
    }
  }
}

__device__ __forceinline__ float4 plus(const float4& a, const float4& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

// Sum `at` of the tile: octet, token tile and lane as the MMA has them.
__device__ __forceinline__ void store_sum(const Group& group, const Work& work, u32 at, const float4& sum) {
  const u32 lane = at % 32, token = work.row + at / 32 % NT * 8 + lane % 4 * 2;
  const u32 feature = work.feature(at / (32 * NT), lane / 4);
  u16* c = group.c + u64(token) * group.n + feature;
  const u32 pair = ptx::f32x2_to_f16x2(gated(sum.x, sum.z), gated(sum.y, sum.w));
  if (token < m_of(group)) c[0] = static_cast<u16>(pair);
  if (token + 1 < m_of(group)) c[group.n] = static_cast<u16>(pair >> 16);
}

// The warps' sums meet in shared memory, some octets at a time. With K split,
// each CTA of the cluster ends its share of them and sends the rest to theirs.
__device__ __forceinline__ void finish_tile(const float4 (&d)[OCTETS][NT], Shared& shared, const Args& args,
                                            const Work& work) {
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const Group group = group_at(args, work.group);
  const u32 rank = SPLIT == 1 ? 0 : ptx::cluster_rank();
#pragma unroll
  for (u32 pass = 0; pass < PASSES; ++pass) {
    if (pass > 0) __syncthreads();
#pragma unroll
    for (u32 octet = 0; octet < SUM_OCTETS; ++octet)
#pragma unroll
      for (u32 t = 0; t < NT; ++t)
        shared.sums[warp][(octet * NT + t) * 32 + lane] = d[pass * SUM_OCTETS + octet][t];
    __syncthreads();
    for (u32 at = threadIdx.x; at < PASS_SUMS; at += THREADS) {
      float4 sum = shared.sums[0][at];
#pragma unroll
      for (u32 other = 1; other < WARPS; ++other) sum = plus(sum, shared.sums[other][at]);
      if constexpr (SPLIT == 1) {
        store_sum(group, work, pass * PASS_SUMS + at, sum);
      } else {
        const u32 owner = at / OWN_SUMS;
        const u32 to = ptx::shared_address(&shared.inbox[pass][rank][at % OWN_SUMS]);
        if (owner == rank) {
          shared.inbox[pass][rank][at % OWN_SUMS] = sum;
        } else {
          ptx::store_async(ptx::remote_address(to, owner), sum.x, sum.y, sum.z, sum.w,
                           ptx::remote_address(ptx::shared_address(&shared.arrived), owner));
        }
      }
    }
  }
  if constexpr (SPLIT > 1) {
    __syncthreads();
    ptx::mbarrier_wait(shared.arrived, 0);
    for (u32 at = threadIdx.x; at < PASSES * OWN_SUMS; at += THREADS) {
      const u32 pass = at / OWN_SUMS, own = at % OWN_SUMS;
      float4 sum = shared.inbox[pass][0][own];
#pragma unroll
      for (u32 other = 1; other < SPLIT; ++other) sum = plus(sum, shared.inbox[pass][other][own]);
      store_sum(group, work, pass * PASS_SUMS + rank * OWN_SUMS + own, sum);
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) dual_gemm(const __grid_constant__ Args args) {
  Shared& shared = shared_memory<Shared>();
  Loader loader(args, shared);
#pragma unroll 1  // instructions are cold too
  for (u32 i = 0; i < SLOTS; ++i) loader.load();
  if constexpr (SPLIT > 1) {
    if (threadIdx.x == 0) {
      ptx::mbarrier_init(shared.arrived, 1);
      ptx::mbarrier_init_fence();
      ptx::mbarrier_arrive_expect_tx(shared.arrived, (SPLIT - 1) * PASSES * OWN_SUMS * sizeof(float4));
    }
    __syncwarp();
    ptx::cluster_arrive();
  }
  u32 slot = 0;
  for (u32 tile = blockIdx.x / SPLIT; tile < args.tile_count; tile += TILES_APART) {
    const Work work = work_of(args, tile);
    float4 d[OCTETS][NT] = {};
    for (u32 band = work.begin + threadIdx.x / 32; band < work.end; band += WARPS) {
      ptx::copy_async_wait<SLOTS - 1>();
      __syncwarp();
      multiply_band(d, loader, slot);
      slot = slot + 1 == SLOTS ? 0 : slot + 1;
    }
    if constexpr (SPLIT > 1) ptx::cluster_wait();
    if (tile != blockIdx.x / SPLIT) __syncthreads();  // the sums of the tile before are read
    finish_tile(d, shared, args, work);
  }
}
