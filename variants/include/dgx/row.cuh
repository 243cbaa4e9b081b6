// Rows of 16-bit numbers in the registers of a CTA, or of the CTAs of a cluster: read once,
// in vectors of eight that neighbouring threads take in turn.
#pragma once
#include <dgx/ptx/cluster.cuh>
#include <dgx/ptx/memory.cuh>

namespace dgx {

constexpr u32 VECTOR = 8;

struct Sum {
  static __device__ __forceinline__ float nothing() { return 0.0f; }
  static __device__ __forceinline__ float of(float a, float b) { return a + b; }
};

// NaN wins.
struct Maximum {
  static __device__ __forceinline__ float nothing() { return __int_as_float(0xFF800000); }
  static __device__ __forceinline__ float of(float a, float b) {
    float d;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b));
    return d;
  }
};

template <typename Op>
__device__ __forceinline__ float reduce_warp(float value) {
#pragma unroll
  for (u32 lane = 16; lane > 0; lane /= 2) value = Op::of(value, __shfl_xor_sync(~0u, value, lane));
  return value;
}

// Over all threads of a cluster of Ctas CTAs. `slots` is shared memory of its own for each
// reduction of a row, one slot for each warp of the cluster.
template <typename Op, u32 Threads, u32 Ctas>
__device__ __forceinline__ float reduce_row(float value, float (&slots)[Threads / 32 * Ctas]) {
  constexpr u32 WARPS = Threads / 32, ALL = WARPS * Ctas;
  value = reduce_warp<Op>(value);
  if constexpr (ALL == 1) return value;
  const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if constexpr (Ctas == 1) {
    if (lane == 0) slots[warp] = value;
    __syncthreads();
  } else {
    const u32 slot = ptx::shared_address(&slots[ptx::cluster_rank() * WARPS + warp]);
    if (lane < Ctas)
      asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(ptx::remote_address(slot, lane)), "f"(value) : "memory");
    ptx::cluster_arrive();
    ptx::cluster_wait();
  }
  float all = Op::nothing();
#pragma unroll
  for (u32 i = 0; i < ALL; i += 32)
    if (i + lane < ALL) all = Op::of(all, slots[i + lane]);
  return reduce_warp<Op>(all);
}

template <u32 Vectors>
__device__ __forceinline__ void copy(uint4 (&to)[Vectors], const uint4 (&from)[Vectors]) {
#pragma unroll
  for (u32 i = 0; i < Vectors; ++i) to[i] = from[i];
}

// A thread's vectors of the rows that its cluster works on.
template <u32 Columns, u32 Ctas, u32 Threads, u32 Vectors>
struct Row {
  u32 first;

  // Every CTA of a cluster says that it runs; begun() is for the others, before they write to it.
  __device__ __forceinline__ Row() : first((Ctas == 1 ? 0 : ptx::cluster_rank() * Threads) + threadIdx.x) {
    if constexpr (Ctas > 1) ptx::cluster_arrive();
  }

  __device__ __forceinline__ void begun() const {
    if constexpr (Ctas > 1) ptx::cluster_wait();
  }

  __device__ __forceinline__ u32 place(u32 i) const { return first + i * Threads * Ctas; }
  __device__ __forceinline__ bool exists(u32 i) const {
    return Columns == VECTOR * Threads * Ctas * Vectors || place(i) < Columns / VECTOR;
  }

  // What the row lacks of whole vectors for all threads is `fill`.
  __device__ __forceinline__ void load(uint4 (&to)[Vectors], const void* rows, u32 row, u32 fill) const {
    const auto* from = static_cast<const uint4*>(rows) + u64(row) * (Columns / VECTOR);
#pragma unroll
    for (u32 i = 0; i < Vectors; ++i) {
      to[i] = {fill, fill, fill, fill};
      if (exists(i)) to[i] = ptx::load_global_once_v4(from + place(i));
    }
  }

  // A row that all clusters read.
  __device__ __forceinline__ void load_again(uint4 (&to)[Vectors], const void* row) const {
#pragma unroll
    for (u32 i = 0; i < Vectors; ++i) {
      to[i] = {};
      if (exists(i)) to[i] = ptx::load_global_v4(static_cast<const uint4*>(row) + place(i));
    }
  }

  __device__ __forceinline__ void store(void* rows, u32 row, u32 i, uint4 vector) const {
    auto* to = static_cast<uint4*>(rows) + u64(row) * (Columns / VECTOR);
    if (exists(i)) ptx::store_global_v4(to + place(i), vector);
  }
};

}  // namespace dgx
