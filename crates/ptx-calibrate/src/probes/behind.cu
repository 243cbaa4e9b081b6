/*probe
question = "What waits behind stores to shared memory: the registers they read, other accesses, special registers, fences and barriers?"

# What was stored is overwritten and stored again, one to four stores of 16 bytes a lane at a time, by
# one warp, one of each partition, and two.
[[case]]
name = "overwrite/{STORES}/{block}"
each = { STORES = [1, 4] }
define = { WHAT = "overwrite" }
block = 32
[[case]]
name = "overwrite/{STORES}/{block}"
each = { STORES = [1, 4] }
define = { WHAT = "overwrite" }
block = 128
[[case]]
name = "overwrite/{STORES}/{block}"
each = { STORES = [1, 4] }
define = { WHAT = "overwrite" }
block = 256

# Something else behind the stores, waited for before the next ones.
[[case]]
name = "{WHAT}/{STORES}/{block}"
each = { WHAT = ["special", "load", "fence", "proxy_fence", "barrier"], STORES = [0, 1, 4, 8] }
block = 32
[[case]]
name = "{WHAT}/{STORES}/{block}"
each = { WHAT = ["special", "load", "fence", "proxy_fence", "barrier"], STORES = [0, 4, 8] }
block = 256
*/
#include <probe.cuh>

constexpr u32 PART = 512;

// Each is given a word and makes it another.
#define do_overwrite(x) asm volatile("add.s32 %0, %0, 1;" : "+r"(x))
#define do_special(x) asm volatile("{.reg .u32 t; mov.u32 t, %%warpid; add.u32 %0, %0, t;}" : "+r"(x))
// Volatile: else ptxas takes the word it has stored.
#define do_load(x)                                                                                              \
  asm volatile("{.reg .u32 t; ld.volatile.shared.u32 t, [%1]; add.u32 %0, %0, t;}"                               \
               : "+r"(x)                                                                                        \
               : "r"(mine + (STORES ? STORES - 1 : 0) * PART)                                                   \
               : "memory")
#define do_fence(x) asm volatile("fence.acq_rel.cta;" ::: "memory")
#define do_proxy_fence(x) asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define do_barrier(x) asm volatile("bar.sync 0;" ::: "memory")

#define NAMED(name) do_##name
#define CALL(name) NAMED(name)

PROBE probe(ARGUMENTS) {
  __shared__ __align__(1024) u8 memory[8 * 4096];
  const u32 mine = shared_address(memory) + warp() % 8 * 4096 + lane() * 16;
  u32 x = seed * 3 + threadIdx.x, a = x + 1, b = x + 2, c = x + 3;
  u64 start = 0, end = 0;
#pragma unroll 1
  for (int repetition = 0; repetition < 2; ++repetition) {
    __syncthreads();
    start = now();
#pragma unroll 8
    for (int i = 0; i < 64; ++i) {
#pragma unroll
      for (int s = 0; s < STORES; ++s) store_shared_v4(mine + s * PART, make_uint4(x, a, b, c));
      CALL(WHAT)(x);
    }
    need(scratch, x + a + b + c);
    end = now();
  }
  report(out, start, end);
}
