/*dgx
summary  = "One thread for each element of C, one K loop for both products"
arch     = "sm_90a"
const    = { THREADS = 128 }
requires = ["k % 16 == 0"]
tiles    = "m * cdiv(n, THREADS)"

[[launch]]
kernel = "dual_gemm"
grid   = "sum(tiles)"
block  = "THREADS"
*/
#include <dgx/abi.cuh>
#include <dgx/ptx/convert.cuh>

namespace {

// e2m1: a sign, two bits of exponent, one of mantissa: 0, 0.5, 1, 1.5, 2, 3, 4, 6.
__device__ float e2m1(unsigned code) {
  const unsigned exponent = code >> 1 & 3;
  const float half = 0.5f * (code & 1);
  const float size = exponent ? ldexpf(1.0f + half, static_cast<int>(exponent) - 1) : half;
  return code & 8 ? -size : size;
}

// e4m3, as scales are: NaN stays NaN.
__device__ float e4m3(unsigned code) {
  const unsigned exponent = code >> 3 & 15, mantissa = code & 7;
  if (exponent == 15 && mantissa == 7) return __int_as_float(0x7fc00000);
  const float size = exponent ? ldexpf(1.0f + mantissa / 8.0f, static_cast<int>(exponent) - 7)
                              : ldexpf(mantissa / 8.0f, -6);
  return code & 128 ? -size : size;
}

// Element k of a packed row: two to a byte, the even one in the low nibble.
__device__ float element(const unsigned char* row, unsigned k) {
  return e2m1(row[k / 2] >> (k % 2 * 4) & 15);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(THREADS) dual_gemm(const __grid_constant__ dgx::Args args) {
  // Which group is this tile of?
  unsigned g = 0;
  while (g + 1 < args.group_count && args.groups[g + 1].tile_begin <= blockIdx.x) ++g;
  const dgx::Group& group = args.groups[g];
  const unsigned tile = blockIdx.x - group.tile_begin;
  const unsigned tiles_n = (group.n + THREADS - 1) / THREADS;
  const unsigned row = tile / tiles_n, column = tile % tiles_n * THREADS + threadIdx.x;
  if (column >= group.n) return;

  const unsigned long long ka = static_cast<unsigned long long>(row) * group.k;
  const unsigned long long kb = static_cast<unsigned long long>(column) * group.k;
  float gate = 0.0f, up = 0.0f;
  for (unsigned k = 0; k < group.k; k += 16) {
    const float sa = e4m3(group.sfa[(ka + k) / 16]);
    const float s1 = sa * e4m3(group.sfb1[(kb + k) / 16]);
    const float s2 = sa * e4m3(group.sfb2[(kb + k) / 16]);
    float dot1 = 0.0f, dot2 = 0.0f;
    for (unsigned i = k; i < k + 16; ++i) {
      const float a = element(group.a + ka / 2, i);
      dot1 += a * element(group.b1 + kb / 2, i);
      dot2 += a * element(group.b2 + kb / 2, i);
    }
    gate += s1 * dot1;
    up += s2 * dot2;
  }
  const float silu = gate / (1.0f + __expf(-gate));
  group.c[static_cast<unsigned long long>(row) * group.n + column] = static_cast<dgx::u16>(dgx::ptx::f32x2_to_f16x2(silu * up, 0.0f));
}
