// 8 x 8 matrices of 16-bit elements between registers and shared memory.
#pragma once
#include <dgx/abi.cuh>

namespace dgx::ptx {

// Lane l names the row l % 8 of matrix l / 8; a thread's pair is row lane / 4,
// columns 2 * (lane % 4) and + 1.
__device__ __forceinline__ void store_matrix_x4(u32 address, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b),
               "r"(c), "r"(d)
               : "memory");
}

// Two matrices; lanes 0 to 15 name their rows.
__device__ __forceinline__ void store_matrix_x2(u32 address, u32 a, u32 b) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(a), "r"(b) : "memory");
}

// One; lanes 0 to 7 name its rows.
__device__ __forceinline__ void store_matrix_x1(u32 address, u32 a) {
  asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(address), "r"(a) : "memory");
}

// Four, each transposed on the way.
__device__ __forceinline__ void store_matrix_x4_transposed(u32 address, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b),
               "r"(c), "r"(d)
               : "memory");
}

__device__ __forceinline__ void store_matrix_x1_transposed(u32 address, u32 a) {
  asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(address), "r"(a) : "memory");
}

}  // namespace dgx::ptx
