/*probe
question = "What does code cost that was not run before: straight instructions, once and again?"

[[case]]
name = "{LENGTH}/first"
each = { LENGTH = [256, 1024, 4096] }
define = { REPETITIONS = 1 }
block = 32
[[case]]
name = "{LENGTH}/first-cold"
each = { LENGTH = [256, 1024, 4096] }
define = { REPETITIONS = 1 }
block = 32
l2 = "cold"
[[case]]
name = "{LENGTH}/again"
each = { LENGTH = [256, 1024, 4096, 8192] }
define = { REPETITIONS = 2 }
block = 32
[[case]]
name = "{LENGTH}/again/4-warps"
each = { LENGTH = [4096, 8192] }
define = { REPETITIONS = 2 }
block = 512
*/
#include <probe.cuh>

#define TIMES4(x) x x x x
#define TIMES16(x) TIMES4(TIMES4(x))
#define STEP(x, y) asm volatile("mad.lo.s32 %0, %0, %1, %0;" : "+r"(x) : "r"(y));

PROBE probe(ARGUMENTS) {
  // Not the same in all lanes: else it is the uniform datapath's.
  const u32 own = seed + threadIdx.x;
  u32 x[4] = {own, own + 1, own + 2, own + 3};
  u64 start = 0, end = 0;
#pragma unroll 1
  for (int repetition = 0; repetition < REPETITIONS; ++repetition) {
    __syncthreads();
    start = now();
#pragma unroll
    for (int i = 0; i < LENGTH / 64; ++i) {
      TIMES16(STEP(x[0], seed) STEP(x[1], seed) STEP(x[2], seed) STEP(x[3], seed))
    }
    need(scratch, x[0] ^ x[1] ^ x[2] ^ x[3]);
    end = now();
  }
  report(out, start, end);
}
