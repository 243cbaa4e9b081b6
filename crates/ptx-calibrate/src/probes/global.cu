/*probe
question = "How long does a load from global memory take: from L1, from L2, from memory?"

[[case]]
name = "l1"
define = { FORM = "ca", STRIDE = 0, REPETITIONS = 2 }
block = 32

[[case]]
name = "l2"
define = { FORM = "cg", STRIDE = 4096, REPETITIONS = 2 }
block = 32
data = 262144

# Every line is new: L2 was flushed.
[[case]]
name = "cold"
define = { FORM = "cg", STRIDE = 4096, REPETITIONS = 1 }
block = 32
l2 = "cold"
data = 262144

[[case]]
name = "cold-apart"
define = { FORM = "cg", STRIDE = 1048576, REPETITIONS = 1 }
block = 32
l2 = "cold"
data = 67108864

# Dependent atomics, and fences after a store.
[[case]]
name = "{FORM}"
each = { FORM = ["atomic", "fence"] }
define = { STRIDE = 4096, REPETITIONS = 2 }
block = 32
*/
#include <probe.cuh>

#define load_ca(value, at) asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory")
#define load_cg(value, at) asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory")
#define load_atomic(value, at) value = atomicAdd(reinterpret_cast<u32*>(scratch) + (value & nothing(seed)), 1)
#define load_fence(value, at)                                       \
  {                                                                 \
    store_global_u32(scratch + 4 * lane(), value);                  \
    asm volatile("fence.acq_rel.gpu;" ::: "memory");                \
  }
#define NAMED(name) load_##name
#define CALL(name) NAMED(name)

PROBE probe(ARGUMENTS) {
  const u32 zero = nothing(seed);
  u64 start = 0, end = 0;
  u32 value = 0;
#pragma unroll 1
  for (int repetition = 0; repetition < REPETITIONS; ++repetition) {
    start = now();
#pragma unroll 1
    for (u32 i = 0; i < 64; ++i) {
      // Needs the value before, and is the same whatever it is.
      const u8* at = data + u64(i) * STRIDE + (value & zero);
      CALL(FORM)(value, at);
    }
    need(scratch, value);
    end = now();
  }
  report(out, start, end);
}
