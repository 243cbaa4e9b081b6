// Shared and global memory, one instruction each. Shared memory is named by
// its 32-bit address throughout: descriptors, TMA and mbarriers want it so.
#pragma once
#include <dgx/abi.cuh>

namespace dgx::ptx {

__device__ __forceinline__ u32 shared_address(const void* pointer) {
  return static_cast<u32>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ u32 load_shared_u32(u32 address) {
  u32 value;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
  return value;
}

__device__ __forceinline__ u32 load_shared_u16(u32 address) {
  u16 value;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(value) : "r"(address) : "memory");
  return value;
}

__device__ __forceinline__ uint4 load_shared_v4(u32 address) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

__device__ __forceinline__ void store_shared_u32(u32 address, u32 value) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

__device__ __forceinline__ void store_shared_v2_f32(u32 address, float x, float y) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(x), "f"(y) : "memory");
}

__device__ __forceinline__ float2 load_shared_v2_f32(u32 address) {
  float2 v;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(address) : "memory");
  return v;
}

__device__ __forceinline__ float4 load_shared_v4_f32(u32 address) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

__device__ __forceinline__ void store_shared_v4(u32 address, uint4 v) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}

__device__ __forceinline__ uint4 load_global_v4(const void* pointer) {
  uint4 v;
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(pointer));
  return v;
}

// L2 gives up other lines first, such as those that were written.
__device__ __forceinline__ u64 evict_last() {
  u64 policy;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

__device__ __forceinline__ uint4 load_global_v4(const void* pointer, u64 policy) {
  uint4 v;
  asm volatile("ld.global.nc.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(pointer), "l"(policy));
  return v;
}

// What nobody reads again: past L1, and L2 is asked for the line beside it.
__device__ __forceinline__ uint4 load_global_once_v4(const void* pointer) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(pointer));
  return v;
}

__device__ __forceinline__ u32 load_global_u16(const void* pointer) {
  u16 value;
  asm volatile("ld.global.nc.u16 %0, [%1];" : "=h"(value) : "l"(pointer));
  return value;
}

__device__ __forceinline__ u32 load_global_u32(const void* pointer) {
  u32 value;
  asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(value) : "l"(pointer));
  return value;
}

__device__ __forceinline__ void store_global_u32(void* pointer, u32 value) {
  asm volatile("st.global.u32 [%0], %1;" ::"l"(pointer), "r"(value) : "memory");
}

__device__ __forceinline__ void store_global_v2_f32(void* pointer, float x, float y) {
  asm volatile("st.global.v2.f32 [%0], {%1, %2};" ::"l"(pointer), "f"(x), "f"(y) : "memory");
}

// What another CTA wrote: not by way of the read-only cache.
__device__ __forceinline__ float4 load_global_v4_f32(const void* pointer) {
  float4 v;
  asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "l"(pointer)
               : "memory");
  return v;
}

__device__ __forceinline__ void store_global_v4_f32(void* pointer, float4 v) {
  asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(pointer), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w)
               : "memory");
}

// Hands over to other CTAs what was written before, by this thread or by others that it met.
__device__ __forceinline__ void store_release(u32* pointer, u32 value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(pointer), "r"(value) : "memory");
}

__device__ __forceinline__ void wait_until_set(const u32* pointer) {
  u32 value;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(pointer) : "memory");
  } while (value == 0);
}

// What add_release counts, once it is as much.
__device__ __forceinline__ void wait_until_reached(const u32* pointer, u32 count) {
  u32 value;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(pointer) : "memory");
  } while (value < count);
}

// Counts what was written before, by this thread or by others that it met.
__device__ __forceinline__ void add_release(u32* pointer, u32 value) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(pointer), "r"(value) : "memory");
}

__device__ __forceinline__ void prefetch_l2(const void* pointer) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(pointer));
}

__device__ __forceinline__ void store_global_v4(void* pointer, uint4 v) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(pointer), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}

// 32 bytes, a whole sector: sm_100 and later.
__device__ __forceinline__ void store_global_v8(void* pointer, const u32 (&v)[8]) {
  asm volatile("st.global.v8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::"l"(pointer), "r"(v[0]), "r"(v[1]),
               "r"(v[2]), "r"(v[3]), "r"(v[4]), "r"(v[5]), "r"(v[6]), "r"(v[7])
               : "memory");
}

__device__ __forceinline__ void store_global_v8(void* pointer, const float* v) {
  asm volatile("st.global.v8.f32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8};" ::"l"(pointer), "f"(v[0]), "f"(v[1]),
               "f"(v[2]), "f"(v[3]), "f"(v[4]), "f"(v[5]), "f"(v[6]), "f"(v[7])
               : "memory");
}

}  // namespace dgx::ptx
