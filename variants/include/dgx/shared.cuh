// The launch's dynamic shared memory, as the struct a kernel lays over it.
#pragma once
#include <dgx/abi.cuh>

namespace dgx {

// Swizzled tiles repeat every 1024 bytes of absolute address.
alignas(1024) extern __shared__ u8 dynamic_shared[];

template <typename Shared>
__device__ __forceinline__ Shared& shared_memory() {
  static_assert(alignof(Shared) <= 1024);
  return *reinterpret_cast<Shared*>(dynamic_shared);
}

}  // namespace dgx
