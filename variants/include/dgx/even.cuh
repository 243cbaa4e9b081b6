// Even shares: CTAs divide the bands of all tiles among themselves, so that none is idle while
// others have the last tiles. A share begins and ends within a tile. Who has a tile's first
// band makes its result; those who have the rest leave their sums in global memory.
//
// Shares go in descending order of CTAs: who waits for sums waits for a CTA that was started
// before, and that does not wait itself until it has left them.
#pragma once
#include <dgx/abi.cuh>
#include <dgx/ptx/barrier.cuh>
#include <dgx/ptx/memory.cuh>

namespace dgx {

struct EvenShares {
  u32 units, rank;

  __device__ __forceinline__ explicit EvenShares(u32 units) : units(units), rank(gridDim.x - 1 - blockIdx.x) {}
  __device__ __forceinline__ u32 begin(u32 of) const { return units * of / gridDim.x; }
};

// What CTAs leave, by their rank or by the number of the part: a flag for each warpgroup, zero
// between calls, and Most floats a thread.
template <u32 Warpgroups, u32 Most>
struct LeftSums {
  static constexpr u32 WIDTH = 128 * Warpgroups;
  static constexpr u32 FIRST_BARRIER = 4;  // behind those of the warpgroups
  static constexpr u32 FREE_BARRIER = FIRST_BARRIER + Warpgroups;
  float4* sums;
  u32* flags;

  __device__ __forceinline__ float4* at(u32 rank) const { return sums + rank * (Most / 4 * WIDTH) + threadIdx.x; }
  __device__ __forceinline__ u32* flag(u32 rank) const { return flags + rank * Warpgroups + threadIdx.x / 128; }

  template <int Count>
  __device__ __forceinline__ void leave(const float (&d)[Count], u32 rank) const {
    static_assert(Count <= Most && Count % 4 == 0);
#pragma unroll
    for (int i = 0; i < Count; i += 4)
      ptx::store_global_v4_f32(at(rank) + i / 4 * WIDTH, {d[i], d[i + 1], d[i + 2], d[i + 3]});
    ptx::named_arrive<160>(threadIdx.x / 128 + FIRST_BARRIER);
  }

  // By a warp with nothing else to do: to hand over takes as long as the stores do.
  __device__ __forceinline__ void hand_over(u32 rank) const {
#pragma unroll
    for (u32 group = 0; group < Warpgroups; ++group) {
      ptx::named_sync<160>(group + FIRST_BARRIER);
      if (threadIdx.x % 32 == 0) ptx::store_release(flags + rank * Warpgroups + group, 1);
    }
  }

  // Who leaves more than once waits until the warp that hands over is back.
  __device__ __forceinline__ void wait_for_hand() const { ptx::named_sync<160>(threadIdx.x / 128 + FREE_BARRIER); }
  __device__ __forceinline__ void lend_hand() const {
#pragma unroll
    for (u32 group = 0; group < Warpgroups; ++group) ptx::named_arrive<160>(group + FREE_BARRIER);
  }

  template <int Count>
  __device__ __forceinline__ void add(float (&d)[Count], u32 rank) const {
    ptx::wait_until_set(flag(rank));
#pragma unroll
    for (int i = 0; i < Count; i += 4) {
      const float4 v = ptx::load_global_v4_f32(at(rank) + i / 4 * WIDTH);
      d[i] += v.x, d[i + 1] += v.y, d[i + 2] += v.z, d[i + 3] += v.w;
    }
    ptx::named_sync<128>(threadIdx.x / 128 + 1);
    if (threadIdx.x % 128 == 0) ptx::store_global_u32(flag(rank), 0);
  }
};

}  // namespace dgx
