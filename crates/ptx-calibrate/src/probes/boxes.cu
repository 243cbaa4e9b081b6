/*probe
question = "How long does a step take whose thread asks for several boxes of short rows and waits for all of them?"

# Boxes of ROWS rows of ROW bytes out of rows of 3584 (K = 7168, packed), each next to the one of
# the step before; as many plain copies of 1 KB beside them, as scales come. One SM from L2.
[[case]]
name = "one/{COPIES}x{ROW}x{ROWS}"
each = { COPIES = [1, 2, 3, 6], ROW = [64], ROWS = [128] }
define = { COUNT = 16 }
block = 32
smem = "(ROW * ROWS + 1024) * COPIES + 1024"
data = "COPIES * (3584 * ROWS + 1024 * COUNT)"
map = { width = 3584, rows = "COPIES * ROWS", box = ["ROW", "ROWS"], swizzle = "ROW" }
[[case]]
name = "one/{COPIES}x{ROW}x{ROWS}"
each = { COPIES = [2], ROW = [64, 128], ROWS = [64, 256] }
define = { COUNT = 16 }
block = 32
smem = "(ROW * ROWS + 1024) * COPIES + 1024"
data = "COPIES * (3584 * ROWS + 1024 * COUNT)"
map = { width = 3584, rows = "COPIES * ROWS", box = ["ROW", "ROWS"], swizzle = "ROW" }

# All SMs.
[[case]]
name = "all/warm/{COPIES}x{ROW}x{ROWS}"
each = { COPIES = [1, 2], ROW = [64, 128], ROWS = [64, 128] }
define = { COUNT = 16 }
grid = 132
block = 32
smem = "(ROW * ROWS + 1024) * COPIES + 1024"
data = "132 * COPIES * (3584 * ROWS + 1024 * COUNT)"
map = { width = 3584, rows = "132 * COPIES * ROWS", box = ["ROW", "ROWS"], swizzle = "ROW" }
read = "nanos"
[[case]]
name = "all/cold/{COPIES}x{ROW}x{ROWS}"
each = { COPIES = [1, 2], ROW = [64, 128], ROWS = [64, 128] }
define = { COUNT = 16 }
grid = 132
block = 32
smem = "(ROW * ROWS + 1024) * COPIES + 1024"
data = "132 * COPIES * (3584 * ROWS + 1024 * COUNT)"
map = { width = 3584, rows = "132 * COPIES * ROWS", box = ["ROW", "ROWS"], swizzle = "ROW" }
read = "nanos"
l2 = "cold"
# For longer: do they stay in step?
[[case]]
name = "long/cold/{COPIES}x{ROW}x{ROWS}/{COUNT}/{PAUSE}"
each = { COPIES = [2], ROW = [64], ROWS = [128], COUNT = [16, 32, 56], PAUSE = [256, 512] }
grid = 132
block = 32
smem = "(ROW * ROWS + 1024) * COPIES + 1024"
data = "132 * COPIES * (3584 * ROWS + 1024 * COUNT)"
map = { width = 3584, rows = "132 * COPIES * ROWS", box = ["ROW", "ROWS"], swizzle = "ROW" }
read = "nanos"
l2 = "cold"
# Where two SMs have the same rows, and work between the steps.
[[case]]
name = "pairs/warm/{COPIES}x{ROW}x{ROWS}/{PAUSE}"
each = { COPIES = [2, 3], ROW = [64], ROWS = [128], PAUSE = [0, 256] }
define = { COUNT = 16, SHARE = 2 }
grid = 128
block = 32
smem = "(ROW * ROWS + 1024) * COPIES + 1024"
data = "64 * COPIES * (3584 * ROWS + 1024 * COUNT)"
map = { width = 3584, rows = "64 * COPIES * ROWS", box = ["ROW", "ROWS"], swizzle = "ROW" }
read = "nanos"
[[case]]
name = "pairs/cold/{COPIES}x{ROW}x{ROWS}/{PAUSE}"
each = { COPIES = [2, 3], ROW = [64], ROWS = [128], PAUSE = [0, 256] }
define = { COUNT = 16, SHARE = 2 }
grid = 128
block = 32
smem = "(ROW * ROWS + 1024) * COPIES + 1024"
data = "64 * COPIES * (3584 * ROWS + 1024 * COUNT)"
map = { width = 3584, rows = "64 * COPIES * ROWS", box = ["ROW", "ROWS"], swizzle = "ROW" }
read = "nanos"
l2 = "cold"
# What a step costs after the first ones, where each 256 bytes of a row come new from memory: one
# SM, step by step.
[[case]]
name = "cold/{COPIES}x{ROW}x{ROWS}/{COUNT}"
each = { COPIES = [1], ROW = [64], ROWS = [8, 128], COUNT = [1, 2, 3, 4, 5, 6, 8, 9] }
block = 32
smem = "(ROW * ROWS + 1024) * COPIES + 1024"
data = "COPIES * (3584 * ROWS + 1024 * COUNT)"
map = { width = 3584, rows = "COPIES * ROWS", box = ["ROW", "ROWS"], swizzle = "ROW" }
l2 = "cold"
# The first use of a map that was fetched ahead, some 4000 cycles before and right before.
[[case]]
name = "fetched/cold/{PAUSE}"
each = { PAUSE = [0, 1024] }
define = { COPIES = 1, ROW = 64, ROWS = 8, COUNT = 1, PREFETCH = 1 }
block = 32
smem = "(ROW * ROWS + 1024) * COPIES + 1024"
data = "COPIES * (3584 * ROWS + 1024 * COUNT)"
map = { width = 3584, rows = "COPIES * ROWS", box = ["ROW", "ROWS"], swizzle = "ROW" }
l2 = "cold"
*/
#include <probe.cuh>
#include <dgx/ptx/mbarrier.cuh>
#include <dgx/ptx/tma.cuh>

#ifndef SHARE
#define SHARE 1
#endif
#ifndef PAUSE
#define PAUSE 0
#endif
#ifndef PREFETCH
#define PREFETCH 0
#endif

constexpr u32 BYTES = ROW * ROWS, SCALES = 1024;

PROBE probe(ARGUMENTS) {
  extern __shared__ __align__(1024) u8 memory[];
  __shared__ u64 full;
  if (threadIdx.x != 0) return;
  mbarrier_init(full, 1);
  mbarrier_init_fence();
  const TensorMap* map = reinterpret_cast<const TensorMap*>(scratch);
  // Swizzled boxes begin at multiples of 1024 bytes.
  const u32 to = (shared_address(memory) + 1023) / 1024 * 1024;
  const u32 tile = blockIdx.x / SHARE * COPIES, tiles = gridDim.x / SHARE * COPIES;
  const u8* scales = data + u64(tiles) * ROWS * 3584 + u64(tile) * COUNT * SCALES;
  u32 value = seed;
  if (PREFETCH) {
    tma_prefetch_map(map);
    value = pause<PAUSE>(value);
    need(scratch, value);
  }
  const u64 start = now();
#pragma unroll 1
  for (u32 i = 0; i < COUNT; ++i) {
    mbarrier_arrive_expect_tx(full, COPIES * (BYTES + SCALES));
#pragma unroll
    for (u32 copy = 0; copy < COPIES; ++copy) {
      tma_load_2d(to + copy * BYTES, map, i * ROW, (tile + copy) * ROWS, full);
      bulk_load(to + COPIES * BYTES + copy * SCALES, scales + (copy * COUNT + i) * SCALES, SCALES, full);
    }
    mbarrier_wait(full, i & 1);
    if (!PREFETCH) value = pause<PAUSE>(value);
  }
  need(scratch, value);
  const u64 end = now();
  report(out, start, end);
}
