// CTAs of a cluster and each other's shared memory.
#pragma once
#include <dgx/ptx/memory.cuh>
#include <dgx/stamp.cuh>

namespace dgx::ptx {

__device__ __forceinline__ u32 cluster_rank() {
  u32 rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.aligned;" ::: "memory"); }
__device__ __forceinline__ void cluster_wait() {
  DGX_STAMP_WAIT(barrier);
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

// The address that names the same place in another CTA of the cluster.
__device__ __forceinline__ u32 remote_address(u32 address, u32 rank) {
  u32 remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address), "r"(rank));
  return remote;
}

// Sixteen bytes into another CTA, counted by a barrier there.
__device__ __forceinline__ void store_async(u32 to, float a, float b, float c, float d, u32 barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to), "f"(a),
      "f"(b), "f"(c), "f"(d), "r"(barrier)
      : "memory");
}

}  // namespace dgx::ptx
