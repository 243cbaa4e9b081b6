/*probe
question = "How long does a kernel wait for its first parameter, and for the next?"

# From the first instruction: a parameter comes through the constant cache.
[[case]]
name = "first/warm"
define = { SECOND = 0 }
block = 32
[[case]]
name = "first/cold"
define = { SECOND = 0 }
block = 32
l2 = "cold"
[[case]]
name = "first/cold/132"
define = { SECOND = 0 }
grid = 132
block = 32
l2 = "cold"
# A second one, beside it.
[[case]]
name = "both/cold"
define = { SECOND = 1 }
block = 32
l2 = "cold"
*/
#include <probe.cuh>

PROBE probe(ARGUMENTS) {
  const u64 start = now();
  u32 value;
  asm volatile("shf.l.wrap.b32 %0, %1, %1, 7;" : "=r"(value) : "r"(seed) : "memory");
  if (SECOND) asm volatile("xor.b32 %0, %0, %1;" : "+r"(value) : "r"(u32(reinterpret_cast<u64>(data))) : "memory");
  // Nobody goes on without it.
  asm volatile("{\n.reg .pred p;\nsetp.eq.u32 p, %0, 0x5bd1e995;\n@p trap;\n}" ::"r"(value) : "memory");
  const u64 end = now();
  report(out, start, end);
}
