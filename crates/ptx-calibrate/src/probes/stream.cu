/*probe
question = "How many bytes a clock or a second come from L2 and from memory by loads, and go there by stores?"

# One SM alone; 16 bytes a thread and instruction. Read once, or L1 has it.
[[case]]
name = "read/one/{block}"
define = { FORM = "read", BYTES = 262144, REPETITIONS = 1 }
block = 512
data = 262144
[[case]]
name = "read/one-warp"
define = { FORM = "read", BYTES = 65536, REPETITIONS = 1 }
block = 32
data = 65536
[[case]]
name = "write/one/{block}"
define = { FORM = "write", BYTES = 262144, REPETITIONS = 2 }
block = 512
scratch = 262144
[[case]]
name = "async/one/{block}"
define = { FORM = "async", BYTES = 262144, REPETITIONS = 2 }
block = 512
data = 262144
smem = 131072

# All SMs, each its own bytes.
[[case]]
name = "{FORM}/all/warm/{BYTES}"
each = { FORM = ["read", "write", "async"], BYTES = [131072, 262144] }
define = { REPETITIONS = 1 }
grid = 132
block = 512
smem = 131072
read = "nanos"
data = "132 * BYTES"
scratch = "132 * BYTES"
[[case]]
name = "{FORM}/all/cold/{BYTES}"
each = { FORM = ["read", "write", "async"], BYTES = [131072, 262144, 1048576] }
define = { REPETITIONS = 1 }
grid = 132
block = 512
smem = 131072
read = "nanos"
l2 = "cold"
data = "132 * BYTES"
scratch = "132 * BYTES"
# All SMs the same bytes.
[[case]]
name = "read/all/same/{BYTES}"
each = { BYTES = [262144] }
define = { FORM = "read", REPETITIONS = 1, SAME = 1 }
grid = 132
block = 512
read = "nanos"
data = "BYTES"
*/
#include <probe.cuh>

#ifndef SAME
#define SAME 0
#endif

constexpr int AHEAD = 8;

__device__ __forceinline__ u32 read(const u8* from, u8*, u32, u32) {
  uint4 v[AHEAD];
#pragma unroll
  for (int i = 0; i < AHEAD; ++i) v[i] = load_global_v4(from + u64(i) * blockDim.x * 16);
  u32 sum = 0;
#pragma unroll
  for (int i = 0; i < AHEAD; ++i) sum ^= v[i].x ^ v[i].y ^ v[i].z ^ v[i].w;
  return sum;
}

__device__ __forceinline__ u32 write(const u8*, u8* to, u32, u32 value) {
#pragma unroll
  for (int i = 0; i < AHEAD; ++i) store_global_v4(to + u64(i) * blockDim.x * 16, uint4{value, value, value, value});
  return 0;
}

// cp.async, two groups under way, each with its half of the ring.
__device__ __forceinline__ u32 async(const u8* from, u8*, u32 at, u32) {
  extern __shared__ __align__(16) u8 ring[];
  const u32 half = shared_address(ring) + at % (2 * AHEAD * blockDim.x * 16);
#pragma unroll
  for (int i = 0; i < AHEAD; ++i) {
    const u32 to = half + (i * blockDim.x + threadIdx.x) * 16;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from + u64(i) * blockDim.x * 16)
                 : "memory");
  }
  asm volatile("cp.async.commit_group;\ncp.async.wait_group 1;" ::: "memory");
  return 0;
}

PROBE __launch_bounds__(512) probe(ARGUMENTS) {
  u64 start = 0, end = 0;
  u32 sum = 0;
#pragma unroll 1
  for (int repetition = 0; repetition < REPETITIONS; ++repetition) {
    __syncthreads();
    start = now();
#pragma unroll 1
    for (u32 at = 0; at < BYTES; at += AHEAD * blockDim.x * 16) {
      const u64 place = u64(SAME ? 0 : blockIdx.x) * BYTES + at + threadIdx.x * 16;
      sum ^= FORM(data + place, scratch + place, at, seed + at);
    }
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    need(scratch, sum);
    __syncthreads();
    end = now();
  }
  report(out, start, end);
}
