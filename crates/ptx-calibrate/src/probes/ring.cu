/*probe
question = "Of several stages that are asked for at once, when is the first here, and what does a ring of them gain?"

# A stage is 256 bytes of ROWS rows of 3584 (K = 7168, packed), in two boxes; the tensor map is there.
# When the last of so many stages that are waited for is here: on one SM, on the first of all, and on
# the last of all.
[[case]]
name = "one/{DEPTH}x{ROWS}/{WAITED}"
each = { DEPTH = [4], ROWS = [96], WAITED = [1, 4] }
define = { COUNT = "WAITED", PAUSE = 0 }
block = 32
smem = "256 * ROWS * DEPTH + 1024"
data = "3584 * ROWS"
map = { width = 3584, rows = "ROWS", box = [128, "ROWS"], swizzle = 128 }
l2 = "cold"
[[case]]
name = "first/{DEPTH}x{ROWS}/{WAITED}"
each = { DEPTH = [1, 2, 4, 8], ROWS = [96], WAITED = [1] }
define = { COUNT = "WAITED", PAUSE = 0 }
grid = 132
block = 32
smem = "256 * ROWS * DEPTH + 1024"
data = "132 * 3584 * ROWS"
map = { width = 3584, rows = "132 * ROWS", box = [128, "ROWS"], swizzle = 128 }
l2 = "cold"
[[case]]
name = "last/{DEPTH}x{ROWS}/{WAITED}"
each = { DEPTH = [1, 2, 4, 8], ROWS = [96], WAITED = [1] }
define = { COUNT = "WAITED", PAUSE = 0 }
grid = 132
block = 32
smem = "256 * ROWS * DEPTH + 1024"
data = "132 * 3584 * ROWS"
map = { width = 3584, rows = "132 * ROWS", box = [128, "ROWS"], swizzle = 128 }
read = "nanos"
l2 = "cold"
[[case]]
name = "first/{DEPTH}x{ROWS}/{WAITED}"
each = { DEPTH = [4], ROWS = [48, 96], WAITED = [2, 3, 4] }
define = { COUNT = "WAITED", PAUSE = 0 }
grid = 132
block = 32
smem = "256 * ROWS * DEPTH + 1024"
data = "132 * 3584 * ROWS"
map = { width = 3584, rows = "132 * ROWS", box = [128, "ROWS"], swizzle = 128 }
l2 = "cold"
[[case]]
name = "last/{DEPTH}x{ROWS}/{WAITED}"
each = { DEPTH = [4], ROWS = [48, 96], WAITED = [2, 3, 4] }
define = { COUNT = "WAITED", PAUSE = 0 }
grid = 132
block = 32
smem = "256 * ROWS * DEPTH + 1024"
data = "132 * 3584 * ROWS"
map = { width = 3584, rows = "132 * ROWS", box = [128, "ROWS"], swizzle = 128 }
read = "nanos"
l2 = "cold"
# All fourteen stages through a ring, with some work on each.
[[case]]
name = "turns/{DEPTH}x{ROWS}/{PAUSE}"
each = { DEPTH = [1, 2, 4, 8], ROWS = [96], PAUSE = [0, 256, 512] }
define = { COUNT = 14 }
grid = 132
block = 32
smem = "256 * ROWS * DEPTH + 1024"
data = "132 * 3584 * ROWS"
map = { width = 3584, rows = "132 * ROWS", box = [128, "ROWS"], swizzle = 128 }
read = "nanos"
l2 = "cold"
*/
#include <probe.cuh>
#include <dgx/ptx/mbarrier.cuh>
#include <dgx/ptx/tma.cuh>

constexpr u32 BYTES = 256 * ROWS, STAGES = 14;

PROBE probe(ARGUMENTS) {
  extern __shared__ __align__(1024) u8 memory[];
  __shared__ u64 full[DEPTH];
  if (threadIdx.x != 0) return;
  for (u32 i = 0; i < DEPTH; ++i) mbarrier_init(full[i], 1);
  mbarrier_init_fence();
  const TensorMap* map = reinterpret_cast<const TensorMap*>(scratch);
  // Swizzled boxes begin at multiples of 1024 bytes.
  const u32 to = (shared_address(memory) + 1023) / 1024 * 1024;
  const auto ask = [&](u32 stage) {
    const u32 slot = stage % DEPTH;
    mbarrier_arrive_expect_tx(full[slot], BYTES);
#pragma unroll
    for (u32 half = 0; half < 2; ++half)
      tma_load_2d(to + slot * BYTES + half * BYTES / 2, map, stage * 256 + half * 128, blockIdx.x * ROWS, full[slot]);
  };
  tma_prefetch_map(map);
  u32 value = pause<512>(seed);
  need(scratch, value);
  const u64 start = now();
#pragma unroll 1
  for (u32 i = 0; i < DEPTH; ++i) ask(i);
#pragma unroll 1
  for (u32 i = 0; i < COUNT; ++i) {
    mbarrier_wait(full[i % DEPTH], i / DEPTH & 1);
    value = pause<PAUSE>(value);
    if (COUNT == STAGES && i + DEPTH < COUNT) ask(i + DEPTH);
  }
  need(scratch, value);
  const u64 end = now();
  // Nothing may be under way when the CTA ends.
  if (COUNT < DEPTH)
    for (u32 i = COUNT; i < DEPTH; ++i) mbarrier_wait(full[i], 0);
  report(out, start, end);
}
