/*probe
question = "How fast does the SM clock run: idle, under tensor load, and where products come in bursts?"

# About 20 us, 200 us and 2 ms of wgmmas on all SMs; `spin` waits as long.
[[case]]
name = "wgmma/{STEPS}"
arch = "sm_90a"
each = { STEPS = [32, 320, 3200] }
define = { FORM = "multiply" }
grid = 132
block = 256
smem = 50176
data = 65536
long = true
[[case]]
name = "zeros/{STEPS}"
arch = "sm_90a"
each = { STEPS = [320] }
define = { FORM = "multiply", MASK = 0 }
grid = 132
block = 256
smem = 50176
data = 65536
long = true
[[case]]
name = "spin/{STEPS}"
each = { STEPS = [32, 320, 3200] }
define = { FORM = "spin" }
grid = 132
block = 256
smem = 50176
data = 65536
long = true

# On some of the SMs; and of numbers with six significant bits, as dequantised ones have.
[[case]]
name = "some/{CTAS}"
arch = "sm_90a"
each = { CTAS = [1, 33, 66, 99] }
define = { FORM = "multiply", STEPS = 320 }
grid = "CTAS"
block = 256
smem = 50176
data = 65536
long = true
[[case]]
name = "six-bits/{CTAS}"
arch = "sm_90a"
each = { CTAS = [1, 33, 66, 99, 132] }
define = { FORM = "multiply", STEPS = 320, MASK = "0x83e083e0u", SET = "0x38003800u" }
grid = "CTAS"
block = 256
smem = 50176
data = 65536
long = true

# On one SM: products of 1024, 2048, 4096 cycles, and pauses, in units of 256, between them.
[[case]]
name = "rest/{MULTIPLIED}/{PAUSED}"
arch = "sm_90a"
each = { MULTIPLIED = [4, 8, 16], PAUSED = [2, 4, 6, 8, 10, 12, 16, 32] }
define = { FORM = "bursts", STEPS = 40, MASK = "0x83e083e0u", SET = "0x38003800u" }
block = 256
smem = 50176
data = 65536
long = true
# On all, which begin together.
[[case]]
name = "rest-all/{MULTIPLIED}/{PAUSED}"
arch = "sm_90a"
each = { MULTIPLIED = [4, 8], PAUSED = [4, 8, 10, 16] }
define = { FORM = "bursts", STEPS = 40, MASK = "0x83e083e0u", SET = "0x38003800u" }
grid = 132
block = 256
smem = 50176
data = 65536
long = true
*/
#include <probe.cuh>
#include <dgx/ptx/barrier.cuh>
#include <dgx/ptx/wgmma.cuh>

#ifndef MASK
#define MASK 0xbfffbfffu
#endif
#ifndef SET
#define SET 0
#endif

// 1024 cycles for two warpgroups.
__device__ __forceinline__ void multiply(float (&d)[128], u64 a, u64 b) {
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < 4; ++k) Wgmma<256>::ss(d, a + 2 * k, b + 2 * k, 1);
  wgmma_commit();
  wgmma_wait<1>();
}

// 64 cycles a turn.
template <int Turns>
__device__ __forceinline__ void pause(float (&d)[128]) {
  u32 x = threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < Turns; ++i) {
#pragma unroll
    for (int j = 0; j < 16; ++j) asm volatile("mad.lo.s32 %0, %0, %0, %0;" : "+r"(x));
  }
  if (x == 77) d[0] = 1;
}

// As long as two warpgroups' multiply.
__device__ __forceinline__ void spin(float (&d)[128], u64, u64) { pause<16>(d); }

#ifdef MULTIPLIED
__device__ __forceinline__ void bursts(float (&d)[128], u64 a, u64 b) {
#pragma unroll 1
  for (int i = 0; i < MULTIPLIED / 4; ++i) multiply(d, a, b);
  wgmma_wait<0>();
  pause<4 * PAUSED>(d);
}
#endif

// Both clocks: the case's own time is their ratio.
PROBE __launch_bounds__(256) probe(ARGUMENTS) {
  extern __shared__ __align__(1024) u8 memory[];
  const u32 base = (shared_address(memory) + 1023) / 1024 * 1024;
  const u32* source = reinterpret_cast<const u32*>(data);
  for (u32 i = threadIdx.x; i < 49152 / 4; i += blockDim.x) store_shared_u32(base + 4 * i, (source[i] & MASK) | SET);
  fence_proxy_async_shared();
  __syncthreads();
  float d[128];
#pragma unroll
  for (int i = 0; i < 128; ++i) d[i] = 0;
  const u64 a = swizzled_descriptor(base), b = swizzled_descriptor(base + 8192);
  const u64 start_nanos = nanos(), start = cycles();
#pragma unroll 1
  for (int i = 0; i < STEPS; ++i) FORM(d, a, b);
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  wgmma_wait<0>();
#endif
  const u64 end_nanos = nanos(), end = cycles();
  u32 sum = 0;
  for (int i = 0; i < 128; ++i) sum ^= __float_as_uint(d[i]);
  need(scratch, sum);
  if (threadIdx.x != 0) return;
  out[WARP_STAMPS + 2 * blockIdx.x] = start_nanos;
  out[WARP_STAMPS + 2 * blockIdx.x + 1] = end_nanos;
  if (blockIdx.x == 0) out[0] = start, out[1] = end;
}
