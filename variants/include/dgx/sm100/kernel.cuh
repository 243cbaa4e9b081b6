// What a CTA does before and after its work: barriers and tensor memory. Warp
// 0 asks for the columns and gives them back.
#pragma once
#include <dgx/sm100/epilogue.cuh>
#include <dgx/sm100/mainloop.cuh>
#include <dgx/shared.cuh>

namespace dgx {

// Orders every thread's tensor instructions before the barrier before every
// thread's after it.
__device__ __forceinline__ void sync_tensor() {
  ptx::tensor_fence_before();
  __syncthreads();
  ptx::tensor_fence_after();
}

// All threads: barriers ready, columns allocated.
template <typename Shared>
__device__ __forceinline__ typename Shared::Tensor open(Shared& shared) {
  if (threadIdx.x == 0) init_barriers(shared);
  if (threadIdx.x < 32) ptx::tmem_allocate<Shared::Tensor::ALLOCATED>(shared.columns);
  sync_tensor();
  return {shared.columns};
}

// All threads, when they have read what they want of tensor memory.
template <typename Tensor>
__device__ __forceinline__ void close(const Tensor& tmem) {
  sync_tensor();
  if (threadIdx.x < 32) ptx::tmem_free<Tensor::ALLOCATED>(tmem.base);
}

// All threads, until the MMAs of the turn-th tile are done.
template <typename Shared>
__device__ __forceinline__ void wait_for_products(Shared& shared, u32 turn = 0) {
  ptx::mma_wait(shared.done, turn % 2);
}

}  // namespace dgx
