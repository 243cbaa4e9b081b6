// Warpgroup MMA with A from registers and B in shared memory as rows of k: n runs along a row,
// in blocks of 64 columns (128-byte swizzled) that lie `block` bytes apart.
#pragma once
#include <dgx/ptx/wgmma.cuh>

namespace dgx::ptx {

__device__ __forceinline__ u64 rows_descriptor(u32 address, u32 block) {
  constexpr u64 FIXED = (1ull << 62) | (u64(1024 >> 4) << 32);
  return FIXED | u64(block >> 4) << 16 | ((address & 0x3FFFF) >> 4);
}

template <int N>
struct WgmmaRows;

#define DGX_WGMMA_ROWS(N, LIST, BIND, REGISTERS, DESC)                                                       \
  template <>                                                                                                \
  struct WgmmaRows<N> {                                                                                      \
    static __device__ __forceinline__ void add(float (&d)[N / 2], const u32 (&a)[4], u64 b) {                \
      asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.f16.f16 {" LIST "}, " REGISTERS ", " DESC \
                   ", 1, 1, 1, 1;"                                                                           \
                   : BIND(d)                                                                                 \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));                                    \
    }                                                                                                        \
  };

DGX_WGMMA_ROWS(32, DGX_LIST_16, DGX_BIND_16, "{%16, %17, %18, %19}", "%20")
DGX_WGMMA_ROWS(64, DGX_LIST_32, DGX_BIND_32, "{%32, %33, %34, %35}", "%36")
DGX_WGMMA_ROWS(128, DGX_LIST_64, DGX_BIND_64, "{%64, %65, %66, %67}", "%68")

#undef DGX_WGMMA_ROWS

}  // namespace dgx::ptx
