// e2m1 and e4m3 to fp16, exactly.
//
// An e2m1 with its sign in bit 15 and its three magnitude bits in bits 9..11
// is, read as fp16, the value times 2^-14 (the subnormal 0.5 included). Times
// an e4m3 scale the product has at most six significant bits and none below
// 2^-24, so fp16 still holds it exactly. The scales are made 2^7 times as
// large, as far as fp16 goes: the tensor cores align a product by its operands'
// exponent fields, so every leading zero of a subnormal costs the sum a bit.
// Both operands of the GEMM carry 2^-7; the epilogue multiplies by UNSCALE once
// per accumulator.
#pragma once
#include <dgx/ptx/convert.cuh>

namespace dgx {

constexpr float UNSCALE = 16384.0f;  // 2^14

// Two e4m3 scales, times 2^7.
__device__ __forceinline__ u32 scales_to_f16x2(u32 scales) {
  constexpr u32 TWICE_2_7 = 0x58005800;
  return ptx::multiply_f16x2(ptx::e4m3x2_to_f16x2(scales), TWICE_2_7);
}

// The eight e2m1 of a word as fp16 pairs, without a scale: pair q holds
// elements q and q + 4. Cheaper than natural order, and a GEMM does not mind
// as long as both its operands are permuted alike. The signs and magnitudes of
// four nibbles are put in the place of fp16's high bytes at once; what stands
// in the other bits goes when the bytes are taken apart.
struct Pairs {
  u32 pair[4];
};

__device__ __forceinline__ Pairs spread(u32 nibbles) {
  constexpr u32 SIGNS = 0x80808080, KEPT = 0x8E008E00;
  const u32 even = ptx::select_bits(SIGNS, nibbles << 4, nibbles << 1);
  const u32 odd = ptx::select_bits(SIGNS, nibbles, nibbles >> 3);
  return {(even << 8) & KEPT, (odd << 8) & KEPT, even & KEPT, odd & KEPT};
}

// The same times one scale, held in both halves of `scale`.
__device__ __forceinline__ uint4 dequantise8(u32 nibbles, u32 scale) {
  const Pairs raw = spread(nibbles);
  return {ptx::multiply_f16x2(raw.pair[0], scale), ptx::multiply_f16x2(raw.pair[1], scale),
          ptx::multiply_f16x2(raw.pair[2], scale), ptx::multiply_f16x2(raw.pair[3], scale)};
}

}  // namespace dgx
