/*probe
question = "What do a launch, its CTAs' starts and ends, and a launch that needs the one before cost?"

# Nothing but a start and an end.
[[case]]
name = "empty/{CTAS}/small"
each = { CTAS = [1, 132, 264, 528, 1056] }
define = { WORK = 0 }
grid = "CTAS"
block = 128
read = "micros"
[[case]]
name = "empty/{CTAS}/full"
each = { CTAS = [1, 132, 264, 528, 1056] }
define = { WORK = 0 }
grid = "CTAS"
block = 384
smem = 230400
read = "micros"
[[case]]
name = "empty/{CTAS}/cold"
each = { CTAS = [132] }
define = { WORK = 0 }
grid = "CTAS"
block = 384
smem = 230400
read = "micros"
l2 = "cold"

# When CTAs start: first to last on an empty chip.
[[case]]
name = "spread/{CTAS}"
each = { CTAS = [132, 1056] }
define = { WORK = 0 }
grid = "CTAS"
block = 384
smem = 230400
read = "nanos"

# One CTA an SM, one after the other, each about 2000 cycles long.
[[case]]
name = "turnover/{CTAS}/{block}"
each = { CTAS = [132, 264, 528] }
define = { WORK = 512 }
grid = "CTAS"
block = 128
smem = 230400
read = "nanos"
[[case]]
name = "turnover/{CTAS}/{block}"
each = { CTAS = [132, 264, 528] }
define = { WORK = 512 }
grid = "CTAS"
block = 1024
smem = 230400
read = "nanos"

# The same, each of which ends by storing 64 bytes a thread.
[[case]]
name = "turnover-stores/{CTAS}/{block}"
each = { CTAS = [132, 264, 528] }
define = { WORK = 512, STORED = 16 }
grid = "CTAS"
block = 256
smem = 140000
read = "nanos"
scratch = 34603008

# One launch after another in one graph, and with programmatic dependent launch.
[[case]]
name = "launches/{LAUNCHES}/{CTAS}"
each = { LAUNCHES = [1, 2, 3], CTAS = [132] }
define = { WORK = 512 }
launches = "LAUNCHES"
grid = "CTAS"
block = 384
smem = 115200
read = "micros"
[[case]]
name = "overlapped/{LAUNCHES}/{CTAS}"
each = { LAUNCHES = [2, 3], CTAS = [132] }
define = { WORK = 512, DEPENDENT = 1 }
launches = "LAUNCHES"
overlap = true
grid = "CTAS"
block = 384
smem = 115200
read = "micros"
# The same where the two do not fit on an SM together.
[[case]]
name = "overlapped-full/{LAUNCHES}/{CTAS}"
each = { LAUNCHES = [2], CTAS = [132] }
define = { WORK = 512, DEPENDENT = 1 }
launches = "LAUNCHES"
overlap = true
grid = "CTAS"
block = 384
smem = 230400
read = "micros"
*/
#include <probe.cuh>
#include <dgx/ptx/barrier.cuh>

PROBE probe(ARGUMENTS) {
  const u64 start = now();
#ifdef DEPENDENT
  allow_next_launch();
#endif
  u32 x = seed;
#pragma unroll 1
  for (int i = 0; i < WORK / 16; ++i) {
#pragma unroll
    for (int j = 0; j < 16; ++j) asm volatile("mad.lo.s32 %0, %0, %1, %0;" : "+r"(x) : "r"(seed));
  }
  need(scratch, x);
#ifdef STORED
#pragma unroll
  for (u32 i = 0; i < STORED; ++i)
    store_global_u32(scratch + 4 * ((blockIdx.x * STORED + i) * blockDim.x + threadIdx.x), x);
#endif
#ifdef DEPENDENT
  wait_for_previous_launch();
#endif
  const u64 end = now();
  report(out, start, end);
}
