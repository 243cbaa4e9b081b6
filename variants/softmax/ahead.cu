/*dgx
operator = "softmax"
summary  = "A row is in a CTA's registers while the next one comes to its shared memory"
parent   = "one-read"
claim    = { geomean = 1.1, over = "two-reads", why = "no second read, no cluster for long rows, and the bus does not wait for sums" }
arch     = "sm_90a"
requires = ["n % 8 == 0", "n <= 65536"]

# Up to 1024 threads of an SM keep 128 KiB of rows, and as much is on its way.
[const]
COLUMNS = "n"
VECTORS = 8                                        # of eight elements, a thread's
THREADS = "align(cdiv(n, 8 * VECTORS), 32)"
PER_SM  = "min(1024 / THREADS, 16)"
AT_ONCE = "min(m, sms * PER_SM)"                   # rows, a CTA each

[[launch]]
kernel = "softmax"
grid   = "AT_ONCE"
block  = "THREADS"
smem   = "2 * n"
*/
#include <dgx/ptx/mbarrier.cuh>
#include <dgx/ptx/tma.cuh>
#include <dgx/shared.cuh>
#include "part.cuh"
using namespace dgx;

constexpr u32 ROW_BYTES = 2 * COLUMNS;

extern "C" __global__ void __launch_bounds__(THREADS, PER_SM) softmax(const __grid_constant__ Args args) {
  __shared__ float slots[2][THREADS / 32];
  __shared__ u64 full;
  DGX_STAMP_KERNEL(args, softmax);
  const Row<COLUMNS, 1, THREADS, VECTORS> place;
  const Group& group = args.near[0];
  const auto fetch = [&](u32 row) {
    ptx::mbarrier_arrive_expect_tx(full, ROW_BYTES);
    ptx::bulk_load(ptx::shared_address(dynamic_shared), reinterpret_cast<const u8*>(group.x) + u64(row) * ROW_BYTES,
                   ROW_BYTES, full);
  };
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(full, 1);
    ptx::mbarrier_init_fence();
    fetch(blockIdx.x);
  }
  __syncthreads();
  u32 parity = 0;
  for (u32 row = blockIdx.x; row < group.m; row += AT_ONCE, parity ^= 1) {
    uint4 raw[VECTORS];
    ptx::mbarrier_wait(full, parity);
    place.take(raw, reinterpret_cast<const uint4*>(dynamic_shared), MINUS_INFINITY);
    __syncthreads();
    if (threadIdx.x == 0 && row + AT_ONCE < group.m) fetch(row + AT_ONCE);
    float top = reduce_row<Maximum, THREADS, 1>(maximum_of(raw), slots[0]) * LOG2_E;
    float sum = 0.0f;
#pragma unroll
    for (u32 i = 0; i < VECTORS; ++i) {
      float e[VECTOR];
      exponentials(e, raw[i], top);
#pragma unroll
      for (u32 j = 0; j < VECTOR; ++j) sum += e[j];
    }
    const float scale = 1.0f / reduce_row<Sum, THREADS, 1>(sum, slots[1]);
    asm volatile("" : "+f"(top));  // or the compiler keeps them, and spills
#pragma unroll
    for (u32 i = 0; i < VECTORS; ++i) {
      float e[VECTOR];
      exponentials(e, raw[i], top);
      place.store(group.y, row, i, weights(e, scale));
    }
  }
}
