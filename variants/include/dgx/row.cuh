// Rows of 16-bit numbers in the registers of a CTA, or of the CTAs of a cluster: read once,
// in vectors of eight that neighbouring threads take in turn.
#pragma once
#include <dgx/ptx/cluster.cuh>
#include <dgx/ptx/memory.cuh>

namespace dgx {

constexpr u32 VECTOR = 8;

struct Floats {
  using Value = float;
  static __device__ __forceinline__ float beside(float value, u32 lane) { return __shfl_xor_sync(~0u, value, lane); }
};

struct Sum : Floats {
  static __device__ __forceinline__ float nothing() { return 0.0f; }
  static __device__ __forceinline__ float of(float a, float b) { return a + b; }
};

// NaN wins.
struct Maximum : Floats {
  static __device__ __forceinline__ float nothing() { return __int_as_float(0xFF800000); }
  static __device__ __forceinline__ float of(float a, float b) {
    float d;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b));
    return d;
  }
};

template <typename Op>
__device__ __forceinline__ typename Op::Value reduce_warp(typename Op::Value value) {
#pragma unroll
  for (u32 lane = 16; lane > 0; lane /= 2) value = Op::of(value, Op::beside(value, lane));
  return value;
}

// Over the warps of a cluster of Ctas CTAs; each brings the value of its lanes. `slots` is shared
// memory of its own for each reduction of a row, one slot for each warp of the cluster.
template <typename Op, u32 Threads, u32 Ctas>
__device__ __forceinline__ typename Op::Value reduce_warps(typename Op::Value value,
                                                           typename Op::Value (&slots)[Threads / 32 * Ctas]) {
  constexpr u32 WARPS = Threads / 32, ALL = WARPS * Ctas;
  if constexpr (ALL == 1) return value;
  const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if constexpr (Ctas == 1) {
    if (lane == 0) slots[warp] = value;
    __syncthreads();
  } else {
    const u32 slot = ptx::shared_address(&slots[ptx::cluster_rank() * WARPS + warp]);
    if (lane < Ctas) {
      const u32* words = reinterpret_cast<const u32*>(&value);
#pragma unroll
      for (u32 i = 0; i < sizeof(value) / 4; ++i)
        asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(ptx::remote_address(slot, lane) + 4 * i), "r"(words[i])
                     : "memory");
    }
    ptx::cluster_arrive();
    ptx::cluster_wait();
  }
  auto all = Op::nothing();
#pragma unroll
  for (u32 i = 0; i < ALL; i += 32)
    if (i + lane < ALL) all = Op::of(all, slots[i + lane]);
  return reduce_warp<Op>(all);
}

template <typename Op, u32 Threads, u32 Ctas>
__device__ __forceinline__ typename Op::Value reduce_row(typename Op::Value value,
                                                         typename Op::Value (&slots)[Threads / 32 * Ctas]) {
  return reduce_warps<Op, Threads, Ctas>(reduce_warp<Op>(value), slots);
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
  __device__ __forceinline__ uint4 load(const void* rows, u32 row, u32 i, u32 fill) const {
    const auto* from = static_cast<const uint4*>(rows) + u64(row) * (Columns / VECTOR);
    // Beyond L2, 2 % faster than without a policy, and 5 % faster than past L1.
    return exists(i) ? ptx::load_global_v4(from + place(i), ptx::evict_last()) : uint4{fill, fill, fill, fill};
  }

  __device__ __forceinline__ void load(uint4 (&to)[Vectors], const void* rows, u32 row, u32 fill) const {
#pragma unroll
    for (u32 i = 0; i < Vectors; ++i) to[i] = load(rows, row, i, fill);
  }

  __device__ __forceinline__ void store(void* rows, u32 row, u32 i, uint4 vector) const {
    auto* to = static_cast<uint4*>(rows) + u64(row) * (Columns / VECTOR);
    if (exists(i)) ptx::store_global_v4(to + place(i), vector);
  }
};

}  // namespace dgx
