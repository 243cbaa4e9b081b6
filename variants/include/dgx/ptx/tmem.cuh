// Tensor memory: 128 lanes of 512 columns beside the tensor core. An address
// has the lane in its upper half and the column in its lower.
#pragma once
#include <dgx/ptx/memory.cuh>

namespace dgx::ptx {

// The CTAs whose tensor cores work together: one, or a pair of a cluster.
enum class CtaGroup { ONE, PAIR };

// Columns for this CTA (in a pair: the same in both); the address is written to
// shared memory, for all to read after the next barrier. The whole warp
// executes it, in a pair one warp of each CTA: lanes that took a branch before
// are waited for.
template <int Columns, CtaGroup Group = CtaGroup::ONE>
__device__ __forceinline__ void tmem_allocate(u32& address) {
  static_assert(Columns >= 32 && Columns <= 512 && (Columns & (Columns - 1)) == 0);
  __syncwarp();
  if constexpr (Group == CtaGroup::ONE) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(&address)),
                 "n"(Columns)
                 : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
  } else {
    asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(&address)),
                 "n"(Columns)
                 : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;");
  }
}

// Before the CTA ends, and after everybody is done with the columns.
template <int Columns, CtaGroup Group = CtaGroup::ONE>
__device__ __forceinline__ void tmem_free(u32 address) {
  __syncwarp();
  if constexpr (Group == CtaGroup::ONE) {
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address), "n"(Columns) : "memory");
  } else {
    asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(address), "n"(Columns) : "memory");
  }
}

// A warp reads the 32 lanes of its own quarter and no others: warp w of the
// CTA those from 32 * (w % 4).
__device__ __forceinline__ u32 tmem_quarter(u32 address) { return address + (threadIdx.x / 32 % 4 * 32 << 16); }

// Sixteen columns of the lane that is this thread's. The registers hold them
// only after tmem_wait.
__device__ __forceinline__ void tmem_load(float (&d)[16], u32 address) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x16.b32"
      " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, [%16];"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7]), "=f"(d[8]),
        "=f"(d[9]), "=f"(d[10]), "=f"(d[11]), "=f"(d[12]), "=f"(d[13]), "=f"(d[14]), "=f"(d[15])
      : "r"(address)
      : "memory");
}

// Eight of them.
__device__ __forceinline__ void tmem_load(float (&d)[8], u32 address) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
               : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7])
               : "r"(address)
               : "memory");
}

__device__ __forceinline__ void tmem_wait_loads() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }

// Until every load of this warp is there. The arrays are named so that the
// compiler uses none of their elements before.
template <int N>
__device__ __forceinline__ void tmem_wait(float (&d)[N]) {
  tmem_wait_loads();
#pragma unroll
  for (float& x : d) asm volatile("" : "+f"(x)::"memory");
}

template <int N>
__device__ __forceinline__ void tmem_wait(float (&d)[N], float (&e)[N]) {
  tmem_wait(d);
#pragma unroll
  for (float& x : e) asm volatile("" : "+f"(x)::"memory");
}

}  // namespace dgx::ptx
