/*dgx
summary  = "Few tokens: every warp streams its own pieces of K, weights and tokens meet in registers"
parent   = "swap-ab"
round    = 7
claim    = { geomean = 3.0, over = "cublas", why = "a quarter of the weight bytes, read once, in one launch" }
arch     = "sm_90a"
params   = { PER_SM = [1, 2], WARPS = [7, 10, 14, 20] }
requires = ["m <= 64", "k % 128 == 0", "n % 128 == 0", "SLOTS >= 1"]
tiles    = "cdiv(m, TOKENS) * (n / 32)"

# A tile is 32 features times at most TOKENS tokens; SPLIT CTAs of a cluster may
# share its K. A piece of K128 costs about 500 + 20 TOKENS issue slots; meeting
# at the end costs as much as a few pieces.
[tune]
choose   = { SPLIT = [1, 2, 4, 8], TOKENS = [8, 16, 24, 32] }
minimise = """
  SLOTS < 1 ? 1000000000000000 :
  SPLIT > 1 && (ALL_TILES * SPLIT > sms * PER_SM || SPLIT > least(k / 128)) ? 1000000000000 :
  (cdiv(ALL_TILES * SPLIT, sms * PER_SM) * cdiv(most(k / 128), SPLIT) * 10 + (SPLIT > 1 ? 30 + 2 * SPLIT : 0)) * (500 + 20 * TOKENS)
"""

[const]
ONE_M      = "groups == 1 ? most(m) : 0"  # a dense shape needs no look at the group
ONE_K      = "groups == 1 ? most(k) : 0"
ALL_TILES  = "sum(cdiv(m, TOKENS) * (n / 32))"
THREADS    = "32 * WARPS"
GRID       = "min(ALL_TILES * SPLIT, SPLIT > 1 ? ALL_TILES * SPLIT : sms * PER_SM)"
ONE_TILE   = "GRID == ALL_TILES * SPLIT"
SUM_OCTETS = "TOKENS <= 8 ? (ONE_TILE ? 4 : 2) : TOKENS <= 16 && ONE_TILE ? 2 : 1"  # octets whose sums meet at once
SUM_BYTES  = "64 * TOKENS * SUM_OCTETS * WARPS"
SLOT_BYTES = "4608 + 80 * TOKENS"
FIXED      = "(ONE_TILE ? 0 : SUM_BYTES) + 256 * TOKENS + 1024"
ROOM       = "PER_SM == 1 ? 232448 : 115712"
# As many slots of the ring as fit, but no more than a warp has pieces.
SLOTS      = "min((ROOM - FIXED) / (WARPS * SLOT_BYTES), cdiv(ALL_TILES * SPLIT, GRID) * cdiv(cdiv(most(k / 128), SPLIT), WARPS))"

[[launch]]
kernel  = "dual_gemm"
grid    = "GRID"
block   = "THREADS"
smem    = "SLOTS * WARPS * SLOT_BYTES + FIXED"
cluster = "SPLIT"
*/
#include <dgx/dequant.cuh>
#include <dgx/epilogue.cuh>
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

// What a warp takes at a time: K128 of a tile. Lane 4r + q copies, and later
// takes apart, the 16-byte chunk q of row r of every octet, weights and tokens
// alike, so both operands agree on the order of K and no lane waits for another
// (but for scales).
constexpr u32 PIECE = 128;
constexpr u32 ROW_BYTES = PIECE / 2;
constexpr u32 OCTET_BYTES = 8 * ROW_BYTES;

struct alignas(128) Slot {
  u8 gate[OCTETS][OCTET_BYTES];
  u8 up[OCTETS][OCTET_BYTES];
  u8 tokens[NT][OCTET_BYTES];
  u8 gate_scales[2][8][16];  // by K64 block and row: four scales of each octet
  u8 up_scales[2][8][16];
  u8 token_scales[TOKENS][16];  // of K256: no smaller copy
};
static_assert(sizeof(Slot) == SLOT_BYTES);
constexpr u32 SCALES_AT = (2 * OCTETS + NT) * OCTET_BYTES;

// Where the scales of K64 block j of row r lie: the lanes that read together
// should not meet in a bank.
__device__ __forceinline__ u32 scale_place(u32 j, u32 r) { return j * 128 + (r ^ (4 * j)) * 16; }

constexpr u32 PASS_SUMS = SUM_OCTETS * NT * 32;  // float4s: gate and up of one feature, two tokens
constexpr u32 PASSES = OCTETS / SUM_OCTETS;
constexpr u32 OWN_SUMS = PASS_SUMS / SPLIT;  // of a pass, that this CTA of the cluster ends
using WarpSums = float4[PASS_SUMS];

struct Shared {
  Slot ring[WARPS][SLOTS];
  float4 inbox[PASSES][SPLIT][OWN_SUMS];
  u64 arrived;

  // Where the warps' sums meet: a CTA with one tile is done with the ring by
  // then, another has room behind all this.
  __device__ __forceinline__ WarpSums* meeting() {
    return ONE_TILE ? reinterpret_cast<WarpSums*>(ring) : reinterpret_cast<WarpSums*>(this + 1);
  }
};
static_assert(sizeof(Shared) + (ONE_TILE ? 0 : SUM_BYTES) <= SLOTS * WARPS * SLOT_BYTES + FIXED);
static_assert(WARPS * sizeof(WarpSums) == SUM_BYTES && (!ONE_TILE || SUM_BYTES <= sizeof(Shared::ring)));

struct Work {
  u32 group;
  u32 row;          // first token
  u32 block, part;  // of 128 features; which eight of each 32 of them
  u32 begin, end;   // pieces of K, this CTA's share

  __device__ __forceinline__ u32 feature(u32 octet, u32 row) const { return block * 128 + octet * 32 + part * 8 + row; }
};

__device__ __forceinline__ u32 k_of(const Group& group) { return ONE_K ? ONE_K : group.k; }
__device__ __forceinline__ u32 m_of(const Group& group) { return ONE_M ? ONE_M : group.m; }

__device__ __forceinline__ Work work_of(const Args& args, u32 tile) {
  const u32 index = ONE_M ? 0 : find_group(args, tile);
  const Group group = group_at(args, index);
  const u32 token_tiles = (m_of(group) + TOKENS - 1) / TOKENS, local = ONE_M ? tile : tile - group.tile_begin;
  const u32 feature_tile = local / token_tiles, pieces = k_of(group) / PIECE;
  const u32 rank = SPLIT == 1 ? 0 : ptx::cluster_rank();
  return {index,            local % token_tiles * TOKENS, feature_tile / 4,
          feature_tile % 4, pieces * rank / SPLIT,        pieces * (rank + 1) / SPLIT};
}

constexpr u32 TILES_APART = GRID / SPLIT;

// A warp's way through the pieces of its tiles: every WARPS-th of each tile.
struct Loader {
  const Args& args;
  u32 ring;  // shared address of the warp's slots
  u32 lane, slot = 0;
  u32 tile, pieces;  // left of this tile
  u64 k;
  const u8 *b1, *b2, *scales, *a, *sfa;  // what this lane copies of the next piece
  u32 tokens_there;                      // bit t: this lane's row of token tile t; bit 8 + t: token 32 t + lane

  __device__ __forceinline__ Loader(const Args& args, Shared& shared)
      : args(args), ring(ptx::shared_address(shared.ring[threadIdx.x / 32])), lane(threadIdx.x % 32),
        tile(blockIdx.x / SPLIT) {
    take_up();
    settle();
  }

  __device__ __forceinline__ void take_up() {
    const Work work = work_of(args, tile);
    const Group group = group_at(args, work.group);
    const u32 row = lane / 4, first = work.begin + threadIdx.x / 32, m = m_of(group);
    k = k_of(group);
    pieces = first < work.end ? (work.end - first + WARPS - 1) / WARPS : 0;
    const u64 weight = work.feature(0, row) * (k / 2) + first * ROW_BYTES + lane % 4 * 16;
    b1 = group.b1 + weight, b2 = group.b2 + weight;
    const u8* atoms = lane < 16 ? group.sfb1_atoms : group.sfb2_atoms;
    scales = atoms + (work.block * (k / 64) + first * 2 + lane / 8 % 2) * 512 + work.part * 128 + lane % 8 * 16;
    a = group.a + (work.row + row) * (k / 2) + first * ROW_BYTES + lane % 4 * 16;
    sfa = group.sfa + (work.row + lane) * (k / 16) + first * 8;
    tokens_there = work.row + lane < m ? 1u << 8 : 0;
#pragma unroll
    for (u32 t = 0; t < NT; ++t) tokens_there |= work.row + 8 * t + row < m ? 1u << t : 0;
  }

  // To the next tile in which this warp has a piece.
  __device__ __forceinline__ void settle() {
    while (pieces == 0) {
      tile += TILES_APART;
      if (tile >= args.tile_count) return;
      take_up();
    }
  }

  // Asks for the next piece, if there is one. A group is committed either way,
  // so that their number says which have arrived.
  __device__ __forceinline__ void load() {
    if (pieces > 0) {
      load_piece();
      b1 += WARPS * ROW_BYTES, b2 += WARPS * ROW_BYTES, a += WARPS * ROW_BYTES;
      scales += WARPS * 1024, sfa += WARPS * 8;
      --pieces;
      if constexpr (!ONE_TILE) settle();
    }
    ptx::copy_async_commit();
    slot = slot + 1 == SLOTS ? 0 : slot + 1;
  }

  __device__ __forceinline__ void load_piece() {
    const u32 to = ring + slot * u32(sizeof(Slot)), own = to + lane * 16;
#pragma unroll
    for (u32 octet = 0; octet < OCTETS; ++octet) {
      ptx::copy_async(own + octet * OCTET_BYTES, b1 + octet * 32 * (k / 2));
      ptx::copy_async(own + (OCTETS + octet) * OCTET_BYTES, b2 + octet * 32 * (k / 2));
    }
    ptx::copy_async(to + SCALES_AT + lane / 16 * 256 + scale_place(lane / 8 % 2, lane % 8), scales);
    // Tokens past M arrive as zeros, and so do their scales.
#pragma unroll
    for (u32 t = 0; t < NT; ++t)
      ptx::copy_async_or_zero(own + (2 * OCTETS + t) * OCTET_BYTES, a + t * 8 * (k / 2), tokens_there >> t & 1);
    if (TOKENS == 32 || lane < TOKENS) {
      const u8* whole = reinterpret_cast<const u8*>(reinterpret_cast<u64>(sfa) & ~15ull);
      ptx::copy_async_or_zero(to + SCALES_AT + 512 + lane * 16, whole, tokens_there >> 8 & 1);
    }
  }
};

__device__ __forceinline__ u32 word_of(const uint4& v, u32 i) {
  return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

// A chunk's words are taken all at once, or, where the tokens' fragments would
// take too many registers, in two parts; a part of two shares its scale.
constexpr u32 PART_WORDS = NT > 2 ? 2 : 4;

struct Words {
  u32 word[PART_WORDS];

  __device__ __forceinline__ explicit Words(u32 address) {
    if constexpr (PART_WORDS == 4) {
      const uint4 v = ptx::load_shared_v4(address);
      word[0] = v.x, word[1] = v.y, word[PART_WORDS - 2] = v.z, word[PART_WORDS - 1] = v.w;
    } else {
      const uint2 v = ptx::load_shared_v2(address);
      word[0] = v.x, word[1] = v.y;
    }
  }

  __device__ __forceinline__ uint4 dequantise(u32 i, u32 scales) const {
    return dequantise8(word[i], i < 2 ? ptx::low_half_twice(scales) : ptx::high_half_twice(scales));
  }
};

// d[octet][tile] += weights times tokens^T over one piece, in units of 1 / UNSCALE.
__device__ __forceinline__ void multiply_piece(float4 (&d)[OCTETS][NT], Loader& loader, u32 slot, u32 piece) {
  const u32 lane = loader.lane, row = lane / 4, quad = lane % 4, shift = quad % 2 * 16;
  const u32 from = loader.ring + slot * u32(sizeof(Slot)), own = from + lane * 16;
  const u32 scales = from + SCALES_AT;
  const uint4 gate_scales = ptx::load_shared_v4(scales + scale_place(quad / 2, row));
  const uint4 up_scales = ptx::load_shared_v4(scales + 256 + scale_place(quad / 2, row));
  u32 token_pair[NT], gate_pair[OCTETS], up_pair[OCTETS];
#pragma unroll
  for (u32 t = 0; t < NT; ++t) {
    const u32 at = scales + 512 + (8 * t + row) * 16 + piece % 2 * 8 + quad / 2 * 4;
    token_pair[t] = scales_to_f16x2(ptx::load_shared_u32(at) >> shift);
  }
#pragma unroll
  for (u32 octet = 0; octet < OCTETS; ++octet) {
    gate_pair[octet] = scales_to_f16x2(word_of(gate_scales, octet) >> shift);
    up_pair[octet] = scales_to_f16x2(word_of(up_scales, octet) >> shift);
  }
#pragma unroll 1
  for (u32 part = 0; part < 4 / PART_WORDS; ++part) {
    const u32 half = 16 * part;
    uint4 b[NT][PART_WORDS];
#pragma unroll
    for (u32 t = 0; t < NT; ++t) {
      const Words tokens(own + (2 * OCTETS + t) * OCTET_BYTES + part * 8);
#pragma unroll
      for (u32 i = 0; i < PART_WORDS; ++i) b[t][i] = tokens.dequantise(i, token_pair[t] >> half);
    }
#pragma unroll
    for (u32 octet = 0; octet < OCTETS; ++octet) {
      const Words gate(own + octet * OCTET_BYTES + part * 8);
      const Words up(own + (OCTETS + octet) * OCTET_BYTES + part * 8);
      if (part == 4 / PART_WORDS - 1 && octet == OCTETS - 1) {  // the slot is read: let it fill again
        __syncwarp();
        loader.load();
      }
#pragma unroll
      for (u32 i = 0; i < PART_WORDS; ++i) {
        const uint4 g = gate.dequantise(i, gate_pair[octet] >> half), u = up.dequantise(i, up_pair[octet] >> half);
#pragma unroll
        for (u32 t = 0; t < NT; ++t) {
          ptx::mma_m16n8k16(d[octet][t], g.x, u.x, g.y, u.y, b[t][i].x, b[t][i].y);
          ptx::mma_m16n8k16(d[octet][t], g.z, u.z, g.w, u.w, b[t][i].z, b[t][i].w);
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
  WarpSums* sums = shared.meeting();
  __syncthreads();  // the ring, or the sums of the tile before, are read
#pragma unroll
  for (u32 pass = 0; pass < PASSES; ++pass) {
    if (pass > 0) __syncthreads();
#pragma unroll
    for (u32 octet = 0; octet < SUM_OCTETS; ++octet)
#pragma unroll
      for (u32 t = 0; t < NT; ++t)
        sums[warp][(octet * NT + t) * 32 + lane] = d[pass * SUM_OCTETS + octet][t];
    __syncthreads();
    for (u32 at = threadIdx.x; at < PASS_SUMS; at += THREADS) {
      float4 sum = sums[0][at];
#pragma unroll 2  // more would take registers from the main loop
      for (u32 other = 1; other < WARPS; ++other) sum = plus(sum, sums[other][at]);
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

extern "C" __global__ void __launch_bounds__(THREADS, PER_SM) dual_gemm(const __grid_constant__ Args args) {
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
    for (u32 piece = work.begin + threadIdx.x / 32; piece < work.end; piece += WARPS) {
      ptx::copy_async_wait<SLOTS - 1>();
      __syncwarp();
      multiply_piece(d, loader, slot, piece);
      slot = slot + 1 == SLOTS ? 0 : slot + 1;
    }
    if constexpr (SPLIT > 1) ptx::cluster_wait();
    finish_tile(d, shared, args, work);
  }
}
