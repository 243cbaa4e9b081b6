// Fences, named barriers and what steers a warp's life.
#pragma once
#include <dgx/stamp.cuh>

namespace dgx::ptx {

// Ordinary stores to shared memory become visible to wgmma and TMA. Every
// writing thread executes it, before the barrier that hands the data over.
__device__ __forceinline__ void fence_proxy_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// The same for global memory that a later TMA load will read.
__device__ __forceinline__ void fence_proxy_async_global() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

// Barrier 0 is __syncthreads; a kernel numbers its own from 1.
template <int Barrier, int Threads>
__device__ __forceinline__ void named_sync() {
  static_assert(Barrier > 0 && Barrier < 16 && Threads % 32 == 0);
  DGX_STAMP_WAIT(barrier);
  asm volatile("bar.sync %0, %1;" ::"n"(Barrier), "n"(Threads) : "memory");
}

template <int Threads>
__device__ __forceinline__ void named_sync(u32 barrier) {
  DGX_STAMP_WAIT(barrier);
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(Threads) : "memory");
}

template <int Threads>
__device__ __forceinline__ void named_arrive(u32 barrier) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(Threads) : "memory");
}

// Registers move between warpgroups; every warp of the group executes it.
template <int Registers>
__device__ __forceinline__ void registers_grow() {
  static_assert(Registers % 8 == 0 && Registers >= 24 && Registers <= 256);
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

template <int Registers>
__device__ __forceinline__ void registers_shrink() {
  static_assert(Registers % 8 == 0 && Registers >= 24 && Registers <= 256);
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}

// Programmatic dependent launch: wait until the launch before this one has
// finished and its memory is visible; let the next one start early.
__device__ __forceinline__ void wait_for_previous_launch() {
  DGX_STAMP_WAIT(launch);
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
__device__ __forceinline__ void allow_next_launch() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

}  // namespace dgx::ptx
