// The order of K in which weights can feed wgmma from registers as they lie in
// memory, and the kernel that brings the tokens into it.
//
// Of every 256 elements of a weight row, lane c of a quad reads the 64
// contiguous ones from 64c on: two 16-byte chunks, i = 0 and 1, each the A
// fragments of eight k16 steps j. The pair that a word's elements q and q + 4
// make sits at fragment column 8h + 2c, with q = 2 (j % 2) + h. So position
//     128 i + 16 j + 8 h + 2 c + e   holds   k = 64 c + 32 i + 8 (j / 2) + 2 (j % 2) + h + 4 e
// and the scale of a chunk's words 0, 1 (2, 3) is the same for all of one K64.
#pragma once
#include <dgx/dequant.cuh>
#include <dgx/ptx/memory.cuh>

namespace dgx {

constexpr u32 BAND = 256;  // K after which the order repeats

// 32 consecutive positions of one row: word `part` (the chunk i in bit 2, the
// word in the chunk below it) of each of the four lanes. One thread makes them.
constexpr u32 PART = 32;
constexpr u32 PARTS = BAND / PART;

// A warp makes 32 consecutive parts, which lie behind one another in memory. Its
// lanes trade 16-byte chunks through shared memory, so that each store of the
// warp fills whole lines: chunk q of a lane's four is at 4 lane + q, moved so
// that neither side meets a bank twice.
using TokenChunks = uint4[4 * 32];

// A row of a packed operand.
struct PackedRow {
  const u8* all;
  const u8* all_scales;
  u32 row;
};

// Parts first, first + 1, … of all rows in one line, one a lane, up to `end`;
// source(row) says where a row is.
template <typename Source>
__device__ __forceinline__ void reorder_rows(const Source& source, u16* out, u32 k, u32 first, u32 end,
                                             TokenChunks& chunks) {
  const u32 lane = threadIdx.x % 32, at = first + lane;
  if (at < end) {
    const u32 row = at / (k / PART), band = at / PARTS % (k / BAND), part = at % PARTS;
    const PackedRow from = source(row);
    const u8* words = from.all + u64(from.row) * (k / 2) + band * (BAND / 2) + part * 4;
    u32 word[4];
#pragma unroll
    for (u32 c = 0; c < 4; ++c) word[c] = ptx::load_global_u32(words + c * 32);
    const uint4 scales = ptx::load_global_v4(from.all_scales + u64(from.row) * (k / 16) + band * (BAND / 16));
    const u32 scale_of_lane[4] = {scales.x, scales.y, scales.z, scales.w};
    uint4 pairs[4];
#pragma unroll
    for (u32 c = 0; c < 4; ++c)
      pairs[c] = dequantise8(word[c], ptx::low_half_twice(scales_to_f16x2(scale_of_lane[c] >> (part / 2 * 8))));
    uint4* mine = chunks + lane * 4;
    const u32 turn = lane / 2 % 4;
    mine[0 ^ turn] = {pairs[0].x, pairs[1].x, pairs[2].x, pairs[3].x};
    mine[1 ^ turn] = {pairs[0].y, pairs[1].y, pairs[2].y, pairs[3].y};
    mine[2 ^ turn] = {pairs[0].z, pairs[1].z, pairs[2].z, pairs[3].z};
    mine[3 ^ turn] = {pairs[0].w, pairs[1].w, pairs[2].w, pairs[3].w};
  }
  __syncwarp();
#pragma unroll
  for (u32 i = 0; i < 4; ++i) {
    const u32 from = i * 32 + lane, owner = from / 4, q = from % 4 ^ owner / 2 % 4;
    if (first + owner < end) ptx::store_global_v4(out + u64(first + owner) * PART + q * 8, chunks[from]);
  }
}

__device__ __forceinline__ void reorder_tokens(const Group& group, u16* out, u32 k, u32 first, u32 end,
                                               TokenChunks& chunks) {
  reorder_rows([&](u32 row) -> PackedRow { return {group.a, group.sfa, row}; }, out, k, first, end, chunks);
}

}  // namespace dgx
