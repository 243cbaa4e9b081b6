// To odd: what is rounded to fewer bits afterwards is rounded as if once.
__device__ float narrowed(double x) {
  const float near = __double2float_rz(x);
  if (double(near) == x || x != x) return near;
  return __uint_as_float(__float_as_uint(near) | 1);
}

// f16 lies in u16: NVRTC alone has no type for it.
__device__ float from_f16(u16 bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}

__device__ u16 to_f16(float x) {
  u16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

// bf16 is the upper half of a float.
__device__ float from_bf16(u16 bits) { return __uint_as_float(u32(bits) << 16); }

__device__ u16 to_bf16(float x) {
  u16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}

// e2m1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and a sign.
__device__ float from_e2m1(u32 code) {
  const u32 exponent = code >> 1 & 3;
  const float half = 0.5f * (code & 1);
  const float size = exponent ? ldexpf(1.0f + half, int(exponent) - 1) : half;
  return code & 8 ? -size : size;
}

// To the nearest, a tie to the even code.
__device__ u32 to_e2m1(float x) {
  const float size = fabsf(x);
  const u32 code = size <= 0.25f ? 0 : size < 0.75f ? 1 : size <= 1.25f ? 2 : size < 1.75f ? 3
                 : size <= 2.5f ? 4 : size < 3.5f ? 5 : size <= 5.0f ? 6 : 7;
  return x < 0.0f ? code | 8 : code;
}

__device__ float from_e4m3(u32 code) {
  const u32 exponent = code >> 3 & 15, mantissa = code & 7;
  if (exponent == 15 && mantissa == 7) return __uint_as_float(0x7fc00000);
  const float size = exponent ? ldexpf(1.0f + mantissa / 8.0f, int(exponent) - 7)
                              : ldexpf(mantissa / 8.0f, -6);
  return code & 128 ? -size : size;
}

__device__ u8 to_e4m3(float x) {
  u16 two;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(two) : "f"(0.0f), "f"(x));
  return u8(two);
}

// e5m2 is the upper half of an f16.
__device__ float from_e5m2(u32 code) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(u16(code << 8)));
  return x;
}

__device__ u8 to_e5m2(float x) {
  u16 two;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(two) : "f"(0.0f), "f"(x));
  return u8(two);
}

// e8m0: a power of two, the exponent of a float.
__device__ float from_e8m0(u32 code) {
  if (code == 255) return __uint_as_float(0x7fc00000);
  return __uint_as_float(code ? code << 23 : 0x00400000);
}

// Two elements share a byte, the even one in its low half; sixteen share a scale.
__device__ real nvfp4(const u8* elements, const u8* scales, u64 at) {
  return real(from_e2m1(elements[at / 2] >> (at % 2 * 4) & 15)) * from_e4m3(scales[at / 16]);
}

// Two elements share a byte, the even one in its low half; 32 share a scale.
__device__ real mxfp4(const u8* elements, const u8* scales, u64 at) {
  return real(from_e2m1(elements[at / 2] >> (at % 2 * 4) & 15)) * from_e8m0(scales[at / 32]);
}

// 32 elements share a scale.
__device__ real mxfp8(const u8* elements, const u8* scales, u64 at) {
  return real(from_e4m3(elements[at])) * from_e8m0(scales[at / 32]);
}

__device__ integer clamped(real x, real least, real most) {
  return integer(x < least ? least : x > most ? most : x);
}

__device__ real infinity() { return __uint_as_float(0x7f800000); }

__device__ real not_a_number() { return __uint_as_float(0x7fc00000); }

// NaN if either is.
template <class T>
__device__ T maximum(T a, T b) { return a > b || a != a ? a : b; }

// NaN if either is.
template <class T>
__device__ T minimum(T a, T b) { return a < b || a != a ? a : b; }

__device__ real sigmoid(real x) { return 1 / (1 + exp(-x)); }

__device__ real silu(real x) { return x / (1 + exp(-x)); }

__device__ real gelu(real x) { return real(0.5) * x * (1 + erf(x * real(0.7071067811865476))); }

template <class T>
__device__ T sign(T x) { return x > 0 ? T(1) : x < 0 ? T(-1) : x; }

// Rounded down.
__device__ integer floor_divide(integer a, integer b) {
  const integer quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

// With the sign of the divisor.
__device__ integer remainder_of(integer a, integer b) {
  const integer rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// With the sign of the divisor.
__device__ real remainder_of_reals(real a, real b) {
  const real rest = fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// Rounded down.
__device__ real floor_divide_reals(real a, real b) {
  const real rest = remainder_of_reals(a, b);
  return isfinite(rest) ? rint((a - rest) / b) : floor(a / b);
}

// Whether a comes before b in ascending order, NaN last.
__device__ bool before(real a, real b) { return a < b || (b != b && a == a); }
