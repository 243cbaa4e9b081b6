/*probe
question = "How long do products into tensor memory take, by width, kind and pairs of CTAs; and how long a commit, copies of scales, loads?"
arch     = "sm_100a"

# From one product and from many, the interval; of one, with its commit, the latency.
[[case]]
name = "{DEED}/n{WIDTH}/{COUNT}"
each = { DEED = ["nvfp4", "f16"], WIDTH = [64, 128, 192, 256], COUNT = [1, 33] }
block = 128
smem = 66560
data = 65536
[[case]]
name = "kept/n{WIDTH}/33"
each = { WIDTH = [64, 128] }
define = { DEED = "kept", COUNT = 33 }
block = 128
smem = 66560
data = 65536
[[case]]
name = "pair/n{WIDTH}/{COUNT}"
each = { WIDTH = [64, 128, 256], COUNT = [1, 33] }
define = { DEED = "nvfp4", GROUP = "PAIR" }
grid = 2
cluster = 2
block = 128
smem = 66560
data = 65536

[[case]]
name = "{DEED}/{COUNT}"
each = { DEED = ["atoms", "nothing_at_all"], COUNT = [1, 33] }
define = { WIDTH = 64 }
block = 128
smem = 66560
data = 65536
# By every warp, each of its own quarter.
[[case]]
name = "loads/{COUNT}"
each = { COUNT = [1, 8, 32] }
define = { DEED = "loads", WIDTH = 64 }
block = 128
smem = 66560
data = 65536
*/
#include <probe.cuh>
#include <dgx/ptx/barrier.cuh>
#include <dgx/ptx/cluster.cuh>
#include <dgx/ptx/tcgen05.cuh>

#ifndef GROUP
#define GROUP ONE
#endif
constexpr auto TOGETHER = CtaGroup::GROUP;
constexpr bool IN_PAIR = TOGETHER == CtaGroup::PAIR;
constexpr u32 ROWS = IN_PAIR ? 256 : 128;

// Of a CTA: 16 KiB of A, 32 KiB of B, and atoms behind them. Sums lie in
// columns 0 to 255, scales from 256 on.
struct Operands {
  u32 columns, atoms;
  u64 a, b;
};
constexpr u32 A_SCALES = 256, B_SCALES = 264;

template <ReuseA Reuse>
__device__ __forceinline__ void multiply(const Operands& o, bool add) {
  mma_nvfp4<TOGETHER, Reuse>(o.columns, o.a, o.b, nvfp4_instruction(ROWS, WIDTH), o.columns + A_SCALES,
                             o.columns + B_SCALES, add);
}
__device__ __forceinline__ void nvfp4(const Operands& o, u32 i) { multiply<ReuseA::NONE>(o, i > 0); }

// One product fills the collector, the next is the last that uses it.
__device__ __forceinline__ void kept(const Operands& o, u32 i) {
  i % 2 == 0 ? multiply<ReuseA::KEEP>(o, i > 0) : multiply<ReuseA::LAST>(o, true);
}

__device__ __forceinline__ void f16(const Operands& o, u32 i) {
  constexpr u32 INSTRUCTION = 1 << 4 | (WIDTH >> 3) << 17 | (128 >> 4) << 24;
  asm volatile(
      "{\n.reg .pred add;\nsetp.ne.u32 add, %4, 0;\n"
      "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, add;\n}" ::"r"(o.columns),
      "l"(o.a), "l"(o.b), "r"(INSTRUCTION), "r"(i)
      : "memory");
}

__device__ __forceinline__ void atoms(const Operands& o, u32 i) {
  copy_atom<TOGETHER>(o.columns + A_SCALES + i % 4 * 4, atom_descriptor(o.atoms));
}
__device__ __forceinline__ void nothing_at_all(const Operands&, u32) {}
__device__ __forceinline__ void loads(const Operands&, u32) {}
__host__ __device__ constexpr bool is(const char* deed, const char* other) {
  for (; *deed != 0 && *deed == *other; ++deed, ++other);
  return *deed == *other;
}
#define TEXT(deed) #deed
#define NAME(deed) TEXT(deed)
constexpr bool LOADS = is(NAME(DEED), "loads");

PROBE __launch_bounds__(128) probe(ARGUMENTS) {
  extern __shared__ __align__(1024) u8 memory[];
  __shared__ u64 done;
  __shared__ u32 columns;
  const u32 base = (shared_address(memory) + 1023) / 1024 * 1024;
  const u32* source = reinterpret_cast<const u32*>(data);
  // Neither NaN nor infinite, whatever they are taken for.
  for (u32 i = threadIdx.x; i < 65536 / 4; i += blockDim.x) store_shared_u32(base + 4 * i, source[i] & 0x3b3b3b3bu);
  fence_proxy_async_shared();
  if (threadIdx.x == 0) mbarrier_init(done, 1), mbarrier_init_fence();
  if (warp() == 0) tmem_allocate<512, TOGETHER>(columns);
  tensor_fence_before();
  __syncthreads();
  if (IN_PAIR) cluster_arrive(), cluster_wait();
  tensor_fence_after();
  const Operands o{columns, base + 49152, operand_descriptor(base), operand_descriptor(base + 16384)};
  const bool issues = threadIdx.x == 0 && (!IN_PAIR || cluster_rank() == 0);
  auto committed = [&](u32 phase) {
    if (issues) IN_PAIR ? mma_commit_pair(done) : mma_commit(done);
    mbarrier_wait_unstamped(done, phase & 1);
    tensor_fence_after();
  };
  if (issues) {
    for (u32 i = 0; i < 8; ++i) copy_atom<TOGETHER>(o.columns + A_SCALES + 4 * i, atom_descriptor(o.atoms + 512 * i));
    nvfp4(o, 0);
  }
  committed(0);
  u64 start = 0, end = 0;
  float d[16];
#pragma unroll 1
  for (u32 repetition = 1; repetition < 3; ++repetition) {
    __syncthreads();
    start = now();
    if constexpr (LOADS) {
#pragma unroll 1
      for (u32 i = 0; i < COUNT; ++i) tmem_load(d, tmem_quarter(o.columns) + i % 4 * 16);
      tmem_wait(d);
      need(scratch, __float_as_uint(d[0]));
    } else {
      if (issues) {
#pragma unroll 1
        for (u32 i = 0; i < COUNT; ++i) DEED(o, i);
      }
      committed(repetition);
    }
    end = now();
  }
  report(out, start, end);
  tensor_fence_before();
  __syncthreads();
  if (IN_PAIR) cluster_arrive(), cluster_wait();
  tensor_fence_after();
  if (warp() == 0) tmem_free<512, TOGETHER>(columns);
}
