// Which part of which group is a CTA's.
#pragma once
#include <dgx/abi.cuh>

namespace dgx {

struct Tile {
  const Group* group;
  const TensorMap* maps;  // this group's
  u32 row, column;        // of C, in elements
};

// Tile number `local` of a group: rows of tiles vary fastest, so neighbouring
// CTAs read the same weights while these are in L2.
template <int Rows, int Columns>
__device__ __forceinline__ Tile tile_in_group(const Args& args, u32 group, u32 local, u32 maps_per_group) {
  const Group* g = args.groups + group;
  u32 row_tiles = (g->m + Rows - 1) / Rows;
  return {g, args.maps + group * maps_per_group, local % row_tiles * Rows, local / row_tiles * Columns};
}

// The incumbent's way: walk the groups until the tile is inside one.
template <int Rows, int Columns>
__device__ __forceinline__ Tile find_tile_by_walk(const Args& args, u32 tile, u32 maps_per_group) {
  u32 group = 0;
  while (group + 1 < args.group_count && args.groups[group + 1].tile_begin <= tile) ++group;
  return tile_in_group<Rows, Columns>(args, group, tile - args.groups[group].tile_begin, maps_per_group);
}

// Halves the range of groups instead: log2 dependent loads, not one per group.
__device__ __forceinline__ u32 find_group_by_search(const Args& args, u32 tile) {
  u32 group = 0;
  for (u32 end = args.group_count; end - group > 1;) {
    const u32 middle = (group + end) / 2;
    if (args.groups[middle].tile_begin <= tile) {
      group = middle;
    } else {
      end = middle;
    }
  }
  return group;
}

template <int Rows, int Columns>
__device__ __forceinline__ Tile find_tile_by_search(const Args& args, u32 tile, u32 maps_per_group) {
  const u32 group = find_group_by_search(args, tile);
  return tile_in_group<Rows, Columns>(args, group, tile - args.groups[group].tile_begin, maps_per_group);
}

// The same without a load where the groups are few: from the parameters.
__device__ __forceinline__ u32 find_group(const Args& args, u32 tile) {
  if (args.group_count > NEAR_GROUPS) return find_group_by_search(args, tile);
  u32 group = 0;
#pragma unroll
  for (u32 i = 1; i < NEAR_GROUPS; ++i) group += i < args.group_count && args.near[i].tile_begin <= tile;
  return group;
}

__device__ __forceinline__ Group group_at(const Args& args, u32 index) {
  return index < NEAR_GROUPS ? args.near[index] : args.groups[index];
}

// The group of a block, where each group has as many as blocks_of says of it, and no host has
// counted them: a warp adds up 32 groups at once. The block becomes its number in the group.
template <typename Blocks>
__device__ __forceinline__ u32 find_group_by_blocks(const Args& args, const Blocks& blocks_of, u32& block) {
  constexpr u32 ALL = ~0u;
  const u32 lane = threadIdx.x % 32;
  for (u32 first = 0;; first += 32) {
    const u32 index = first + lane;
    u32 sum = index < args.group_count ? blocks_of(args.groups[index]) : 0;
#pragma unroll
    for (u32 apart = 1; apart < 32; apart *= 2) {
      const u32 before = __shfl_up_sync(ALL, sum, apart);
      if (lane >= apart) sum += before;
    }
    const u32 passed = __popc(__ballot_sync(ALL, sum <= block));
    const u32 end = __shfl_sync(ALL, sum, (passed - 1) % 32);
    if (passed > 0) block -= end;
    if (passed < 32) return first + passed;
  }
}

}  // namespace dgx
