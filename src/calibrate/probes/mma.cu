/*probe
question = "How long does a warp's own mma.sync take?"

[[case]]
name = "m16n8k16/latency"
define = { CHAINS = 1 }
block = 32
[[case]]
name = "m16n8k16/1-warp"
define = { CHAINS = 8 }
block = 128
[[case]]
name = "m16n8k16/2-warps"
define = { CHAINS = 8 }
block = 256
[[case]]
name = "m16n8k16/4-warps"
define = { CHAINS = 8 }
block = 512
*/
#include <probe.cuh>
#include <dgx/ptx/mma.cuh>

PROBE probe(ARGUMENTS) {
  float4 d[CHAINS];
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) d[c] = float4{0, 0, 0, 0};
  const u32 a = seed & 0x3c003c00u, b = (seed * 5) & 0x3c003c00u;
  u64 start = 0, end = 0;
#pragma unroll 1
  for (int repetition = 0; repetition < 2; ++repetition) {
    __syncthreads();
    start = now();
#pragma unroll 1
    for (int i = 0; i < 16; ++i) {
#pragma unroll
      for (int u = 0; u < 16 / CHAINS; ++u) {
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) mma_m16n8k16(d[c], a, b, a, b, b, a);
      }
    }
    float sum = 0;
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) sum += d[c].x;
    need(scratch, __float_as_uint(sum));
    end = now();
  }
  report(out, start, end);
}
