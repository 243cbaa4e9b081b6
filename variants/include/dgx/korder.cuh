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

// One thread makes 32 consecutive positions of one row: word `part` (0..7, the
// chunk i in bit 2, the word in the chunk below it) of each of the four lanes.
__device__ __forceinline__ void reorder_token(const Group& group, u16* out, u32 row, u32 band, u32 part) {
  const u8* words = group.a + u64(row) * (group.k / 2) + band * (BAND / 2) + part * 4;
  const u8* scales = group.sfa + u64(row) * (group.k / 16) + band * (BAND / 16);
  u32 word[4];
#pragma unroll
  for (u32 c = 0; c < 4; ++c) word[c] = ptx::load_global_u32(words + c * 32);
  const uint4 all = ptx::load_global_v4(scales);
  const u32 scale_of_lane[4] = {all.x, all.y, all.z, all.w};
  uint4 pairs[4];
#pragma unroll
  for (u32 c = 0; c < 4; ++c) {
    const u32 scale = ptx::e4m3x2_to_f16x2(scale_of_lane[c] >> (part / 2 * 8));
    pairs[c] = dequantise8(word[c], low_half_twice(scale));
  }
  u16* to = out + u64(row) * group.k + band * BAND + part * 32;
  ptx::store_global_v4(to, {pairs[0].x, pairs[1].x, pairs[2].x, pairs[3].x});
  ptx::store_global_v4(to + 8, {pairs[0].y, pairs[1].y, pairs[2].y, pairs[3].y});
  ptx::store_global_v4(to + 16, {pairs[0].z, pairs[1].z, pairs[2].z, pairs[3].z});
  ptx::store_global_v4(to + 24, {pairs[0].w, pairs[1].w, pairs[2].w, pairs[3].w});
}

}  // namespace dgx
