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

// Bytes that hold an e2m1 in their high nibble become the high bytes of fp16.
__device__ __forceinline__ u32 high_nibbles_to_f16_high_bytes(u32 w) {
  return ptx::and_or(w, 0x80808080u, (w >> 3) & 0x0E0E0E0Eu);
}

// The eight e2m1 of a word as fp16 pairs, without a scale: pair q holds
// elements q and q + 4. Cheaper than natural order, and a GEMM does not mind
// as long as both its operands are permuted alike.
struct Pairs {
  u32 pair[4];
};

__device__ __forceinline__ Pairs spread(u32 nibbles) {
  const u32 even = high_nibbles_to_f16_high_bytes(nibbles << 4);
  const u32 odd = high_nibbles_to_f16_high_bytes(nibbles);
  return {ptx::permute_bytes(even, 0, 0x2404), ptx::permute_bytes(odd, 0, 0x2404), even & 0xFF00FF00u,
          odd & 0xFF00FF00u};
}

// The same times one scale, held in both halves of `scale`.
__device__ __forceinline__ uint4 dequantise8(u32 nibbles, u32 scale) {
  const Pairs raw = spread(nibbles);
  return {ptx::multiply_f16x2(raw.pair[0], scale), ptx::multiply_f16x2(raw.pair[1], scale),
          ptx::multiply_f16x2(raw.pair[2], scale), ptx::multiply_f16x2(raw.pair[3], scale)};
}

__device__ __forceinline__ u32 low_half_twice(u32 pair) { return ptx::permute_bytes(pair, 0, 0x1010); }
__device__ __forceinline__ u32 high_half_twice(u32 pair) { return ptx::permute_bytes(pair, 0, 0x3232); }

}  // namespace dgx
