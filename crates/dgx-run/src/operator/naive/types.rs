//! How numbers of each type are read and written in CUDA without the toolkit's
//! headers.

use std::collections::BTreeSet;

use dgx_core::operator::{ElementType, Number, Operator};

/// The types that a kernel calculates in.
#[derive(Clone, Copy)]
pub(super) struct Numbers {
    pub double: bool,
    pub long: bool,
}

impl Numbers {
    pub(super) fn of(operator: &Operator) -> Self {
        let precise = |element| matches!(element, ElementType::F32 | ElementType::F64);
        let mut outputs = operator.outputs.iter().map(|output| output.tensor.element);
        let mut inputs = operator.inputs.iter().map(|input| input.element);
        Self {
            double: outputs.any(precise),
            long: inputs.any(|element| element == ElementType::I32),
        }
    }

    /// As the CPU evaluates.
    pub(super) fn exact() -> Self {
        Self {
            double: true,
            long: true,
        }
    }

    pub(super) fn declared(&self) -> &'static str {
        match (self.double, self.long) {
            (false, false) => "using real = float;\nusing integer = int;\n",
            (false, true) => "using real = float;\nusing integer = long long;\n",
            (true, false) => {
                "using real = double;  // its results are compared closely; is float enough?\n\
                 using integer = int;\n"
            }
            (true, true) => {
                "using real = double;  // its results are compared closely; is float enough?\n\
                 using integer = long long;\n"
            }
        }
    }

    pub(super) fn kind(number: Number) -> &'static str {
        match number {
            Number::Real => "real",
            Number::Integer => "integer",
            Number::Truth => "bool",
        }
    }

    /// Bytes of one of these.
    pub(super) fn bytes(&self, number: Number) -> u64 {
        match number {
            Number::Real if self.double => 8,
            Number::Integer if self.long => 8,
            Number::Truth => 1,
            _ => 4,
        }
    }
}

/// A function of the preamble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Helper {
    Narrowed,
    FromF16,
    ToF16,
    FromBf16,
    ToBf16,
    FromE2m1,
    ToE2m1,
    FromE4m3,
    ToE4m3,
    FromE5m2,
    ToE5m2,
    FromE8m0,
    Nvfp4,
    Mxfp4,
    Mxfp8,
    Clamped,
    Infinity,
    Nan,
    Maximum,
    Minimum,
    Sigmoid,
    Silu,
    Gelu,
    Sign,
    FloorDivide,
    Remainder,
    RemainderReal,
    FloorDivideReal,
    Before,
}

/// The texts of these and of those they call, each after what it calls.
pub(super) fn ordered(used: &BTreeSet<Helper>) -> impl Iterator<Item = &'static str> {
    let mut all = used.clone();
    for helper in used {
        all.extend(helper.calls());
    }
    all.into_iter().map(Helper::text)
}

impl Helper {
    fn calls(self) -> &'static [Self] {
        match self {
            Self::Nvfp4 => &[Self::FromE2m1, Self::FromE4m3],
            Self::Mxfp4 => &[Self::FromE2m1, Self::FromE8m0],
            Self::Mxfp8 => &[Self::FromE4m3, Self::FromE8m0],
            Self::FloorDivideReal => &[Self::RemainderReal],
            _ => &[],
        }
    }

    /// What reads a plain element type, by the name of the function.
    pub(super) fn reader(element: ElementType) -> Option<(Self, &'static str)> {
        Some(match element {
            ElementType::F16 => (Self::FromF16, "from_f16"),
            ElementType::Bf16 => (Self::FromBf16, "from_bf16"),
            ElementType::E4m3 => (Self::FromE4m3, "from_e4m3"),
            ElementType::E5m2 => (Self::FromE5m2, "from_e5m2"),
            ElementType::E2m1 => (Self::FromE2m1, "from_e2m1"),
            _ => return None,
        })
    }

    /// What rounds to one.
    pub(super) fn writer(element: ElementType) -> Option<(Self, &'static str)> {
        Some(match element {
            ElementType::F16 => (Self::ToF16, "to_f16"),
            ElementType::Bf16 => (Self::ToBf16, "to_bf16"),
            ElementType::E4m3 => (Self::ToE4m3, "to_e4m3"),
            ElementType::E5m2 => (Self::ToE5m2, "to_e5m2"),
            ElementType::E2m1 => (Self::ToE2m1, "to_e2m1"),
            _ => return None,
        })
    }

    fn text(self) -> &'static str {
        match self {
            Self::Narrowed => {
                "// To odd: what is rounded to fewer bits afterwards is rounded as if once.
__device__ float narrowed(double x) {
  const float near = __double2float_rz(x);
  if (double(near) == x || x != x) return near;
  return __uint_as_float(__float_as_uint(near) | 1);
}
"
            }
            Self::FromF16 => {
                "// f16 lies in u16: NVRTC alone has no type for it.
__device__ float from_f16(u16 bits) {
  float x;
  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(x) : \"h\"(bits));
  return x;
}
"
            }
            Self::ToF16 => {
                "__device__ u16 to_f16(float x) {
  u16 bits;
  asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(bits) : \"f\"(x));
  return bits;
}
"
            }
            Self::FromBf16 => {
                "// bf16 is the upper half of a float.
__device__ float from_bf16(u16 bits) { return __uint_as_float(u32(bits) << 16); }
"
            }
            Self::ToBf16 => {
                "__device__ u16 to_bf16(float x) {
  u16 bits;
  asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(bits) : \"f\"(x));
  return bits;
}
"
            }
            Self::FromE2m1 => {
                "// e2m1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and a sign.
__device__ float from_e2m1(u32 code) {
  const u32 exponent = code >> 1 & 3;
  const float half = 0.5f * (code & 1);
  const float size = exponent ? ldexpf(1.0f + half, int(exponent) - 1) : half;
  return code & 8 ? -size : size;
}
"
            }
            Self::ToE2m1 => {
                "// To the nearest, a tie to the even code.
__device__ u32 to_e2m1(float x) {
  const float size = fabsf(x);
  const u32 code = size <= 0.25f ? 0 : size < 0.75f ? 1 : size <= 1.25f ? 2 : size < 1.75f ? 3
                 : size <= 2.5f ? 4 : size < 3.5f ? 5 : size <= 5.0f ? 6 : 7;
  return x < 0.0f ? code | 8 : code;
}
"
            }
            Self::FromE4m3 => {
                "__device__ float from_e4m3(u32 code) {
  const u32 exponent = code >> 3 & 15, mantissa = code & 7;
  if (exponent == 15 && mantissa == 7) return __uint_as_float(0x7fc00000);
  const float size = exponent ? ldexpf(1.0f + mantissa / 8.0f, int(exponent) - 7)
                              : ldexpf(mantissa / 8.0f, -6);
  return code & 128 ? -size : size;
}
"
            }
            Self::ToE4m3 => {
                "__device__ u8 to_e4m3(float x) {
  u16 two;
  asm(\"cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;\" : \"=h\"(two) : \"f\"(0.0f), \"f\"(x));
  return u8(two);
}
"
            }
            Self::FromE5m2 => {
                "// e5m2 is the upper half of an f16.
__device__ float from_e5m2(u32 code) {
  float x;
  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(x) : \"h\"(u16(code << 8)));
  return x;
}
"
            }
            Self::ToE5m2 => {
                "__device__ u8 to_e5m2(float x) {
  u16 two;
  asm(\"cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;\" : \"=h\"(two) : \"f\"(0.0f), \"f\"(x));
  return u8(two);
}
"
            }
            Self::FromE8m0 => {
                "// e8m0: a power of two, the exponent of a float.
__device__ float from_e8m0(u32 code) {
  if (code == 255) return __uint_as_float(0x7fc00000);
  return __uint_as_float(code ? code << 23 : 0x00400000);
}
"
            }
            Self::Nvfp4 => {
                "// Two elements share a byte, the even one in its low half; sixteen share a scale.
__device__ real nvfp4(const u8* elements, const u8* scales, u64 at) {
  return real(from_e2m1(elements[at / 2] >> (at % 2 * 4) & 15)) * from_e4m3(scales[at / 16]);
}
"
            }
            Self::Mxfp4 => {
                "// Two elements share a byte, the even one in its low half; 32 share a scale.
__device__ real mxfp4(const u8* elements, const u8* scales, u64 at) {
  return real(from_e2m1(elements[at / 2] >> (at % 2 * 4) & 15)) * from_e8m0(scales[at / 32]);
}
"
            }
            Self::Mxfp8 => {
                "// 32 elements share a scale.
__device__ real mxfp8(const u8* elements, const u8* scales, u64 at) {
  return real(from_e4m3(elements[at])) * from_e8m0(scales[at / 32]);
}
"
            }
            Self::Clamped => {
                "__device__ integer clamped(real x, real least, real most) {
  return integer(x < least ? least : x > most ? most : x);
}
"
            }
            Self::Infinity => {
                "__device__ real infinity() { return __uint_as_float(0x7f800000); }
"
            }
            Self::Nan => {
                "__device__ real not_a_number() { return __uint_as_float(0x7fc00000); }
"
            }
            Self::Maximum => {
                "// NaN if either is.
template <class T>
__device__ T maximum(T a, T b) { return a > b || a != a ? a : b; }
"
            }
            Self::Minimum => {
                "// NaN if either is.
template <class T>
__device__ T minimum(T a, T b) { return a < b || a != a ? a : b; }
"
            }
            Self::Sigmoid => {
                "__device__ real sigmoid(real x) { return 1 / (1 + exp(-x)); }
"
            }
            Self::Silu => {
                "__device__ real silu(real x) { return x / (1 + exp(-x)); }
"
            }
            Self::Gelu => {
                "__device__ real gelu(real x) { return real(0.5) * x * (1 + erf(x * real(0.7071067811865476))); }
"
            }
            Self::Sign => {
                "template <class T>
__device__ T sign(T x) { return x > 0 ? T(1) : x < 0 ? T(-1) : x; }
"
            }
            Self::FloorDivide => {
                "// Rounded down.
__device__ integer floor_divide(integer a, integer b) {
  const integer quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
"
            }
            Self::Remainder => {
                "// With the sign of the divisor.
__device__ integer remainder_of(integer a, integer b) {
  const integer rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
"
            }
            Self::RemainderReal => {
                "// With the sign of the divisor.
__device__ real remainder_of(real a, real b) {
  const real rest = fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
"
            }
            Self::FloorDivideReal => {
                "// Rounded down.
__device__ real floor_divide(real a, real b) {
  const real rest = remainder_of(a, b);
  return isfinite(rest) ? rint((a - rest) / b) : floor(a / b);
}
"
            }
            Self::Before => {
                "// Whether a comes before b in ascending order, NaN last.
__device__ bool before(real a, real b) { return a < b || (b != b && a == a); }
"
            }
        }
    }
}
