// What every probe has: clock reads, and where it reports them.
//
//   out[2 w], out[2 w + 1]            cycles at the start and end of warp w of CTA 0
//   out[64 + 2 c], out[64 + 2 c + 1]  nanoseconds at the start and end of CTA c
//
// What is timed lies between the last two clock reads of a warp.
#pragma once
#include <dgx/ptx/memory.cuh>

using namespace dgx;
using namespace dgx::ptx;

#define PROBE extern "C" __global__ void
#define ARGUMENTS u64 *out, const u8 *data, u8 *scratch, u32 seed

constexpr u32 WARP_STAMPS = 64;

__device__ __forceinline__ u64 cycles() {
  u64 t;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(t)::"memory");
  return t;
}

__device__ __forceinline__ u64 nanos() {
  u64 t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
  return t;
}

__device__ __forceinline__ u32 warp() { return threadIdx.x / 32; }
__device__ __forceinline__ u32 lane() { return threadIdx.x % 32; }

// The clock of the case: dgx defines NANOS where nanoseconds are read.
__device__ __forceinline__ u64 now() {
#ifdef NANOS
  return nanos();
#else
  return cycles();
#endif
}

// By every thread that read the clock; of nanoseconds the first thread's count.
__device__ __forceinline__ void report(u64* out, u64 start, u64 end) {
#ifdef NANOS
  if (threadIdx.x != 0) return;
  u64* at = out + WARP_STAMPS + 2 * blockIdx.x;
#else
  if (blockIdx.x != 0 || lane() != 0) return;
  u64* at = out + 2 * warp();
#endif
  at[0] = start;
  at[1] = end;
}

// A use the compiler cannot do away with; stands before the last clock read, so
// that the value is there by then.
__device__ __forceinline__ void need(u8* scratch, u32 value) {
  if (value == 0x5bd1e995u) store_global_u32(scratch, value);
}

// A chain of products, each of which waits for the one before.
template <u32 Products>
__device__ __forceinline__ u32 pause(u32 value) {
#pragma unroll 16
  for (u32 i = 0; i < Products; ++i) asm volatile("mad.lo.u32 %0, %0, %0, 1;" : "+r"(value));
  return value;
}

// Zero, which only the host knows.
__device__ __forceinline__ u32 nothing(u32 seed) { return seed >> 31; }
