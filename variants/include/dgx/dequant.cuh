// e2m1 and e4m3 to fp16, exactly.
//
// An e2m1 with its sign in bit 15 and its three magnitude bits in bits 9..11
// is, read as fp16, the value times 2^-14 (the subnormal 0.5 included). Times
// an e4m3 scale the product has at most six significant bits and none below
// 2^-24, so fp16 still holds it exactly. Both operands of the GEMM carry
// 2^-14; the epilogue multiplies by UNSCALE once per accumulator.
#pragma once
#include <dgx/ptx/convert.cuh>

namespace dgx {

constexpr float UNSCALE = 268435456.0f;  // 2^28

// Bytes that hold an e2m1 in their high nibble become the high bytes of fp16.
__device__ __forceinline__ u32 high_nibbles_to_f16_high_bytes(u32 w) {
  return ptx::and_or(w, 0x80808080u, (w >> 3) & 0x0E0E0E0Eu);
}

// Eight e2m1 times one scale (held in both halves of `scale`). The order is
// 0 2, 4 6, 1 3, 5 7: cheaper than 0..7, and a GEMM does not mind as long as
// both its operands are permuted alike.
__device__ __forceinline__ uint4 dequantise8(u32 nibbles, u32 scale) {
  u32 even = high_nibbles_to_f16_high_bytes(nibbles << 4);
  u32 odd = high_nibbles_to_f16_high_bytes(nibbles);
  uint4 halves;
  halves.x = ptx::multiply_f16x2(ptx::permute_bytes(even, 0, 0x1404), scale);
  halves.y = ptx::multiply_f16x2(ptx::permute_bytes(even, 0, 0x3424), scale);
  halves.z = ptx::multiply_f16x2(ptx::permute_bytes(odd, 0, 0x1404), scale);
  halves.w = ptx::multiply_f16x2(ptx::permute_bytes(odd, 0, 0x3424), scale);
  return halves;
}

__device__ __forceinline__ u32 low_half_twice(u32 pair) { return ptx::permute_bytes(pair, 0, 0x1010); }
__device__ __forceinline__ u32 high_half_twice(u32 pair) { return ptx::permute_bytes(pair, 0, 0x3232); }

}  // namespace dgx
