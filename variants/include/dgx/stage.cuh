// Few tokens: stages of a tile as TMA brings them, and a warp's share of the
// multiplying. A variant that includes this has OCTETS of features a tile (FEATURES
// in all), NT octets of tokens (TOKENS), and slots of SLOT_BYTES.
#pragma once
#include <dgx/epilogue.cuh>
#include <dgx/piece.cuh>
#include <dgx/ptx/mbarrier.cuh>
#include <dgx/ptx/tma.cuh>

namespace dgx {

// A stage is K512 of a tile, and one team's work: each of its warps takes K128.
constexpr u32 STAGE_K = 512;
constexpr u32 SPAN = 128;  // bytes of a row in one box: K256
constexpr u32 SCALE_BYTES = STAGE_K / 16;
constexpr u32 WARP_K = 128;
constexpr u32 TEAM_WARPS = STAGE_K / WARP_K;

struct alignas(1024) Stage {
  u8 gate[2][FEATURES * SPAN];  // two boxes, each 128B swizzled
  u8 up[2][FEATURES * SPAN];
  u8 tokens[2][TOKENS * SPAN];
};

struct alignas(256) StageScales {
  u8 gate[FEATURES * SCALE_BYTES];  // a row of 32 bytes a feature; or, of octets in step with the atoms, one
  u8 up[FEATURES * SCALE_BYTES];    // of 128 bytes for each K64: 16 a lane group, 4 an octet
  u8 tokens[TOKENS * SCALE_BYTES];
};
static_assert(sizeof(Stage) + sizeof(StageScales) == SLOT_BYTES);

// Tile of a group, as far as its stages and sums need to know it.
struct Work {
  u32 group;
  u32 row, feature;  // first token, first feature
  u32 begin, end;    // stages of K, this CTA's share
};

// Where groups are alike, each has so many tiles, and no search tells which a tile is of.
constexpr u32 TILES_EACH = GROUP_TILES > 0 ? GROUP_TILES : 1;

// Octets of a tile lie OCTET_ROWS rows apart. If that is 32, an atom of the blocked
// layout has the scales of four of them side by side.
constexpr bool BY_ATOMS = OCTET_ROWS == 32;
static_assert(!BY_ATOMS || OCTETS == 4);
constexpr u32 ATOM_SPAN = 128;

__device__ __forceinline__ bool uses_map(u32 map) {
  return BY_ATOMS ? map != MAP_SFB1 && map != MAP_SFB2 : map != MAP_ATOMS1 && map != MAP_ATOMS2;
}

// One thread for each map: all at once, not one after the other by the first copies.
__device__ __forceinline__ void prefetch_maps(const TensorMap* maps, u32 thread) {
  if (thread < MAPS && uses_map(thread)) ptx::tma_prefetch_map(maps + thread);
}

// First feature of a tile.
__device__ __forceinline__ u32 first_feature(u32 tile) {
  return BY_ATOMS ? tile / OCTETS * 128 + tile % OCTETS * 8 : tile * FEATURES;
}

__device__ __forceinline__ void load_weights(u32 to, u32 scales_to, const TensorMap* map, const TensorMap* scales,
                                             const TensorMap* atoms, u32 feature, u32 stage, u64& full) {
  ptx::tma_load_4d(to, map, 0, feature % OCTET_ROWS, feature / OCTET_ROWS, 2 * stage, full, ptx::EVICT_FIRST);
  if constexpr (BY_ATOMS) {
    ptx::tma_load_3d(scales_to, atoms, feature % 32 * 16, stage * (STAGE_K / 64), feature / 128, full, ptx::EVICT_FIRST);
  } else {
    ptx::tma_load_2d(scales_to, scales, stage * SCALE_BYTES, feature, full, ptx::EVICT_LAST);
  }
}

// What lies past M, N or K arrives as zeros. Both spans of an operand are one copy:
// what a copy costs the thread that asks for it does not depend on its size. A line
// of scales is four stages', so it is kept in L2 until then; one of weights is not.
__device__ __forceinline__ void load_gate(Stage& to, StageScales& scales, u64& full, const TensorMap* maps,
                                          const Work& work, u32 stage) {
  load_weights(ptx::shared_address(to.gate), ptx::shared_address(scales.gate), maps + MAP_B1, maps + MAP_SFB1,
               maps + MAP_ATOMS1, work.feature, stage, full);
  ptx::tma_load_3d(ptx::shared_address(to.tokens), maps + MAP_A, 0, work.row, 2 * stage, full, ptx::EVICT_LAST);
}

__device__ __forceinline__ void load_up(Stage& to, StageScales& scales, u64& full, const TensorMap* maps,
                                        const Work& work, u32 stage) {
  load_weights(ptx::shared_address(to.up), ptx::shared_address(scales.up), maps + MAP_B2, maps + MAP_SFB2,
               maps + MAP_ATOMS2, work.feature, stage, full);
  ptx::tma_load_2d(ptx::shared_address(scales.tokens), maps + MAP_SFA, stage * SCALE_BYTES, work.row, full,
                   ptx::EVICT_LAST);
}

// Which of the eight rows of an octet (or tokens) lane group g has: such that a
// quarter of a warp meets no bank of a swizzled box twice.
__device__ __forceinline__ u32 row_of(u32 g) { return g % 2 * 4 + g / 2; }

// Where a lane's pieces are: quarter lane % 4 of the warp's K128.
struct Place {
  u32 bytes, scale, weight_scale;

  __device__ __forceinline__ Place() {
    const u32 lane = threadIdx.x % 32, row = row_of(lane / 4), warp = threadIdx.x / 32 % TEAM_WARPS;
    bytes = row * SPAN + ((warp % 2 * 4 + lane % 4) ^ row) * 16;
    scale = row * SCALE_BYTES + warp * 8 + lane % 4 * 2;
    weight_scale = BY_ATOMS ? (warp * 2 + lane % 4 / 2) * ATOM_SPAN + row * 16 + lane % 2 * 2 : scale;
  }
};

__device__ __forceinline__ Piece load_piece(u32 words_at, u32 scales_at) {
  return {ptx::load_shared_v4(words_at), ptx::load_shared_u16(scales_at)};
}

__device__ __forceinline__ void release(u64& empty) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) ptx::mbarrier_arrive(empty);
}

// d[octet][tile] += weights times tokens^T over the warp's K128 of a stage, in
// units of 1 / UNSCALE, for the first Tiles octets of tokens. Frees the slot as soon
// as it is in registers.
template <u32 Tiles>
__device__ __forceinline__ void multiply(float4 (&d)[OCTETS][NT], const Stage& stage, const StageScales& scales,
                                         u64& empty, const Place& place) {
  constexpr u32 MOST_AHEAD = NT == 1 ? 4 : 2, AHEAD = OCTETS < MOST_AHEAD ? OCTETS : MOST_AHEAD;
  const u32 half = threadIdx.x / 32 % TEAM_WARPS / 2;
  const u32 gate_at = ptx::shared_address(stage.gate[half]) + place.bytes;
  const u32 up_at = ptx::shared_address(stage.up[half]) + place.bytes;
  const u32 gate_scales_at = ptx::shared_address(scales.gate) + place.weight_scale;
  const u32 up_scales_at = ptx::shared_address(scales.up) + place.weight_scale;
  constexpr u32 OCTET_SCALES = BY_ATOMS ? 4 : 8 * SCALE_BYTES;
  const auto load = [&](u32 octet) -> Weights {
    return {load_piece(gate_at + octet * 8 * SPAN, gate_scales_at + octet * OCTET_SCALES),
            load_piece(up_at + octet * 8 * SPAN, up_scales_at + octet * OCTET_SCALES)};
  };
  Weights raw[AHEAD];
#pragma unroll
  for (u32 octet = 0; octet < AHEAD; ++octet) raw[octet] = load(octet);
  Halves tokens[Tiles];
  const u32 words_at = ptx::shared_address(stage.tokens[half]) + place.bytes;
  const u32 scales_at = ptx::shared_address(scales.tokens) + place.scale;
#pragma unroll
  for (u32 t = 0; t < Tiles; ++t)
    tokens[t] = halves_of(load_piece(words_at + t * 8 * SPAN, scales_at + t * 8 * SCALE_BYTES));
  if constexpr (AHEAD == OCTETS) release(empty);
#pragma unroll
  for (u32 octet = 0; octet < OCTETS; ++octet) {
    const Weights now = raw[octet % AHEAD];
    if (octet + AHEAD < OCTETS) raw[octet % AHEAD] = load(octet + AHEAD);
    if (octet + AHEAD + 1 == OCTETS) release(empty);
    multiply_octet(reinterpret_cast<float4(&)[Tiles]>(d[octet]), now, tokens);
  }
}

__device__ __forceinline__ float4 plus(const float4& a, const float4& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

// Sum `at` of the tile: octet, token tile and lane as the MMA has them.
__device__ __forceinline__ void store_sum(const Group& group, const Work& work, u32 at, const float4& sum) {
  const u32 lane = at % 32, first = work.row + at / 32 % NT * 8;
  const u32 feature = work.feature + at / (32 * NT) * OCTET_ROWS + row_of(lane / 4);
  const u32 token = first + row_of(lane % 4 * 2), next = first + row_of(lane % 4 * 2 + 1);
  const u32 pair = ptx::f32x2_to_f16x2(gated(sum.x, sum.z), gated(sum.y, sum.w));
  if (feature >= group.n) return;
  if (token < group.m) group.c[u64(token) * group.n + feature] = static_cast<u16>(pair);
  if (next < group.m) group.c[u64(next) * group.n + feature] = static_cast<u16>(pair >> 16);
}

}  // namespace dgx
