/*dgx
summary  = "interleaved, persistent: one CTA per SM strides over the tiles, longest K first, group found by binary search"
extend   = "interleaved"
round    = 6
claim    = { geomean = 1.05, over = "interleaved", why = "no O(groups) walk per CTA; barriers set up once" }
order    = "0 - k"

[[launch]]
kernel = "dual_gemm"
grid   = "min(sms, sum(tiles))"
block  = "THREADS"
smem   = "SMEM"
*/
#include <dgx/epilogue.cuh>
#include <dgx/mainloop.cuh>
#include <dgx/shared.cuh>
using namespace dgx;

using Shared = Staging<BM, BN, 2, STAGES>;
static_assert(BK == STEP && sizeof(Shared) <= SMEM);

extern "C" __global__ void __launch_bounds__(THREADS, 1) dual_gemm(const __grid_constant__ Args args) {
  DGX_STAMP_KERNEL(args, dual_gemm);
  Shared& shared = shared_memory<Shared>();
  open(shared);
  u32 turn = 0;
  for (u32 drawn = blockIdx.x; drawn < args.tile_count; drawn += gridDim.x) {
    const Tile tile = find_tile_by_search<BM, BN>(args, drawn, MAPS);
    const Group& group = *tile.group;
    const Operand a(tile.maps + MAP_A, group.sfa_atoms, tile.row, group.k);
    const Operand b[2] = {{tile.maps + MAP_B1, group.sfb1_atoms, tile.column, group.k},
                          {tile.maps + MAP_B2, group.sfb2_atoms, tile.column, group.k}};

    float product[2][BN / 2];
    accumulate(product, shared, a, b, turn);

    store_gated<BN>(tile, product[0], product[1]);
  }
}
