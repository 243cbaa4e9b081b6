// Rows of NVFP4 multiplied by one thread, with nothing clever in it.
#pragma once
#include <dgx/dequant.cuh>

namespace dgx::plain {

constexpr u32 BLOCK = 16;          // elements that share a scale
constexpr u32 TWICE_2_14 = 0x74007400;  // undoes the 2^-14 of spread

// The part of row x times row y in one block. Sums of e2m1 products are
// multiples of 1/4 below 512: exact in fp16.
__device__ inline float block_dot(const u8* x, u32 x_scale, const u8* y, u32 y_scale) {
  u32 sums = 0;
  for (u32 byte = 0; byte < BLOCK / 2; byte += 4) {
    const uint4 a = dequantise8(*reinterpret_cast<const u32*>(x + byte), TWICE_2_14);
    const uint4 b = dequantise8(*reinterpret_cast<const u32*>(y + byte), TWICE_2_14);
    sums = ptx::fma_f16x2(a.x, b.x, sums);
    sums = ptx::fma_f16x2(a.y, b.y, sums);
    sums = ptx::fma_f16x2(a.z, b.z, sums);
    sums = ptx::fma_f16x2(a.w, b.w, sums);
  }
  const float sum = ptx::f16_to_f32(sums) + ptx::f16_to_f32(sums >> 16);
  const u32 scales = ptx::e4m3x2_to_f16x2(x_scale | y_scale << 8);
  return sum * (ptx::f16_to_f32(scales) * ptx::f16_to_f32(scales >> 16));
}

// Row `row` of x against row `column` of y over k in [begin, end).
__device__ inline float dot(const u8* x, const u8* x_scales, u32 row, const u8* y, const u8* y_scales, u32 column,
                            u32 k, u32 begin, u32 end) {
  x += u64(row) * (k / 2), x_scales += u64(row) * (k / 16);
  y += u64(column) * (k / 2), y_scales += u64(column) * (k / 16);
  float sum = 0.0f;
  for (u32 i = begin; i < end; i += BLOCK)
    sum += block_dot(x + i / 2, x_scales[i / BLOCK], y + i / 2, y_scales[i / BLOCK]);
  return sum;
}

}  // namespace dgx::plain
