/*probe
question = "How long does a bulk copy into shared memory take, and how many bytes a clock with several under way?"

# Plain bulk copies, one at a time: latency by size.
[[case]]
name = "plain/latency/{BYTES}"
each = { BYTES = [512, 2048, 8192, 32768] }
define = { DEPTH = 1, COUNT = 8, REPETITIONS = 2 }
block = 32
smem = "BYTES * DEPTH + 1024"
data = "BYTES * COUNT"
[[case]]
name = "plain/cold/{BYTES}"
each = { BYTES = [512, 8192] }
define = { DEPTH = 1, COUNT = 8, REPETITIONS = 1 }
block = 32
smem = "BYTES * DEPTH + 1024"
data = "BYTES * COUNT"
l2 = "cold"

[[case]]
name = "plain/one/{DEPTH}x{BYTES}"
each = { BYTES = [512, 4096, 16384], DEPTH = [2, 4, 8] }
define = { COUNT = 32, REPETITIONS = 2 }
block = 32
smem = "BYTES * DEPTH + 1024"
data = "BYTES * COUNT"

# Large enough that one thread's issuing is not what is measured.
[[case]]
name = "plain/one/{DEPTH}x{BYTES}"
each = { BYTES = [32768], DEPTH = [2, 4, 6] }
define = { COUNT = 12, REPETITIONS = 2 }
block = 32
smem = "BYTES * DEPTH + 1024"
data = "BYTES * COUNT"

[[case]]
name = "plain/all/warm/{DEPTH}x{BYTES}"
each = { BYTES = [4096, 16384], DEPTH = [4, 8] }
define = { COUNT = "262144 / BYTES", REPETITIONS = 1 }
grid = 132
block = 32
smem = "BYTES * DEPTH + 1024"
data = "132 * 262144"
read = "nanos"
[[case]]
name = "plain/all/cold/{DEPTH}x{BYTES}"
each = { BYTES = [4096, 16384], DEPTH = [4, 8] }
define = { COUNT = "262144 / BYTES", REPETITIONS = 1 }
grid = 132
block = 32
smem = "BYTES * DEPTH + 1024"
data = "132 * 262144"
read = "nanos"
l2 = "cold"
# All SMs the same bytes, as tiles of one operand are shared.
[[case]]
name = "plain/all/same/{DEPTH}x{BYTES}"
each = { BYTES = [16384], DEPTH = [4] }
define = { COUNT = "262144 / BYTES", REPETITIONS = 1, SAME = 1 }
grid = 132
block = 32
smem = "BYTES * DEPTH + 1024"
data = "262144"
read = "nanos"

# Boxes of ROWS rows of ROW bytes out of rows of 3584 (K = 7168, packed).
[[case]]
name = "tensor/latency/{ROW}x{ROWS}"
each = { ROW = [64, 128], ROWS = [8, 64, 128] }
define = { BYTES = "ROW * ROWS", DEPTH = 1, COUNT = 8, REPETITIONS = 2 }
block = 32
smem = "BYTES * DEPTH + 1024"
data = "3584 * ROWS"
map = { width = 3584, rows = "ROWS", box = ["ROW", "ROWS"], swizzle = "ROW" }
[[case]]
name = "tensor/cold/{ROW}x{ROWS}"
each = { ROW = [64], ROWS = [8, 128] }
define = { BYTES = "ROW * ROWS", DEPTH = 1, COUNT = 8, REPETITIONS = 1 }
block = 32
smem = "BYTES * DEPTH + 1024"
data = "3584 * ROWS"
map = { width = 3584, rows = "ROWS", box = ["ROW", "ROWS"], swizzle = "ROW" }
l2 = "cold"
# The first use of a map: nothing but one copy, the map itself cold.
[[case]]
name = "tensor/first/cold"
define = { ROW = 64, ROWS = 8, BYTES = "ROW * ROWS", DEPTH = 1, COUNT = 1, REPETITIONS = 1 }
block = 32
smem = "BYTES * DEPTH + 1024"
data = "3584 * ROWS"
map = { width = 3584, rows = "ROWS", box = ["ROW", "ROWS"], swizzle = "ROW" }
l2 = "cold"
[[case]]
name = "tensor/first/warm"
define = { ROW = 64, ROWS = 8, BYTES = "ROW * ROWS", DEPTH = 1, COUNT = 1, REPETITIONS = 1 }
block = 32
smem = "BYTES * DEPTH + 1024"
data = "3584 * ROWS"
map = { width = 3584, rows = "ROWS", box = ["ROW", "ROWS"], swizzle = "ROW" }
[[case]]
name = "plain/first/cold"
define = { BYTES = 512, DEPTH = 1, COUNT = 1, REPETITIONS = 1 }
block = 32
smem = "BYTES * DEPTH + 1024"
data = "BYTES * COUNT"
l2 = "cold"

[[case]]
name = "tensor/one/{DEPTH}x{ROW}x{ROWS}"
each = { ROW = [64, 128], ROWS = [128], DEPTH = [2, 4, 8] }
define = { BYTES = "ROW * ROWS", COUNT = 24, REPETITIONS = 2 }
block = 32
smem = "BYTES * DEPTH + 1024"
data = "3584 * ROWS"
map = { width = 3584, rows = "ROWS", box = ["ROW", "ROWS"], swizzle = "ROW" }
[[case]]
name = "tensor/all/warm/{DEPTH}x{ROW}x{ROWS}"
each = { ROW = [64, 128], ROWS = [128], DEPTH = [4] }
define = { BYTES = "ROW * ROWS", COUNT = 12, REPETITIONS = 1 }
grid = 132
block = 32
smem = "BYTES * DEPTH + 1024"
data = "132 * 3584 * ROWS"
map = { width = 3584, rows = "132 * ROWS", box = ["ROW", "ROWS"], swizzle = "ROW" }
read = "nanos"
[[case]]
name = "tensor/all/cold/{DEPTH}x{ROW}x{ROWS}"
each = { ROW = [64, 128], ROWS = [128], DEPTH = [4] }
define = { BYTES = "ROW * ROWS", COUNT = 12, REPETITIONS = 1 }
grid = 132
block = 32
smem = "BYTES * DEPTH + 1024"
data = "132 * 3584 * ROWS"
map = { width = 3584, rows = "132 * ROWS", box = ["ROW", "ROWS"], swizzle = "ROW" }
read = "nanos"
l2 = "cold"
*/
#include <probe.cuh>
#include <dgx/ptx/mbarrier.cuh>
#include <dgx/ptx/tma.cuh>

#ifndef SAME
#define SAME 0
#endif

PROBE probe(ARGUMENTS) {
  extern __shared__ __align__(1024) u8 ring[];
  __shared__ u64 full[DEPTH];
  if (threadIdx.x == 0) {
    for (int i = 0; i < DEPTH; ++i) mbarrier_init(full[i], 1);
    mbarrier_init_fence();
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  // Swizzled boxes begin at multiples of 1024 bytes.
  const u32 slots = (shared_address(ring) + 1023) / 1024 * 1024;
  const u32 cta = SAME ? 0 : blockIdx.x;
  u64 start = 0, end = 0;
  u32 waited = 0;
#pragma unroll 1
  for (int repetition = 0; repetition < REPETITIONS; ++repetition) {
    start = now();
#pragma unroll 1
    for (u32 i = 0; i < COUNT + DEPTH; ++i) {
      const u32 slot = i % DEPTH;
      if (i >= DEPTH) {
        mbarrier_wait(full[slot], waited / DEPTH & 1);
        ++waited;
      }
      if (i < COUNT) {
        mbarrier_arrive_expect_tx(full[slot], BYTES);
        const u32 to = slots + slot * BYTES;
#ifdef ROW
        tma_load_2d(to, reinterpret_cast<const TensorMap*>(scratch), i * ROW, cta * ROWS, full[slot]);
#else
        bulk_load(to, data + u64(cta) * BYTES * COUNT + u64(i) * BYTES, BYTES, full[slot]);
#endif
      }
    }
    end = now();
  }
  report(out, start, end);
}
