// Bits in, bits out: fp16 lives in u16/u32 because NVRTC has no half type
// without the toolkit's headers.
#pragma once
#include <dgx/abi.cuh>

namespace dgx::ptx {

// The bits of a where the mask has ones, of b elsewhere.
__device__ __forceinline__ u32 select_bits(u32 mask, u32 a, u32 b) {
  u32 d;
  asm("lop3.b32 %0, %1, %2, %3, 0xE4;" : "=r"(d) : "r"(a), "r"(b), "r"(mask));
  return d;
}

// Moves and not prmt: these ptxas folds into the instruction that multiplies.
__device__ __forceinline__ u32 low_half_twice(u32 pair) {
  u32 d;
  asm("{\n"
      ".reg .b16 low, high;\n"
      "mov.b32 {low, high}, %1;\n"
      "mov.b32 %0, {low, low};\n"
      "}"
      : "=r"(d)
      : "r"(pair));
  return d;
}

__device__ __forceinline__ u32 high_half_twice(u32 pair) {
  u32 d;
  asm("{\n"
      ".reg .b16 low, high;\n"
      "mov.b32 {low, high}, %1;\n"
      "mov.b32 %0, {high, high};\n"
      "}"
      : "=r"(d)
      : "r"(pair));
  return d;
}

// Two e4m3 in the low 16 bits become two fp16, exactly; NaN stays NaN.
__device__ __forceinline__ u32 e4m3x2_to_f16x2(u32 scales) {
  u32 d;
  asm("{\n"
      ".reg .b16 low;\n"
      "cvt.u16.u32 low, %1;\n"
      "cvt.rn.f16x2.e4m3x2 %0, low;\n"
      "}"
      : "=r"(d)
      : "r"(scales));
  return d;
}

__device__ __forceinline__ u32 multiply_f16x2(u32 a, u32 b) {
  u32 d;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

__device__ __forceinline__ u32 fma_f16x2(u32 a, u32 b, u32 c) {
  u32 d;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

// The first argument lands in the low half.
__device__ __forceinline__ u32 f32x2_to_f16x2(float low, float high) {
  u32 d;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}

// Of the low half.
__device__ __forceinline__ float f16_to_f32(u32 bits) {
  float d;
  asm("{\n"
      ".reg .b16 low;\n"
      "cvt.u16.u32 low, %1;\n"
      "cvt.f32.f16 %0, low;\n"
      "}"
      : "=f"(d)
      : "r"(bits));
  return d;
}

__device__ __forceinline__ u32 f32x2_to_bf16x2(float low, float high) {
  u32 d;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}

// Of half `which` of a pair.
__device__ __forceinline__ float bf16_to_f32(u32 pair, u32 which) {
  return __uint_as_float(which == 0 ? pair << 16 : pair & 0xFFFF0000);
}

__device__ __forceinline__ float exp2_approx(float x) {
  float d;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(x));
  return d;
}

__device__ __forceinline__ float reciprocal_approx(float x) {
  float d;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(x));
  return d;
}

}  // namespace dgx::ptx
