// mbarriers: 64-bit words in shared memory that count arrivals and bytes.
#pragma once
#include <dgx/ptx/memory.cuh>
#include <dgx/stamp.cuh>

namespace dgx::ptx {

__device__ __forceinline__ void mbarrier_init(u64& barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(arrivals) : "memory");
}

// Makes freshly initialised barriers known to the async proxy (TMA).
__device__ __forceinline__ void mbarrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void mbarrier_arrive(u64& barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&barrier)) : "memory");
}

// Announces the bytes TMA will bring, then arrives.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(u64& barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ bool mbarrier_try_wait(u64& barrier, u32 parity) {
  u32 done;
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
      "selp.u32 %0, 1, 0, done;\n"
      "}"
      : "=r"(done)
      : "r"(shared_address(&barrier)), "r"(parity)
      : "memory");
  return done != 0;
}

__device__ __forceinline__ void mbarrier_wait_unstamped(u64& barrier, u32 parity) {
  while (!mbarrier_try_wait(barrier, parity)) {
  }
}

// Returns once the phase of this parity has completed. A fresh barrier counts
// as having completed parity 1, so a producer's first wait on "empty" passes.
__device__ __forceinline__ void mbarrier_wait(u64& barrier, u32 parity) {
  DGX_STAMP_WAIT(phase);
  mbarrier_wait_unstamped(barrier, parity);
}

}  // namespace dgx::ptx
