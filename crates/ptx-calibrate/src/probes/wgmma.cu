/*probe
question = "How long does a wgmma take, by width, source of A, warpgroups and groups under way; and what of its SM partition is left for others?"
arch     = "sm_90a"

# Four wgmmas a group (K64), one group under way while the next is issued.
[[case]]
name = "{FORM}/n{WIDTH}/1-group"
each = { FORM = ["ss", "rs"], WIDTH = [8, 16, 32, 64, 96, 128, 160, 192, 224, 256] }
define = { GROUP = 4, WAIT = 1 }
block = 128
smem = 66560
data = 65536
[[case]]
name = "{FORM}/n{WIDTH}/2-groups"
each = { FORM = ["ss", "rs"], WIDTH = [8, 64, 96, 128, 192, 256] }
define = { GROUP = 4, WAIT = 1 }
block = 256
smem = 66560
data = 65536
[[case]]
name = "{FORM}/n{WIDTH}/3-groups"
each = { FORM = ["rs"], WIDTH = [8, 64, 96, 128] }
define = { GROUP = 4, WAIT = 1 }
block = 384
smem = 66560
data = 65536
# One after the other: latency.
[[case]]
name = "{FORM}/n{WIDTH}/alone"
each = { FORM = ["ss", "rs"], WIDTH = [8, 64, 128, 256] }
define = { GROUP = 1, WAIT = 0 }
block = 128
smem = 66560
data = 65536
[[case]]
name = "{FORM}/n{WIDTH}/{GROUP}-then-wait"
each = { FORM = ["ss", "rs"], WIDTH = [64, 256], GROUP = [4, 8] }
define = { WAIT = 0 }
block = 128
smem = 66560
data = 65536

# What a step costs: COUNT of one kind of instruction a thread beside four wgmmas.
[[case]]
name = "beside/{BESIDE}-{COUNT}/n{WIDTH}/2-groups"
each = { BESIDE = ["lop3", "hmul2", "ffma", "prmt"], COUNT = [32, 64, 96], WIDTH = [8, 64, 96] }
define = { FORM = "rs", GROUP = 4, WAIT = 1 }
block = 256
smem = 66560
data = 65536
[[case]]
name = "beside/{BESIDE}-{COUNT}/n{WIDTH}/2-groups"
each = { BESIDE = ["lop3", "ffma"], COUNT = [16, 64, 128], WIDTH = [128, 256] }
define = { FORM = "rs", GROUP = 4, WAIT = 1 }
block = 256
smem = 66560
data = 65536
[[case]]
name = "beside/{BESIDE}-{COUNT}/n{WIDTH}/ss/2-groups"
each = { BESIDE = ["lop3", "ffma"], COUNT = [64], WIDTH = [64, 128] }
define = { FORM = "ss", GROUP = 4, WAIT = 1 }
block = 256
smem = 66560
data = 65536
[[case]]
name = "beside/{BESIDE}-{COUNT}/n{WIDTH}/2-groups"
each = { BESIDE = ["lds16", "sts16"], COUNT = [16, 32], WIDTH = [64, 128] }
define = { FORM = "rs", GROUP = 4, WAIT = 1 }
block = 256
smem = 66560
data = 65536
[[case]]
name = "beside/{BESIDE}-{COUNT}/n{WIDTH}/1-group"
each = { BESIDE = ["lop3", "ffma"], COUNT = [64], WIDTH = [64, 128] }
define = { FORM = "rs", GROUP = 4, WAIT = 1 }
block = 128
smem = 66560
data = 65536
*/
#include <beside.cuh>
#include <probe.cuh>
#include <dgx/ptx/barrier.cuh>
#include <dgx/ptx/wgmma.cuh>

#ifndef BESIDE
#define BESIDE none
#define COUNT 0
#endif

// A lane's 16 bytes: all its words hold their own address.
#define beside_lds16(x, y, z)                                                                                         \
  asm volatile("{.reg .b32 q, r, s; ld.volatile.shared.v4.u32 {%0, q, r, s}, [%0];}" : "+r"(x)::"memory")
#define beside_sts16(x, y, z) asm volatile("st.volatile.shared.v4.u32 [%0], {%0, %0, %0, %0};" ::"r"(x) : "memory")

struct Operands {
  u32 registers[4];
  u64 a, b;
};

__device__ __forceinline__ void ss(float (&d)[WIDTH / 2], const Operands& o, int k) {
  Wgmma<WIDTH>::ss(d, o.a + 2 * (k % 4), o.b + 2 * (k % 4), 1);
}

__device__ __forceinline__ void rs(float (&d)[WIDTH / 2], const Operands& o, int k) {
  Wgmma<WIDTH>::rs(d, o.registers, o.b + 2 * (k % 4), 1);
}

constexpr int CHAINS = 8;
constexpr u32 OPERAND_BYTES = 49152;

PROBE probe(ARGUMENTS) {
  extern __shared__ __align__(1024) u8 memory[];
  const u32 base = (shared_address(memory) + 1023) / 1024 * 1024;
  // Halves below 2 in magnitude: real data draw real power.
  const u32* source = reinterpret_cast<const u32*>(data);
  for (u32 i = threadIdx.x; i < OPERAND_BYTES / 4; i += blockDim.x)
    store_shared_u32(base + 4 * i, source[i] & 0xbfffbfffu);
  const u32 mine = base + OPERAND_BYTES + threadIdx.x * 16;
  for (int word = 0; word < 4; ++word) store_shared_u32(mine + 4 * word, mine);
  Operands o;
  for (int i = 0; i < 4; ++i) o.registers[i] = source[threadIdx.x * 4 + i] & 0xbfffbfffu;
  o.a = swizzled_descriptor(base);
  o.b = swizzled_descriptor(base + 8192);
  float d[WIDTH / 2];
#pragma unroll
  for (int i = 0; i < WIDTH / 2; ++i) d[i] = 0;
  [[maybe_unused]] const u32 z = seed * 3 + 7;
  u32 x[CHAINS];
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) x[c] = mine;
  fence_proxy_async_shared();
  u64 start = 0, end = 0;
#pragma unroll 1
  for (int repetition = 0; repetition < 2; ++repetition) {
    __syncthreads();
    start = now();
#pragma unroll 1
    for (int i = 0; i < 16; ++i) {
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < GROUP; ++k) FORM(d, o, k);
      wgmma_commit();
#pragma unroll
      for (int j = 0; j < COUNT; ++j) CALL(BESIDE)(x[j % CHAINS], x[(j + 1) % CHAINS], z);
      wgmma_wait<WAIT>();
    }
    wgmma_wait<0>();
    end = now();
  }
  u32 sum = 0;
  for (int i = 0; i < WIDTH / 2; ++i) sum ^= __float_as_uint(d[i]);
  for (int c = 0; c < CHAINS; ++c) sum += x[c];
  need(scratch, sum);
  report(out, start, end);
}
