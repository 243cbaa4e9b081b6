/*dgx
summary  = "interleaved, persistent: one CTA per SM strides over the tiles, longest K first, group found by binary search"
extend   = "interleaved"
round    = 6
claim    = { geomean = 1.05, over = "interleaved", why = "no O(groups) walk per CTA; barriers and tensor memory set up once" }
order    = "0 - k"

[[launch]]
kernel = "dual_gemm"
grid   = "min(sms, sum(tiles))"
block  = "THREADS"
smem   = "SMEM"
*/
#include <dgx/sm100/kernel.cuh>
using namespace dgx;

using Shared = Staging<BM, BN, 2, STAGES>;
static_assert(BK == STEP && sizeof(Shared) <= SMEM);

extern "C" __global__ void __launch_bounds__(THREADS, 1) dual_gemm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, dual_gemm);
  Shared& shared = shared_memory<Shared>();
  const auto tmem = open(shared);
  u32 turn = 0, tiles = 0;
  for (u32 drawn = blockIdx.x; drawn < args.tile_count; drawn += gridDim.x, ++tiles) {
    const Tile tile = find_tile_by_search<BM, BN>(args, drawn, MAPS);
    const Group& group = *tile.group;
    const Operand a(tile.maps + MAP_A, group.sfa_atoms, tile.row, group.k);
    const Operand b[2] = {{tile.maps + MAP_B1, group.sfb1_atoms, tile.column, group.k},
                          {tile.maps + MAP_B2, group.sfb2_atoms, tile.column, group.k}};

    if (threadIdx.x < 32 && ptx::elect_one()) {
      u32 own = turn;
      accumulate(shared, tmem, 0, a, b, own);
      ptx::mma_commit(shared.done);
    }
    __syncwarp();
    turn += a.steps();
    wait_for_products(shared, tiles);

    store_gated<BN>(tile, tmem.accumulator(0), tmem.accumulator(1));
    // The next tile's MMAs overwrite what all four warps must have read.
    sync_tensor();
  }
  close(tmem);
}
