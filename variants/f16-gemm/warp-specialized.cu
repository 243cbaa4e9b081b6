/*dgx
operator = "f16-gemm"
summary  = "TMA fills a ring, two warpgroups multiply, C leaves by TMA; a cluster shares K where tiles are few"
parent   = "tiled"
claim    = { geomean = 0.97, over = "cublas", why = "wgmma fed by TMA; tiles and split chosen for each shape" }
arch     = "sm_90a"
requires = ["n % 8 == 0", "k % 8 == 0"]

# A tile is 128 x COLUMNS of C, or of its transpose with SWAP. SPLIT CTAs of a cluster share its
# K. Cycles: a step of K64 takes the tensor cores 4 * COLUMNS, and its operands come at 50 bytes
# a cycle; a split costs 6000 for each further CTA, and its sums have to meet. Where C has fewer
# rows than columns, its transpose was 1 to 5 % faster.
[tune]
choose   = { SWAP = [0, 1], COLUMNS = [256, 128, 64, 32, 16], SPLIT = [1, 2, 4, 8] }
minimise = """
  OUT_COLUMNS % (SWAP == 1 ? 8 : 64) > 0 || SPLIT * 2 > STEPS || STAGES < 3
    || (SPLIT - 1) * OUT_COLUMNS * 512 > STAGES * STAGE_BYTES ? 1000000000000 :
  max((m * k + n * k + m * n) / 1200,
      cdiv(TILES * SPLIT, sms) * (4000 + 8 * COLUMNS + 6000 * (SPLIT - 1) + 13 * COLUMNS * SPLIT * (SPLIT - 1)
        + cdiv(STEPS, SPLIT) * max(4 * COLUMNS, (128 + COLUMNS) * 128 / 50)))
  + (SWAP != (m < n))
"""

[const]
STEPS        = "cdiv(k, 64)"
LEFT         = "SWAP == 1 ? n : m"  # rows of all tiles, and columns
RIGHT        = "SWAP == 1 ? m : n"
TILES        = "cdiv(LEFT, 128) * cdiv(RIGHT, COLUMNS)"
OWNERS       = "SPLIT == 1 ? 1 : max(1, min(SPLIT, SWAP == 1 ? COLUMNS / 8 : COLUMNS / 64))"
OUT_COLUMNS  = "COLUMNS / OWNERS"   # that a CTA of the cluster stores
PANEL        = "SWAP == 1 ? min(64, OUT_COLUMNS) : 64"
OUT_BYTES    = "2 * 2 * 128 * PANEL"
STAGE_BYTES  = "(128 + COLUMNS) * 128"
STAGES       = "min(12, (232448 - 1024 - OUT_BYTES) / STAGE_BYTES)"
SMEM         = "STAGES * STAGE_BYTES + OUT_BYTES + 1024"

[[map]]
name    = "A"
tensor  = "a"
box     = ["64", "SWAP == 1 ? COLUMNS : 128"]
swizzle = "128B"

[[map]]
name    = "B"
tensor  = "b"
box     = ["64", "SWAP == 1 ? 128 : COLUMNS"]
swizzle = "128B"

[[map]]
name    = "C"
tensor  = "c"
box     = ["64", "PANEL"]
swizzle = "128B"

[[launch]]
kernel  = "gemm"
grid    = "SPLIT == 1 ? min(sms, TILES) : SPLIT * TILES"
block   = 384
smem    = "SMEM"
cluster = "SPLIT"
*/
#include <dgx/ptx/barrier.cuh>
#include <dgx/ptx/cluster.cuh>
#include <dgx/ptx/convert.cuh>
#include <dgx/ptx/matrix.cuh>
#include <dgx/ptx/mbarrier.cuh>
#include <dgx/ptx/tma.cuh>
#include <dgx/ptx/wgmma.cuh>
#include <dgx/shared.cuh>
using namespace dgx;

constexpr u32 ROWS = 128, STEP_K = 64, CONSUMERS = 256;
constexpr u32 LEFT_BYTES = ROWS * STEP_K * 2, RIGHT_BYTES = COLUMNS * STEP_K * 2;
constexpr u32 ROW_TILES = (LEFT + ROWS - 1) / ROWS, COLUMN_TILES = (RIGHT + COLUMNS - 1) / COLUMNS;
constexpr u32 BAND = 8;  // rows of tiles that are worked on together, so that L2 holds what they share
constexpr u32 LEFT_MAP = SWAP ? MAP_B : MAP_A, RIGHT_MAP = SWAP ? MAP_A : MAP_B;
constexpr u32 KEPT = OUT_COLUMNS / 2;  // sums of a thread that its CTA stores
constexpr u32 PANELS = OUT_COLUMNS / PANEL;

struct Shared {
  alignas(1024) u8 left[STAGES][LEFT_BYTES];
  alignas(1024) u8 right[STAGES][RIGHT_BYTES];
  alignas(1024) u8 out[2][2][128 * PANEL];
  u64 full[STAGES], empty[STAGES];
};
static_assert(sizeof(Shared) <= SMEM);
static_assert(SPLIT == 1 || (SPLIT - 1) * KEPT * 4 * CONSUMERS <= STAGES * STAGE_BYTES);

struct Work {
  u32 row, column, first, steps;
};

__device__ __forceinline__ Work work_of(u32 tile) {
  const u32 band = tile / (BAND * COLUMN_TILES), local = tile % (BAND * COLUMN_TILES);
  const u32 rows = min(BAND, ROW_TILES - band * BAND);
  const u32 rank = SPLIT == 1 ? 0 : ptx::cluster_rank();
  const u32 first = STEPS * rank / SPLIT, end = STEPS * (rank + 1) / SPLIT;
  return {(band * BAND + local % rows) * ROWS, local / rows * COLUMNS, first, end - first};
}

__device__ __forceinline__ void produce(Shared& shared, const Args& args) {
  u32 slot = 0, parity = 1;
  for (u32 tile = blockIdx.x / SPLIT; tile < TILES; tile += gridDim.x / SPLIT) {
    const Work work = work_of(tile);
#pragma unroll 1
    for (u32 step = work.first; step < work.first + work.steps; ++step) {
      u64& full = shared.full[slot];
      ptx::mbarrier_wait(shared.empty[slot], parity);
      ptx::mbarrier_arrive_expect_tx(full, STAGE_BYTES);
      const u32 left = ptx::shared_address(shared.left[slot]), right = ptx::shared_address(shared.right[slot]);
      ptx::tma_load_2d(left, args.maps + LEFT_MAP, step * STEP_K, work.row, full);
      ptx::tma_load_2d(right, args.maps + RIGHT_MAP, step * STEP_K, work.column, full);
      if (++slot == STAGES) slot = 0, parity ^= 1;
    }
  }
}

__device__ __forceinline__ void multiply(float (&d)[COLUMNS / 2], Shared& shared, u32& slot, u32& parity, u32 steps) {
  const bool leader = threadIdx.x % 32 == 0;
  const u64 left = ptx::swizzled_descriptor(ptx::shared_address(shared.left) + threadIdx.x / 128 * (LEFT_BYTES / 2));
  const u64 right = ptx::swizzled_descriptor(ptx::shared_address(shared.right));
  u32 before = 0;
#pragma unroll
  for (u32 i = 0; i < COLUMNS / 2; ++i) d[i] = 0.0f;
#pragma unroll 1
  for (u32 step = 0; step < steps; ++step) {
    ptx::mbarrier_wait(shared.full[slot], parity);
    ptx::wgmma_fence();
#pragma unroll
    for (u32 at = 0; at < STEP_K * 2; at += 32)
      ptx::Wgmma<COLUMNS>::ss(d, left + ((slot * LEFT_BYTES + at) >> 4), right + ((slot * RIGHT_BYTES + at) >> 4), 1);
    ptx::wgmma_commit();
    ptx::wgmma_wait<1>();
    if (leader && step > 0) ptx::mbarrier_arrive(shared.empty[before]);
    before = slot;
    if (++slot == STAGES) slot = 0, parity ^= 1;
  }
  ptx::wgmma_wait<0>();
  ptx::pin(d);
  if (leader) ptx::mbarrier_arrive(shared.empty[before]);
}

// Columns from `column` on, by way of shared memory. TMA leaves out what lies outside of C.
__device__ __forceinline__ void store(const float* d, Shared& shared, const Args& args, u32 row, u32 column) {
  const u32 group = threadIdx.x / 128, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const u32 matrix = lane / 8, line = lane % 8;
  const bool leader = threadIdx.x % 128 == 0;
#pragma unroll
  for (u32 panel = 0; panel < PANELS; ++panel) {
    const u32 out = ptx::shared_address(shared.out[group][panel % 2]);
    if (leader) ptx::tma_store_wait_read<PANELS == 1 ? 0 : 1>();  // this place's last panel has left
    ptx::named_sync<128>(group + 1);
#pragma unroll
    for (u32 octet = 0; octet < PANEL / 8; octet += 2) {
      const float* of = d + (panel * PANEL / 8 + octet) * 4;
      const bool two = octet + 1 < PANEL / 8;
      const u32 a = ptx::f32x2_to_f16x2(of[0], of[1]), b = ptx::f32x2_to_f16x2(of[2], of[3]);
      const u32 c = two ? ptx::f32x2_to_f16x2(of[4], of[5]) : 0, e = two ? ptx::f32x2_to_f16x2(of[6], of[7]) : 0;
      if constexpr (SWAP) {
        const u32 token = (octet + matrix / 2) * 8 + line, chunk = warp * 2 + matrix % 2;
        const u32 to = out + token * 128 + ((chunk ^ token % 8) * 16);
        if (two) {
          ptx::store_matrix_x4_transposed(to, a, b, c, e);
        } else {
          const u32 at = octet * 8 + line;
          ptx::store_matrix_x1_transposed(out + at * 128 + ((warp * 2 ^ at % 8) * 16), a);
          ptx::store_matrix_x1_transposed(out + at * 128 + (((warp * 2 + 1) ^ at % 8) * 16), b);
        }
      } else {
        const u32 at = warp * 16 + matrix % 2 * 8 + line, chunk = octet + matrix / 2;
        ptx::store_matrix_x4(out + at * 128 + ((chunk ^ at % 8) * 16), a, b, c, e);
      }
    }
    ptx::fence_proxy_async_shared();
    ptx::named_sync<128>(group + 1);
    if (leader) {
      const u32 across = row + group * 64, along = column + panel * PANEL;
      ptx::tma_store_2d(args.maps + MAP_C, SWAP ? across : along, SWAP ? along : across, out);
      ptx::tma_store_commit();
    }
  }
}

__device__ __forceinline__ void send(u32 to, const float* d) {
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(d[0]), "f"(d[1]), "f"(d[2]), "f"(d[3])
               : "memory");
}

__device__ __forceinline__ void cluster_sync() {
  ptx::cluster_arrive();
  ptx::cluster_wait();
}

// Each CTA of the cluster has sums of a part of K: the first OWNERS gather theirs and store them.
// The ring, which nobody needs any more, is the inbox.
__device__ __forceinline__ void gather(float (&d)[COLUMNS / 2], Shared& shared, const Args& args, const Work& work) {
  const u32 rank = ptx::cluster_rank();
  const u32 inbox = ptx::shared_address(&shared) + threadIdx.x * 16;
  const auto place = [&](u32 from, u32 four) -> u32 { return inbox + (from * (KEPT / 4) + four) * (CONSUMERS * 16); };
  cluster_sync();
#pragma unroll
  for (u32 owner = 0; owner < OWNERS; ++owner) {
    if (owner == rank) continue;
    const u32 slot = rank < owner ? rank : rank - 1;
#pragma unroll
    for (u32 four = 0; four < KEPT / 4; ++four)
      send(ptx::remote_address(place(slot, four), owner), d + owner * KEPT + four * 4);
  }
  cluster_sync();
#pragma unroll
  for (u32 owner = 0; owner < OWNERS; ++owner) {
    if (owner != rank) continue;
    float* sums = d + owner * KEPT;
#pragma unroll
    for (u32 from = 1; from < SPLIT; ++from)
#pragma unroll
      for (u32 four = 0; four < KEPT / 4; ++four) {
        const float4 more = ptx::load_shared_v4_f32(place(from - 1, four));
        float* to = sums + four * 4;
        to[0] += more.x, to[1] += more.y, to[2] += more.z, to[3] += more.w;
      }
    store(sums, shared, args, work.row, work.column + owner * OUT_COLUMNS);
  }
}

__device__ __forceinline__ void consume(Shared& shared, const Args& args) {
  u32 slot = 0, parity = 0;
  for (u32 tile = blockIdx.x / SPLIT; tile < TILES; tile += gridDim.x / SPLIT) {
    const Work work = work_of(tile);
    float d[COLUMNS / 2];
    multiply(d, shared, slot, parity, work.steps);
    if constexpr (SPLIT == 1) {
      store(d, shared, args, work.row, work.column);
    } else {
      gather(d, shared, args, work);
    }
  }
  if (threadIdx.x % 128 == 0) ptx::tma_store_wait_read<0>();
}

extern "C" __global__ void __launch_bounds__(384, 1) gemm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, gemm);
  Shared& shared = shared_memory<Shared>();
  if (threadIdx.x < MAPS) ptx::tma_prefetch_map(args.maps + threadIdx.x);
  if (threadIdx.x == 0) {
    for (u32 i = 0; i < STAGES; ++i) {
      ptx::mbarrier_init(shared.full[i], 1);
      ptx::mbarrier_init(shared.empty[i], CONSUMERS / 32);
    }
    ptx::mbarrier_init_fence();
  }
  __syncthreads();
  if (threadIdx.x >= CONSUMERS) {
    ptx::registers_shrink<40>();
    if (threadIdx.x == CONSUMERS) produce(shared, args);
    __syncwarp();
    if constexpr (SPLIT > 1) cluster_sync(), cluster_sync();
  } else {
    ptx::registers_grow<232>();
    consume(shared, args);
  }
}
