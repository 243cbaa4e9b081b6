/*probe
question = "How long until a bulk copy out of shared memory has been read, and until it is done; how many bytes a clock?"

# A group of DEPTH copies, then the wait for all of it: `read` until shared memory is free again.
[[case]]
name = "plain/{WAIT}/{DEPTH}x{BYTES}"
each = { WAIT = ["done", "read"], BYTES = [512, 16384], DEPTH = [1, 4] }
define = { COUNT = 8 }
block = 32
smem = "BYTES * DEPTH"
scratch = "4096 + BYTES * DEPTH * COUNT"
[[case]]
name = "tensor/done/{ROWS}"
each = { ROWS = [16, 64] }
define = { WAIT = "done", ROW = 128, BYTES = "ROW * ROWS", DEPTH = 1, COUNT = 8 }
block = 32
smem = "BYTES * DEPTH + 1024"
scratch = "4096 + 8192 * ROWS"
map = { width = 8192, rows = "ROWS", box = ["ROW", "ROWS"], swizzle = "ROW", into = "scratch", offset = 4096 }
[[case]]
name = "plain/all/{DEPTH}x{BYTES}"
each = { BYTES = [16384], DEPTH = [4] }
define = { WAIT = "done", COUNT = 4 }
grid = 132
block = 32
smem = "BYTES * DEPTH"
scratch = "4096 + 132 * BYTES * DEPTH * COUNT"
read = "nanos"
*/
#include <probe.cuh>
#include <dgx/ptx/barrier.cuh>
#include <dgx/ptx/tma.cuh>

#define wait_done asm volatile("cp.async.bulk.wait_group 0;" ::: "memory")
#define wait_read asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory")
#define NAMED(name) wait_##name
#define CALL(name) NAMED(name)

PROBE probe(ARGUMENTS) {
  extern __shared__ __align__(1024) u8 ring[];
  const u32 slots = shared_address(ring);
  for (u32 at = threadIdx.x * 4; at < BYTES * DEPTH; at += 4 * blockDim.x) store_shared_u32(slots + at, seed + at);
  fence_proxy_async_shared();
  __syncthreads();
  if (threadIdx.x != 0) return;
  u64 start = 0, end = 0;
#pragma unroll 1
  for (int repetition = 0; repetition < 2; ++repetition) {
    CALL(done);
    start = now();
#pragma unroll 1
    for (u32 i = 0; i < COUNT; ++i) {
#pragma unroll
      for (u32 d = 0; d < DEPTH; ++d) {
        const u32 from = slots + d * BYTES;
#ifdef ROW
        tma_store_2d(reinterpret_cast<const TensorMap*>(scratch), (i * DEPTH + d) * ROW, 0, from);
#else
        u8* to = scratch + 4096 + (u64(blockIdx.x * COUNT + i) * DEPTH + d) * BYTES;
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(BYTES)
                     : "memory");
#endif
      }
      tma_store_commit();
      CALL(WAIT);
    }
    end = now();
  }
  CALL(done);
  report(out, start, end);
}
