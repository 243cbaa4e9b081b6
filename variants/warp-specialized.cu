/*dgx
summary  = "A producer warp, one warpgroup for GEMM 1, one for GEMM 2, silu(g) handed over in shared memory"
extend   = "interleaved"
round    = 6
claim    = { geomean = 1.25, over = "interleaved", why = "loading never waits for arithmetic; 1.25 to 1.40 pitched" }

[const]
STAGES    = 2
CONSUMERS = 256
THREADS   = "CONSUMERS + 32"
SMEM      = "(BM + 2 * BN) * BK * 2 + STAGES * (BM + 2 * BN) * BK * 9 / 16 + 2048"
*/
#include <dgx/epilogue.cuh>
#include <dgx/mainloop.cuh>
#include <dgx/shared.cuh>
using namespace dgx;

struct Shared : Staging<BM, BN, 2, STAGES> {
  u64 empty[STAGES];
};
static_assert(BK == STEP && sizeof(Shared) <= SMEM);

constexpr u32 HALVES = BM / 64;
enum NamedBarrier : u32 { CONSUMED = 1, GATE_READY = 2 };

__device__ __forceinline__ void produce(Shared& shared, const Operand& a, const Operand (&b)[2]) {
  for (u32 step = 0; step < a.k / STEP; ++step) {
    const u32 slot = step % STAGES;
    ptx::mbarrier_wait(shared.empty[slot], step / STAGES % 2 ^ 1);
    load_stage(shared, slot, a, b, step);
  }
}

// All 128 rows of one of the two GEMMs. The A tile is everybody's work, the B
// tile only that of the warpgroup that multiplies with it.
__device__ __forceinline__ void multiply_one(float (&d)[HALVES][BN / 2], Shared& shared, u32 weight, const Tile& tile) {
  const u32 steps = tile.group->k / STEP;
  u32 step = 0;
  do {
    const u32 slot = step % STAGES;
    ptx::mbarrier_wait(shared.full[slot], step / STAGES % 2);
    dequantise<BM, CONSUMERS>(shared.a, shared.ring[slot].a, tile.row, threadIdx.x);
    dequantise<BN, 128>(shared.b[weight], shared.ring[slot].b[weight], tile.column, threadIdx.x % 128);
    ptx::fence_proxy_async_shared();
    ptx::named_sync<CONSUMED, CONSUMERS>();
    ptx::mbarrier_arrive(shared.empty[slot]);
    ptx::wgmma_fence();
#pragma unroll
    for (u32 half = 0; half < HALVES; ++half) multiply(d[half], shared.a, half * 64, shared.b[weight], step > 0);
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    ptx::named_sync<CONSUMED, CONSUMERS>();
  } while (++step < steps);
#pragma unroll
  for (u32 half = 0; half < HALVES; ++half) ptx::pin(d[half]);
  DGX_STAMP(epilogue);
}

// Thread t of both warpgroups holds the same elements, so silu(g) passes from
// thread to thread through the fp16 tiles, which are free by now.
__device__ __forceinline__ u32 handover(Shared& shared, u32 half, u32 i) {
  static_assert(sizeof(shared.a) + sizeof(shared.b) >= BM * BN * sizeof(float));
  return ptx::shared_address(&shared.a) + (half * (BN / 4) + i / 2) * 1024 + threadIdx.x % 128 * 8;
}

__device__ __forceinline__ void give_gate(Shared& shared, const float (&gate)[HALVES][BN / 2]) {
#pragma unroll
  for (u32 half = 0; half < HALVES; ++half) {
#pragma unroll
    for (u32 i = 0; i < BN / 2; i += 2)
      ptx::store_shared_v2_f32(handover(shared, half, i), silu(gate[half][i] * UNSCALE),
                               silu(gate[half][i + 1] * UNSCALE));
  }
  ptx::named_arrive<CONSUMERS>(GATE_READY);
}

__device__ __forceinline__ void store_with_gate(Shared& shared, Tile tile, const float (&up)[HALVES][BN / 2]) {
  ptx::named_sync<GATE_READY, CONSUMERS>();
#pragma unroll
  for (u32 half = 0; half < HALVES; ++half) {
    each_pair<BN>(tile, threadIdx.x % 128, [&](u32 i, u32 row, u32 column) {
      const float2 gate = ptx::load_shared_v2_f32(handover(shared, half, i));
      ptx::store_global_u32(tile.group->c + u64(row) * tile.group->n + column,
                            ptx::f32x2_to_f16x2(gate.x * up[half][i] * UNSCALE, gate.y * up[half][i + 1] * UNSCALE));
    });
    tile.row += 64;
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) dual_gemm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, dual_gemm);
  Shared& shared = shared_memory<Shared>();
  const Tile tile = find_tile_by_walk<BM, BN>(args, blockIdx.x, MAPS);
  const Group& group = *tile.group;
  const Operand a(tile.maps + MAP_A, group.sfa_atoms, tile.row, group.k);
  const Operand b[2] = {{tile.maps + MAP_B1, group.sfb1_atoms, tile.column, group.k},
                        {tile.maps + MAP_B2, group.sfb2_atoms, tile.column, group.k}};

  if (threadIdx.x == 0) {
    for (u32 i = 0; i < STAGES; ++i) ptx::mbarrier_init(shared.empty[i], CONSUMERS);
  }
  open(shared);
  if (threadIdx.x >= CONSUMERS) {
    if (threadIdx.x == CONSUMERS) produce(shared, a, b);
    return;
  }
  const u32 weight = threadIdx.x / 128;
  float product[HALVES][BN / 2];
  multiply_one(product, shared, weight, tile);
  if (weight == 0) {
    give_gate(shared, product);
  } else {
    store_with_gate(shared, tile, product);
  }
}
