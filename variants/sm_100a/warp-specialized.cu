/*dgx
summary  = "A warp for TMA, one for the MMAs, four for the epilogue; two sets of accumulators, so that a tile is gated under the next one's MMAs"
extend   = "interleaved"
round    = 6
claim    = { geomean = 1.25, over = "interleaved", why = "loading never waits for arithmetic; 1.25 to 1.40 pitched" }

# 64 columns of each weight: two pairs of accumulators leave room for the scales.
[const]
BN       = 64
STAGES   = 5
BUFFERS  = 2
GATERS   = 128
THREADS  = "GATERS + 64"
SMEM     = "STAGES * ((BM + 2 * BN) * BK / 2 + 3 * 8 * BK) + 2048"

[[launch]]
kernel = "dual_gemm"
grid   = "min(sms, sum(tiles))"
block  = "THREADS"
smem   = "SMEM"
*/
#include <dgx/sm100/kernel.cuh>
using namespace dgx;

struct Shared : Staging<BM, BN, 2, STAGES, 2 * BUFFERS> {
  u64 product[BUFFERS];  // is complete
  u64 gated[BUFFERS];    // and read
};
static_assert(BK == STEP && sizeof(Shared) <= SMEM);
enum Warp : u32 { LOADER = GATERS / 32, MULTIPLIER };

// Calls work(index, tile, a, b) for each of this CTA's tiles, in turn.
template <typename Work>
__device__ __forceinline__ void each_tile(const Args& args, Work work) {
  u32 index = 0;
  for (u32 drawn = blockIdx.x; drawn < args.tile_count; drawn += gridDim.x, ++index) {
    const Tile tile = find_tile_by_walk<BM, BN>(args, drawn, MAPS);
    const Group& group = *tile.group;
    const Operand a(tile.maps + MAP_A, group.sfa_atoms, tile.row, group.k);
    const Operand b[2] = {{tile.maps + MAP_B1, group.sfb1_atoms, tile.column, group.k},
                          {tile.maps + MAP_B2, group.sfb2_atoms, tile.column, group.k}};
    work(index, tile, a, b);
  }
}

__device__ __forceinline__ void load(Shared& shared, const Args& args) {
  u32 turn = 0;
  each_tile(args, [&](u32, const Tile&, const Operand& a, const Operand(&b)[2]) {
    for (u32 step = 0; step < a.steps(); ++step) load_step(shared, turn++, a, b, step);
  });
}

__device__ __forceinline__ void multiply(Shared& shared, const Shared::Tensor& tmem, const Args& args) {
  u32 turn = 0;
  each_tile(args, [&](u32 index, const Tile&, const Operand& a, const Operand(&b)[2]) {
    const u32 buffer = index % BUFFERS;
    ptx::mbarrier_wait(shared.gated[buffer], index / BUFFERS % 2 ^ 1);
    ptx::tensor_fence_after();
    for (u32 step = 0; step < a.steps(); ++step)
      multiply_step(shared, turn++, tmem, 2 * buffer, b, step > 0);
    ptx::mma_commit(shared.product[buffer]);
  });
}

__device__ __forceinline__ void gate(Shared& shared, const Shared::Tensor& tmem, const Args& args) {
  each_tile(args, [&](u32 index, const Tile& tile, const Operand&, const Operand(&)[2]) {
    const u32 buffer = index % BUFFERS;
    ptx::mma_wait(shared.product[buffer], index / BUFFERS % 2);
    store_gated<BN>(tile, tmem.accumulator(2 * buffer), tmem.accumulator(2 * buffer + 1));
    ptx::tensor_fence_before();
    ptx::mbarrier_arrive(shared.gated[buffer]);
  });
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) dual_gemm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, dual_gemm);
  Shared& shared = shared_memory<Shared>();
  if (threadIdx.x == 0) {
    for (u32 i = 0; i < BUFFERS; ++i) {
      ptx::mbarrier_init(shared.product[i], 1);
      ptx::mbarrier_init(shared.gated[i], GATERS);
    }
  }
  const auto tmem = open(shared);
  const u32 warp = threadIdx.x / 32;
  if (warp < LOADER) {
    gate(shared, tmem, args);
  } else if (ptx::elect_one()) {
    if (warp == LOADER) {
      load(shared, args);
    } else {
      multiply(shared, tmem, args);
    }
  }
  __syncwarp();
  close(tmem);
}
