/*dgx
operator = "attention"
summary  = "Scores stay in registers: 128 queries a CTA, keys and values by TMA, the row's maximum and sum as it goes"
parent   = "fragments"
claim    = { geomean = 3, over = "fragments", why = "wgmma, and no wait for keys and values" }
arch     = "sm_90a"
params   = { OVERLAP = [1, 0] }  # weights of one tile beside the products of the tile before
requires = ["d == 64 || d == 128"]

[const]
LENGTH  = "s"
DEPTH   = "d"
HEADS   = "b * h"
KEYS    = 128                  # of a tile
STAGES  = "d == 64 ? 4 : 2"
Q_TILES = "cdiv(s, 128)"
SMEM    = "(128 + 2 * STAGES * KEYS) * d * 2 + 2048"

[[map]]
name    = "Q"
tensor  = "q"
dims    = ["d", "s", "b * h"]
box     = ["64", "64", "1"]
swizzle = "128B"

[[map]]
name    = "K"
tensor  = "k"
dims    = ["d", "s", "b * h"]
box     = ["64", "KEYS", "1"]
swizzle = "128B"

[[map]]
name    = "V"
tensor  = "v"
dims    = ["d", "s", "b * h"]
box     = ["64", "KEYS", "1"]
swizzle = "128B"

[[map]]
name    = "O"
tensor  = "o"
dims    = ["d", "s", "b * h"]
box     = ["64", "64", "1"]
swizzle = "128B"

[[launch]]
kernel = "attention"
grid   = "Q_TILES * HEADS"
block  = 384
smem   = "SMEM"
*/
#include <dgx/ptx/barrier.cuh>
#include <dgx/ptx/convert.cuh>
#include <dgx/ptx/matrix.cuh>
#include <dgx/ptx/mbarrier.cuh>
#include <dgx/ptx/tma.cuh>
#include <dgx/ptx/wgmma_rows.cuh>
#include <dgx/shared.cuh>
using namespace dgx;

constexpr u32 QUERIES = 64, CONSUMERS = 256;  // a warpgroup's queries
constexpr u32 PANELS = DEPTH / 64;                // TMA swizzles 64 columns at a time
constexpr u32 Q_PANEL = QUERIES * 128, KEY_PANEL = KEYS * 128;
constexpr float LOG2_E = 1.44269504f;
constexpr float SCALE = (DEPTH == 64 ? 0.125f : 0.08838834764f) * LOG2_E;  // of a score, for powers of two
constexpr u64 KEEP = ptx::EVICT_LAST;                                   // other CTAs read the same keys

struct Shared {
  alignas(1024) u8 q[2][PANELS][Q_PANEL];
  alignas(1024) u8 k[STAGES][PANELS][KEY_PANEL];
  alignas(1024) u8 v[STAGES][PANELS][KEY_PANEL];
  u64 q_full, k_full[STAGES], v_full[STAGES], k_empty[STAGES], v_empty[STAGES];
};
static_assert(sizeof(Shared) <= SMEM);

struct Ring {
  u32 slot = 0, parity = 0;
  __device__ __forceinline__ Ring next() const {
    return slot + 1 == STAGES ? Ring{0, parity ^ 1} : Ring{slot + 1, parity};
  }
};

// CTAs with the most keys first.
struct Work {
  u32 head, first, tiles;  // its first query, and tiles of keys
};

__device__ __forceinline__ Work work_of() {
  const u32 tile = Q_TILES - 1 - blockIdx.x / HEADS, first = tile * 2 * QUERIES;
  const u32 last = min(first + 2 * QUERIES, LENGTH);
  return {blockIdx.x % HEADS, first, (last + KEYS - 1) / KEYS};
}

__device__ __forceinline__ void load_panels(u8 (&to)[PANELS][KEY_PANEL], const TensorMap* map, const Work& work,
                                            u32 tile, u64& empty, u32 parity, u64& full) {
  ptx::mbarrier_wait(empty, parity);
  ptx::mbarrier_arrive_expect_tx(full, PANELS * KEY_PANEL);
#pragma unroll
  for (u32 panel = 0; panel < PANELS; ++panel)
    ptx::tma_load_3d(ptx::shared_address(to[panel]), map, panel * 64, tile * KEYS, work.head, full, KEEP);
}

// Tiles from the diagonal to the first.
__device__ __forceinline__ void produce(Shared& shared, const Args& args, const Work& work) {
  ptx::mbarrier_arrive_expect_tx(shared.q_full, 2 * PANELS * Q_PANEL);
  for (u32 half = 0; half < 2; ++half)
    for (u32 panel = 0; panel < PANELS; ++panel)
      ptx::tma_load_3d(ptx::shared_address(shared.q[half][panel]), args.maps + MAP_Q, panel * 64,
                       work.first + half * QUERIES, work.head, shared.q_full, ptx::EVICT_FIRST);
  u32 slot = 0, parity = 1;
#pragma unroll 1
  for (u32 tile = work.tiles; tile-- > 0;) {
    load_panels(shared.k[slot], args.maps + MAP_K, work, tile, shared.k_empty[slot], parity, shared.k_full[slot]);
    load_panels(shared.v[slot], args.maps + MAP_V, work, tile, shared.v_empty[slot], parity, shared.v_full[slot]);
    if (++slot == STAGES) slot = 0, parity ^= 1;
  }
}

// s = 64 queries times a tile of keys.
__device__ __forceinline__ void score(float (&s)[KEYS / 2], u64 q, u64 k) {
  ptx::wgmma_fence();
#pragma unroll
  for (u32 step = 0; step < DEPTH / 16; ++step) {
    const u32 panel = step / 4, within = step % 4 * 32;
    ptx::Wgmma<KEYS>::ss(s, q + ((panel * Q_PANEL + within) >> 4), k + ((panel * KEY_PANEL + within) >> 4), step > 0);
  }
  ptx::wgmma_commit();
}

__device__ __forceinline__ float over_row(float a, bool maximum) {
#pragma unroll
  for (u32 lane = 1; lane < 4; lane *= 2) {
    const float b = __shfl_xor_sync(~0u, a, lane);
    a = maximum ? fmaxf(a, b) : a + b;
  }
  return a;
}

// A thread's two rows, 8 apart: what is known of each so far.
struct Rows {
  float top[2], sum[2];
};

// Scores to weights; the sums so far shrink by `shrink`.
__device__ __forceinline__ void weigh(float (&s)[KEYS / 2], Rows& rows, float (&shrink)[2]) {
#pragma unroll
  for (u32 half = 0; half < 2; ++half) {
    float top = rows.top[half];
#pragma unroll
    for (u32 i = 0; i < KEYS / 4; ++i) top = fmaxf(top, s[i / 2 * 4 + half * 2 + i % 2]);
    top = over_row(top, true);
    // Both rounded: a product that is only fused into the difference would leave
    // the sums so far off by what was rounded, 1 % where scores are in the 10000s.
    const float base = __fmul_rn(top, SCALE);
    shrink[half] = ptx::exp2_approx(__fmul_rn(rows.top[half], SCALE) - base);
    rows.top[half] = top;
    float sum = 0.0f;
#pragma unroll
    for (u32 i = 0; i < KEYS / 4; ++i) {
      float& value = s[i / 2 * 4 + half * 2 + i % 2];
      value = ptx::exp2_approx(value * SCALE - base);
      sum += value;
    }
    rows.sum[half] = rows.sum[half] * shrink[half] + sum;
  }
}

__device__ __forceinline__ void mask(float (&s)[KEYS / 2], u32 query, u32 key) {
  const u32 lane = threadIdx.x % 32;
#pragma unroll
  for (u32 i = 0; i < KEYS / 2; ++i) {
    const u32 row = query + lane / 4 + i / 2 % 2 * 8, column = key + i / 4 * 8 + lane % 4 * 2 + i % 2;
    if (column > row) s[i] = __int_as_float(0xFF800000);
  }
}

__device__ __forceinline__ void consume(Shared& shared, const Args& args, const Work& work) {
  const u32 group = threadIdx.x / 128, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
  const bool leader = lane == 0;
  const u32 query = work.first + group * QUERIES + warp * 16;  // of this warp's first row
  const u64 q = ptx::swizzled_descriptor(ptx::shared_address(shared.q[group]));
  float o[DEPTH / 2], s[KEYS / 2];
  Rows rows = {{-1e30f, -1e30f}, {0.0f, 0.0f}};
#pragma unroll
  for (u32 i = 0; i < DEPTH / 2; ++i) o[i] = 0.0f;
  ptx::mbarrier_wait(shared.q_full, 0);
  Ring ring;
  u32 p[KEYS / 16][4];
  float shrink[2];
  const auto start_scores = [&](const Ring& at) {
    ptx::mbarrier_wait(shared.k_full[at.slot], at.parity);
    score(s, q, ptx::swizzled_descriptor(ptx::shared_address(shared.k[at.slot])));
  };
  const auto weigh_scores = [&](const Ring& at, u32 tile) {
    ptx::pin(s);
    if (leader) ptx::mbarrier_arrive(shared.k_empty[at.slot]);
    if ((tile + 1) * KEYS > query + 1) mask(s, query, tile * KEYS);
    weigh(s, rows, shrink);
  };
  const auto start_output = [&](const Ring& at) {
    ptx::mbarrier_wait(shared.v_full[at.slot], at.parity);
    const u64 v = ptx::rows_descriptor(ptx::shared_address(shared.v[at.slot]), KEY_PANEL);
    ptx::wgmma_fence();
#pragma unroll
    for (u32 step = 0; step < KEYS / 16; ++step) ptx::WgmmaRows<DEPTH>::add(o, p[step], v + (step * 16 * 128 >> 4));
    ptx::wgmma_commit();
  };
  const auto finish_output = [&](const Ring& at) {
    ptx::wgmma_wait<0>();
    ptx::pin(o);
    if (leader) ptx::mbarrier_arrive(shared.v_empty[at.slot]);
  };
  const auto take_weights = [&] {
#pragma unroll
    for (u32 i = 0; i < DEPTH / 2; ++i) o[i] *= shrink[i / 2 % 2];
#pragma unroll
    for (u32 i = 0; i < KEYS / 4; ++i) p[i / 4][i % 4] = ptx::f32x2_to_f16x2(s[2 * i], s[2 * i + 1]);
  };
  start_scores(ring);
  ptx::wgmma_wait<0>();
  weigh_scores(ring, work.tiles - 1);
  take_weights();
#pragma unroll 1
  for (u32 tile = work.tiles - 1; tile-- > 0;) {
    const Ring next = ring.next();
    if constexpr (OVERLAP) {
      // The weights of this tile are worked out while the tile before is added up.
      start_scores(next);
      start_output(ring);
      ptx::wgmma_wait<1>();
      weigh_scores(next, tile);
      finish_output(ring);
    } else {
      start_output(ring);
      finish_output(ring);
      start_scores(next);
      ptx::wgmma_wait<0>();
      weigh_scores(next, tile);
    }
    take_weights();
    ring = next;
  }
  start_output(ring);
  finish_output(ring);
  // The queries' place is free: the output leaves from there.
  const float scale[2] = {1.0f / over_row(rows.sum[0], false), 1.0f / over_row(rows.sum[1], false)};
  ptx::named_sync<128>(group + 1);
  const u32 out = ptx::shared_address(shared.q[group]), matrix = lane / 8, line = lane % 8;
#pragma unroll
  for (u32 octet = 0; octet < DEPTH / 8; octet += 2) {
    u32 pair[4];
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
      const float* of = o + octet * 4 + i * 2;
      pair[i] = ptx::f32x2_to_f16x2(of[0] * scale[i % 2], of[1] * scale[i % 2]);
    }
    const u32 row = warp * 16 + matrix % 2 * 8 + line, chunk = octet + matrix / 2;
    const u32 to = out + chunk / 8 * Q_PANEL + row * 128 + ((chunk % 8 ^ row % 8) * 16);
    ptx::store_matrix_x4(to, pair[0], pair[1], pair[2], pair[3]);
  }
  ptx::fence_proxy_async_shared();
  ptx::named_sync<128>(group + 1);
  if (threadIdx.x % 128 == 0 && work.first + group * QUERIES < LENGTH) {
#pragma unroll
    for (u32 panel = 0; panel < PANELS; ++panel)
      asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(
                       args.maps + MAP_O),
                   "r"(panel * 64), "r"(work.first + group * QUERIES), "r"(work.head), "r"(out + panel * Q_PANEL)
                   : "memory");
    ptx::tma_store_commit();
    ptx::tma_store_wait_read<0>();
  }
}

extern "C" __global__ void __launch_bounds__(384, 1) attention(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, attention);
  Shared& shared = shared_memory<Shared>();
  if (threadIdx.x < MAPS) ptx::tma_prefetch_map(args.maps + threadIdx.x);
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(shared.q_full, 1);
    for (u32 i = 0; i < STAGES; ++i) {
      ptx::mbarrier_init(shared.k_full[i], 1);
      ptx::mbarrier_init(shared.v_full[i], 1);
      ptx::mbarrier_init(shared.k_empty[i], CONSUMERS / 32);
      ptx::mbarrier_init(shared.v_empty[i], CONSUMERS / 32);
    }
    ptx::mbarrier_init_fence();
  }
  __syncthreads();
  const Work work = work_of();
  if (threadIdx.x >= CONSUMERS) {
    ptx::registers_shrink<24>();
    if (threadIdx.x == CONSUMERS) produce(shared, args, work);
  } else {
    ptx::registers_grow<240>();
    consume(shared, args, work);
  }
}
