// The tensor core of Blackwell: block-scaled NVFP4 multiplications out of
// shared memory into tensor memory, and the copies that bring it the scales.
// One thread issues them; every active thread that gets here issues its own.
// They finish in the background: a commit tells a barrier when.
#pragma once
#include <dgx/ptx/mbarrier.cuh>
#include <dgx/ptx/tmem.cuh>

namespace dgx::ptx {

// Rows of 128 bytes under the 128-byte swizzle, K along the row; tiles begin
// at multiples of 1024 bytes. Each K64 further is 32 bytes, +2 here.
__device__ __forceinline__ u64 operand_descriptor(u32 address) {
  constexpr u64 EIGHT_ROWS = u64(1024 >> 4) << 32, VERSION = u64(1) << 46, SWIZZLE_128B = u64(2) << 61;
  return EIGHT_ROWS | VERSION | SWIZZLE_128B | (address & 0x3FFFF) >> 4;
}
constexpr u32 OPERAND_K64 = 32 >> 4;

// An atom of scales: 32 rows of 16 bytes as they lie.
__device__ __forceinline__ u64 atom_descriptor(u32 address) {
  constexpr u64 EIGHT_ROWS = u64(128 >> 4) << 32, VERSION = u64(1) << 46;
  return EIGHT_ROWS | VERSION | (address & 0x3FFFF) >> 4;
}

// M x N of e2m1 by e2m1 into fp32, a scale in ue4m3 for every sixteen.
__device__ constexpr u32 nvfp4_instruction(u32 m, u32 n) {
  constexpr u32 E2M1_A = 1 << 7, E2M1_B = 1 << 10;
  return E2M1_A | E2M1_B | n >> 3 << 17 | m >> 7 << 27;
}

// Whether the tensor core keeps its A for the MMA that follows with the same.
enum class ReuseA { NONE, KEEP, LAST };

#define DGX_MMA(GROUP, COLLECTOR)                                                                              \
  asm volatile(                                                                                                \
      "{\n"                                                                                                    \
      ".reg .pred add;\n"                                                                                      \
      "setp.ne.u32 add, %6, 0;\n"                                                                              \
      "tcgen05.mma.cta_group::" GROUP ".kind::mxf4nvf4.block_scale.scale_vec::4X" COLLECTOR                    \
      " [%0], %1, %2, %3, [%4], [%5], add;\n"                                                                  \
      "}" ::"r"(d),                                                                                            \
      "l"(a), "l"(b), "r"(instruction), "r"(a_scales), "r"(b_scales), "r"(u32(add))                            \
      : "memory")

// d (+)= A * B^T over K = 64. In a pair: a thread of the even CTA, for both.
template <CtaGroup Group = CtaGroup::ONE, ReuseA Reuse = ReuseA::NONE>
__device__ __forceinline__ void mma_nvfp4(u32 d, u64 a, u64 b, u32 instruction, u32 a_scales, u32 b_scales, bool add) {
  if constexpr (Group == CtaGroup::ONE) {
    if constexpr (Reuse == ReuseA::NONE) DGX_MMA("1", "");
    if constexpr (Reuse == ReuseA::KEEP) DGX_MMA("1", ".collector::a::fill");
    if constexpr (Reuse == ReuseA::LAST) DGX_MMA("1", ".collector::a::lastuse");
  } else {
    if constexpr (Reuse == ReuseA::NONE) DGX_MMA("2", "");
    if constexpr (Reuse == ReuseA::KEEP) DGX_MMA("2", ".collector::a::fill");
    if constexpr (Reuse == ReuseA::LAST) DGX_MMA("2", ".collector::a::lastuse");
  }
}
#undef DGX_MMA

// An atom from shared memory to four columns, the same in all four quarters of
// the lanes. MMAs issued after it find it there. In a pair each CTA copies its
// own.
template <CtaGroup Group = CtaGroup::ONE>
__device__ __forceinline__ void copy_atom(u32 to, u64 from) {
  if constexpr (Group == CtaGroup::ONE) {
    asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(to), "l"(from) : "memory");
  } else {
    asm volatile("tcgen05.cp.cta_group::2.32x128b.warpx4 [%0], %1;" ::"r"(to), "l"(from) : "memory");
  }
}

// The barrier is arrived at once when all this thread has issued so far is done.
__device__ __forceinline__ void mma_commit(u64& barrier) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
                   shared_address(&barrier))
               : "memory");
}

// The same for the barrier at this place in both CTAs of a pair.
__device__ __forceinline__ void mma_commit_pair(u64& barrier) {
  asm volatile(
      "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(
          shared_address(&barrier)),
      "h"(u16(0b11))
      : "memory");
}

// Around the barriers that order one thread's tensor instructions with
// another's.
__device__ __forceinline__ void tensor_fence_before() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
__device__ __forceinline__ void tensor_fence_after() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }

// Waits for a barrier that a commit tells of products; they may be read then.
__device__ __forceinline__ void mma_wait(u64& barrier, u32 parity) {
  {
    DGX_STAMP_WAIT(products);
    mbarrier_wait_unstamped(barrier, parity);
  }
  tensor_fence_after();
}

}  // namespace dgx::ptx
