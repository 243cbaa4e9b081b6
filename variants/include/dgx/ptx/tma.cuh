// The tensor memory accelerator: boxes by tensor map, and plain bulk copies.
#pragma once
#include <dgx/ptx/memory.cuh>
#include <dgx/stamp.cuh>

namespace dgx::ptx {

// How long a line should live in L2 (encodings of createpolicy).
constexpr u64 EVICT_FIRST = 0x12F0000000000000ull;
constexpr u64 EVICT_LAST = 0x14F0000000000000ull;

__device__ __forceinline__ void tma_prefetch_map(const TensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// Box at column x, row y; rows and columns outside the tensor arrive as zeros
// and still count towards the barrier's bytes.
__device__ __forceinline__ void tma_load_2d(u32 to, const TensorMap* map, u32 x, u32 y, u64& full) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
          "r"(to),
      "l"(map), "r"(x), "r"(y), "r"(shared_address(&full))
      : "memory");
}

__device__ __forceinline__ void tma_load_2d(u32 to, const TensorMap* map, u32 x, u32 y, u64& full, u64 policy) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(shared_address(&full)), "l"(policy)
      : "memory");
}

__device__ __forceinline__ void tma_load_3d(u32 to, const TensorMap* map, u32 x, u32 y, u32 z, u64& full, u64 policy) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(shared_address(&full)), "l"(policy)
      : "memory");
}

__device__ __forceinline__ void tma_load_4d(u32 to, const TensorMap* map, u32 x, u32 y, u32 z, u32 w, u64& full,
                                            u64 policy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1, {%2, %3, %4, %5}], [%6], %7;" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(shared_address(&full)), "l"(policy)
      : "memory");
}

// For both CTAs of a pair: the box lands here, its bytes are counted by the
// barrier at that place in the even CTA.
__device__ __forceinline__ u32 even_cta(u32 address) { return address & 0xFEFFFFFF; }

__device__ __forceinline__ void tma_load_2d_pair(u32 to, const TensorMap* map, u32 x, u32 y, u64& full) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2"
      " [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(even_cta(shared_address(&full)))
      : "memory");
}

__device__ __forceinline__ void tma_load_3d_pair(u32 to, const TensorMap* map, u32 x, u32 y, u32 z, u64& full) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2"
      " [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(even_cta(shared_address(&full)))
      : "memory");
}

// The same box into both CTAs, at the same place.
__device__ __forceinline__ void tma_load_3d_to_pair(u32 to, const TensorMap* map, u32 x, u32 y, u32 z, u64& full) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
      ".cta_group::2 [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(even_cta(shared_address(&full))), "h"(u16(0b11))
      : "memory");
}

// The box into L2 alone.
__device__ __forceinline__ void tma_prefetch_2d(const TensorMap* map, u32 x, u32 y) {
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];" ::"l"(map), "r"(x), "r"(y)
               : "memory");
}

__device__ __forceinline__ void tma_prefetch_3d(const TensorMap* map, u32 x, u32 y, u32 z) {
  asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global.tile [%0, {%1, %2, %3}];" ::"l"(map), "r"(x), "r"(y), "r"(z)
               : "memory");
}

// Contiguous bytes; address and size are multiples of 16.
__device__ __forceinline__ void bulk_load(u32 to, const void* from, u32 bytes, u64& full) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(shared_address(&full))
               : "memory");
}

// Rows and columns outside the tensor are not written.
__device__ __forceinline__ void tma_store_2d(const TensorMap* map, u32 x, u32 y, u32 from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(x),
               "r"(y), "r"(from)
               : "memory");
}

__device__ __forceinline__ void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Until at most Pending of this thread's stores still read shared memory.
template <int Pending>
__device__ __forceinline__ void tma_store_wait_read() {
  DGX_STAMP_WAIT(copies);
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Pending) : "memory");
}

}  // namespace dgx::ptx
