/*probe
question = "What does code cost that an SM does not hold: straight instructions, and jumps?"

# Instructions that issue every second cycle, and every cycle, in loops of 4 to 192 KB, by one warp
# and by two of every partition. The last turn is timed.
[[case]]
name = "{LENGTH}/again"
each = { LENGTH = [256, 1024, 4096, 8192] }
define = { REPETITIONS = 2 }
block = 32
[[case]]
name = "loop/{LENGTH}/{block}"
each = { LENGTH = [256, 768, 1024, 1536, 2048, 3072, 4096, 8192, 12288] }
define = { REPETITIONS = 3, FAST = 1 }
block = 32
[[case]]
name = "loop/{LENGTH}/{block}"
each = { LENGTH = [256, 768, 1536, 2048, 4096, 12288] }
define = { REPETITIONS = 3, FAST = 1 }
block = 256

# Code that the SM's caches have lost: what stands behind it, 192 KB, drives it out before the next
# call. It comes from L2, or from memory.
[[case]]
name = "driven-out/{LENGTH}"
each = { LENGTH = [256, 512, 1024, 2048] }
define = { REPETITIONS = 1, FAST = 1, BEHIND = 12288 }
block = 128
driven_out = true
[[case]]
name = "driven-out-cold/{LENGTH}"
each = { LENGTH = [256, 512, 1024, 2048] }
define = { REPETITIONS = 1, FAST = 1, BEHIND = 12288 }
grid = 132
block = 128
l2 = "cold"
driven_out = true

# The same behind 72 KB that nobody runs: a launch brings only a kernel's first 64 KB near the SMs.
[[case]]
name = "far/{LENGTH}/driven-out"
each = { LENGTH = [256, 512, 1024, 2048] }
define = { REPETITIONS = 1, FAST = 1, BEFORE = 4608, BEHIND = 12288 }
block = 128
driven_out = true
[[case]]
name = "far/{LENGTH}/driven-out-cold"
each = { LENGTH = [256, 512, 1024, 2048] }
define = { REPETITIONS = 1, FAST = 1, BEFORE = 4608, BEHIND = 12288 }
grid = 132
block = 128
l2 = "cold"
driven_out = true

# A jump over 1 or 4 KB after every 16 instructions.
[[case]]
name = "jumps/{LENGTH}/{OVER}/again"
each = { LENGTH = [256], OVER = [64, 256] }
define = { REPETITIONS = 3, FAST = 1 }
block = 128
[[case]]
name = "jumps/{LENGTH}/{OVER}/driven-out"
each = { LENGTH = [256], OVER = [64, 256] }
define = { REPETITIONS = 1, FAST = 1, BEHIND = 12288 }
block = 128
driven_out = true
[[case]]
name = "jumps/{LENGTH}/{OVER}/driven-out-cold"
each = { LENGTH = [256], OVER = [64, 256] }
define = { REPETITIONS = 1, FAST = 1, BEHIND = 12288 }
grid = 132
block = 128
l2 = "cold"
driven_out = true

# Jumps over less, and fewer of them; with what brings lanes together again behind them.
[[case]]
name = "jumps/{LENGTH}/{OVER}/again"
each = { LENGTH = [64, 1024], OVER = [16, 32, 64] }
define = { REPETITIONS = 3, FAST = 1 }
block = 128
[[case]]
name = "jumps/{LENGTH}/{OVER}/{block}"
each = { LENGTH = [256], OVER = [16, 64] }
define = { REPETITIONS = 3, FAST = 1 }
block = 512
[[case]]
name = "jumps/{LENGTH}/{OVER}/apart"
each = { LENGTH = [256], OVER = [16, 64] }
define = { REPETITIONS = 3, FAST = 1, APART = 1 }
block = 128

# Branches back that nobody takes, after every 16 and 64 instructions; the same where lanes might.
[[case]]
name = "passed/{EVERY}/{block}"
each = { LENGTH = [1024], EVERY = [16, 64, 256] }
define = { REPETITIONS = 3, FAST = 1 }
block = 32
[[case]]
name = "passed/{EVERY}/{block}"
each = { LENGTH = [1024], EVERY = [16, 64, 256] }
define = { REPETITIONS = 3, FAST = 1 }
block = 256
[[case]]
name = "passed/{EVERY}/apart/{block}"
each = { LENGTH = [1024], EVERY = [64] }
define = { REPETITIONS = 3, FAST = 1, APART = 1 }
block = 256

# Loops of so many instructions, eight turns, and where they begin in a line of 128 bytes.
[[case]]
name = "turns/{LENGTH}/{block}"
each = { LENGTH = [16, 32, 64, 128, 256, 512] }
define = { REPETITIONS = 2, FAST = 1, TURNS = 8 }
block = 32
[[case]]
name = "turns/{LENGTH}/{block}"
each = { LENGTH = [16, 64, 128, 512] }
define = { REPETITIONS = 2, FAST = 1, TURNS = 8 }
block = 512
[[case]]
name = "placed/{PLACE}/{LENGTH}/{block}"
each = { PLACE = [1, 2, 3, 4, 5, 6, 7], LENGTH = [64] }
define = { REPETITIONS = 2, FAST = 1, TURNS = 8 }
block = 128
[[case]]
name = "placed/{PLACE}/{LENGTH}/{block}"
each = { PLACE = [0, 1, 2, 3, 5, 7], LENGTH = [768] }
define = { REPETITIONS = 2, FAST = 1, TURNS = 8 }
block = 256
[[case]]
name = "mixed/{PLACE}/{LENGTH}/{block}"
each = { PLACE = [0, 1, 2, 3, 5, 7], LENGTH = [768] }
define = { REPETITIONS = 2, MIXED = 1, TURNS = 8 }
block = 256
*/
#include <probe.cuh>

#define TIMES4(x) x x x x
#define TIMES16(x) TIMES4(TIMES4(x))
#ifdef MIXED
// By turns on the integer unit and on the multipliers.
#define STEP(x, y) asm volatile("lop3.b32 %0, %0, 0x80808080, %1, 0xe2; mad.lo.s32 %0, %0, 5, %1;" : "+r"(x) : "r"(y));
using Number = u32;
#elif defined(FAST)
#define STEP(x, y) asm volatile("fma.rn.f32 %0, %0, %1, %0;" : "+f"(x) : "f"(y));
using Number = float;
#else
#define STEP(x, y) asm volatile("mad.lo.s32 %0, %0, %1, %0;" : "+r"(x) : "r"(y));
using Number = u32;
#endif
#ifndef OVER
#define OVER 0
#endif
#ifndef EVERY
#define EVERY LENGTH
#endif
#ifndef TURNS
#define TURNS 1
#endif
#ifndef PLACE
#define PLACE 0
#endif

// So many instructions, in four chains by turns.
template <int Count>
__device__ __forceinline__ void straight(Number (&x)[4], Number y) {
#pragma unroll
  for (int i = 0; i < Count / 16; ++i) {
    TIMES4(STEP(x[0], y) STEP(x[1], y) STEP(x[2], y) STEP(x[3], y))
  }
}

// The same, with jumps over others that nobody runs.
template <int Count, int Over>
__device__ __forceinline__ void jumping(Number (&x)[4], Number y, bool never) {
#pragma unroll
  for (int i = 0; i < Count / 16; ++i) {
    straight<16>(x, y);
    if (never) straight<Over>(x, y);
  }
}

// The same, with branches back that nobody takes, each for a reason of its own.
template <int Count, int Every>
__device__ __forceinline__ void passing(Number (&x)[4], Number y, u32 small) {
#pragma unroll
  for (int i = 0; i < Count / Every; ++i) {
#pragma unroll 1
    do straight<Every>(x, y);
    while (small == 0x80000000u + i);
  }
}

PROBE probe(ARGUMENTS) {
  // Not the same in all lanes: else it is the uniform datapath's.
  const Number own = Number(seed + threadIdx.x), y = Number(seed);
  Number x[4] = {own, own + 1, own + 2, own + 3};
#ifdef APART
  // Lanes might go different ways.
  const u32 small = seed + threadIdx.x;
#else
  const u32 small = seed;
#endif
#ifdef BEFORE
  if (nothing(small) != 0) straight<BEFORE>(x, y);
#endif
  u64 start = 0, end = 0;
#pragma unroll 1
  for (int repetition = 0; repetition < REPETITIONS; ++repetition) {
    __syncthreads();
    start = now();
#pragma unroll
    for (int i = 0; i < PLACE; ++i) STEP(x[i % 4], y)
#pragma unroll 1
    for (int turn = 0; turn < TURNS; ++turn) {
      if constexpr (EVERY < LENGTH) {
        passing<LENGTH, EVERY>(x, y, small);
      } else {
        jumping<LENGTH, OVER>(x, y, nothing(small) != 0);
      }
    }
    need(scratch, u32(x[0] + x[1] + x[2] + x[3]));
    end = now();
  }
#ifdef BEHIND
  straight<BEHIND>(x, y);
  need(scratch, u32(x[0] + x[1] + x[2] + x[3]));
#endif
  report(out, start, end);
}
