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
# COUNT of one kind of instruction behind each of eight, by two and four warps a partition.
[[case]]
name = "beside/{BESIDE}-{COUNT}/{block}"
each = { BESIDE = ["lop3", "hmul2", "prmt", "ffma"], COUNT = [1, 2, 4] }
define = { CHAINS = 8 }
block = 256
[[case]]
name = "beside/{BESIDE}-{COUNT}/{block}"
each = { BESIDE = ["none"], COUNT = [1] }
define = { CHAINS = 8 }
block = 256
[[case]]
name = "beside/{BESIDE}-{COUNT}/{block}"
each = { BESIDE = ["lop3", "hmul2"], COUNT = [2, 4] }
define = { CHAINS = 8 }
block = 512
# Words of weights taken apart in registers, each product of eight columns with all of them.
[[case]]
name = "dequantised/{OCTETS}/{block}"
each = { OCTETS = [1, 2, 4] }
block = 256
[[case]]
name = "dequantised/{OCTETS}/{block}"
each = { OCTETS = [1, 2, 4] }
block = 512
*/
#include <beside.cuh>
#include <probe.cuh>
#include <dgx/dequant.cuh>
#include <dgx/ptx/mma.cuh>

#ifdef OCTETS

// Sixteen rows, half of them of one word and half of another, as few tokens meet their weights.
PROBE probe(ARGUMENTS) {
  float4 d[OCTETS];
  uint4 columns[OCTETS];
#pragma unroll
  for (u32 i = 0; i < OCTETS; ++i) {
    d[i] = float4{0, 0, 0, 0};
    const u32 value = (seed * (2 * i + 3)) & 0x3c003c00u;
    columns[i] = uint4{value, value ^ 0x400u, value ^ 0x800u, value ^ 0xc00u};
  }
  u32 gate = seed * 17, up = seed * 19;
  const u32 scale = (seed * 23) & 0x3c003c00u;
  u64 start = 0, end = 0;
#pragma unroll 1
  for (int repetition = 0; repetition < 2; ++repetition) {
    __syncthreads();
    start = now();
#pragma unroll 1
    for (int i = 0; i < 16; ++i) {
#pragma unroll
      for (int word = 0; word < 4; ++word) {
        const uint4 g = dequantise8(gate, scale), u = dequantise8(up, scale);
#pragma unroll
        for (u32 i = 0; i < OCTETS; ++i) {
          mma_m16n8k16(d[i], g.x, u.x, g.y, u.y, columns[i].x, columns[i].y);
          mma_m16n8k16(d[i], g.z, u.z, g.w, u.w, columns[i].z, columns[i].w);
        }
        gate += 0x01234567u, up += 0x76543210u;
      }
    }
    float sum = 0;
#pragma unroll
    for (u32 i = 0; i < OCTETS; ++i) sum += d[i].x;
    need(scratch, __float_as_uint(sum));
    end = now();
  }
  report(out, start, end);
}
#elif defined(BESIDE)

// Operands of its own for each product, as where they are dequantised.
PROBE probe(ARGUMENTS) {
  float4 d[CHAINS];
  u32 a[4], b[2], x[8];
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) d[c] = float4{0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < 4; ++i) a[i] = (seed * (2 * i + 3)) & 0x3c003c00u;
  b[0] = (seed * 11) & 0x3c003c00u, b[1] = (seed * 13) & 0x3c003c00u;
#pragma unroll
  for (int i = 0; i < 8; ++i) x[i] = (seed * (2 * i + 17)) & 0x3c003c00u;
  u64 start = 0, end = 0;
#pragma unroll 1
  for (int repetition = 0; repetition < 2; ++repetition) {
    __syncthreads();
    start = now();
#pragma unroll 1
    for (int i = 0; i < 32; ++i) {
#pragma unroll
      for (int c = 0; c < CHAINS; ++c) {
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(d[c].x), "+f"(d[c].y), "+f"(d[c].z), "+f"(d[c].w)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#pragma unroll
        for (int k = 0; k < COUNT; ++k) CALL(BESIDE)(x[(c * COUNT + k) % 8], a[k % 4], b[k % 2]);
      }
    }
    float sum = 0;
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) sum += d[c].x;
    u32 rest = __float_as_uint(sum);
#pragma unroll
    for (int i = 0; i < 8; ++i) rest ^= x[i];
    need(scratch, rest);
    end = now();
  }
  report(out, start, end);
}
#else

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
#endif
